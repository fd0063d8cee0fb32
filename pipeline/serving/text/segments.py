"""The sentences of a text and all that stands between them, so that translations of them take their places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import regex

from tfm.data.scripts import has_spaceless_script

_ENDS_IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]$")


class SegmentBorders(NamedTuple):
    """The places of a sentence and of its translation in their texts, counted in characters."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass(frozen=True)
class TextSegments:
    """A text as sentences and separators: `separators[0] + sentences[0] + separators[1] + ...` is the text.

    Args:
        sentences: none is empty or begins or ends with white space.
        separators: one more than sentences: spaces, line breaks, and all else that no model has to read.
        indices_of_cut_sentences: the places of the sentences that end where a longer one was cut, since no model reads
            it whole.
    """

    sentences: tuple[str, ...]
    separators: tuple[str, ...]
    indices_of_cut_sentences: frozenset[int] = frozenset()

    @property
    def sources(self) -> list[str]:
        """The sentences as the model reads them: on one line each, with one space between words."""
        return [" ".join(sentence.split()) for sentence in self.sentences]

    def join(self, translations: Sequence[str]) -> str:
        """Put the translations of all sentences into the places of these.

        Between sentences without a space, as in Chinese, one is put where the language of the translations needs it.
        The sentences themselves give the text again. Raises ValueError unless each has one translation.
        """
        texts = [self.separators[0]]
        for text, separator in self._translations_with_separators(translations):
            texts += [text, separator]
        return "".join(texts)

    def borders(self, translations: Sequence[str]) -> list["SegmentBorders"]:
        """Return the range of each sentence in the text, and of its translation in the result of `join`."""
        segment_borders, start, target_start = [], len(self.separators[0]), len(self.separators[0])
        rows = zip(self.sentences, self.separators[1:], self._translations_with_separators(translations), strict=True)
        for sentence, source_separator, (text, target_separator) in rows:
            end, target_end = start + len(sentence), target_start + len(text)
            segment_borders.append(SegmentBorders(start, end, target_start, target_end))
            start, target_start = end + len(source_separator), target_end + len(target_separator)
        return segment_borders

    def _translations_with_separators(self, translations: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield each translation and the text between it and the next."""
        pairs = list(zip(self.sentences, translations, strict=True))
        for index, (source, text) in enumerate(pairs):
            separator = self.separators[index + 1]
            next_pair = pairs[index + 1] if index + 1 < len(pairs) else ("", "")
            is_changed = text != source or next_pair[0] != next_pair[1]
            if not separator and is_changed and needs_space(text, next_pair[1]):
                separator = " "
            yield text, separator


def needs_space(text: str, next_text: str) -> bool:
    """Whether two sentences of a language that puts spaces between words would run together."""
    if not text or not next_text or has_spaceless_script([text[-2:], next_text[0]]):
        return False
    return bool(_ENDS_IN_WORD.search(text)) or (text[-1] in ".?!…:;,؟۔।»”\"')" and next_text[0] not in ".?!…:;,")
