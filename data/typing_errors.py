"""Typing errors: a share of a text's characters is mistyped, to measure a model's loss on text as people type it.

Each character of a word is hit with probability `rate`. A character that is hit changes places with the next one, is
left out, is followed by another one, or becomes another one, each as likely. A character is a unit that a reader sees
as one (a grapheme cluster, Unicode's annex 29): a letter with its marks, a conjunct of Devanagari or an emoji of
several code points stays whole. New characters are drawn from those of the line that are of the same script and kind,
so errors need no keyboard, and are of the text's own language in any script. White space stays, and no word disappears:
there are as many words as before, for tags for instance.
"""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

import regex

_GRAPHEME_PATTERN = regex.compile(r"\X")
_NUM_DRAWS_PER_CHARACTER = 3  # of each character: whether it is hit, what happens to it, and which one comes in


def add_typos(line: str, rate: float, seed: int) -> str:
    """Return a line with typing errors: a pure function of its arguments.

    Characters that are hit at a rate are hit at every higher one too, unless the one before now changes places with
    them.

    Args:
        line: the text.
        rate: the probability that a character is hit, from 0 to 1.
        seed: of the draws.
    """
    characters = _GRAPHEME_PATTERN.findall(line)
    draws = _draw_uniform_numbers(line, seed, len(characters))
    pool: dict[tuple[str, str], list[str]] = defaultdict(list)
    for character in characters:
        pool[_script_and_category(character)].append(character)
    pieces, position = [], 0
    for is_space, group in groupby(characters, lambda character: character[0].isspace()):
        word = list(group)
        pieces.append(
            "".join(word) if is_space else _mistype_word(word, draws[position : position + len(word)], rate, pool)
        )
        position += len(word)
    return "".join(pieces)


def _mistype_word(
    word: list[str], draws: list[tuple[float, ...]], rate: float, pool: dict[tuple[str, str], list[str]]
) -> str:
    output: list[str] = []
    position = 0
    while position < len(word):
        character, next_characters = word[position], word[position + 1 : position + 2]
        (hit_draw, way_draw, choice_draw), position = draws[position], position + 1
        if hit_draw >= rate:
            output.append(character)
            continue
        same_kind = pool[_script_and_category(character)]
        alternatives = [each for each in same_kind if each != character]
        ways: list[tuple[list[str], int]] = []  # what is typed, and how many characters after this one it takes along
        if next_characters and next_characters[0] != character:
            ways.append(([next_characters[0], character], 1))
        if output or next_characters:
            ways.append(([], 0))
        ways.append(([character, same_kind[int(choice_draw * len(same_kind))]], 0))
        if alternatives:
            ways.append(([alternatives[int(choice_draw * len(alternatives))]], 0))
        # not swaps that merge characters, such as two halves of flags or the neighbours of a virama
        ways = [way for way in ways if _are_separate_graphemes([*output[-1:], *way[0], *word[position + way[1] :][:1]])]
        replacement, num_consumed = ways[int(way_draw * len(ways))] if ways else ([character], 0)
        output += replacement
        position += num_consumed
    return "".join(output)


def _are_separate_graphemes(characters: list[str]) -> bool:
    """Whether some characters are still the characters of a text once they are beside each other."""
    return bool(_GRAPHEME_PATTERN.findall("".join(characters)) == characters)


def add_typos_to_lines(lines: Iterable[str], rate: float, seed: int) -> list[str]:
    """Return lines with typing errors, each by itself: a line's errors depend on no other line.

    Args:
        lines: the texts.
        rate: the probability that a character is hit, from 0 to 1.
        seed: of the draws.
    """
    return [add_typos(line, rate, seed) for line in lines]


def _script_and_category(character: str) -> tuple[str, str]:
    """The script of a character, as the first word of its name, and its category (Ll: a small letter)."""
    return unicodedata.name(character[0], "").partition(" ")[0], unicodedata.category(character[0])


def _draw_uniform_numbers(line: str, seed: int, count: int) -> list[tuple[float, ...]]:
    """Numbers from 0 to 1 for each of `count` places of a line, the same on every machine."""
    key = hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16, salt=seed.to_bytes(8, "little"))
    stream = hashlib.shake_128(key.digest()).digest(4 * _NUM_DRAWS_PER_CHARACTER * count)
    numbers: Iterator[float] = (
        int.from_bytes(stream[offset : offset + 4], "little") / 2**32 for offset in range(0, len(stream), 4)
    )
    return list(zip(*[numbers] * _NUM_DRAWS_PER_CHARACTER, strict=True))
