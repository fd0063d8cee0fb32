"""The seed of a recipe is one of training: tokenizer and dataset have no part in it, whatever the corpora."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import datasets
import pytest

from tests.cli.user import tfm
from tests.tiny_artifact import rewritten
from tfm.pipeline.artifacts.artifact import open_artifact

TOKENIZER = '[tokenizer]\nkind = "bpe"\nvocab_size = 60\nmin_frequency = 1\n'


def in_text(corpora: Path, _: Path) -> str:
    """Without validation and test data, which are drawn."""
    return f'train = {{ source = "{corpora}/train.de", target = "{corpora}/train.en", weight = 0.3 }}'


def in_datasets(corpora: Path, folder: Path) -> str:
    columns = {side: (corpora / f"train.{side}").read_text("utf-8").splitlines() for side in ("de", "en")}
    split = datasets.Dataset.from_dict(columns)
    datasets.DatasetDict({"train": split, "validation": split.select(range(5))}).save_to_disk(folder / "saved")
    return f'path = "{folder}/saved"\nsource = "de"\ntarget = "en"'


def generated(*_: Path) -> str:
    return 'train = { format = "generated", path = "grammar", split = "train", size = 60 }'


KINDS = {"text": in_text, "huggingface": in_datasets, "generated": generated}


def contents(folder: Path) -> Mapping[str, bytes]:
    names = open_artifact(folder).files
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(1)
def test_recipes_that_differ_in_their_seed_share_tokenizer_and_dataset(
    kind: str, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write: Callable[[Path, Path], str] = KINDS[kind]
    for seed in (1, 2):
        file = tmp_path / f"seed-{seed}.toml"
        file.write_text(f"seed = {seed}\n{TOKENIZER}[data]\n{write(corpora, tmp_path)}\n", encoding="utf-8")
        for stage in ("tokenize", "preprocess"):
            done = tfm(stage, "--recipe", file)
            assert done.code == 0, done.err
    for name in ("tokenizer", "dataset"):
        one, two = (tmp_path / "runs" / f"seed-{seed}" / name for seed in (1, 2))
        assert contents(one) == contents(two)
        assert open_artifact(one).fingerprint == open_artifact(two).fingerprint
        assert open_artifact(one).seed is None
        assert ", seed" not in tfm("inspect", one).out


@pytest.mark.slow
def test_runs_of_several_seeds_compare_in_every_figure(recipe: Path) -> None:
    other = recipe.with_name("other.toml")
    other.write_text('extends = "tiny.toml"\nseed = 2\n', encoding="utf-8")
    for file in (recipe, other):  # one command each: nothing is copied from the other run
        done = tfm("run", file, "--set", "training.log_every=5")
        assert done.code == 0, done.err
    found = json.loads(tfm("compare", "runs/tiny", "runs/other", "--json", "--metric", "exact_match").out)
    assert found["runs"][1]["differs"] == {"seed": 2}
    figures = [run["figures"] for run in found["runs"]]
    assert figures[0].keys() == figures[1].keys() >= {"valid.loss", "test.bleu"}
    assert [name for run in figures for name, figure in run.items() if not figure["comparable"]] == []
    assert found["notes"] == []
    again = tfm("run", recipe, "--set", "training.log_every=5", "--set", "seed=3")
    assert again.err.count("nothing to do") == 2
    assert "seed changed: 1 -> 3" in again.err


@pytest.mark.slow
def test_one_command_runs_several_seeds_and_again_continues(recipe: Path) -> None:
    words = ("run", recipe, "--seeds", "1,2", "--set", "training.max_steps=2")
    done = tfm(*words)
    assert done.code == 0, done.err
    assert [line for line in done.err.splitlines() if line.startswith("==")] == [
        "== tiny-1 (1 of 2)",
        "== tiny-2 (2 of 2)",
    ]
    assert "tokenizer: copied from runs/tiny-1/tokenizer" in done.err
    assert "dataset: copied from runs/tiny-1/dataset" in done.err
    models = [open_artifact(Path("runs", name, "model")) for name in ("tiny-1", "tiny-2")]
    assert [each.seed for each in models] == [1, 2]
    assert models[0].config == models[1].config
    assert models[0].files["model.safetensors"] != models[1].files["model.safetensors"]
    assert tfm(*words).err.count("nothing to do") == 10
    more = tfm("run", recipe, "--seeds", "1,2,7", "--set", "training.max_steps=2")
    assert more.err.count("nothing to do") == 12  # and the two that the third shares
    assert Path("runs/tiny-7/scores/scores.json").exists()
    refused = tfm("run", recipe, "--seeds", "1,,2")
    assert refused.code == 2
    assert refused.err == "--seeds 1,,2: '' is no whole number from 0 to 4294967295; write 1,2,3\n"


def test_an_artifact_from_when_it_had_a_seed_stays_fresh(corpora: Path, tmp_path: Path) -> None:
    words = ("tokenize", corpora / "train.de", "--kind", "char", "--out", tmp_path / "t")
    assert tfm(*words).code == 0
    rewritten(tmp_path / "t", seed=7)
    assert open_artifact(tmp_path / "t").seed == 7
    assert "up to date" in tfm(*words).err
