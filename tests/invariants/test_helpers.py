"""An update that several processes of one training compute: the same gradient, the same resumed run, nobody left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.quick import mostly_slow
from tests.recording_reporter import Listening
from tests.tiny_training import MODEL, gradients_in_float64, groups_of, run, training
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, SpanCorruptionConfig, WordVectorsConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.runtime import worker_process
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.masked_language_model import MaskedLanguageModel
from tfm.pipeline.tasks.span_corruption import SpanCorruption
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.tasks.word_vector_objectives import NegativeSamplingObjective
from tfm.pipeline.tasks.word_vectors import WordVectorTask
from tfm.pipeline.training.helpers import (
    MAX_WIDTH_FOR_WORKERS,
    MIN_TOKENS_PER_WORKER,
    are_workers_faster,
    parallel_training_unsupported_reason,
    shard_batches,
    start_gradient_workers,
)
from tfm.pipeline.training.update import GradientComputer

ALONE = World()
ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(
        parallel_training_unsupported_reason(MODEL, ALONE) is not None,
        reason=f"no helpers here: {parallel_training_unsupported_reason(MODEL, ALONE)}",
    ),
    pytest.mark.usefixtures("no_curves", "threads_as_they_were"),
]
TWO: dict[str, Any] = {"threads": 2, "parallel": "processes"}
OTHER_DRAWS = "dropout draws other numbers for other shares, so losses differ by more than rounding"
SHORT: dict[str, Any] = {"max_steps": 10, "save_every": 3, "validation": {"every_steps": 5, "bleu": False}}
SECONDS = 60


@pytest.mark.few(1)
@pytest.mark.parametrize("size", mostly_slow([1, 5, 12], 5))
@pytest.mark.parametrize("helpers", [1, 3])
def test_gradients_of_twenty_updates_are_those_of_one_process(helpers: int, size: int, dataset: Path) -> None:
    """Where a batch has fewer rows than there are processes, some have nothing to do."""
    expected = gradients_in_float64(dataset, groups_of(size), ALONE)
    found = gradients_in_float64(dataset, groups_of(size), ALONE, helpers)
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        torch.testing.assert_close(
            found[name], each, rtol=1e-9, atol=1e-12, msg=lambda text, name=name: f"{name} {text}"
        )
    assert not multiprocessing.active_children()


WORD_VECTORS = WordVectorsConfig(window=3, shrink=True, negatives=2)
DRAWN: dict[str, tuple[dict[str, Any], Any]] = {
    "masked": (
        {"architecture": "encoder_only", "task": "masked_language_model", "tie": "none"},
        MaskedLanguageModel(CrossEntropy(0.1)),
    ),
    "spans": (
        {"task": "span_corruption"},
        SpanCorruption(SpanCorruptionConfig(share=0.4, mean_length=1), range(14, 20), CrossEntropy(0.1)),
    ),
    "noise words": (
        {"architecture": "skip_gram", "task": "word_vectors", "embedding_dim": 8},
        WordVectorTask(WORD_VECTORS, NegativeSamplingObjective(2)),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.few(1)
def test_what_is_drawn_for_a_text_does_not_depend_on_processes_or_batches(name: str, dataset: Path) -> None:
    """One batch an update, the same rows in batches of five, and each of these by three processes; rows occur twice."""
    settings, task = DRAWN[name]
    shape = ModelConfig.model_validate({**MODEL.model_dump(), **settings})
    updates = [[np.concatenate([batch, batch[:3]]) for batch in group] for group in groups_of(12)[:6]]
    in_parts = [[rows[begin : begin + 5] for begin in range(0, len(rows), 5)] for (rows,) in updates]
    expected = gradients_in_float64(dataset, updates, ALONE, shape=shape, task=task)
    for groups, helpers in ((in_parts, 0), (updates, 2), (in_parts, 2)):
        found = gradients_in_float64(dataset, groups, ALONE, helpers, shape=shape, task=task)
        for each, gradient in expected.items():
            torch.testing.assert_close(
                found[each], gradient, rtol=1e-9, atol=1e-12, msg=lambda text, at=each: at + text
            )


def test_a_row_that_occurs_twice_in_an_update_hides_something_else_each_time(dataset: Path) -> None:
    settings, task = DRAWN["masked"]
    shape = ModelConfig.model_validate({**MODEL.model_dump(), **settings})
    row = np.array([int(load_dataset(dataset).train.source_lengths.argmax())])
    by_row = [
        gradients_in_float64(dataset, [[np.repeat(row, count)]], ALONE, shape=shape, task=task) for count in (1, 2)
    ]
    assert not all(torch.allclose(by_row[0][each], by_row[1][each], rtol=1e-6) for each in by_row[0])


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_each_row_is_in_one_share_and_shares_are_equal(count: int) -> None:
    batches = [(0, np.arange(10)), (3, np.arange(20, 22)), (4, np.arange(30, 44))]
    shares = shard_batches(batches, count)
    assert len(shares) == count
    for index, rows in batches:
        found = [share for some in shares for share in some if share.batch_index == index]
        assert sorted(np.concatenate([share.rows for share in found]).tolist()) == rows.tolist()
        sizes = [len(share.rows) for share in found]
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) > 0
        assert {(share.number, share.count) for share in found} == {(number, count) for number in range(len(found))}


def gradients_of(dataset: Path, task: Any = None, **rates: float) -> GradientComputer:
    config = MODEL.model_copy(update={"dropout": DropoutConfig(**rates)})
    model = build(config, source_vocab=20, target_vocab=20, seed=1).train()
    task = task or Translation(CrossEntropy(0.1))
    return GradientComputer(model, task, load_dataset(dataset).train, training(clip_norm=None), 1, ALONE)


def total(of: GradientComputer) -> list[Tensor]:
    return [torch.zeros_like(each) if each.grad is None else each.grad.clone() for each in of.parameters]


@pytest.mark.parametrize("rates", [{"residual": 0.5, "embedding": 0.3}, {"depth": 0.9}], ids=["dropout", "depth"])
@pytest.mark.few(1)
def test_to_the_bit_the_sum_of_shares_that_one_process_computes(rates: dict[str, float], dataset: Path) -> None:
    """With dropout each share has draws of its own; with stochastic depth some leave out what others learn."""
    torch.set_num_threads(1)
    of_update, group = gradients_of(dataset, **rates), [np.arange(12), np.arange(20, 27)]
    sums, parts = torch.zeros(5, dtype=torch.float64), []
    for step in range(1, 5):
        of_shares = []
        for shares in shard_batches(list(enumerate(group)), 3):
            of_update.zero_grad()
            assert of_update.accumulate_shards(shares, step, sums) is None
            of_shares.append(total(of_update))
        parts.append([a + b + c for a, b, c in zip(*of_shares, strict=True)])
        if step == 1:
            assert not all(map(torch.equal, of_shares[0], of_shares[1]))
    loss = 0.0
    with start_gradient_workers(of_update, 2) as of_update.helpers:
        for step, expected in enumerate(parts, 1):
            update = of_update.compute(group, step, stop=False)
            loss += update.loss
            scaled = [each * torch.tensor(1 / update.tokens) for each in expected]
            assert all(map(torch.equal, total(of_update), scaled))
    assert loss == pytest.approx(sums[0].item(), rel=1e-12)


class FailsIn(Translation):
    """Fails by an error: in the process that made it, or in all the others."""

    def __init__(self, where: str, error: Exception) -> None:
        super().__init__(CrossEntropy(0.1))
        self.where, self.error, self.here = where, error, os.getpid()

    def loss(self, model: Any, batch: Any) -> LossSums:
        if (os.getpid() == self.here) == (self.where == "leader"):
            raise self.error
        return super().loss(model, batch)


@pytest.mark.parametrize(
    ("error", "raised", "text"),
    [
        (MemoryError(), DataError, r"step 1: .* does not fit in memory; lower data\.batch_tokens"),
        (ValueError("strange"), ValueError, "strange"),
    ],
)
@pytest.mark.parametrize("where", ["leader", "helpers"])
@pytest.mark.few(2)
def test_what_fails_in_one_of_them_is_raised_here(
    where: str, error: Exception, raised: type[Exception], text: str, dataset: Path
) -> None:
    """Where memory has run out, no gradient is added up, which would take more of it."""
    of_update = gradients_of(dataset, FailsIn(where, error))
    with start_gradient_workers(of_update, 2) as of_update.helpers, pytest.raises(raised, match=text):
        of_update.compute([np.arange(12)], 1, stop=False)
    if where == "leader":
        assert all(each.grad is None for each in of_update.parameters)
    assert not multiprocessing.active_children()


def test_a_killed_helper_is_told(dataset: Path) -> None:
    of_update = gradients_of(dataset)
    with start_gradient_workers(of_update, 2) as of_update.helpers:
        of_update.compute([np.arange(12)], 1, stop=False)
        child = multiprocessing.active_children()[0]
        child.kill()
        child.join()
        with pytest.raises(DataError, match=r"was killed; if memory ran out, lower data\.batch_tokens.* resumes"):
            of_update.compute([np.arange(12)], 2, stop=False)
    assert not multiprocessing.active_children()


def test_threads_are_one_while_they_help_and_all_while_they_rest(dataset: Path) -> None:
    torch.set_num_threads(3)
    of_update = gradients_of(dataset)
    with start_gradient_workers(of_update, 2) as helpers:
        assert torch.get_num_threads() == 1
        with helpers.use_all_threads():
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    with start_gradient_workers(of_update, 0) as helpers, helpers.use_all_threads():
        assert torch.get_num_threads() == 3


# A training


VARIANTS: dict[str, dict[str, Any]] = {
    "adam": {},
    "muon, moving average, accumulation": {"optimizer": {"name": "muon"}, "ema": 0.9, "accumulate": 2},
}


@pytest.mark.few(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_training_that_is_resumed_ends_as_one_that_never_stopped(variant: str, dataset: Path, tmp_path: Path) -> None:
    config = {**SHORT, **VARIANTS[variant]}
    run(dataset, tmp_path / "straight", training(**config, **TWO))
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "out", training(**config, **TWO), reporter=SignalAt(4, signal.SIGTERM))
    assert not multiprocessing.active_children()
    said = Listening()
    run(dataset, tmp_path / "out", training(**config), reporter=said)  # as it was, though nobody says it again
    assert not said.warnings
    assert any("2 processes" in line for line in said.lines)
    assert result(tmp_path / "out") == result(tmp_path / "straight")
    settings = open_artifact(tmp_path / "out" / "model").figures["settings"]
    assert (settings["threads"], settings["parallel"]) == (2, "processes")


def test_it_goes_on_by_threads_where_that_is_asked_for(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, training(**SHORT, **TWO), reporter=SignalAt(4, signal.SIGTERM))
    said = Listening()
    run(dataset, tmp_path, training(**SHORT, threads=1, parallel="threads"), reporter=said)
    assert said.warnings == [
        f"training began with threads 2 and continues with 1: {OTHER_DRAWS}",
        f"training began with parallel processes and continues with threads: {OTHER_DRAWS}",
    ]


@pytest.mark.slow
def test_it_goes_on_by_threads_where_no_process_can_be_forked(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, training(**SHORT, **TWO), reporter=SignalAt(4, signal.SIGTERM))
    monkeypatch.setattr(sys, "platform", "darwin")
    said = Listening()
    run(dataset, tmp_path, training(**SHORT), reporter=said)
    warnings = [text for text in said.warnings if "other programs use" not in text]  # a busy machine
    assert warnings == [f"training began with parallel processes and continues with threads: {OTHER_DRAWS}"]


@pytest.mark.slow
def test_it_learns_as_by_threads(dataset: Path, tmp_path: Path) -> None:
    config = {"max_steps": 250, "validation": {"every_steps": 250, "bleu": False}, "threads": 2}
    loss = {}
    for parallel in ("threads", "processes"):
        model = run(dataset, tmp_path / parallel, training(**config, parallel=parallel))
        loss[parallel] = open_artifact(model).figures["validation"]["loss"]
    assert loss["processes"] != loss["threads"]  # other draws
    assert max(loss.values()) < 2.3  # of -log(1 / 14) = 2.64 before
    assert abs(loss["processes"] - loss["threads"]) < 0.5


# What is chosen


def test_processes_are_refused_where_they_cannot_be(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_norm = ModelConfig.model_validate({**MODEL.model_dump(), "normalization": "batch"})
    with pytest.raises(RecipeError, match=r'training\.parallel = "processes": each would have other statistics'):
        run(dataset, tmp_path, training(**SHORT, **TWO), model=batch_norm)
    monkeypatch.setattr(worker_process.sys, "platform", "darwin")
    with pytest.raises(RecipeError, match=r'are forked on Linux alone, .*; write "threads", or remove it'):
        run(dataset, tmp_path, training(**SHORT, **TWO))


def test_why_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel_training_unsupported_reason(MODEL, ALONE) is None
    assert "not on cuda" in str(parallel_training_unsupported_reason(MODEL, World(device=torch.device("cuda"))))
    assert "torchrun" in str(parallel_training_unsupported_reason(MODEL, World(0, 2)))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert "CUDA_VISIBLE_DEVICES" in str(parallel_training_unsupported_reason(MODEL, ALONE))


@pytest.mark.parametrize(
    ("width", "threads", "tokens", "found"),
    [
        (16, 2, 2 * MIN_TOKENS_PER_WORKER, True),
        (16, 2, 2 * MIN_TOKENS_PER_WORKER - 1, False),
        (16, 8, 8 * MIN_TOKENS_PER_WORKER, True),
        (16, 1, 10**6, False),
        (MAX_WIDTH_FOR_WORKERS, 2, 10**6, False),
    ],
)
def test_processes_are_chosen_where_they_are_faster(width: int, threads: int, tokens: int, found: bool) -> None:
    stack = {"dim": width, "heads": 2}
    assert (
        are_workers_faster(ModelConfig.model_validate({"decoder": stack, "encoder": stack}), threads, tokens) is found
    )


def test_a_training_of_enough_tokens_has_them_by_itself(dataset: Path, tmp_path: Path) -> None:
    said = Listening()
    short = {"max_steps": 1, "validation": {"every_steps": 1, "bleu": False}}
    run(
        dataset,
        tmp_path / "many",
        training(**short, threads=2, accumulate=2 * MIN_TOKENS_PER_WORKER // 64),
        reporter=said,
    )
    assert any("2 processes" in line for line in said.lines)
    said = Listening()
    run(dataset, tmp_path / "few", training(**short, threads=2), reporter=said)
    assert any("2 threads" in line for line in said.lines)


# Other programs that kill


def start(dataset: Path, out: Path) -> subprocess.Popen[str]:
    config = training(max_steps=10_000, save_every=20, validation={"every_steps": 10_000, "bleu": False}, **TWO)
    command = [sys.executable, "-m", "tests.tiny_training", str(dataset), str(out), config.model_dump_json()]
    program = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: len(group_of(program.pid)) == 2, program)
    before = saved(out)
    wait_for(lambda: saved(out) > before, program)
    return program


def saved(out: Path) -> int:
    """The newest checkpoint's step."""
    return max((int(each.name.partition("-")[2]) for each in out.glob("training/checkpoints/step-*")), default=0)


def wait_for(condition: Any, program: subprocess.Popen[str] | None = None) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        assert program is None or program.poll() is None, program.communicate()[1]
        time.sleep(0.05)


def group_of(leader: int) -> Sequence[int]:
    """The processes of a process group that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(group) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
def test_whoever_is_killed_nobody_is_left_and_it_resumes(dataset: Path, tmp_path: Path) -> None:
    for whom in ("helper", "leader"):
        program = start(dataset, tmp_path / whom)
        (helper,) = set(group_of(program.pid)) - {program.pid}
        os.kill(helper if whom == "helper" else program.pid, signal.SIGKILL)
        _, said = program.communicate(timeout=SECONDS)
        assert program.returncode == (65 if whom == "helper" else -signal.SIGKILL)
        assert ("the same command resumes" in said) == (whom == "helper"), said
        assert "Traceback" not in said
        wait_for(lambda leader=program.pid: not group_of(leader))
        again = start(dataset, tmp_path / whom)
        os.killpg(again.pid, signal.SIGTERM)
        _, said = again.communicate(timeout=SECONDS)
        assert again.returncode == 75, said
        assert "training stopped by SIGTERM after step" in said
        assert not group_of(again.pid)


@pytest.mark.slow
def test_a_signal_to_all_of_them_stops_it_with_all_saved(dataset: Path, tmp_path: Path) -> None:
    program = start(dataset, tmp_path)
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=SECONDS)
    assert program.returncode == 75, said
    assert "the same command resumes it" in said
    assert not group_of(program.pid)
