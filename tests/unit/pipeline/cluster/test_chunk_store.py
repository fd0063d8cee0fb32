"""Kept results of chunks: found again by the same work alone, whatever else differs."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tfm.pipeline.artifacts.artifact import Input, Plan
from tfm.pipeline.cluster import chunk_store
from tfm.pipeline.cluster.chunk_store import ChunkStore, open_chunk_store
from tfm.pipeline.cluster.encoding import ClusterEncoder
from tfm.pipeline.cluster.node_packages import installed_packages
from tfm.pipeline.cluster.translation import ClusterTranslator
from tfm.pipeline.config import DecodingConfig

INPUTS = {"tokenizer": Input.from_value("a tokenizer"), "train": Input.from_value("a corpus")}
OTHERS: dict[str, Callable[[Plan], Plan]] = {
    "stage": lambda plan: replace(plan, stage="translate"),
    "setting": lambda plan: replace(plan, config={"data": {"max_length": 99}}),
    "tokenizer": lambda plan: replace(plan, inputs={**INPUTS, "tokenizer": Input.from_value("another")}),
    "corpus": lambda plan: replace(plan, inputs={**INPUTS, "train": Input.from_value("another")}),
    "further input": lambda plan: replace(plan, inputs={**INPUTS, "shortlist": Input.from_value("x")}),
    "seed": lambda plan: replace(plan, seed=2),
}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan("preprocess", tmp_path / "dataset", {"data": {"max_length": 9}}, INPUTS, 1)


def keep_and_stop(plan: Plan) -> None:
    """Keep a result, in a command that is then stopped."""
    with suppress(KeyboardInterrupt), open_chunk_store(plan) as store:
        assert store is not None
        store.write("key", b"result")
        raise KeyboardInterrupt


def kept_result(plan: Plan) -> bytes | None:
    with open_chunk_store(plan) as store:
        assert store is not None
        return store.read("key")


def test_the_same_work_finds_its_result_once(plan: Plan) -> None:
    keep_and_stop(plan)
    assert kept_result(plan) == b"result"
    assert kept_result(plan) is None  # the artifact is published


@pytest.mark.parametrize("other", OTHERS)
def test_other_work_does_not_find_it(plan: Plan, other: str) -> None:
    keep_and_stop(plan)
    assert kept_result(OTHERS[other](plan)) is None


@pytest.mark.parametrize("package", ["numpy", "torch", "python", "the source of tfm"])
def test_other_packages_do_not_find_it(plan: Plan, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_and_stop(plan)
    packages = {**installed_packages(), package: "another"}
    monkeypatch.setattr(chunk_store, "installed_packages", lambda: packages)
    assert kept_result(plan) is None


def keys_of(made: Iterator[tuple[Any, Any]]) -> list[str]:
    return [chunk.key for _, chunk in made]


def test_the_key_of_encoded_rows_tells_a_language_from_a_tag() -> None:
    session: Any = SimpleNamespace(store=None)
    encoder = ClusterEncoder(session, INPUTS["tokenizer"], (10, 10))
    rows = [("one", "eins"), ("two", "zwei")]
    about: list[tuple[tuple[str, ...], str | None]] = [((), None), (("deu",), None), ((), "deu"), (("deu", "x"), None)]
    about += [(("deu",), "x")]
    keys = [keys_of(encoder._make_chunks(rows, *each, multi_reference=False)) for each in about]
    assert len({key for (key,) in keys}) == len(about)
    assert keys_of(encoder._make_chunks(rows[:1] * 2, (), None, multi_reference=False)) not in keys


def test_the_key_of_translated_lines_tells_settings_devices_and_texts_apart() -> None:
    session: Any = SimpleNamespace(store=None)

    def key(
        lines: list[str], prefixes: list[str] | None = None, forced: list[str] | None = None, **changes: Any
    ) -> str:
        config = DecodingConfig.model_validate(changes.pop("config", {}))
        kept = {"device": "cpu", "threads": 1, **changes}
        made = ClusterTranslator(session, [Input.from_value("model")], config, **kept)
        beside = [None if each is None else iter(each) for each in (prefixes, forced)]
        (found,) = keys_of(made._make_chunks(lines, ("deu", None), beside))
        return found

    lines = ["one", "two"]
    keys = [
        key(lines),
        key(["one", "three"]),
        key(["onetwo", ""]),
        key(lines, prefixes=["", ""]),
        key(lines, forced=["", ""]),
        key(lines, prefixes=["a", "b"]),
        key(lines, forced=["a", "b"]),
        key(lines, config={"beam": 2}),
        key(lines, device="cuda"),
        key(lines, threads=2),
    ]
    assert len(set(keys)) == len(keys)
    assert key(lines) == keys[0]


def test_a_store_reads_nothing_that_was_cut_short(plan: Plan) -> None:
    with open_chunk_store(plan) as store:
        assert isinstance(store, ChunkStore)
        store.write("key", b"result")
        (file,) = store.folder.iterdir()
        file.write_bytes(file.read_bytes()[:-1])
        assert store.read("key") is None
