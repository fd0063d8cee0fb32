"""Ranks that wait for room on a cluster: told once, and ended by a wish to stop."""

from typing import Any

import pytest

from tests.recording_reporter import Listening
from tfm.pipeline.cluster import ranks
from tfm.pipeline.cluster.processes import ProcessResources
from tfm.pipeline.cluster.ranks import wait_for_room
from tfm.pipeline.cluster.session import ClusterSession
from tfm.pipeline.errors import StoppedError
from tfm.pipeline.runtime.stop_signal import StopRequest

TWO_CPUS = ProcessResources(2, 0.0)


class GrowingRay:
    """A stand-in for Ray whose node has more processors, or more idle ones, each time that it is asked."""

    def __init__(self, nodes: list[float], idle: list[float]) -> None:
        self._nodes, self._idle = nodes, idle

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": self._nodes.pop(0) if len(self._nodes) > 1 else self._nodes[0]}}]

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self._idle.pop(0) if len(self._idle) > 1 else self._idle[0]}


@pytest.mark.parametrize(
    ("nodes", "idle", "said"),
    [
        ([4.0], [4.0], []),
        ([2.0, 2.0, 4.0], [4.0], ["the cluster has room for 1 of 2 processes: waiting for further nodes"]),
        (
            [4.0],
            [1.0, 3.0, 4.0],
            ["the cluster has room for 0 of 2 processes now: waiting for other work on it to end"],
        ),
    ],
)
def test_what_is_waited_for_is_told_once(
    nodes: list[float], idle: list[float], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "POLL_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(ranks, "SILENT_SECONDS", 0.0)
    talk = Listening()
    wait_for_room(ClusterSession(GrowingRay(nodes, idle), None), TWO_CPUS, 2, StopRequest(), talk)
    assert talk.warnings == said


def test_a_wish_to_stop_ends_the_wait() -> None:
    with pytest.raises(StoppedError, match="stopped while it waited for room"):
        wait_for_room(ClusterSession(GrowingRay([2.0], [2.0]), None), TWO_CPUS, 2, StopRequest("SIGTERM"), Listening())
