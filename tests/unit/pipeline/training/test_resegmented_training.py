"""Training on other pieces at each update: resumed to the same bits, the same in parts, refused where nothing can be
drawn."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.batching.resegmentation import Resegmenter
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import DropoutConfig
from tfm.pipeline.errors import RecipeError, StoppedError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.masked_language_model import MaskedLanguageModel
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import metrics_log, session
from tfm.pipeline.training.assembly.setup import make_resegmentation
from tfm.pipeline.training.update import GradientComputer
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pieces = TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1)
    return write_dataset(tmp_path_factory.mktemp("bpe") / "dataset", pieces=pieces)


def settings(**more: Any) -> TrainingConfig:
    return training(max_steps=5, validation={"every_steps": 5, "bleu": False}, **more)


def test_stopped_and_resumed_is_the_same(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "draw_curves", lambda metrics, file: None)  # takes most of such a short run's time
    monkeypatch.setattr(metrics_log, "draw_curves", lambda metrics, file: None)
    config = settings(bpe_dropout=0.3)
    run(dataset, tmp_path / "straight", config)
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "stopped", config, reporter=SignalAt(3, signal.SIGTERM))
    run(dataset, tmp_path / "stopped", config)
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")


MASKED = {"architecture": "encoder_only", "task": "masked_language_model"}


@pytest.mark.parametrize(
    ("changes", "task"),
    [({}, Translation(CrossEntropy(0.1))), (MASKED, MaskedLanguageModel(CrossEntropy(0.1)))],
    ids=["translation", "masked"],
)
def test_a_batch_in_parts_has_the_gradient_of_the_whole(dataset: Path, changes: dict[str, Any], task: Any) -> None:
    data = load_dataset(dataset)
    tokenizer, _ = load_tokenizer_pair(data.tokenizer_folder)
    exact = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0), **changes})
    model = build(exact, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, seed=1).double()
    whole = Resegmenter(*[tokenizer.sampler(bpe_dropout=0.4)] * 2, seed=1, max_tokens=32, budget=10**6)
    found = []
    for how in (whole, replace(whole, budget=64)):
        made = GradientComputer(model, task, data.train, settings(clip_norm=None), 1, World(), how)
        update = made.compute([np.arange(12)], 3, stop=False)
        found.append((update, [each.grad.clone() for each in model.parameters() if each.grad is not None]))
    assert len(list(replace(whole, budget=64).iterate_resegmented_parts(data.train, np.arange(12), 3))) > 1
    (one, gradients), (other, in_parts) = found
    assert one.tokens == other.tokens
    assert changes or one.tokens > int(data.train.target_lengths[:12].sum()) + 12
    assert other.loss == pytest.approx(one.loss, rel=1e-12)
    torch.testing.assert_close(in_parts, gradients, rtol=1e-9, atol=1e-12)


def about(dataset: Path, model: dict[str, Any], **more: Any) -> TaskContext:
    return TaskContext(
        settings(**more),
        MODEL.model_copy(update=model),
        *load_tokenizer_pair(load_dataset(dataset).tokenizer_folder),
        64,
    )


def test_what_can_draw_nothing_is_refused(dataset: Path, tmp_path: Path) -> None:
    words = write_dataset(tmp_path / "words")
    assert make_resegmentation(about(dataset, {}), 1) is None
    made = make_resegmentation(about(dataset, {}, bpe_dropout=0.1), 1)
    assert made is not None
    assert made.source is made.target is not None
    assert (made.max_tokens, made.budget, made.seed) == (32, 64, 1)
    with pytest.raises(RecipeError, match=r"training.bpe_dropout = 0.1: neither side has a tokenizer of kind bpe"):
        make_resegmentation(about(words, {}, bpe_dropout=0.1), 1)
    with pytest.raises(RecipeError, match=r"training.unigram_alpha = 0.2: neither side .* of kind unigram"):
        make_resegmentation(about(dataset, {}, bpe_dropout=0.1, unigram_alpha=0.2), 1)
    for idle in ({"task": "tagging"}, {"task": "word_vectors"}, {"block": 8}):
        with pytest.raises(RecipeError, match="tags and word vectors belong to words"):
            make_resegmentation(about(dataset, idle, bpe_dropout=0.1), 1)
    assert settings().batch_norm_problem() is None
    assert "may be read in parts" in str(settings(bpe_dropout=0.1).batch_norm_problem())
