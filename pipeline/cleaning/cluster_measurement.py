"""Pairs of a cleaning measured on a cluster: the scores and keys of `measure_chunks`, in the same order.

The unit of work is its chunk. Results are not kept one by one: the work folder of the cleaning has them.
"""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.measurement import ChunkMeasurement, ChunkMeasurer, PairChunk
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys
from tfm.pipeline.cleaning.rules.registry import make_rules
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.cluster.session import ClusterSession, ComputeChunk

CHANGES_NAME = "changes"
"""The array of changed texts in a result; no rule has that name."""


@dataclass(frozen=True)
class MeasurerSettings:
    """All that determines a measurer.

    Args:
        identity: a hash of the others, by which a process knows that it has made the measurer already.
        config: the [clean] part of a recipe.
        held_out: of the texts that no training pair may have.
        everything: whether slow rules measure also pairs that fail a rule before them.
    """

    identity: str
    config: CleanConfig = field(compare=False)
    held_out: HeldOutKeys = field(compare=False)
    everything: bool = False


@dataclass(frozen=True)
class ClusterMeasurer:
    """Measures chunks on a cluster.

    Args:
        cluster: the cluster, or this machine.
        settings: of the measurer, which each process makes for itself.
    """

    cluster: ClusterSession | LocalSession
    settings: MeasurerSettings

    def measure_chunks(self, chunks: Iterable[PairChunk]) -> Iterator[tuple[PairChunk, ChunkMeasurement]]:
        """Yield each chunk with its measurement, in order.

        Args:
            chunks: as many as there are; a few for each processor are in memory at a time.

        Raises:
            RecipeError: a package that a rule needs is not installed on a node.
            StoppedError: the cluster was lost.
        """
        settings = self.cluster.share(self.settings)
        work = ((chunk, ComputeChunk("", (settings, chunk))) for chunk in chunks)
        for chunk, result in self.cluster.map_in_order(measure_on_node, work):
            yield chunk, read_measurement(result)


def measure_on_node(settings: MeasurerSettings, chunk: PairChunk) -> bytes:
    """Measure a chunk, and return the measurement as `read_measurement` reads it."""
    return write_measurement(_make_measurer(settings)(chunk))


def write_measurement(measurement: ChunkMeasurement) -> bytes:
    """Return a measurement as an archive of numpy."""
    changes = json.dumps([[row, *texts] for row, texts in measurement.changes.items()]).encode("ascii")
    arrays: dict[str, Any] = {**measurement.columns, CHANGES_NAME: np.frombuffer(changes, np.uint8)}
    archive = io.BytesIO()
    np.savez(archive, **arrays)
    return archive.getvalue()


def read_measurement(content: bytes) -> ChunkMeasurement:
    """Return the measurement that `write_measurement` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files if name != CHANGES_NAME}
        changes = json.loads(archive[CHANGES_NAME].tobytes())
    return ChunkMeasurement(columns, {row: (source, target) for row, source, target in changes})


@lru_cache(maxsize=1)
def _make_measurer(settings: MeasurerSettings) -> ChunkMeasurer:
    return ChunkMeasurer(make_rules(settings.config, settings.held_out), everything=settings.everything)
