"""Control characters: codes of Unicode's category Cc but tab, line feed and carriage return; marks of direction, and
the byte order mark. They are invisible, and a model learns to write them.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import regex

from tfm.pipeline.cleaning.character_sets import BIDI_SET, CONTROL_SET, character_table
from tfm.pipeline.cleaning.rules.texts.config import ControlsConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

CONTROL_CHARACTERS_PATTERN = f"[{CONTROL_SET}{BIDI_SET}]"


def remove_controls(texts: Sequence[str], config: ControlsConfig) -> Sequence[str]:
    """Return the texts without control characters, if that is what is to be done with them."""
    if config.action == "drop":
        return texts
    pattern = _control_characters_regex()
    return [each if each.isprintable() else pattern.sub("", each) for each in texts]


def count_controls(pairs: TextPairBatch, config: ControlsConfig) -> Floats:
    """(n, 1) control characters of both sides."""
    table = character_table(CONTROL_CHARACTERS_PATTERN)
    return as_column(
        sum((side.count_flagged(table[side.characters]) for side in pairs.sides), np.zeros(len(pairs), np.int64))
    )


@cache
def _control_characters_regex() -> "regex.Pattern[str]":
    return regex.compile(CONTROL_CHARACTERS_PATTERN, flags=regex.V1)
