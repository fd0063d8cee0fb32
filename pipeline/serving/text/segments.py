"""The sentences of a text and all that stands between them, so that translations of them take their places."""

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from tfm.data.scripts import has_spaceless_script

_ENDS_IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]$")


@dataclass(frozen=True)
class Segments:
    """A text as sentences and separators: `separators[0] + sentences[0] + separators[1] + ...` is the text.

    sentences: none is empty or begins or ends with white space.
    separators: one more than sentences: spaces, line breaks, and all else that no model has to read.
    cuts: the places of the sentences that end where a longer one was cut, since no model reads it whole.
    """

    sentences: tuple[str, ...]
    separators: tuple[str, ...]
    cuts: frozenset[int] = frozenset()

    @property
    def sources(self) -> list[str]:
        """The sentences as a model reads them: each on one line, with one space between words."""
        return [" ".join(sentence.split()) for sentence in self.sentences]

    def join(self, translations: Sequence[str]) -> str:
        """Put the translations of all sentences into the places of these.

        Between sentences without a space, as in Chinese, one is put where the language of the translations needs it.
        The sentences themselves give the text again. Raises ValueError unless each has one translation.
        """
        texts = [self.separators[0]]
        pairs = list(zip(self.sentences, translations, strict=True))
        for place, (source, text) in enumerate(pairs):
            separator = self.separators[place + 1]
            following = pairs[place + 1] if place + 1 < len(pairs) else ("", "")
            is_changed = text != source or following[0] != following[1]
            if not separator and is_changed and needs_space(text, following[1]):
                separator = " "
            texts += [text, separator]
        return "".join(texts)


def needs_space(text: str, following: str) -> bool:
    """Whether two sentences of a language that puts spaces between words would run together."""
    if not text or not following or has_spaceless_script([text[-2:], following[0]]):
        return False
    return bool(_ENDS_IN_WORD.search(text)) or (text[-1] in ".?!…:;,؟۔।»”\"')" and following[0] not in ".?!…:;,")
