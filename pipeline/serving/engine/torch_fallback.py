"""Queries that a model without torch cannot answer: torch computes them, loaded when the first of them comes."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query
from tfm.pipeline.serving.engine.work import BeamSearchJob, Network

NEEDS_TORCH_MESSAGE = "the server runs without torch (--numpy), and this needs it: start it without --numpy"
TORCH_LOAD_POLL_SECONDS = 0.002
"""How long others wait at each turn while torch is loaded."""


class TorchLoadError(Exception):
    """The model could not be loaded in torch, as when another has been published in its place."""


def refuse_without_torch(query: Query) -> Iterator[Any]:
    """The fallback of a server that excludes torch. Raises DataError for every query."""
    raise DataError(NEEDS_TORCH_MESSAGE)


@dataclass
class TorchFallback:
    """A version of a model in torch, which is loaded beside the others' answers when it is first needed.

    Args:
        version: of the model.
        load_torch: loads a version in torch.
    """

    version: ModelVersion
    load_torch: Callable[[ModelVersion], Network]
    _torch: Network | None = field(default=None, repr=False)
    _loading: Thread | None = field(default=None, repr=False)

    def __call__(self, query: Query) -> Iterator[Any]:
        """The parts of a query's work, which the first of its kind waits for."""
        while self._torch is None:
            if self._loading is None:
                self._loading = Thread(target=self._load_torch_network, daemon=True)
                self._loading.start()
            self._loading.join(TORCH_LOAD_POLL_SECONDS)
            if self._torch is None and not self._loading.is_alive():
                self._loading = None
                raise TorchLoadError
            yield None
        work = self._torch.make_work(query)
        assert not isinstance(work, BeamSearchJob)
        if isinstance(work, Iterator):
            yield from work
        else:
            yield work()

    def _load_torch_network(self) -> None:
        with suppress(TfmError, OSError, RuntimeError, MemoryError):
            self._torch = self.load_torch(self.version)
