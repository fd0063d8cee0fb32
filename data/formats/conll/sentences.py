"""The sentences of a file with a word a line, counted: what many or all of them have in common is remarked."""

import re
from collections.abc import Iterator, Sequence

from tfm.data.formats.conll.column_roles import MIN_WORDS_JUDGED

MAX_WORDS_PER_SENTENCE = 1000
"""No sentence of a corpus has more words; without blank lines a file is one."""
NUMBERED_CHARACTER = re.compile(r".[^0-9]?[0-9]{1,2}", re.DOTALL)
"""A character, or halves of one, and its place in its word, as Weibo's entities have them: 溃2."""
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:(?=.)")
"""The language before each word, as the first files of WikiANN (PAN-X) have it: en:Paris."""


class SentenceCounts:
    """The number of sentences and words of a file, and what all its words begin or end with."""

    def __init__(self) -> None:
        self._num_sentences = self._num_words = 0
        self._prefix: str | None = None
        self._are_numbered = True

    def add(self, words: Sequence[str]) -> None:
        """Count a sentence."""
        if not self._num_sentences:
            match = LANGUAGE_PREFIX.match(words[0])
            self._prefix = None if match is None else match[0]
        if self._prefix is not None and not all(word.startswith(self._prefix) for word in words):
            self._prefix = None
        self._are_numbered = self._are_numbered and all(map(NUMBERED_CHARACTER.fullmatch, words))
        self._num_sentences += 1
        self._num_words += len(words)

    def remarks(self) -> Iterator[str]:
        """Remarks on all sentences, for a user."""
        if self._num_sentences == 1 and self._num_words > MAX_WORDS_PER_SENTENCE:
            yield f"its {self._num_words:,} words are one sentence: put a blank line between sentences"
        if self._prefix is not None and self._num_words >= MIN_WORDS_JUDGED:
            yield (
                f"each of its words begins with {self._prefix!r}, which is read as part of it: cut by "
                f"sed 's/^{self._prefix}//' FILE"
            )
        if self._are_numbered and self._num_words >= MIN_WORDS_JUDGED:
            yield (
                "each of its words is a character and a number, such as its place in a word, which is read as part "
                r"of it: cut by sed -E 's/^(.[^0-9]?)[0-9]+([ \t])/\1\2/' FILE"
            )
