"""Answers that were given before, for queries that are asked again."""

from collections import OrderedDict
from typing import Any

from tfm.pipeline.serving.dispatch.messages import Query

ENTRY_OVERHEAD_CHARS = 64
"""The size of an entry without its texts, counted in characters."""


class AnswerCache:
    """The answers used last: an answer depends on its query alone, so that it may be given again.

    Args:
        max_answers: the most answers; 0: none is kept.
        max_chars: the most characters of all queries and answers.
    """

    def __init__(self, max_answers: int, max_chars: int) -> None:
        self._max_answers, self._max_chars = max_answers, max_chars
        self._answers: OrderedDict[Query, tuple[Any, int]] = OrderedDict()
        self._chars = self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, query: Query) -> Any:
        """The answer to a query; None if it is not known."""
        entry = self._answers.get(query)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._answers.move_to_end(query)
        return entry[0]

    def put(self, query: Query, answer: list[tuple[str, float, float, int]]) -> None:
        """Keep an answer; the one that was not used for longest makes room."""
        size = ENTRY_OVERHEAD_CHARS + len(query.text) + sum(len(text) for text, *_ in answer)
        if size > self._max_chars or self._max_answers == 0:
            return
        _, previous_size = self._answers.pop(query, (None, 0))
        self._answers[query] = answer, size
        self._chars += size - previous_size
        while len(self._answers) > self._max_answers or self._chars > self._max_chars:
            _, (_, removed_size) = self._answers.popitem(last=False)
            self._chars -= removed_size
