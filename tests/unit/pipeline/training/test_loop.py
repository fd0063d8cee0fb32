"""The training loop and the train stage: what is written, kept, averaged, refused, and when it ends."""

import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from tests.recording_reporter import Listening
from tests.rounding import assert_rounds_like
from tests.tiny_training import MODEL, STACK, WHOLE_WORDS, WORDS, in_float64, run, training, write_dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layout import FlatLayout
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError, StoppedError, WriteError
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.model_weights import load_weights
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.runtime.stop_signal import catch_stop_signals
from tfm.pipeline.scoring import validation
from tfm.pipeline.scoring.metrics.registry import bleu
from tfm.pipeline.stages.train import train
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import session
from tfm.pipeline.training.assembly import starting_point
from tfm.pipeline.training.early_stopping import Validation, is_patience_exhausted, sort_best_first
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training.update import GradientComputer
from tfm.pipeline.training_config import ValidationMetric
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.train import train as train_tokenizer

ROOT = Path(__file__).parents[4]
NO_BLEU = {"every_steps": 5, "bleu": False}


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "draw_curves", lambda metrics, file: None)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


def metrics(out: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [line for line in lines if line["event"] == event]


def kept(out: Path) -> list[int]:
    return sorted(int(entry.name.removeprefix("step-")) for entry in (out / "training" / "checkpoints").iterdir())


def weights(out: Path, step: int, name: str = "model") -> dict[str, torch.Tensor]:
    return load_file(out / "training" / "checkpoints" / f"step-{step:07d}" / f"{name}.safetensors")


# What is written


def test_metrics_have_every_figure_at_its_step(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, training())
    train, valid = metrics(tmp_path, "train"), metrics(tmp_path, "valid")
    assert [line["step"] for line in train] == [3, 6, 9, 12, 15, 18]
    assert [line["step"] for line in valid] == [5, 10, 15, 20]
    keys = {"event", "step", "epoch", "loss", "nll", "learning_rate", "tokens_per_second", "gradient_norm", "seconds"}
    assert all(line.keys() == keys for line in train)
    assert train[-1]["loss"] < train[0]["loss"]
    batches = len(load_epoch(dataset))
    assert [line["epoch"] for line in train] == [-(-line["step"] // batches) for line in train]
    last = valid[-1]
    assert last.keys() == {"event", "step", "epoch", "loss", "perplexity", "accuracy", "bleu", "seconds"}
    assert last["perplexity"] == pytest.approx(np.exp(last["loss"]))
    figures = open_artifact(tmp_path / "model", "train").figures
    assert figures["validation"]["loss"] == min(line["loss"] for line in valid)


@pytest.fixture
def _in_float64() -> Iterator[None]:
    with in_float64():
        yield


@pytest.mark.usefixtures("_in_float64")
@pytest.mark.slow
def test_flat_batches_train_as_padded_ones_do(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0)})
    losses, num_paddings = [], []
    pad, calls = FlatLayout.pad, []

    def counted(self: FlatLayout, rows: Tensor) -> Tensor:
        calls.append(len(rows))
        return pad(self, rows)

    monkeypatch.setattr(FlatLayout, "pad", counted)
    for layout in ("padded", "flat"):
        run(dataset, tmp_path / layout, training(layout=layout), model=exact)
        losses.append([line["loss"] for line in metrics(tmp_path / layout, "train")])
        num_paddings.append(len(calls))
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert num_paddings[0] == 0 < num_paddings[1], "each run had the layout that it was told"


def evaluated(dataset: Path, checkpoint: dict[str, torch.Tensor]) -> Any:
    """The figures of the validation split as one batch, in float64."""
    data, task = load_dataset(dataset), Translation(CrossEntropy(0.1))
    size = load_pair(dataset / "tokenizer")[0].vocab_size
    model = build(MODEL, source_vocab=size, target_vocab=size).double().eval()
    load_weights(model, checkpoint, dataset)
    with torch.no_grad():
        return task.evaluate(model, task.batch(data.valid, np.arange(len(data.valid))))


def load_epoch(dataset: Path) -> list[Any]:
    data = load_dataset(dataset)
    return list(Translation(CrossEntropy(0.1)).epochs(data.train, data.batch_tokens, seed=3)(0))


@pytest.mark.usefixtures("_in_float64")
def test_validation_divides_sums_once(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, training(max_steps=5))
    whole, found = evaluated(dataset, weights(tmp_path, 5)), metrics(tmp_path, "valid")[0]
    assert found["loss"] == pytest.approx(whole.nll.item() / whole.count, rel=1e-12)
    assert found["accuracy"] == pytest.approx(whole.correct.item() / whole.count)


def test_validation_scores_the_lines_that_translate_gives(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[list[str]] = []

    def score(hypotheses: list[str], *rest: Any) -> Any:
        scored.append(hypotheses)
        return bleu(hypotheses, *rest)

    monkeypatch.setattr(validation, "METRIC_FUNCTIONS", {"bleu": score})
    config, search = training(max_steps=5, validation={"every_steps": 5, "beam": 2}), DecodingConfig(min_length=2)
    scores = EvaluationConfig()
    train(
        config, MODEL, search, dataset, tmp_path, seed=3, evaluation=scores, command=["test"], reporter=NullReporter()
    )
    loaded, sources = load_model(tmp_path / "model", "cpu"), load_dataset(dataset).valid.texts()[0]
    found = translate_lines(loaded, sources, search.model_copy(update={"beam": 2}), reporter=NullReporter())
    assert scored == [[translations[0].text for translations in found]]
    assert any(scored[0])


def test_a_log_is_cut_back_to_where_training_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = [{"event": "train", "step": 3}, {"event": "train", "step": 5}, {"event": "valid", "step": 5}]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, {"event": "train", "step": 6}])
    file.write_text(text + '{"event": "tr')
    log = MetricsLog(file)
    log.truncate(step=5, last_validation_step=0)
    log.append({"event": "valid", "step": 5, "perplexity": float("inf")})
    expected = [*lines[:2], {"event": "valid", "step": 5, "perplexity": None}]
    assert [json.loads(line) for line in file.read_text().splitlines()] == expected == log.lines


def test_tensorboard_is_written_or_its_package_named(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = training(max_steps=5, tensorboard=True, validation=NO_BLEU)
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        with pytest.raises(RecipeError, match="pip install"):
            run(dataset, tmp_path / "without", config)
    run(dataset, tmp_path, config)
    (events,) = (tmp_path / "training" / "tensorboard").glob("events.*")
    found = events.read_bytes()
    assert b"train/nll" in found
    assert b"valid/loss" in found
    assert b"valid/bleu" not in found


# What is kept and published


def test_last_and_best_checkpoints_are_kept(dataset: Path, tmp_path: Path) -> None:
    config = training(save_every=4, validation=NO_BLEU, keep={"last": 2, "best": 2})
    run(dataset, tmp_path, config)
    best = sorted(metrics(tmp_path, "valid"), key=lambda line: line["loss"])[:2]
    assert kept(tmp_path) == sorted({16, 20} | {line["step"] for line in best})


@pytest.mark.parametrize("which", ["last", "best"])
def test_an_averaged_model_is_the_mean_and_validated(dataset: Path, tmp_path: Path, which: str) -> None:
    config = training(validation=NO_BLEU, keep={"last": 2, "best": 3, "average": which})
    run(dataset, tmp_path, config)
    valid = metrics(tmp_path, "valid")
    best = sorted(line["step"] for line in sorted(valid, key=lambda line: line["loss"])[:3])
    steps = {"last": [15, 20], "best": best}[which]
    sets = [weights(tmp_path, step) for step in steps]
    found = load_file(tmp_path / "model" / "model.safetensors")
    for name, tensor in found.items():
        of_each = torch.stack([each[name] for each in sets])
        assert_rounds_like(tensor, of_each.mean(0), of_each.double().mean(0))
    figures = open_artifact(tmp_path / "model").figures
    assert figures["steps"] == steps
    assert figures["validation"]["loss"] not in [line["loss"] for line in valid]


KEEPS: dict[str, dict[str, Any]] = {
    "one": {},
    "mean of the last": {"last": 4, "average": "last"},
    "mean of the best": {"best": 3, "average": "best"},
}


def published(out: Path) -> tuple[object, dict[str, bytes]]:
    """The steps that the model is of, and its weights."""
    weights = load_file(out / "model" / "model.safetensors")
    return open_artifact(out / "model").figures["steps"], {
        name: each.numpy().tobytes() for name, each in weights.items()
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("first", [5, 6])
def test_a_moved_end_gives_the_model_of_that_end_from_the_beginning(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: dict[str, Any], first: int
) -> None:
    """Also where the first end, at which the clock has no validation, was the best of all."""
    losses, step = {2: 3.0, 4: 1.0, 5: 0.5, 6: 2.0, 8: 2.0, 10: 2.0}, [0]
    figures, validate = validation.Validator.compute_metrics, Trainer.validate

    def noted(self: Trainer) -> None:
        step[0] = self.state.progress.step
        validate(self)

    def told(self: validation.Validator, *given: Any) -> dict[str, Any]:
        return {**figures(self, *given), "loss": losses[step[0]]}

    monkeypatch.setattr(Trainer, "validate", noted)
    monkeypatch.setattr(validation.Validator, "compute_metrics", told)
    for folder, ends in (("moved", (first, 10)), ("once", (10,))):
        for end in ends:
            config = training(max_steps=end, validation={"every_steps": 2, "bleu": False}, keep=keep)
            run(dataset, tmp_path / folder, config)
    assert published(tmp_path / "moved") == published(tmp_path / "once")
    assert kept(tmp_path / "moved") == kept(tmp_path / "once")


@pytest.mark.few(2)
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("stop", [1, 7])
def test_a_training_that_was_stopped_can_end_there(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: dict[str, Any], stop: int
) -> None:
    config: dict[str, Any] = {"validation": {"every_steps": 2, "bleu": False}, "keep": keep}
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "should_stop", lambda self: self.state.progress.step == stop)
        with pytest.raises(StoppedError):
            run(dataset, tmp_path / "stopped", training(max_steps=20, **config))
    run(dataset, tmp_path / "stopped", training(max_steps=stop, **config))
    run(dataset, tmp_path / "once", training(max_steps=stop, **config))
    assert published(tmp_path / "stopped") == published(tmp_path / "once")
    assert kept(tmp_path / "stopped") == kept(tmp_path / "once")


@pytest.mark.usefixtures("_in_float64")
def test_the_moving_average_is_validated_and_published(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, training(max_steps=5, ema=0.9, validation=NO_BLEU))
    published = load_file(tmp_path / "model" / "model.safetensors")
    average, own = weights(tmp_path, 5, "ema"), weights(tmp_path, 5)
    assert all(torch.equal(published[name], average[name]) for name in published)
    assert any(not torch.equal(own[name], average[name]) for name in published)
    whole = evaluated(dataset, average)
    assert metrics(tmp_path, "valid")[0]["loss"] == pytest.approx(whole.nll.item() / whole.count, rel=1e-12)


def test_a_fresh_model_is_not_trained_again(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, training(max_steps=5, validation=NO_BLEU))
    before, reporter = (tmp_path / "model" / "model.safetensors").stat(), Listening()
    run(dataset, tmp_path, training(max_steps=5, validation=NO_BLEU), reporter=reporter)
    assert (tmp_path / "model" / "model.safetensors").stat() == before
    assert "up to date" in reporter.lines[0]


def test_training_starts_from_a_published_model(dataset: Path, tmp_path: Path) -> None:
    first = run(dataset, tmp_path / "first", training(max_steps=5, validation=NO_BLEU))
    still = training(max_steps=1, validation=NO_BLEU, schedule={"name": "constant", "peak": 1e-30, "warmup_steps": 0})
    said = Listening()
    second = run(dataset, tmp_path / "second", still.model_copy(update={"init_from": str(first)}), reporter=said)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert f"training: begins with all weights of {first} (translation)" in said.lines


def test_a_manifest_says_how_long_the_whole_training_took(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Translation.evaluate

    def slowly(*given: Any) -> Any:
        time.sleep(0.1)
        return real(*given)

    monkeypatch.setattr(Translation, "evaluate", slowly)
    began = time.monotonic()
    found = open_artifact(run(dataset, tmp_path, training(max_steps=5, validation=NO_BLEU)))
    assert 0.1 < found.figures["training_seconds"] <= found.provenance["duration_seconds"] <= time.monotonic() - began


def test_a_model_with_another_tokenizer_is_refused(dataset: Path, tmp_path: Path) -> None:
    first = run(dataset, tmp_path / "first", training(max_steps=1, validation=NO_BLEU))
    other = write_dataset(tmp_path / "dataset", words="eins zwei drei vier fünf sechs sieben acht neun zehn")
    with pytest.raises(DataError, match=r"another tokenizer.*tokenizer\.json: [0-9a-f]{12}, not [0-9a-f]{12}"):
        run(other, tmp_path / "second", training(max_steps=1, init_from=str(first)))


# When it ends


HISTORY = st.lists(st.floats(0, 5) | st.just(float("nan")), max_size=12)


def history(values: list[float]) -> list[Validation]:
    return [
        Validation(step=step, epoch=1, loss=value, perplexity=1.0, accuracy=value, bleu=value)
        for step, value in enumerate(values, 1)
    ]


@given(HISTORY, st.integers(1, 4), st.sampled_from(["loss", "accuracy", "bleu"]))
def test_patience_counts_validations_since_the_best(
    values: list[float], patience: int, metric: ValidationMetric
) -> None:
    best, since = float("-inf"), 0
    for position, value in enumerate(values):
        score = float("-inf") if np.isnan(value) else -value if metric == "loss" else value
        if position == 0 or score > best:
            best, since = score, 0
        else:
            since += 1
    assert is_patience_exhausted(history(values), metric, patience) == (since >= patience)
    assert not is_patience_exhausted(history(values), metric, None)


def test_best_first_prefers_the_earlier_of_equals() -> None:
    found = sort_best_first(history([2.0, 1.0, 1.0, float("nan")]), "loss")
    assert [each.step for each in found] == [2, 3, 1, 4]


def test_training_stops_early(dataset: Path, tmp_path: Path) -> None:
    config = training(
        max_steps=200,
        schedule={"name": "constant", "peak": 1e-30, "warmup_steps": 0},
        early_stopping={"patience": 2},
        validation=NO_BLEU,
    )
    heard: list[tuple[int, bool]] = []
    run(dataset, tmp_path, config, on_validation=lambda found, is_last: heard.append((found.step, is_last)))
    assert [line["step"] for line in metrics(tmp_path, "valid")] == [5, 10, 15]
    assert heard == [(5, False), (10, False), (15, True)]


@pytest.mark.parametrize("accumulate", [1, 4])
def test_epochs_end_training_and_use_every_batch(dataset: Path, tmp_path: Path, accumulate: int) -> None:
    config = training(max_steps=None, max_epochs=2, accumulate=accumulate, log_every=1, validation={"bleu": False})
    run(dataset, tmp_path, config)
    per_epoch = -(-len(load_epoch(dataset)) // accumulate)
    assert [line["epoch"] for line in metrics(tmp_path, "train")] == [1] * per_epoch + [2] * per_epoch
    assert [line["epoch"] for line in metrics(tmp_path, "valid")] == [1, 2]


@pytest.mark.parametrize(("times", "code"), [(1, 0), (2, 128 + signal.SIGTERM)])
def test_the_first_signal_is_a_wish_and_the_second_an_order(times: int, code: int) -> None:
    script = f"""
import os, signal, time
from tfm.pipeline.runtime.stop_signal import catch_stop_signals
with catch_stop_signals() as stop:
    for _ in range({times}):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
    assert stop and stop.signal == "SIGTERM"
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert "stopping after this step" in done.stderr


@pytest.mark.promise("resume")
def test_a_second_signal_ends_even_a_call_that_does_not_return() -> None:
    # Like a product of large matrices, this is one call of native code, which lets other threads run.
    script = """
import hashlib
from tfm.pipeline.runtime.stop_signal import catch_stop_signals
with catch_stop_signals():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""
    command = [sys.executable, "-c", script]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    _, said = process.communicate(timeout=5)
    assert process.returncode == 128 + signal.SIGTERM
    assert said.strip() == "stopping after this step; press Ctrl-C again to quit immediately"


def test_a_signal_passed_on_by_a_launcher_counts_once() -> None:
    with catch_stop_signals(echo_seconds=60) as stop:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == "SIGINT"


# What goes wrong


def poison(monkeypatch: pytest.MonkeyPatch, bad: set[int]) -> None:
    """Make the losses of these updates infinite."""
    real, calls = Translation.loss, iter(range(1, 1000))

    def loss(self: Translation, model: Any, batch: Any) -> LossSums:
        found, factor = real(self, model, batch), float("inf") if next(calls) in bad else 1.0
        return LossSums(found.sum * factor, found.nll, found.count)

    monkeypatch.setattr(Translation, "loss", loss)


@pytest.mark.promise("training")
def test_updates_that_are_not_finite_are_left_out(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, {2, 3, 4, 5, 7})
    reporter = Listening()
    run(dataset, tmp_path, training(max_steps=8, save_every=1, keep={"last": 8}, log_every=1), reporter=reporter)
    assert len(reporter.warnings) == 5
    assert "step 2 (epoch 1, batch 2, rows " in reporter.warnings[0]
    first, fifth, sixth = (weights(tmp_path, step) for step in (1, 5, 6))
    assert all(torch.equal(first[name], fifth[name]) for name in first)
    assert any(not torch.equal(sixth[name], fifth[name]) for name in first)
    assert [line["loss"] is None for line in metrics(tmp_path, "train")] == [
        step in {2, 3, 4, 5, 7} for step in range(1, 9)
    ]


@pytest.mark.promise("training")
def test_a_loss_that_stays_infinite_stops_training(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, set(range(6, 20)))
    with pytest.raises(DataError, match=r"5 times in a row, last at step 10 \(epoch 2.*checkpoint of step 5 is intact"):
        run(dataset, tmp_path, training(validation=NO_BLEU))
    assert kept(tmp_path) == [5]


@pytest.mark.promise("training")
def test_a_batch_that_does_not_fit_is_named(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(*_: Any) -> LossSums:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried")

    monkeypatch.setattr(Translation, "loss", loss)
    with pytest.raises(
        DataError, match=r"step 1: a batch of \d+ rows x \d+ tokens does not fit .* lower data.batch_tokens"
    ):
        run(dataset, tmp_path, training())


@pytest.mark.promise("training")
def test_memory_that_runs_out_is_known_by_what_torch_says_of_it() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 55, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))


def test_examples_longer_than_the_model_reads_are_counted_first(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\d+ of 60 train examples have more than model.max_length = 6 pieces"):
        run(dataset, tmp_path, training(), model=MODEL.model_copy(update={"max_length": 6}))


def test_two_vocabularies_of_one_size_are_not_tied(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, other = load_pair(dataset / "tokenizer")[0], train_tokenizer([WORDS[::-1]], WHOLE_WORDS)
    assert source.vocab_size == other.vocab_size
    monkeypatch.setattr(starting_point, "load_tokenizer_pair", lambda folder: (source, other))
    with pytest.raises(RecipeError, match=r'model\.tie = "all" needs one vocabulary'):
        run(dataset, tmp_path, training())


def test_a_full_disk_is_noticed_before_training(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    with pytest.raises(WriteError, match="make room"):
        run(dataset, tmp_path, training())


# The gradient


@pytest.fixture
def gradients(dataset: Path) -> Iterator[Any]:
    data = load_dataset(dataset)
    config = ModelConfig(encoder=STACK, decoder=StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=8))
    model = build(config, source_vocab=20, target_vocab=20).double().eval()

    def compute(**changes: Any) -> tuple[Any, list[torch.Tensor], list[torch.Tensor]]:
        made = GradientComputer(model, Translation(CrossEntropy(0.1)), data.train, training(**changes), 1, World())
        update = made.compute([np.arange(4), np.arange(4, 7)], 1, stop=False)
        found = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        return update, found, [parameter.detach() for parameter in model.parameters()]

    return compute


def test_penalties_are_the_gradients_of_their_formulas(gradients: Any) -> None:
    _, plain, own = gradients(clip_norm=None)
    _, found, _ = gradients(clip_norm=None, l1=0.01, l2=0.1)
    for gradient, before, weight in zip(found, plain, own, strict=True):
        torch.testing.assert_close(gradient, before + 0.01 * weight.sign() + 0.1 * weight)


def test_clipping_scales_to_the_norm_and_reports_the_one_before(gradients: Any) -> None:
    before, plain, _ = gradients(clip_norm=None)
    after, found, _ = gradients(clip_norm=0.25)
    norm = torch.stack([gradient.square().sum() for gradient in plain]).sum().sqrt().item()
    assert before.norm == after.norm == pytest.approx(norm)
    assert norm > 0.25
    for gradient, whole in zip(found, plain, strict=True):
        torch.testing.assert_close(gradient, whole * 0.25 / norm, rtol=1e-4, atol=1e-12)
