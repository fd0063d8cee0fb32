"""Time the decoding of many sources, or of one after another: run by every contestant of `python -m bench decode`.

Nothing from tfm is imported here, since a peer's environment does not have it.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

NUM_WARM_UP = 256
"""Enough that compiled loops are loaded before the clock runs."""


def answer_sources(search: Callable[[Any], list[list[int]]], sources: Sequence[Any], *, one_at_a_time: bool) -> None:
    """Print the seconds, for each sentence separately if asked, and the ids found, as JSON."""
    groups = [[each] for each in sources] if one_at_a_time else [sources]
    for group in groups[:NUM_WARM_UP]:
        search(group[:NUM_WARM_UP])
    outputs, seconds = [], []
    for group in groups:
        start = time.perf_counter()
        outputs += search(group)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "found": outputs}))
