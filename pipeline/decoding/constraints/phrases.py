"""Words and phrases of a recipe or a file, as the pieces that a search looks for.

A forced phrase is the sequence of pieces that the tokenizer splits it into after a space; in a script without spaces
between words, and for punctuation that closes, after a letter. A forbidden one is that and each other spelling
(`spellings.py`); its pieces are forbidden also where they begin a longer word.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import regex

from tfm.data.errors import DataError, escape_unprintable
from tfm.data.scripts import SPACELESS_LETTERS
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.lexical import BannedPieces, Pieces
from tfm.pipeline.decoding.constraints.spelling import check_same_letters
from tfm.pipeline.decoding.constraints.spellings import canonical_piece_ids, piece_spellings, pieces_after_words
from tfm.tokenizer.special import BOS_ID, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

PRECEDING_LETTER = "a"
CLOSING_CATEGORIES = {"Po", "Pe", "Pf"}
"""Categories of Unicode: punctuation that stands right after a word, such as . , ! ? ) and \u3002"""
_SPACELESS_PATTERN = regex.compile(SPACELESS_LETTERS, flags=regex.V1)
# Thai and Lao am are letters by name and marks by use: they stand with the letter before them.
_WORD_CONTINUATION_PATTERN = regex.compile(
    rf"[\p{{M}}\u0E33\u0EB3]|(?!{SPACELESS_LETTERS})[\p{{L}}\p{{N}}]", flags=regex.V1
)


@dataclass(frozen=True)
class PhraseConstraints:
    """Forbidden and forced phrases.

    forbidden: in no sentence. forced: of each sentence; None: of none. continuing: pieces that go on with the word
    before them. prompt: pieces that precede each hypothesis, as a prompt does, where forbidden ones are looked for too.
    after_words: those that AFTER_WORD_ID stands for in forbidden ones. canonical_ids: for each piece the first of
    its text.
    """

    forbidden: Sequence[Pieces] = ()
    forced: Sequence[Sequence[Pieces]] | None = None
    continuing: Sequence[int] = ()
    prompt: Sequence[int] = ()
    after_words: Sequence[int] = ()
    canonical_ids: Sequence[int] = ()

    def banned_pieces(self, ngram: int | None) -> BannedPieces | None:
        """The rule against these forbidden phrases, and against n-grams of pieces that occur twice."""
        return BannedPieces.from_config(ngram, self.forbidden, self.prompt, self.after_words, self.canonical_ids)

    @classmethod
    def from_config(
        cls,
        tokenizer: Tokenizer,
        config: DecodingConfig,
        num_sentences: int,
        *,
        forced: Sequence[Sequence[str]] | None = None,
        prompt: Sequence[int] = (),
    ) -> "PhraseConstraints":
        """Return the phrases that a config names, and those forced in each of the sentences beside.

        Args:
            tokenizer: the tokenizer of the target.
            config: the [decoding] part of a recipe.
            num_sentences: number of sentences.
            forced: further forced phrases of each sentence; None for none.
            prompt: pieces that stand before each hypothesis.
        """
        spellings = chain(*(piece_spellings(tokenizer, text) for text in config.forbidden))
        forbidden = [*dict.fromkeys([*forbidden_pieces(tokenizer, config.forbidden), *spellings])]
        by_text = (pieces_after_words(tokenizer), canonical_piece_ids(tokenizer)) if config.forbidden else ((), ())
        if not config.forced and forced is None:
            return cls(forbidden, None, (), prompt, *by_text)
        common_phrases = forced_pieces(tokenizer, config.forced, forbidden)
        sentence_phrases = [()] * num_sentences if forced is None else forced
        phrases_by_sentence = [
            [*common_phrases, *forced_pieces(tokenizer, phrases, forbidden)] for phrases in sentence_phrases
        ]
        return cls(forbidden, phrases_by_sentence, word_continuation_pieces(tokenizer), prompt, *by_text)


@lru_cache(maxsize=8)
def word_continuation_pieces(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The pieces that begin with a letter, a mark or a digit, and not with a space.

    In a script without spaces between words a letter begins another word as well as it goes on with one: only marks do.
    """
    return tuple(
        number for number in range(tokenizer.vocab_size) if _WORD_CONTINUATION_PATTERN.match(tokenizer.surface(number))
    )


def forbidden_pieces(tokenizer: Tokenizer, phrases: Iterable[str]) -> list[Pieces]:
    """Return the pieces of forbidden phrases: of each after a space and, where it is cut otherwise there, at the
    beginning; in a script without spaces after a letter, too.

    A phrase that the vocabulary cannot spell never comes up, and is left out. Raises DataError for an empty one.
    """
    spellings: list[Pieces] = []
    for phrase in phrases:
        inner_pieces, initial_pieces = _encode_phrase(tokenizer, phrase)
        spellings += [inner_pieces] if inner_pieces == initial_pieces else [inner_pieces, (BOS_ID, *initial_pieces)]
        if can_follow_letter(phrase):
            spellings.append(_encode_phrase(tokenizer, phrase, space="")[0])
    return [pieces for pieces in dict.fromkeys(spellings) if UNK_ID not in pieces]


def forced_pieces(tokenizer: Tokenizer, phrases: Iterable[str], forbidden: Sequence[Pieces] = ()) -> list[Pieces]:
    """Return the pieces of forced phrases: of each after a space; in a script without spaces after a letter, if it can
    be so.

    Args:
        tokenizer: the tokenizer of the target.
        phrases: the forced phrases.
        forbidden: the pieces of forbidden phrases.

    Raises:
        DataError: a phrase is empty, cannot be spelled with the vocabulary, would be written with other letters, or
            contains a forbidden phrase.
    """
    spellings = []
    for phrase in phrases:
        pieces, _ = _encode_phrase(tokenizer, phrase, space="" if can_follow_letter(phrase) else " ")
        if UNK_ID in pieces:
            raise DataError(
                f"the forced {_quote_phrase(phrase)} cannot be spelled with the model's vocabulary: remove it"
            )
        check_same_letters(phrase, tokenizer.decode(pieces), "the forced")
        if any(_contains_pieces(pieces, other) for other in forbidden):
            raise DataError(f"the forced {_quote_phrase(phrase)} contains a forbidden phrase: remove one of the two")
        spellings.append(pieces)
    return spellings


def can_follow_letter(phrase: str) -> bool:
    """Return whether a text has a phrase right after a letter: in a script without spaces, and punctuation that
    closes.
    """
    first = phrase.lstrip()[:1]
    return _SPACELESS_PATTERN.match(first) is not None or unicodedata.category(first or " ") in CLOSING_CATEGORIES


def _encode_phrase(tokenizer: Tokenizer, phrase: str, *, space: str = " ") -> tuple[Pieces, Pieces]:
    """The pieces of a phrase after a word and a space (or none), and at the beginning of a text."""
    standalone, letter, combined = tokenizer.encode_batch(
        [phrase, PRECEDING_LETTER, f"{PRECEDING_LETTER}{space}{phrase}"]
    )
    if not standalone:
        raise DataError(f"the phrase {_quote_phrase(phrase)} has no pieces: remove it")
    rest = combined[len(letter) :] if combined[: len(letter)] == letter else []
    # where the letter itself is unknown, so may be what is cut together with it
    is_separable = bool(rest) and tokenizer.decode(rest).strip() == tokenizer.decode(standalone).strip()
    return tuple(rest if is_separable else standalone), tuple(standalone)


def _contains_pieces(pieces: Pieces, phrase: Pieces) -> bool:
    return any(pieces[start : start + len(phrase)] == phrase for start in range(len(pieces)))


def _quote_phrase(phrase: str) -> str:
    return f'"{escape_unprintable(phrase[:40])}"'
