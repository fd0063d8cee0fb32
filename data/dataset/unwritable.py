"""References that a model can never write, since its tokenizer changes a character or does not know it."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tfm.data.dataset.examples import EncodedSide
from tfm.tokenizer.normalization import WHITE_SPACE
from tfm.tokenizer.tokenizer import Tokenizer

MAX_CHARACTERS_REPORTED = 100
_SPACE_REMOVAL_TABLE = str.maketrans(dict.fromkeys(WHITE_SPACE))


@dataclass
class UnwritableCharacterCounts:
    """Counts segments that do not come back from encoding and decoding as they are, white space aside.

    Args:
        tokenizer: encodes and decodes.
        touched: the number of these segments.
        changed: the number of segments in which normalization changes characters.
        unknown: the number of segments with unknown pieces.
        characters: that normalization changes, or that no piece has; not the letters of words that are unknown as a
            whole.
        words: unknown words, of a tokenizer whose pieces are words.
    """

    tokenizer: Tokenizer
    touched: int = 0
    changed: int = 0
    unknown: int = 0
    characters: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, side: EncodedSide) -> None:
        """Count the references of a chunk."""
        ids = np.split(side.ids, np.cumsum(side.lengths)[:-1]) if side.texts else []
        for text, decoded in zip(side.texts, self.tokenizer.decode_batch([each.tolist() for each in ids]), strict=True):
            if text != decoded and (expected := _remove_spaces(text)) != (actual := _remove_spaces(decoded)):
                normalized = self.tokenizer.normalize(text)
                self._add_segment(expected, _remove_spaces(normalized), actual)
                if self.tokenizer.is_word_level:
                    self.words += Counter(normalized.split()) - Counter(decoded.split())

    def _add_segment(self, text: str, normalized: str, decoded: str) -> None:
        self.touched += 1
        self.changed += text != normalized
        self.unknown += normalized != decoded
        self.characters += Counter(text) - Counter(normalized)
        missing = Counter(normalized) - Counter(decoded)
        self.characters += Counter(
            {character: count for character, count in missing.items() if character not in self._writable_characters}
        )

    @cached_property
    def _writable_characters(self) -> set[str]:
        """The characters of all pieces."""
        return set().union(*map(self.tokenizer.surface, range(self.tokenizer.vocab_size)))

    def as_json(self) -> dict[str, Any]:
        """Return the entry of report.json; the most frequent characters first."""
        ranked = sorted(self.characters.items(), key=lambda each: (-each[1], each[0]))[:MAX_CHARACTERS_REPORTED]
        words = sorted(self.words.items(), key=lambda each: (-each[1], each[0]))[:MAX_CHARACTERS_REPORTED]
        words_as_json = {"words": [{"word": each, "times": times} for each, times in words]} if words else {}
        return {
            "segments": self.touched,
            "changed_by_normalization": self.changed,
            "with_unknown_pieces": self.unknown,
            "characters": [
                {"character": character, "code_point": f"U+{ord(character):04X}", "times": times}
                for character, times in ranked
            ],
            **words_as_json,
        }


def _remove_spaces(text: str) -> str:
    return text.translate(_SPACE_REMOVAL_TABLE)
