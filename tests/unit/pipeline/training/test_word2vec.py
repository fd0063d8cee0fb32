"""Training by a step for each prediction: where it is taken, what is drawn, and that it resumes without a trace."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("tfm.model.cpu_kernels.word2vec", reason="no numba (extra: fast)", exc_type=ImportError)

from tests.sharded_ranks import train_by_ranks
from tests.tiny_training import in_float64, run, training, write_dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.cpu_kernels import word2vec as loops
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.tasks import word_vectors
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.tasks.word_vectors import WordVectorTask, num_words, word_frequencies
from tfm.pipeline.training.assembly import word2vec
from tfm.pipeline.training.assembly.word2vec import (
    Word2vecGradientComputer,
    initialize_as_word2vec,
    merge_factors,
    no_online_updates_reason,
    other_updates_problem,
)
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings
from tfm.pipeline.training.optimizers import make_optimizer, set_learning_rate
from tfm.pipeline.training_config import TrainingConfig

DRAWN = {"window": 3, "negatives": 4, "shrink": True, "subsample": 0.1}
WHOLE = {"window": 2, "negatives": 2}
BOTH = pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])


def model_of(architecture: str = "skip_gram", words: dict[str, Any] = DRAWN, **more: Any) -> ModelConfig:
    given = {"architecture": architecture, "task": "word_vectors", "embedding_dim": 20, "word_vectors": words}
    return ModelConfig.model_validate({"max_length": 32, **given, **more})


def sgd(**changes: Any) -> TrainingConfig:
    schedule = {"name": "linear", "peak": 0.1, "warmup_steps": 0}
    plain: dict[str, Any] = {"optimizer": {"name": "sgd", "momentum": 0}, "clip_norm": None, "label_smoothing": 0}
    return training(**{**plain, "schedule": schedule, "threads": 1, **changes})


def updates_of(dataset: Path, config: ModelConfig, rate: float) -> Word2vecGradientComputer:
    """The steps of a model whose training begins, in float64."""
    data = load_dataset(dataset)
    task = WordVectorTask.from_context(TaskContext(sgd(), config, None, None, 64))  # type: ignore[arg-type]
    model = build(config, source_vocab=20, target_vocab=20, seed=1).double()
    task.prepare_model(model, data)
    optimizer = make_optimizer(model, sgd().optimizer)
    set_learning_rate(optimizer, rate)
    return Word2vecGradientComputer(model, task, data.train, sgd(), 3, World(), optimizer)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


def lines_of(out: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [line for line in lines if line["event"] == event]


class ReporterSpy(NullReporter):
    """A reporter that keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


# The steps


@pytest.mark.few(1)
@BOTH
@pytest.mark.parametrize("words", [WHOLE, DRAWN], ids=["whole", "drawn"])
def test_words_and_windows_are_those_of_a_whole_gradient(architecture: str, words: Any, dataset: Path) -> None:
    """With a rate of 0 nothing changes: as many predictions, and on average over noise words the same loss."""
    updates, ours, theirs = updates_of(dataset, model_of(architecture, words), 0.0), [], []
    rows = np.arange(60)
    before = [each.clone() for each in updates.model.parameters()]
    for step in range(1, 40):
        found = updates.start_gradient([rows, rows[:7]], step, stop=False).wait_for_update_sums()
        updates.model.dropout_rng.seed_batch(3, step)
        plain = updates.task.loss(updates.model, updates.task.batch(updates.split, rows))
        again = updates.task.batch(updates.split, rows[:7])
        object.__setattr__(again, "repeats", np.ones(7, np.int64))
        more = updates.task.loss(updates.model, again)
        assert found.tokens == plain.count + more.count
        ours.append(found.loss / found.tokens)
        theirs.append(float(plain.sum.detach() + more.sum.detach()) / found.tokens)
    assert all(torch.equal(one, other) for one, other in zip(before, updates.model.parameters(), strict=True))
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=4 * np.std(np.subtract(ours, theirs)) / 39**0.5)


@BOTH
def test_a_batch_of_which_nothing_is_left_is_read_whole(architecture: str, dataset: Path) -> None:
    whole = updates_of(dataset, model_of(architecture, {**WHOLE, "subsample": 1e-15}), 0.1)
    wanted = updates_of(dataset, model_of(architecture, WHOLE), 0.1)
    groups = [np.arange(5), np.arange(9)]
    assert (
        whole.start_gradient(groups, 1, stop=False).wait_for_update_sums()
        == wanted.start_gradient(groups, 1, stop=False).wait_for_update_sums()
    )


def test_draws_follow_from_seed_step_and_row(dataset: Path) -> None:
    found = []
    for seed, step, rows in ((3, 1, [1, 2]), (3, 1, [2, 1]), (3, 2, [1, 2]), (4, 1, [1, 2]), (3, 1, [1, 1])):
        updates = updates_of(dataset, model_of(words={"window": 3, "negatives": 40}), 0.0)
        updates.seed = seed
        found.append(updates.start_gradient([np.array(rows)], step, stop=True).wait_for_update_sums().loss)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert len({round(loss, 6) for loss in found[1:]}) == 4


@BOTH
@pytest.mark.few(1)
def test_a_training_learns_and_resumes_as_if_it_never_stopped(architecture: str, dataset: Path, tmp_path: Path) -> None:
    config, heard = model_of(architecture), ReporterSpy()
    schedule = {"name": "constant", "peak": 0.2, "warmup_steps": 2}
    changes: dict[str, Any] = {"ema": 0.9, "accumulate": 2, "schedule": schedule}
    whole = run(dataset, tmp_path / "whole", sgd(max_steps=40, **changes), model=config, reporter=heard)
    run(dataset, tmp_path / "parts", sgd(max_steps=15, **changes), model=config)
    parts = run(dataset, tmp_path / "parts", sgd(max_steps=40, **changes), model=config)
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)
    train, valid = lines_of(tmp_path / "whole", "train"), lines_of(tmp_path / "whole", "valid")
    assert train == [{**line, "gradient_norm": None} for line in train]
    assert [line["learning_rate"] for line in train][:2] == [0.2, 0.2]
    assert max(line["loss"] for line in valid) < 4 * np.log(2), "it began with 5 log 2"
    assert not heard.warnings


def test_a_training_in_float64_is_that_of_float32(dataset: Path, tmp_path: Path) -> None:
    single = run(dataset, tmp_path / "single", sgd(), model=model_of())
    with in_float64():
        double = run(dataset, tmp_path / "double", sgd(), model=model_of())
    one, other = (load_file(folder / "model.safetensors")["table.weight"] for folder in (single, double))
    torch.testing.assert_close(one, other.float(), rtol=0, atol=1e-5)
    assert float(other.std()) > 0.02


def test_the_first_weights_are_as_large_as_those_of_gensim() -> None:
    model: Any = build(model_of(embedding_dim=100), source_vocab=500, target_vocab=500, seed=1)
    initialize_as_word2vec(model)
    assert float(model.table.weight.detach().std()) == pytest.approx(3**-0.5 / 100, rel=0.02)
    assert not model.output.weight.any()


def test_a_model_to_start_from_keeps_its_weights(dataset: Path, tmp_path: Path) -> None:
    first = run(dataset, tmp_path / "first", sgd(max_steps=5), model=model_of())
    tiny = {"name": "constant", "peak": 1e-30, "warmup_steps": 0}
    again = run(dataset, tmp_path / "again", sgd(max_steps=1, init_from=str(first), schedule=tiny), model=model_of())
    one, other = (load_file(folder / "model.safetensors") for folder in (first, again))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_weights_that_become_too_large_end_the_training(dataset: Path, tmp_path: Path) -> None:
    steep = {"name": "constant", "peak": 1e6, "warmup_steps": 0}
    with pytest.raises(DataError, match=r"loss is not finite at step \d+ .*[\s\S]*lower training\.schedule\.peak"):
        run(dataset, tmp_path, sgd(schedule=steep, validation={"every_steps": 1000}), model=model_of())


# Several processes


class ThreadWorld(World):
    """A process among several that are threads here; sums are added by rank."""

    def __init__(self, rank: int, meeting: threading.Barrier, given: list[Any]) -> None:
        super().__init__(rank, meeting.parties)
        object.__setattr__(self, "meeting", meeting)
        object.__setattr__(self, "given", given)

    def all_reduce_sum(self, tensor: torch.Tensor) -> torch.Tensor:
        self.given[self.rank] = tensor.clone()
        self.meeting.wait(60)
        tensor.copy_(sum(self.given[1:], self.given[0]))
        self.meeting.wait(60)
        return tensor


def weights_of(updates: Word2vecGradientComputer) -> list[torch.Tensor]:
    return [each.weight.detach().clone() for each in (updates.model.table, updates.model.output)]


def merge_by_hand(updates: Word2vecGradientComputer, groups: list[list[Any]], rate: float) -> list[float]:
    """Take the steps of each batch of an update from the same weights, and merge them by the equations; the losses."""
    losses, frequencies = [], updates.model.frequencies.double().numpy()
    noise = frequencies**0.75 / (frequencies**0.75).sum()
    negatives = updates.task.objective.negatives
    for step, group in enumerate(groups, 1):
        start, ways, loss, count = weights_of(updates), [], 0.0, 0
        for rows in group:
            with torch.no_grad():
                for layer, before in zip((updates.model.table, updates.model.output), start, strict=True):
                    layer.weight.copy_(before)
            found = updates.start_gradient([rows], step, stop=False).wait_for_update_sums()
            ways.append([end - before for end, before in zip(weights_of(updates), start, strict=True)])
            loss, count = loss + found.loss, count + found.tokens
        losses.append(loss / count)
        steps = (
            count / len(group) * frequencies * (1 + negatives),
            count / len(group) * (frequencies + negatives * noise),
        )
        for place, layer in enumerate((updates.model.table, updates.model.output)):
            left = np.exp(-rate * 0.1 * steps[place])  # of the way to the minimum, behind each process
            factors = sum(left**process for process in range(len(group)))
            mean = sum(way[place] for way in ways).numpy() / len(group)  # type: ignore[attr-defined]
            with torch.no_grad():
                layer.weight.copy_(start[place] + torch.from_numpy(factors[:, None] * mean))
    return losses


@BOTH
@pytest.mark.parametrize("processes", [2, 3])
def test_processes_merge_their_steps_as_the_equations_say(architecture: str, processes: int, dataset: Path) -> None:
    rate, rows = 0.3, np.arange(60)
    groups: list[list[Any]] = [[rows[i::5] for i in range(processes)] for _ in range(3)] + [[rows[:9]]]
    wanted = updates_of(dataset, model_of(architecture, WHOLE), rate)
    losses = merge_by_hand(wanted, groups, rate)
    meeting, given = threading.Barrier(processes), [None] * processes
    ranks = [updates_of(dataset, model_of(architecture, WHOLE), rate) for _ in range(processes)]
    heard: list[Any] = [None] * processes

    def run_rank(rank: int) -> None:
        ranks[rank].world = ThreadWorld(rank, meeting, given)
        found = [ranks[rank].start_gradient(group, step, stop=rank == 1) for step, group in enumerate(groups, 1)]
        heard[rank] = [each.wait_for_update_sums() for each in found]

    threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(processes)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for updates in ranks:
        for ours, theirs in zip(weights_of(updates), weights_of(wanted), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert heard == [heard[0]] * processes
    assert [each.loss / each.tokens for each in heard[0]] == pytest.approx(losses, rel=1e-12)
    assert all(each.stop for each in heard[0])


def test_a_rare_word_goes_all_ways_and_a_frequent_one_their_mean() -> None:
    assert merge_factors(torch.tensor([0.0, 1e-9, 1e9]).double(), 4).tolist() == pytest.approx([4, 4, 1], rel=1e-6)
    assert merge_factors(torch.tensor([0.7, 30.0]).double(), 1).tolist() == [1, 1]
    between = merge_factors(torch.linspace(0.01, 100, 50).double(), 3)
    assert (between.diff() < 0).all()


@pytest.mark.slow
@BOTH
def test_two_processes_learn_and_resume_with_the_same_bits(architecture: str, dataset: Path, tmp_path: Path) -> None:
    schedule = {"name": "constant", "peak": 0.2, "warmup_steps": 2}
    model = model_of(architecture)
    for name, steps in (("whole", 30), ("parts", 11), ("parts", 30)):
        config = sgd(max_steps=steps, schedule=schedule)
        ends = train_by_ranks(dataset, tmp_path / name, config, model, ranks=2, precision="float32")
        assert [code for code, _ in ends] == [0, 0], ends
    one, other = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert min(line["loss"] for line in lines_of(tmp_path / "whole", "valid")) < 4 * np.log(2), "it began with 5 log 2"
    assert all(line["gradient_norm"] is None for line in lines_of(tmp_path / "whole", "train"))


# Where they are taken


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"optimizer": {"name": "sgd"}}, "set training.optimizer.momentum = 0.0"),
        ({"optimizer": {"name": "sgd", "momentum": 0, "weight_decay": 1}}, "set training.optimizer.weight_decay = 0.0"),
        ({"clip_norm": 1.0, "l1": 0.1}, "set training.clip_norm = none, training.l1 = 0.0"),
        ({"l2": 0.1}, "set training.l2 = 0.0"),
    ],
)
def test_keys_of_a_whole_gradient_ask_for_one(change: Any, reason: str | None, dataset: Path, tmp_path: Path) -> None:
    heard = ReporterSpy()
    run(dataset, tmp_path, sgd(max_steps=3, **change), model=model_of(), reporter=heard)
    assert [each.rpartition(": ")[2] for each in heard.warnings] == ([] if reason is None else [reason])
    assert all((line["gradient_norm"] is None) == (reason is None) for line in lines_of(tmp_path, "train"))


def test_the_loop_is_for_cpus_and_the_processes_of_torchrun() -> None:
    settings = ExecutionSettings(device="cpu", precision="fp32", threads=2, world_size=1, batch_tokens=64)

    def reason(**changes: Any) -> str | None:
        return no_online_updates_reason(model_of(), sgd(), settings.model_copy(update=changes))

    assert reason() is None
    assert reason(device="cuda") == "the loop is for CPUs, not for cuda"
    assert reason(world_size=2) is None
    assert reason(parallel="processes") == (
        'set training.parallel = "threads": processes that share the loop are those of torchrun'
    )


def test_a_training_does_not_go_on_with_steps_of_another_kind(dataset: Path, tmp_path: Path) -> None:
    settings = ExecutionSettings(device="cpu", precision="fp32", threads=2, world_size=1, batch_tokens=64)
    of_two, helped = (settings.model_copy(update=each) for each in ({"world_size": 2}, {"parallel": "processes"}))

    def problem(earlier: ExecutionSettings, later: ExecutionSettings, num_processes: int) -> str | None:
        return other_updates_problem(model_of(), sgd(), earlier, later, num_processes)

    assert problem(settings, settings, 1) is problem(of_two, of_two, 2) is problem(helped, helped, 2) is None
    for given in ((settings, settings, 2), (of_two, of_two, 1)):
        assert "and would merge others: resume it with" in (problem(*given) or "")
    assert "began with one step for each prediction, and would go on with one step an update" in (
        problem(settings, helped, 1) or ""
    )
    assert "began with one step an update" in (problem(helped, settings, 1) or "")
    run(dataset, tmp_path, sgd(max_steps=2, parallel="threads"), model=model_of())
    with pytest.raises(RecipeError, match=r'resume it with 1 process .* training\.parallel = "threads"'):
        run(dataset, tmp_path, sgd(max_steps=4, threads=2, parallel="processes"), model=model_of())


@pytest.mark.parametrize(("words", "name"), [({}, "sgd"), (WHOLE, "adam")], ids=["softmax", "adam"])
def test_other_losses_and_optimizers_have_a_gradient(words: Any, name: str, dataset: Path, tmp_path: Path) -> None:
    heard = ReporterSpy()
    run(dataset, tmp_path, sgd(max_steps=3, optimizer={"name": name}), model=model_of(words=words), reporter=heard)
    assert lines_of(tmp_path, "train")[0]["gradient_norm"] > 0
    assert not heard.warnings


def test_without_numba_the_training_is_refused(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "load_kernel_module", lambda name: None)
    with pytest.raises(RecipeError, match=r"loops of numba, which is not installed: pip install .*fast"):
        run(dataset, tmp_path, sgd(), model=model_of())


# Large corpora


def test_a_split_is_read_some_rows_at_a_time(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = load_dataset(dataset).train
    whole = word_frequencies(split, 20), num_words(split)
    monkeypatch.setattr(word_vectors, "ROWS_PER_CHUNK", 7)
    assert max(len(ids) for _, ids, _ in word_vectors.iterate_chunks(split)) < 60
    assert [each.tolist() for each in (word_frequencies(split, 20), num_words(split))] == [
        each.tolist() for each in whole
    ]


def test_loops_are_compiled_for_the_type_of_the_weights(dataset: Path) -> None:
    assert updates_of(dataset, model_of(), 0.1).loop is loops.get_training_kernel("skip_gram", "f8")
