"""Chunks of a cluster: in order whatever comes first, each computed once, kept ones not at all."""

import random
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cluster import session
from tfm.pipeline.cluster.chunk_store import DIGEST_BYTES, chunk_folder, hash_text_columns, open_chunk_store
from tfm.pipeline.cluster.session import MAX_PENDING_CHUNKS_PER_CPU, ClusterSession, ComputeChunk, connect_to_cluster
from tfm.pipeline.errors import RecipeError, StoppedError, WriteError


class DisorderedRay:
    """A stand-in for Ray that finishes tasks in a random order, and counts those that are under way."""

    def __init__(self, seed: int, num_cpus: int) -> None:
        self.draw, self.num_cpus = random.Random(seed), num_cpus
        self.computed: list[int] = []
        self.under_way = self.most_under_way = 0

    def remote(self, **_: object) -> Callable[[Any], Any]:
        ray = self

        def decorate(compute: Callable[..., bytes]) -> Any:
            class Task:
                @staticmethod
                def remote(*arguments: Any) -> Any:
                    ray.under_way += 1
                    ray.most_under_way = max(ray.most_under_way, ray.under_way)
                    return (compute, arguments)

            return Task

        return decorate

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.num_cpus)}

    def wait(self, references: Sequence[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return self.draw.sample(list(references), num_returns), []

    def get(self, reference: Any) -> bytes:
        compute, arguments = reference
        self.under_way -= 1
        self.computed.append(arguments[0])
        result: bytes = compute(*arguments)
        return result


def square(number: int) -> bytes:
    """The square of a number."""
    return str(number * number).encode()


def chunks(count: int) -> list[tuple[int, ComputeChunk]]:
    """Numbers, each a chunk."""
    return [(number, ComputeChunk(str(number), (number,))) for number in range(count)]


def plan_in(folder: Path) -> Plan:
    return Plan("preprocess", folder / "dataset", {}, {}, seed=None)


@pytest.mark.parametrize("num_cpus", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_results_come_in_order_each_computed_once_within_bounds(seed: int, num_cpus: int) -> None:
    ray = DisorderedRay(seed, num_cpus)
    found = list(ClusterSession(ray, None).map_in_order(square, chunks(50)))
    assert found == [(number, square(number)) for number in range(50)]
    assert sorted(ray.computed) == list(range(50))
    assert ray.most_under_way <= MAX_PENDING_CHUNKS_PER_CPU * num_cpus


@pytest.mark.parametrize("seed", range(5))
def test_what_was_kept_is_not_computed_again(seed: int, tmp_path: Path) -> None:
    first = DisorderedRay(seed, 2)
    with suppress(KeyboardInterrupt), open_chunk_store(plan_in(tmp_path)) as store:
        for number, _ in ClusterSession(first, store).map_in_order(square, chunks(50)):
            if number == 20:
                raise KeyboardInterrupt
    assert chunk_folder(tmp_path / "dataset").exists()
    again = DisorderedRay(seed, 2)
    with open_chunk_store(plan_in(tmp_path)) as store:
        found = list(ClusterSession(again, store).map_in_order(square, chunks(50)))
    assert found == [(number, square(number)) for number in range(50)]
    assert sorted([*first.computed, *again.computed]) == list(range(50))
    assert not chunk_folder(tmp_path / "dataset").exists()


def test_a_damaged_chunk_is_computed_again(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), open_chunk_store(plan_in(tmp_path)) as store:
        assert store is not None
        store.write("a", b"result")
        (file,) = (each for each in store.folder.iterdir())
        assert store.read("a") == b"result"
        for damaged in (b"", file.read_bytes()[:DIGEST_BYTES], file.read_bytes()[:-1], file.read_bytes() + b"x"):
            file.write_bytes(damaged)
            assert store.read("a") is None
        file.unlink()
        file.symlink_to(tmp_path)
        assert store.read("a") is None
        raise KeyboardInterrupt
    changed = Plan("preprocess", tmp_path / "dataset", {"data": 1}, {}, seed=None)
    with open_chunk_store(changed) as store:
        assert store is not None
        assert store.read("a") is None


def test_no_link_has_the_name_of_the_chunks(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    chunk_folder(tmp_path / "dataset").symlink_to(tmp_path / "outside")
    with pytest.raises(WriteError, match="is a link that tfm did not make"), open_chunk_store(plan_in(tmp_path)):
        pass


def test_keys_differ_where_texts_do() -> None:
    different = ([["ab"], []], [["a", "b"], []], [["a"], ["b"]], [["b", "a"], []], [[], ["ab"]], [["ab", ""], []])
    assert len({hash_text_columns(*columns) for columns in different}) == len(different)


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(RecipeError, match=r'--cluster needs ray: pip install "tfm-toolkit\[cluster\]"'),
        connect_to_cluster("auto"),
    ):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:x", "127.0.0.1:99999", ""])
def test_an_address_without_a_cluster_is_refused_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    with (
        pytest.raises(RecipeError, match=f"--cluster {address}: there is no cluster of Ray"),
        connect_to_cluster(address),
    ):
        pass


@pytest.mark.parametrize(
    ("num_cpus", "num_gpus", "problem"), [(0, 0.0, "no node has a processor"), (2, 1.0, "no node has a GPU")]
)
def test_a_cluster_that_cannot_compute_a_chunk_is_refused(num_cpus: int, num_gpus: float, problem: str) -> None:
    cluster = ClusterSession(DisorderedRay(1, num_cpus), None)
    with pytest.raises(RecipeError, match=f"--cluster: {problem}"):
        next(cluster.map_in_order(square, chunks(1), num_gpus=num_gpus))


class DyingRay(DisorderedRay):
    """A stand-in for Ray whose nodes die before anything is computed, and come back after some looks, or never."""

    def __init__(self, returns_after: int | None) -> None:
        super().__init__(1, 2)
        self._returns_after, self._waits = returns_after, 0

    def wait(self, references: Sequence[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        self._waits += 1
        self.num_cpus = 0
        if self._returns_after is not None and self._waits > self._returns_after:
            self.num_cpus = 2
            return super().wait(references, num_returns, timeout)
        return [], list(references)


def test_a_cluster_without_nodes_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    results = ClusterSession(DyingRay(returns_after=3), None).map_in_order(square, chunks(5))
    assert list(results) == [(number, square(number)) for number in range(5)]
    monkeypatch.setattr(session, "NODE_PATIENCE_SECONDS", 0.01)
    with pytest.raises(StoppedError, match="no node of the cluster has a processor any more; the same command goes on"):
        next(ClusterSession(DyingRay(returns_after=None), None).map_in_order(square, chunks(5)))


def test_signals_are_handled_as_before_ray_came(monkeypatch: pytest.MonkeyPatch) -> None:
    ray: Any = ModuleType("ray")
    ray.init = lambda **_: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ray.shutdown = lambda: None
    ray.job_config = SimpleNamespace(JobConfig=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    before = signal.getsignal(signal.SIGTERM)
    with connect_to_cluster("auto"):
        assert signal.getsignal(signal.SIGTERM) is before


def test_modules_of_the_current_folder_are_not_those_of_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder `tfm` there would be taken for the package; only where it is the package, nodes need it."""
    ray_config = pytest.importorskip("ray.job_config", reason="needs the extra cluster")
    ray = SimpleNamespace(job_config=ray_config)
    monkeypatch.chdir(tmp_path)
    assert session.make_job_config(ray)._runtime_env_has_working_dir()
    monkeypatch.chdir(Path(session.__file__).parents[3])
    assert not session.make_job_config(ray)._runtime_env_has_working_dir()
