"""A training by processes that is stopped and resumed ends as one that never was, of every kind that reads in another
way: adapters beside weights that stay, other pieces at each update, images, and a recurrent model that reads twice."""

import multiprocessing
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.image_models import DECODERS, config_of
from tests.invariants.test_helpers import ALONE, SHORT, TWO
from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.recording_reporter import Listening
from tests.tiny_training import MODEL, run, training, write_dataset
from tests.unit.pipeline.stages.test_images import config as images_in
from tests.unit.pipeline.stages.test_images import dataset_of
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import StoppedError
from tfm.pipeline.training.helpers import parallel_training_unsupported_reason
from tfm.tokenizer.config import TokenizerConfig

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        parallel_training_unsupported_reason(MODEL, ALONE) is not None,
        reason=f"no helpers here: {parallel_training_unsupported_reason(MODEL, ALONE)}",
    ),
    pytest.mark.usefixtures("no_curves", "threads_as_they_were"),
]


def _lora(tmp_path: Path) -> tuple[Path, dict[str, Any], ModelConfig]:
    data = write_dataset(tmp_path / "data")
    first = run(data, tmp_path / "first", training(max_steps=2, validation={"every_steps": 2, "bleu": False}))
    return data, {"lora": {"rank": 2}, "init_from": str(first)}, MODEL


def _bpe_dropout(tmp_path: Path) -> tuple[Path, dict[str, Any], ModelConfig]:
    pieces = TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1)
    return write_dataset(tmp_path / "data", pieces=pieces), {"bpe_dropout": 0.3}, MODEL


def _images(tmp_path: Path) -> tuple[Path, dict[str, Any], ModelConfig]:
    found = dataset_of(images_in(tmp_path), tmp_path)
    model = config_of("convolution", DECODERS["lstm, bahdanau"], max_length=32)
    return found.tokenizer_folder.parent, {"batch_tokens": 64}, model


def _recurrent(tmp_path: Path) -> tuple[Path, dict[str, Any], ModelConfig]:
    about = {**MODEL.model_dump(exclude_unset=True), "architecture": "recurrent", "positions": "none"}
    return write_dataset(tmp_path / "data"), {"r_drop": 1.0}, ModelConfig.model_validate(about)


@pytest.mark.parametrize("kind", [_lora, _bpe_dropout, _images, _recurrent])
def test_resumed_it_is_the_same(kind: Any, tmp_path: Path) -> None:
    data, changes, model = kind(tmp_path)
    config = training(**SHORT, **changes, **TWO)
    run(data, tmp_path / "straight", config, model=model)
    with pytest.raises(StoppedError):
        run(data, tmp_path / "out", config, model=model, reporter=SignalAt(4, signal.SIGTERM))
    assert not multiprocessing.active_children()
    said = Listening()
    run(data, tmp_path / "out", config, model=model, reporter=said)
    assert any("2 processes" in line for line in said.lines)
    assert result(tmp_path / "out") == result(tmp_path / "straight")
