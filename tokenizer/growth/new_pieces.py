"""Which pieces a tokenizer lacks for a text: one function for each kind of model, as that kind learns.

Letters that it does not know come first. For byte-pair encoding and WordPiece the most frequent pair of neighbours then
becomes a piece, again and again. A unigram model gets pieces of another one, learned from the text alone, where they
are more probable than what it has in their place.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

import tokenizers

from tfm.tokenizer.foreign.renumbered import document_pieces
from tfm.tokenizer.growth.extension import TokenizerJson, append_pieces
from tfm.tokenizer.learn import MAX_WORD_CHARACTERS, WordCounts, learn_unigram_pieces, most_frequent_strings
from tfm.tokenizer.merges.piece_counts import Pair, PieceCounts, best_merges, merged_piece
from tfm.tokenizer.special import CONTINUATION_PREFIX, UNK

BYTE_PIECE_PATTERN = r"<0x[0-9A-F]{2}>"
"""A piece that stands for a byte of an unknown letter; of several no new piece is made."""


def grow_bpe(document: TokenizerJson, words: WordCounts, count: int, min_frequency: int) -> TokenizerJson:
    """Learn further merges of byte-pair encoding, which apply after all existing ones.

    Each makes a new piece: none makes an old one in another way, and no two make the same.
    """
    letters = _new_characters(document, words, min_frequency)[:count]
    extended = append_pieces(document, dict.fromkeys(letters, 0.0))
    if document["pre_tokenizer"] is None and not document["model"]["merges"]:
        return extended  # one piece a character
    pairs = list(
        _most_frequent_merges(extended, words, count - len(letters), min_frequency, lambda left, right: left + right)
    )
    return append_pieces(extended, {left + right: 0.0 for left, right in pairs}, pairs)


def grow_wordpiece(document: TokenizerJson, words: WordCounts, count: int, min_frequency: int) -> TokenizerJson:
    """WordPiece with further pieces: a letter begins a word and continues one."""
    known_pieces = {*document_pieces(document).values()}
    letters: list[str] = []
    for letter in _new_characters(document, words, min_frequency):
        missing = [each for each in (letter, CONTINUATION_PREFIX + letter) if each not in known_pieces]
        letters += missing if len(letters) + len(missing) <= count else []
    extended = append_pieces(document, dict.fromkeys(letters, 0.0))
    pairs = _most_frequent_merges(extended, words, count - len(letters), min_frequency, merged_piece)
    return append_pieces(extended, {merged_piece(*pair): 0.0 for pair in pairs})


def grow_unigram(document: TokenizerJson, words: WordCounts, count: int, min_frequency: int) -> TokenizerJson:
    """A unigram model with the most probable pieces of one that learns the text alone, as large as both together.

    They keep their log probabilities. One that is less probable than its parts here would never be used.
    """
    known_pieces = {*document_pieces(document).values()}
    scores_by_piece = learn_unigram_pieces(words, len(known_pieces) + count, min_frequency)
    backend, scores = _load_tokenizer(document), [score for _, score in document["model"]["vocab"]]
    unknown = document["model"]["unk_id"]

    def score_of_parts(piece: str) -> float:
        ids = [token.id for token in backend.model.tokenize(piece)]
        return float("-inf") if unknown in ids else sum(scores[number] for number in ids)

    new = [
        piece for piece, score in scores_by_piece.items() if piece not in known_pieces and score > score_of_parts(piece)
    ]
    chosen_pieces = sorted(new, key=lambda piece: len(piece) > 1)[:count]  # letters first, then by probability
    return append_pieces(document, {piece: scores_by_piece[piece] for piece in chosen_pieces})


def grow_word(document: TokenizerJson, words: WordCounts, count: int, min_frequency: int) -> TokenizerJson:
    """A vocabulary of words with the most frequent ones that it does not know."""
    known_pieces = {*document_pieces(document).values()}
    short_words = {
        word: times for word, times in words.items() if word not in known_pieces and len(word) <= MAX_WORD_CHARACTERS
    }
    return append_pieces(document, dict.fromkeys(most_frequent_strings(short_words, count, min_frequency), 0.0))


GROWERS: Mapping[str, Callable[[TokenizerJson, WordCounts, int, int], TokenizerJson]] = {
    "BPE": grow_bpe,
    "WordPiece": grow_wordpiece,
    "Unigram": grow_unigram,
    "WordLevel": grow_word,
}
"""By the type of the model in tokenizer.json: (tokenizer.json, words, number of new pieces, min_frequency) -> the same
with more pieces, so many at most."""


def _load_tokenizer(document: TokenizerJson) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def _new_characters(document: TokenizerJson, words: WordCounts, min_frequency: int) -> list[str]:
    """The letters that are no pieces, the most frequent first."""
    known_pieces, letter_counts = {*document_pieces(document).values()}, Counter[str]()
    for word, times in words.items():
        for letter in word:
            letter_counts[letter] += times
    return most_frequent_strings(
        {letter: times for letter, times in letter_counts.items() if letter not in known_pieces}, None, min_frequency
    )


def _most_frequent_merges(
    document: TokenizerJson, words: WordCounts, count: int, min_frequency: int, join_pieces: Callable[[str, str], str]
) -> Iterator[Pair]:
    """The most frequent pair of neighbours that makes a new piece, again and again; `count` at most."""
    known_pieces = {*document_pieces(document).values()}
    counts = PieceCounts(_count_piece_sequences(document, words), join_pieces)

    def score(pair: Pair) -> float:
        return 0 if join_pieces(*pair) in known_pieces else counts.pairs[pair]

    for pair in best_merges(counts, score, min_frequency, min_score=1):
        if not count:
            return
        known_pieces.add(join_pieces(*pair))
        count -= 1
        yield pair


def _count_piece_sequences(document: TokenizerJson, words: WordCounts) -> Counter[tuple[str, ...]]:
    """The words as pieces, cut where a letter is unknown, and into parts of MAX_WORD_CHARACTERS pieces at most."""
    backend, runs = _load_tokenizer(document), Counter[tuple[str, ...]]()

    def is_text(piece: str) -> bool:
        return piece != UNK and not (document["model"].get("byte_fallback") and re.fullmatch(BYTE_PIECE_PATTERN, piece))

    for word, times in words.items():
        for is_known, run in groupby((token.value for token in backend.model.tokenize(word)), is_text):
            pieces = [*run]
            for begin in range(0, len(pieces) if is_known else 0, MAX_WORD_CHARACTERS):
                runs[tuple(pieces[begin : begin + MAX_WORD_CHARACTERS])] += times
    return runs
