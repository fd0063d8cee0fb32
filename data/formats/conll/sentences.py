"""The sentences of a file with a word a line, counted: what many or all of them have in common is remarked."""

import re
from collections.abc import Iterator, Sequence

MAX_WORDS_PER_SENTENCE = 1000
MIN_WORDS_JUDGED = 4
LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:(?=.)")
"""The language before each word, as the first files of WikiANN (PAN-X) have it: en:Paris."""


class SentenceCounts:
    """The number of sentences and words of a file, and the prefix that all its words have."""

    def __init__(self) -> None:
        self._num_sentences = self._num_words = 0
        self._prefix: str | None = None

    def add(self, words: Sequence[str]) -> None:
        """Count a sentence."""
        if not self._num_sentences:
            match = LANGUAGE_PREFIX.match(words[0])
            self._prefix = None if match is None else match[0]
        if self._prefix is not None and not all(word.startswith(self._prefix) for word in words):
            self._prefix = None
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
