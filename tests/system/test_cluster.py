"""On a cluster: the bytes of one process, whatever the number of nodes, and whichever process or node is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, ROOT, start, write_corpora, write_lines
from tests.cluster_driver import compute
from tests.ray_nodes import Nodes, ray_nodes

CHUNKS = 40
PATIENCE = 600.0
WORDS = ("eins", "zwei", "drei", "vier", "fünf", "sechs")


def run(*words: str | Path, folder: Path) -> str:
    """Run a command to its end, and return what it wrote to stderr."""
    process = start(*words, folder=folder)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return err


def drive(address: str, folder: Path, seconds: float = 0.3) -> "subprocess.Popen[bytes]":
    """Start the driver of `tests.cluster_driver`."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.cluster_driver", address, str(folder), str(CHUNKS), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def num_computed(folder: Path) -> list[int]:
    """How often each chunk was computed so far."""
    traces = [folder / "traces" / f"{number}.trace" for number in range(CHUNKS)]
    return [len(each.read_text("utf-8").splitlines()) if each.exists() else 0 for each in traces]


def wait_for_chunks(folder: Path, number: int) -> None:
    """Wait until so many chunks were computed."""
    deadline = time.monotonic() + PATIENCE
    while sum(map(bool, num_computed(folder))) < number:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finished(process: "subprocess.Popen[bytes]", folder: Path) -> list[int]:
    """Wait for a driver, check its results, and return how often each chunk was computed."""
    assert process.wait(PATIENCE) == 0
    (folder / "check").mkdir()
    expected = [f"{number} {compute(number, str(folder / 'check'), 0).decode()}" for number in range(CHUNKS)]
    assert (folder / "results").read_text("utf-8").splitlines() == expected
    return num_computed(folder)


def same_artifact(one: Path, other: Path) -> None:
    """Check that two artifacts have the same fingerprint, and so the same bytes in all files but the manifest."""
    first, second = (json.loads((each / "manifest.json").read_bytes()) for each in (one, other))
    assert first["files"] == second["files"]
    assert first["fingerprint"] == second["fingerprint"]
    assert not list(other.parent.glob(f".{other.name}.chunks"))


def test_a_smoke_test_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    write_corpora(tmp_path)
    pairs = [word for split in ("train", "valid", "test") for word in (f"--{split}", f"{split}.de", f"{split}.en")]
    run("tokenize", "train.de", "train.en", "--kind", "word", "--out", "tokenizer", folder=tmp_path)
    command = ("preprocess", *pairs, "--tokenizer", "tokenizer", "--batch-tokens", "256")
    run(*command, "--out", "one", folder=tmp_path)
    run(*command, "--out", "other", "--cluster", "auto", folder=tmp_path)
    same_artifact(tmp_path / "one", tmp_path / "other")
    assert not (tmp_path / ".ray").exists()  # a token there would be asked for by every cluster that is started later


@pytest.mark.slow
def test_a_token_is_asked_for_and_the_right_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpora(tmp_path)
    pairs = [word for split in ("train", "valid", "test") for word in (f"--{split}", f"{split}.de", f"{split}.en")]
    run("tokenize", "train.de", "train.en", "--kind", "word", "--out", "tokenizer", folder=tmp_path)
    command = "preprocess", *pairs, "--tokenizer", "tokenizer", "--batch-tokens", "256", "--out", "out", "--cluster"
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 4, "utf-8")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    with ray_nodes(1) as nodes:

        def refused() -> str:
            process = start(*command, nodes.address, folder=tmp_path)
            out, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 2, err
            assert out == ""
            said, *problems = err.splitlines()
            assert said == "out: not made yet"
            assert len(problems) == 1, err
            return problems[0]

        monkeypatch.setenv("RAY_AUTH_TOKEN", "fedcba9876543210" * 4)
        assert "the cluster refuses the token of RAY_AUTH_TOKEN; put what" in refused()
        monkeypatch.delenv("RAY_AUTH_TOKEN")
        monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
        assert "RAY_AUTH_MODE=token, and there is no token; put what" in refused()
        monkeypatch.delenv("RAY_AUTH_MODE")
        assert "the cluster asks for a token; set RAY_AUTH_MODE=token, and put what" in refused()
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        run(*command, nodes.address, folder=tmp_path)
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 4])
def test_every_chunk_is_computed_once(number: int, tmp_path: Path) -> None:
    with ray_nodes(number) as nodes:
        assert finished(drive(nodes.address, tmp_path), tmp_path) == [1] * CHUNKS


@pytest.mark.slow
@pytest.mark.promise("killed")
def test_a_worker_killed_again_and_again_still_gets_on(tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        process, kills = drive(nodes.address, tmp_path), 0
        for wanted in range(3, CHUNKS - 10, 3):
            wait_for_chunks(tmp_path, wanted)
            kills += nodes.kill_worker()
        assert kills > 3
        assert sum(finished(process, tmp_path)) <= CHUNKS + kills


@pytest.mark.slow
@pytest.mark.promise("killed")
def test_a_killed_node_costs_time_alone(tmp_path: Path) -> None:
    with ray_nodes(3) as nodes:
        process = drive(nodes.address, tmp_path)
        for wanted in (8, 20):
            wait_for_chunks(tmp_path, wanted)
            nodes.remove()
        counts = finished(process, tmp_path)
        assert min(counts) == 1
        assert sum(counts) <= CHUNKS + 12


@pytest.mark.slow
@pytest.mark.promise("killed")
def test_a_killed_driver_goes_on_with_the_chunks_that_were_kept(tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        for wanted in (10, 25):
            process = drive(nodes.address, tmp_path)
            wait_for_chunks(tmp_path, wanted)
            process.send_signal(signal.SIGKILL)
            process.wait()
        kept = len([each for each in (tmp_path / ".artifact.chunks").iterdir() if each.name != ".draft"])
        before = sum(num_computed(tmp_path))
        assert sum(finished(drive(nodes.address, tmp_path), tmp_path)) - before == CHUNKS - kept


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, larger corpora than its own, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("made")
    write_corpora(folder)
    draw = random.Random(2)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(90_000)]
    write_lines(folder / "large.de", lines)
    write_lines(folder / "large.en", lines[::-1])
    write_lines(folder / "some.de", lines[:20_000])
    (folder / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    run("run", "tiny.toml", folder=folder)
    run(*COMMANDS["preprocess"], "--out", "preprocess", folder=folder)
    run(*COMMANDS["translate"], "--out", "translate", folder=folder)
    run(*COMMANDS["clean"], "--out", "clean", folder=folder)
    return folder


COMMANDS: dict[str, Sequence[str]] = {
    "preprocess": (
        *("preprocess", "--train", "large.de", "large.en", "--valid", "valid.de", "valid.en"),
        *("--test", "test.de", "test.en", "--tokenizer", "runs/tiny/tokenizer"),
    ),
    "translate": ("translate", "runs/tiny", "some.de", "--beam", "3", "--n-best", "2"),
    "clean": ("clean", "large.de", "large.en", "--test", "test.de", "test.en", "--set", "clean.boilerplate.max=20"),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("stage", COMMANDS)
def test_a_cluster_makes_the_bytes_of_one_process(stage: str, number: int, made: Path, tmp_path: Path) -> None:
    with ray_nodes(number) as nodes:
        run(*COMMANDS[stage], "--out", tmp_path / "out", "--cluster", nodes.address, folder=made)
    same_artifact(made / stage, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.promise("killed")
@pytest.mark.parametrize("stage", COMMANDS)
def test_bytes_are_the_same_whatever_dies(stage: str, made: Path, tmp_path: Path) -> None:
    words = *COMMANDS[stage], "--out", tmp_path / "out", "--cluster"
    chunks = None if stage == "clean" else tmp_path / ".out.chunks"  # cleaning keeps what it knows of 262,144 pairs
    with ray_nodes(3) as nodes:
        process = start(*words, nodes.address, folder=made)
        kill_when_kept(process, chunks, nodes)
        nodes.remove()
        run(*words, nodes.address, folder=made)
    same_artifact(made / stage, tmp_path / "out")


def _has_chunk(chunks: Path) -> bool:
    return chunks.exists() and any(each.name != ".draft" for each in chunks.iterdir())


def kill_when_kept(process: "subprocess.Popen[str]", chunks: Path | None, nodes: Nodes) -> None:
    """Kill a worker, and when the first chunk is kept, the driver; without a folder of chunks, after the worker."""
    killed = False
    while process.poll() is None:
        killed = killed or nodes.kill_worker()
        if killed and (chunks is None or _has_chunk(chunks)):
            process.kill()
        time.sleep(0.02)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
