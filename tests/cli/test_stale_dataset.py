"""`tfm train` with a recipe whose [data] is no longer that of its dataset says that the change has no effect."""

from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora

REMEDY = "run `tfm preprocess` with the same recipe first"


def test_another_batch_size_of_the_dataset_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    short = ("--set", "training.max_steps=1")
    found = tfm("train", "--recipe", "tiny.toml", "--set", "data.batch_tokens=512", *short)
    assert found.code == 0, found.err
    said = "runs/tiny/dataset was made with data.batch_tokens = 256: the recipe's 512 has no effect on this training"
    assert f"{said}; {REMEDY}" in " ".join(found.err.split())
    found = tfm("train", "--recipe", "tiny.toml", "--set", "data.limits.max_length=9", *short)
    assert "made with data.limits.max_length = 256" in " ".join(found.err.split())
    found = tfm("train", "--recipe", "tiny.toml", *short)
    assert "has no effect" not in found.err
    assert REMEDY not in tfm("run", "tiny.toml", "--set", "data.batch_tokens=512", *short).err
