"""Learning pieces from counted words, one function for each kind.

Ids have one canonical order: control tokens, the alphabet by code point, then the learned pieces (merges in their
order, other pieces by their rank). A file is therefore as reproducible as the trainer.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.models import Model
from tokenizers.trainers import Trainer

from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.merges.likelihood import best_merges_by_likelihood, best_merges_by_ratio
from tfm.tokenizer.merges.piece_counts import PieceCounts
from tfm.tokenizer.special import CONTINUATION_PREFIX, SPECIAL_TOKENS, UNK, UNK_ID

MAX_PIECE_CHARACTERS = 16
# Of a log probability: numbers of up to 15 digits are read back from tokenizer.json as they were written; Hugging
# Face's reader is off in the last digit of some longer ones.
SCORE_DECIMALS = 12
CHARACTER_SCORE_STEP = 1e-4
# Normalized text has no tab.
WORD_END = "\t"
# Beyond this WordPiece calls a word unknown; its greedy search is slow on longer ones. The trainers, whose time grows
# with the square of a word's length, see longer ones in parts.
MAX_WORD_CHARACTERS = 1000

WordCounts = Mapping[str, int]


def learn_bpe(words: WordCounts, config: TokenizerConfig) -> Model:
    """Byte-pair encoding (Sennrich et al. 2016): the most frequent pair of pieces is merged, again and again."""
    alphabet = frequent_characters(words, config.vocab_size - len(SPECIAL_TOKENS), config.min_frequency)
    return _learn_merges(_split_at_unknown_characters(words, alphabet), alphabet, config)


def learn_byte_level_bpe(words: WordCounts, config: TokenizerConfig) -> Model:
    """Byte-pair encoding over bytes (Radford et al. 2019); the 256 bytes are in the vocabulary, seen or not."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return _learn_merges(_split_at_unknown_characters(words, alphabet), alphabet, config)


def learn_wordpiece(words: WordCounts, config: TokenizerConfig) -> Model:
    """WordPiece (Schuster and Nakajima 2012): as published, by the likelihood of the text, by a ratio of counts, or as
    Hugging Face trains it, by the frequency of a pair. Every letter is in the vocabulary as the beginning and the
    continuation of a word.
    """
    alphabet = frequent_characters(words, (config.vocab_size - len(SPECIAL_TOKENS)) // 2, config.min_frequency)
    continuation_pieces = [CONTINUATION_PREFIX + letter for letter in alphabet if letter != " "]
    learn = _learn_wordpiece_by_frequency if config.criterion == "frequency" else _learn_wordpiece_by_score
    pieces = learn(_split_at_unknown_characters(words, alphabet), alphabet, continuation_pieces, config)
    vocab = _assign_ids([*alphabet, *continuation_pieces, *pieces])
    return models.WordPiece(vocab, unk_token=UNK, max_input_chars_per_word=MAX_WORD_CHARACTERS)


def _learn_wordpiece_by_frequency(
    words: WordCounts, alphabet: list[str], continuations: list[str], config: TokenizerConfig
) -> list[str]:
    """The pieces of WordPiece after the letters, by the frequency of pairs."""
    trainer = trainers.WordPieceTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        # Named in advance, continuations get ids in order; left to the trainer, ids and so ties are random.
        special_tokens=[*SPECIAL_TOKENS, *continuations],
        initial_alphabet=alphabet,
        continuing_subword_prefix=CONTINUATION_PREFIX,
        show_progress=False,
    )
    model = _train_backend(models.WordPiece(unk_token=UNK), trainer, words.items())
    return sorted(model["vocab"], key=model["vocab"].__getitem__)


def _learn_wordpiece_by_score(
    words: WordCounts, alphabet: list[str], continuations: list[str], config: TokenizerConfig
) -> list[str]:
    """The pieces of WordPiece after the letters, by the likelihood that they gain, or by a ratio of counts.

    A space and the letter after it are one piece from the beginning, as the papers' words have no space: it is in
    nearly every word, and by a ratio what stands beside it would never score.
    """
    room = config.vocab_size - len(SPECIAL_TOKENS) - len(alphabet) - len(continuations)
    begin_counts: Counter[str] = Counter()
    for word, count in words.items():
        if word[0] == " " and len(word) > 1:
            begin_counts[word[:2]] += count
    initial_pieces = sorted(most_frequent_strings(begin_counts, room, config.min_frequency))
    counts = PieceCounts({_split_word(word, initial_pieces): count for word, count in words.items()})
    pieces = dict.fromkeys(initial_pieces)
    if config.criterion == "likelihood":
        joins = best_merges_by_likelihood(counts, config.min_frequency, config.min_gain)
    else:
        joins = best_merges_by_ratio(counts, config.min_frequency, config.min_score)
    while len(pieces) < room and (piece := next(joins, None)) is not None:
        pieces[piece] = None
    return list(pieces)


def _split_word(word: str, word_starts: Collection[str]) -> tuple[str, ...]:
    """A word's letters as pieces: the first, with the space before it if `word_starts` has both, and continuations."""
    first = word[:2] if word[:2] in word_starts else word[0]
    return first, *(CONTINUATION_PREFIX + letter for letter in word[len(first) :])


def learn_unigram(words: WordCounts, config: TokenizerConfig) -> Model:
    """The unigram language model (Kudo 2018): pieces, each with its log probability, pruned by expectation
    maximization from many; the most probable are numbered first."""
    return make_unigram(learn_unigram_pieces(words, config.vocab_size - len(SPECIAL_TOKENS), config.min_frequency))


def make_unigram(pieces: Mapping[str, float]) -> Model:
    """The unigram language model of pieces with their log probabilities, numbered in the order given."""
    return models.Unigram([*((special, 0.0) for special in SPECIAL_TOKENS), *pieces.items()], UNK_ID, False)


def learn_unigram_pieces(words: WordCounts, size: int, min_frequency: int) -> dict[str, float]:
    """Learn pieces of the unigram language model.

    Args:
        words: counted words.
        size: the most pieces.
        min_frequency: the least number of occurrences of a letter or piece.

    Returns:
        The log probability of each piece, the most probable first.
    """
    alphabet = frequent_characters(words, size, min_frequency)
    words = _split_at_unknown_characters(words, alphabet)
    trainer = trainers.UnigramTrainer(
        vocab_size=len(SPECIAL_TOKENS) + size + 1,  # one for ENDS
        special_tokens=list(SPECIAL_TOKENS),
        unk_token=UNK,
        max_piece_length=MAX_PIECE_CHARACTERS,
        show_progress=False,
    )
    trained_vocab = _train_backend(models.Unigram(), trainer, _mark_word_ends(words))["vocab"]
    scores_by_piece = _reassign_restored_letter_scores(
        {piece: round(score, SCORE_DECIMALS) for piece, score in trained_vocab}
    )
    longer = {piece for piece in scores_by_piece if len(piece) > 1 and piece not in SPECIAL_TOKENS}
    occurrences = _count_substring_occurrences(words, longer)
    ranked = sorted(scores_by_piece, key=lambda piece: (-scores_by_piece[piece], piece))
    frequent = [piece for piece in ranked if piece in longer and occurrences[piece] >= min_frequency]
    # The trainer keeps to the size it is given only roughly.
    pieces = {*alphabet, *frequent[: size - len(alphabet)]}
    return {piece: scores_by_piece[piece] for piece in ranked if piece in pieces}


def _reassign_restored_letter_scores(piece_scores: Mapping[str, float]) -> dict[str, float]:
    """The same pieces, where the letters that pruning took away have their scores by code point.

    The trainer puts these back with the lowest score there is and steps of CHARACTER_SCORE_STEP above it, in an order
    that is another each time.
    """
    alphabet = sorted(piece for piece in piece_scores if len(piece) == 1)
    highest = min(piece_scores.values(), default=0.0) + CHARACTER_SCORE_STEP * (len(alphabet) + 0.5)
    back = [letter for letter in alphabet if piece_scores[letter] < highest]
    scores = sorted((piece_scores[letter] for letter in back), reverse=True)
    return {**piece_scores, **dict(zip(back, scores, strict=True))}


def learn_char(words: WordCounts, config: TokenizerConfig) -> Model:
    """One piece a character: byte-pair encoding without merges."""
    alphabet = frequent_characters(words, config.vocab_size - len(SPECIAL_TOKENS), config.min_frequency)
    return models.BPE(_assign_ids(alphabet), [], unk_token=UNK)


def learn_word(words: WordCounts, config: TokenizerConfig) -> Model:
    """One piece a word, the most frequent first. Words longer than MAX_WORD_CHARACTERS are not learned."""
    short_words = {word: count for word, count in words.items() if len(word) <= MAX_WORD_CHARACTERS}
    frequent = most_frequent_strings(short_words, config.vocab_size - len(SPECIAL_TOKENS), config.min_frequency)
    return models.WordLevel(_assign_ids(frequent), unk_token=UNK)


def _learn_merges(words: WordCounts, alphabet: list[str], config: TokenizerConfig) -> Model:
    """A byte-pair encoding over an alphabet with every character of the words."""
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    model = _train_backend(models.BPE(), trainer, words.items())
    merges = [(left, right) for left, right in model["merges"]]
    vocab = _assign_ids([*alphabet, *(left + right for left, right in merges)])
    return models.BPE(vocab, merges, unk_token=UNK)


def _train_backend(model: Model, trainer: Trainer, words: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Run Hugging Face's trainer on counted words, and return the model as tokenizer.json has it."""
    # The trainer takes text and counts itself: each word is said as often as it was seen. No word has a
    # line break, since normalized text has none.
    learner = Tokenizer(model)
    learner.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
    learner.train_from_iterator(_repeat_words(words), trainer)
    model_json: dict[str, Any] = json.loads(learner.to_str())["model"]
    return model_json


def _repeat_words(words: Iterable[tuple[str, int]], chunk_size: int = 1000) -> Iterator[str]:
    for word, count in words:
        num_chunks, rest = divmod(count, chunk_size)
        yield from ["\n".join([word] * chunk_size)] * num_chunks
        if rest:
            yield "\n".join([word] * rest)


def _mark_word_ends(words: WordCounts) -> Iterator[tuple[str, int]]:
    """The words, each as often as before, but one occurrence followed by a character that no word has.

    The trainer takes as candidates the strings that are followed by different characters in its list of distinct words.
    " many" is in it once, so without this it could never become a piece, however frequent.
    """
    for word, count in words.items():
        if count > 1:
            yield word + WORD_END, 1
        yield word, max(count - 1, 1)


def frequent_characters(words: WordCounts, size: int, min_frequency: int) -> list[str]:
    """Return the most frequent characters, by code point.

    Args:
        words: counted words.
        size: the most characters.
        min_frequency: the least number of occurrences of a character.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return sorted(most_frequent_strings(counts, size, min_frequency))


def most_frequent_strings(counts: Mapping[str, int], size: int | None, min_frequency: int) -> list[str]:
    """Return the most frequent strings, the most frequent first.

    Args:
        counts: the number of times that each was seen.
        size: the most strings; None: all.
        min_frequency: the least number of times.
    """
    frequent = [each for each, count in counts.items() if count >= min_frequency]
    return sorted(frequent, key=lambda each: (-counts[each], each))[:size]


def _split_at_unknown_characters(words: WordCounts, letters: Iterable[str]) -> Counter[str]:
    """The words, cut at every character outside the alphabet, and into parts of MAX_WORD_CHARACTERS at most."""
    alphabet = set(letters)
    parts: Counter[str] = Counter()
    for word, count in words.items():
        if len(word) <= MAX_WORD_CHARACTERS and alphabet.issuperset(word):
            parts[word] += count
        else:
            for is_known, run in groupby(word, alphabet.__contains__):
                while is_known and (part := "".join(islice(run, MAX_WORD_CHARACTERS))):
                    parts[part] += count
    return parts


def _count_substring_occurrences(words: WordCounts, pieces: set[str]) -> Counter[str]:
    """Count the occurrences of each of the pieces in the words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 2, min(start + MAX_PIECE_CHARACTERS, len(word)) + 1):
                if word[start:end] in pieces:
                    counts[word[start:end]] += count
    return counts


def _assign_ids(pieces: Iterable[str]) -> dict[str, int]:
    """Ids in the order given, after the control tokens; the first mention of a piece counts."""
    return {piece: number for number, piece in enumerate(dict.fromkeys([*SPECIAL_TOKENS, *pieces]))}
