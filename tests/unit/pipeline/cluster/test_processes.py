"""Pieces of work on a cluster: what each takes, the errors that they end with, and how one error stops the others."""

import signal
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recording_reporter import Listening
from tests.unit.pipeline.cluster.test_mailbox import Handle, ray  # noqa: F401  (a fixture)
from tfm.pipeline.cluster.processes import ProcessResources, choose_resources, max_processes, num_threads, run_jobs
from tfm.pipeline.cluster.session import ClusterSession
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.runtime.progress import Reporter


class TaskError(Exception):
    """As Ray's: the error of a task, with its cause."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class InlineRay:
    """A stand-in for Ray that does a task when its result is asked for, one after another."""

    exceptions = SimpleNamespace(RayTaskError=TaskError, RayError=TaskError)

    def __init__(self, *resources: dict[str, float]) -> None:
        self._nodes = [{"Alive": True, "Resources": each} for each in resources]
        self.asked: list[dict[str, Any]] = []
        self.cancelled: list[str] = []

        class NodeAffinitySchedulingStrategy:
            def __init__(self, node: str, *, soft: bool) -> None:
                assert (node, soft) == ("here", False)

        near = SimpleNamespace(NodeAffinitySchedulingStrategy=NodeAffinitySchedulingStrategy)
        self.util = SimpleNamespace(scheduling_strategies=near)

    def nodes(self) -> list[dict[str, Any]]:
        return [*self._nodes, {"Alive": False, "Resources": {"CPU": 99.0, "GPU": 9.0}}]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def remote(self, **options: Any) -> Any:
        self.asked.append(options)

        def decorate(work: Any) -> Any:
            if isinstance(work, type):
                return SimpleNamespace(remote=lambda: Handle(work()))
            return SimpleNamespace(remote=lambda *arguments: partial(work, *arguments))

        return decorate

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return references[:1], references[1:]

    def get(self, reference: Any) -> Any:
        if not isinstance(reference, partial):
            return reference
        try:
            return reference()
        except Exception as error:
            raise TaskError(error) from error

    def cancel(self, reference: Any, *, force: bool) -> None:
        assert force
        self.cancelled.append(reference.args[1])

    def kill(self, actor: Any) -> None:
        pass


def cluster(*resources: dict[str, float]) -> ClusterSession:
    return ClusterSession(InlineRay(*resources), None)


def say(*, reporter: Reporter) -> None:
    reporter.line("hello")


def fail(*, reporter: Reporter) -> None:
    raise DataError("bad line")


ONE = ProcessResources(1, 0.0)


def test_all_pieces_run_and_their_lines_have_their_names() -> None:
    talk, polled = Listening(), list[list[str]]()
    on = cluster({"CPU": 1.0})
    assert run_jobs(on, {"a": say, "b": say}, ONE, reporter=talk, on_poll=polled.append) == {}
    assert talk.lines == ["a: hello", "b: hello"]
    assert polled == [["b"], []]
    assert on.ray.asked[0]["max_retries"] > 0


def test_an_error_stops_what_has_not_begun_unless_the_others_go_on() -> None:
    pieces = {"a": say, "b": fail, "c": say}
    on = cluster({"CPU": 1.0})
    found = run_jobs(on, pieces, ONE, reporter=Listening())
    assert on.ray.cancelled == ["c"]
    assert [(name, type(error)) for name, error in found.items()] == [("b", DataError), ("c", StoppedError)]
    talk = Listening()
    found = run_jobs(cluster({"CPU": 1.0}), pieces, ONE, reporter=talk, keep_going=True)
    assert list(found) == ["b"]
    assert talk.lines == ["a: hello", "c: hello"]


def test_at_ctrl_c_no_process_is_started_for_what_has_not_begun() -> None:
    def press_ctrl_c(*, reporter: Reporter) -> None:
        signal.raise_signal(signal.SIGINT)

    on = cluster({"CPU": 1.0})
    with pytest.raises(StoppedError):
        run_jobs(on, {"a": press_ctrl_c, "b": say, "c": say}, ONE, reporter=Listening())
    assert on.ray.cancelled == ["b", "c"]


def test_a_process_takes_threads_and_a_gpu_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    cpus, gpus = {"CPU": 5.0}, {"CPU": 8.0, "GPU": 3.0}
    assert choose_resources(cluster(cpus), "auto") == ProcessResources(2, 0.0)
    assert choose_resources(cluster(cpus, gpus), "auto") == ProcessResources(2, 1.0)
    assert choose_resources(cluster(cpus, gpus), "cpu") == ProcessResources(2, 0.0)
    assert max_processes(cluster(cpus, gpus), ProcessResources(2, 0.0)) == 2 + 4
    assert max_processes(cluster(cpus, gpus), ProcessResources(2, 1.0)) == 3
    for on, device in ((cluster(cpus), "cuda"), (cluster({"CPU": 1.0}), "auto")):
        with pytest.raises(RecipeError, match="no node has 2 processors"):
            choose_resources(on, device)


@pytest.mark.parametrize("text", ["0", "x", "-1", "1,2"])
def test_a_number_of_threads_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    with pytest.raises(RecipeError, match="OMP_NUM_THREADS"):
        num_threads()
