"""Control characters: codes of Unicode's category Cc but tab, line feed and carriage return; marks of direction, and
the byte order mark. They are invisible, and a model learns to write them.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import regex

from tfm.pipeline.cleaning.rules.character_sets import BIDI_SET, CONTROL_SET, character_table
from tfm.pipeline.cleaning.rules.texts.config import ControlsConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

CONTROL_CHARACTERS_PATTERN = f"[{CONTROL_SET}{BIDI_SET}]"
WHITE_SPACE_CONTROLS = r"\x0b\x0c\x1c-\x1f\x85"
"""Control characters at which `str.split` splits, but for tab and line ends."""
DIVIDING_CONTROLS_PATTERN = regex.compile(
    rf"(?<=[^\s{WHITE_SPACE_CONTROLS}])[{WHITE_SPACE_CONTROLS}]+(?=[^\s{WHITE_SPACE_CONTROLS}])"
)


def remove_controls(texts: Sequence[str], config: ControlsConfig) -> Sequence[str]:
    """Return the texts without control characters, if that is what is to be done with them.

    Between words that such white space alone divides (a form feed, a vertical tab, U+0085) a space takes its place.
    """
    if config.action == "drop":
        return texts
    pattern = _control_characters_regex()
    return [each if each.isprintable() else pattern.sub("", DIVIDING_CONTROLS_PATTERN.sub(" ", each)) for each in texts]


def count_controls(pairs: TextPairBatch, config: ControlsConfig) -> Floats:
    """(n, 1) control characters of both sides."""
    table = character_table(CONTROL_CHARACTERS_PATTERN)
    return as_column(
        sum((side.count_flagged(table[side.characters]) for side in pairs.sides), np.zeros(len(pairs), np.int64))
    )


@cache
def _control_characters_regex() -> "regex.Pattern[str]":
    return regex.compile(CONTROL_CHARACTERS_PATTERN, flags=regex.V1)
