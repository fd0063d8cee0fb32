"""The train stage refuses before its first update what a later one would stop at."""

from pathlib import Path

import pytest

from tests.tiny_training import run, training, write_dataset
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError


def test_a_precision_of_validation_that_is_missing_is_told_before_any_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfm.pipeline.runtime.devices.int8_unsupported_reason", lambda: "no VNNI")
    dataset, decoding = write_dataset(tmp_path / "dataset"), DecodingConfig(precision="int8", max_length=5)
    with pytest.raises(RecipeError, match=r'"int8" is not available here: no VNNI; choose fp32 or bf16'):
        run(dataset, tmp_path / "out", training(max_steps=1, validation={"every_steps": 1}), decoding=decoding)
    assert not (tmp_path / "out").exists()
    by_loss_alone = training(max_steps=1, validation={"every_steps": 1, "bleu": False})
    run(dataset, tmp_path / "out", by_loss_alone, decoding=decoding)
