"""All the ways in which pieces spell a phrase as a whole word, or whole words, of a text.

A model may spell a word with other pieces than the tokenizer would, also with one that ends in punctuation, or begins
before the phrase.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product

import regex

from tfm.data.scripts import SPACELESS_LETTERS
from tfm.pipeline.decoding.constraints.lexical import AFTER_WORD_ID, Pieces
from tfm.tokenizer.special import BOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

MAX_SPELLINGS = 4000
"""The most spellings of a phrase, those with the longest pieces first; a search looks for each at every step."""
_WORD_CHARACTER_PATTERN = regex.compile(
    rf"[\p{{M}}\u0E33\u0EB3]|(?!{SPACELESS_LETTERS})[\p{{L}}\p{{N}}]", flags=regex.V1
)


def is_word_character(character: str) -> bool:
    """Return whether a character is a part of words with spaces around them."""
    return _WORD_CHARACTER_PATTERN.match(character) is not None


@lru_cache(maxsize=8)
def pieces_by_surface(tokenizer: Tokenizer) -> Mapping[str, list[int]]:
    """The pieces that stand for each text."""
    pieces: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(len(SPECIAL_TOKENS), tokenizer.vocab_size):
        if surface := tokenizer.surface(number):
            pieces[surface].append(number)
    return pieces


@lru_cache(maxsize=8)
def pieces_after_words(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The pieces after which a word may begin: they end in no character of one."""
    table = pieces_by_surface(tokenizer)
    return tuple(
        number for surface, numbers in table.items() if not is_word_character(surface[-1]) for number in numbers
    )


@lru_cache(maxsize=8)
def canonical_piece_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return for each piece the first one that stands for the same text."""
    canonical_ids = list(range(tokenizer.vocab_size))
    for numbers in pieces_by_surface(tokenizer).values():
        for number in numbers:
            canonical_ids[number] = numbers[0]
    return tuple(canonical_ids)


def piece_spellings(tokenizer: Tokenizer, phrase: str) -> list[Pieces]:
    """The pieces that spell a phrase, wherever it stands as a whole.

    AFTER_WORD_ID stands for `pieces_after_words`, and any piece but the last for those that are `canonical_piece_ids`
    with it.
    """
    text = tokenizer.normalize(phrase).strip()
    if not text:
        return []
    table, longest = pieces_by_surface(tokenizer), max(map(len, pieces_by_surface(tokenizer)))
    spellings: dict[Pieces, None] = {}
    for begin, rest, contexts in _first_pieces(table, text):
        endings: Iterable[Pieces] = _last_pieces(table, rest, longest) if rest else [()]
        for end, context in product(islice(endings, max(0, MAX_SPELLINGS - len(spellings))), contexts):
            spellings[(*context, begin, *end)] = None
    return list(spellings)


def _first_pieces(table: Mapping[str, list[int]], text: str) -> Iterator[tuple[int, str, Sequence[Pieces]]]:
    """Yield the pieces with which a text may begin, the longest part of it first, the rest of the text, and the text
    that has to stand before the piece.
    """
    no_contexts: Sequence[Pieces] = [()]
    word_starts: Sequence[Pieces] = [(BOS_ID,), (AFTER_WORD_ID,)]
    starts = []
    for surface, numbers in table.items():
        for start in range(len(surface)):
            part = surface[start : start + len(text)]
            remainder = surface[start + len(text) :]
            if not text.startswith(part):
                continue
            if remainder and is_word_character(text[-1]) and is_word_character(remainder[0]):
                continue
            is_glued = is_word_character(text[0]) and (start == 0 or is_word_character(surface[start - 1]))
            if is_glued and start > 0:
                continue
            rest = text[len(part) :]
            starts += [
                (number, rest, word_starts if is_glued else no_contexts) for number in numbers[: 1 if rest else None]
            ]
    yield from sorted(starts, key=lambda each: len(each[1]))


def _last_pieces(table: Mapping[str, list[int]], text: str, longest: int) -> Iterator[Pieces]:
    """The pieces that spell the rest of a text; the last one may go on with what is of no word."""
    for surface, numbers in table.items():
        is_continued = len(surface) > len(text) and surface.startswith(text)
        if is_continued and not (is_word_character(text[-1]) and is_word_character(surface[len(text)])):
            yield from ((number,) for number in numbers)
    for length in range(min(longest, len(text)), 0, -1):
        numbers = table.get(text[:length], [])
        if length == len(text):
            yield from ((number,) for number in numbers)
        elif numbers:
            yield from ((numbers[0], *rest) for rest in _last_pieces(table, text[length:], longest))
