"""Threads that sleep while they wait for each other, or spin: a switch between the two while they work.

The threads of a product wait for the slowest of them. libgomp, which torch is built with on Linux, lets them spin for
some milliseconds before they sleep. Spinning is fast where each has a processor. If another program has one of them,
the thread that is waited for stands in the queue of a processor on which another thread does nothing but spin.

libgomp itself hardly spins once it has more threads than there are processors (`do_spin` in its config/linux/wait.h).
A second team of threads, which does nothing, is therefore enough to change it, at any time and in both directions. The
team that computes stays as it is, and each of its sums too.
"""

import threading
import weakref

import torch

from tfm.pipeline.runtime.cpu import num_processors

MIN_NUMEL_PER_THREAD = 32768
"""Numbers for each thread, or torch uses fewer threads."""


class PassiveWaiting:
    """Switch between threads that spin for milliseconds before they sleep (off, as at the beginning), or hardly (on).

    The switch is off again when this object is gone. Without libgomp it changes nothing.
    """

    def __init__(self) -> None:
        self._end: threading.Event | None = None

    @property
    def is_on(self) -> bool:
        """Whether threads sleep at once."""
        return self._end is not None

    def set_passive(self, is_passive: bool) -> None:
        """Let threads sleep at once, or spin."""
        if is_passive and self._end is None:
            start, self._end = threading.Event(), threading.Event()
            threads = torch.get_num_threads()
            threading.Thread(target=_keep_extra_openmp_threads, args=(threads, start, self._end), daemon=True).start()
            weakref.finalize(self, self._end.set)
            start.wait()
        elif not is_passive and self._end is not None:
            self._end.set()
            self._end = None


def _keep_extra_openmp_threads(threads: int, started: threading.Event, end: threading.Event) -> None:
    """Keep idle threads, so that with those that compute libgomp has one thread more than there are processors.

    libgomp frees them with the thread that made them.
    """
    team = max(num_processors() - threads, 0) + 2
    try:
        torch.set_num_threads(team)
        torch.zeros(team * MIN_NUMEL_PER_THREAD).add_(1)
        torch.set_num_threads(threads)  # for threads that begin later; of the others each has a number of its own
    finally:  # without a team threads go on spinning, and the training goes on
        started.set()
    end.wait()
