"""Sets of characters as tables over all of Unicode: one look-up a character."""

import sys
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

NUM_CHARACTERS = sys.maxunicode + 1
MAX_WHITE_SPACE = 0x3001  # no character from here on is white space
CONTROL_SET = r"[\p{Cc}--[\t\n\r]]"
BIDI_SET = r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]"
"""Marks that turn the direction of text or are no text: they are invisible, and no word needs them."""


@cache
def character_table(pattern: str) -> NDArray[np.bool_]:
    """Whether each character of Unicode, by its code point, matches a pattern of one character."""
    table = np.zeros(NUM_CHARACTERS, np.bool_)
    for begin, end in ((0, 0xD800), (0xE000, NUM_CHARACTERS)):  # between them are halves of characters
        characters = np.arange(begin, end, dtype=np.uint32).tobytes().decode("utf-32-le")
        for match in regex.finditer(f"(?:{pattern})+", characters, flags=regex.V1):
            table[begin + match.start() : begin + match.end()] = True
    table.flags.writeable = False
    return table


def letters() -> NDArray[np.bool_]:
    """Which characters are alphabetic, as Unicode has it."""
    return character_table(r"\p{Alphabetic}")


def letters_of_script(name: str) -> NDArray[np.bool_]:
    """Which characters are alphabetic and of a script."""
    return character_table(rf"[\p{{Script={name}}}&&\p{{Alphabetic}}]")


@cache
def white_space() -> NDArray[np.bool_]:
    """Which characters `str.split` splits at."""
    table = np.zeros(NUM_CHARACTERS, np.bool_)
    table[[number for number in range(MAX_WHITE_SPACE) if chr(number).isspace()]] = True
    return table
