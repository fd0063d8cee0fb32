"""A stage whose recipe is no longer that of what it reads says that the change has no effect."""

from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora

REMEDY = "with the same recipe first"


def test_another_batch_size_of_the_dataset_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    short = ("--set", "training.max_steps=1")
    found = tfm("train", "--recipe", "tiny.toml", "--set", "data.batch_tokens=512", *short)
    assert found.code == 0, found.err
    said = "runs/tiny/dataset was made with data.batch_tokens = 256: the recipe's 512 has no effect on it"
    assert f"{said}; run `tfm preprocess` {REMEDY}" in " ".join(found.err.split())
    found = tfm("train", "--recipe", "tiny.toml", "--set", "data.limits.max_length=9", *short)
    assert "made with data.limits.max_length = 256" in " ".join(found.err.split())
    found = tfm("train", "--recipe", "tiny.toml", *short)
    assert "has no effect" not in found.err
    assert REMEDY not in tfm("run", "tiny.toml", "--set", "data.batch_tokens=512", *short).err


def test_other_keys_of_tokenizer_model_and_seed_are_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    assert tfm("run", "tiny.toml").code == 0
    for stage, changed, told in (
        ("preprocess", "tokenizer.vocab_size=70", "runs/tiny/tokenizer was made with tokenizer.vocab_size = "),
        ("preprocess", "tokenizer.lowercase=true", "runs/tiny/tokenizer was made with tokenizer.lowercase = False"),
        ("translate", "seed=5", "runs/tiny/model was made with seed = 1: the recipe's 5 has no effect on it"),
        ("evaluate", "model.norm=post", "runs/tiny/model was made with model.norm = 'pre': the recipe's 'post'"),
        ("translate", "model.values=keys", "runs/tiny/model was made with model.values = 'projection'"),
        ("evaluate", "decoding.beam=1", "runs/tiny/translations was made with decoding.beam = 2: the recipe's 1"),
        ("translate", "training.label_smoothing=0.3", "runs/tiny/model was made with training.label_smoothing = "),
    ):
        found = tfm(stage, "--recipe", "tiny.toml", "--set", changed)
        assert found.code == 0, found.err
        said = " ".join(found.err.split())
        assert told in said, said
        assert REMEDY in said
    for stage in ("preprocess", "train", "translate", "evaluate"):
        assert REMEDY not in tfm(stage, "--recipe", "tiny.toml").err
    (tmp_path / "renamed").mkdir()
    for each in [*tmp_path.iterdir()]:
        if each.name != "renamed":
            each.rename(tmp_path / "renamed" / each.name)
    monkeypatch.chdir(tmp_path / "renamed")
    for stage in ("preprocess", "train", "translate", "evaluate"):
        assert REMEDY not in tfm(stage, "--recipe", "tiny.toml").err
