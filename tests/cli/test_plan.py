"""`tfm plan`: what it counts is what training then does."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora
from tfm.pipeline.planning.corpus_size import count_corpus_and_vocabularies, num_validations
from tfm.pipeline.recipes.recipe import load_recipe

TEXT_RECIPE = """
name = "text"
[tokenizer]
kind = "word"
[data]
batch_tokens = 64
[[data.train]]
source = "none"
target = "train.de"
[data.valid]
source = "none"
target = "valid.de"
[data.tests.test]
source = "none"
target = "test.de"
[model]
architecture = "decoder_only"
task = "language_model"
block = 8
[model.decoder]
layers = 1
dim = 8
heads = 2
feed_forward_dim = 8
[training]
max_epochs = 2
"""


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("more", [(), ("--set", "training.batch_tokens=64")], ids=["dataset", "training.batch_tokens"])
@pytest.mark.few(1)
def test_updates_rows_and_parameters_are_those_of_the_training(corpora: Path, more: tuple[str, ...]) -> None:
    sets = ("--set", "training.max_epochs=2", "--set", "training.max_steps=none", *more)
    for stage in ("tokenize", "preprocess", "train"):
        done = tfm(stage, "--recipe", "tiny.toml", *(sets if stage == "train" else ()))
        assert done.code == 0, done.err
    done = tfm("plan", "tiny.toml", *sets, "--on", "2 x H100", "--json", "--price", "3")
    assert done.code == 0, done.err
    with_two = json.loads(done.out)
    one = json.loads(tfm("plan", "tiny.toml", *sets, "--on", "H100", "--json").out)
    figures = json.loads((corpora / "runs/tiny/model/manifest.json").read_bytes())["figures"]
    report = json.loads((corpora / "runs/tiny/dataset/report.json").read_bytes())
    assert one["corpus"]["updates"] == figures["updates"]
    assert one["parameters"] == figures["parameters"]
    assert one["corpus"]["rows"] == report["batches"]["rows_an_epoch"]
    assert more or one["corpus"]["padding"] == pytest.approx(report["batches"]["padding"])
    assert with_two["corpus"]["updates"] < one["corpus"]["updates"]
    assert (with_two["cost"] is None, one["cost"] is None) == (False, True)


def test_a_training_that_starts_from_a_model_has_its_shape_and_trains_adapters_alone(corpora: Path) -> None:
    for stage in ("tokenize", "preprocess", "train"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    text = Path("tiny.toml").read_text("utf-8")
    shape = text[text.index("[model]") : text.index("[training]")]
    Path("tiny.toml").write_text(text.replace(shape, ""), "utf-8")
    sets = "--set", 'training.init_from="runs/tiny"', "--set", "training.lora.rank=3"
    assert tfm("train", "--recipe", "tiny.toml", *sets, "--out", "out").code == 0
    figures = json.loads((corpora / "out/model/manifest.json").read_bytes())["figures"]
    done = tfm("plan", "tiny.toml", *sets, "--on", "H100", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["parameters"] == figures["parameters"]
    assert found["memory"]["weights"] == 4 * figures["parameters"]
    assert found["memory"]["gradients"] == 4 * figures["adapter_parameters"]
    assert found["memory"]["optimizer"] == 8 * figures["adapter_parameters"]
    kept = load_recipe(Path("tiny.toml"), ()).training.keep
    copies = figures["parameters"] + 2 * figures["adapter_parameters"]
    assert found["disk"]["checkpoints"] == 4 * copies * (kept.last + kept.best)
    missing = tfm("plan", "tiny.toml", "--set", 'training.init_from="nosuch"', "--on", "H100")
    assert (missing.code, "nosuch" in missing.err) == (65, True)


def test_validations_of_a_training_that_ends_by_updates_are_counted_by_its_epochs(corpora: Path) -> None:
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    recipe = load_recipe(
        Path("tiny.toml"), ("training.validation.every_steps=none", "training.validation.every_epochs=2")
    )
    corpus, *_ = count_corpus_and_vocabularies(recipe, 1)
    for epochs in (1, 2, 3, 8):
        ended = replace(corpus, updates=epochs * corpus.updates_per_epoch)
        assert num_validations(recipe, ended) == max(1, math.ceil(epochs / 2))
    assert num_validations(recipe, replace(corpus, updates=2 * corpus.updates_per_epoch + 1)) == 2


def test_windows_of_a_running_text_are_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpora(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.toml").write_text(TEXT_RECIPE, "utf-8")
    for stage in ("tokenize", "preprocess", "train"):
        done = tfm(stage, "--recipe", "text.toml")
        assert done.code == 0, done.err
    figures = json.loads((tmp_path / "runs/text/model/manifest.json").read_bytes())["figures"]
    done = tfm("plan", "text.toml", "--on", "H100", "--json")
    assert done.code == 0, done.err
    corpus = json.loads(done.out)["corpus"]
    assert corpus["updates"] == figures["updates"]
    assert corpus["padding"] == 0
    assert corpus["target_tokens"] == 8 * corpus["rows"] > 0


def test_without_a_dataset_it_says_what_to_do(corpora: Path) -> None:
    done = tfm("plan", "tiny.toml", "--on", "H100")
    assert done.code == 65
    assert "there is no dataset to count yet: make it with `tfm tokenize` and `tfm preprocess`" in done.err
    done = tfm("plan", "tiny.toml", "--on", "H100", "--pairs", "1000", "--tokens", "20")
    assert done.code == 0, done.err
    assert "assumed: rows and lengths as given, 3% padding" in done.err
    assert tfm("plan", "tiny.toml", "--on", "H100", "--pairs", "1000").code == 2
    assert tfm("plan", "tiny.toml", "--pairs", "1000", "--tokens", "20").code == 2


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        ("tokenizer.vocab_size=30", "runs/tiny/tokenizer: config changed: tokenizer.vocab_size 40 -> 30"),
        ("data.limits.max_ratio=5", "runs/tiny/dataset: config changed: data.limits"),
    ],
)
def test_data_that_a_run_would_make_anew_is_planned_with_and_warned_of(
    corpora: Path, changed: str, warning: str
) -> None:
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    words = "plan", "tiny.toml", "--on", "H100", "--json"
    fresh, stale = tfm(*words), tfm(*words, "--set", changed)
    assert (fresh.err, json.loads(fresh.out)["stale_data"]) == ("", None)
    assert stale.code == 0, stale.err
    assert warning in stale.err
    assert "the plan is that of the dataset on disk" in stale.err
    assert json.loads(stale.out)["stale_data"].startswith(warning)
    assert json.loads(stale.out)["corpus"] == json.loads(fresh.out)["corpus"]
    (corpora / "train.de").rename(corpora / "elsewhere.de")
    assert tfm(*words).err == "", "a dataset is planned without its corpora"
    (corpora / "elsewhere.de").rename(corpora / "train.de")
    with (corpora / "train.de").open("a", encoding="utf-8") as file:
        file.write("eins\n")
    assert "input train: ./train.de changed" in tfm(*words).err


@pytest.mark.parametrize(
    ("option", "value"),
    [("--pairs", "1" + "0" * 400), ("--tokens", "inf"), ("--tokens", "1e308"), ("--price", "inf"), ("--price", "nan")],
)
def test_figures_that_no_corpus_or_price_has_are_refused(corpora: Path, option: str, value: str) -> None:
    words = {"--pairs": "10", "--tokens": "3", "--price": "1", option: value}
    done = tfm("plan", "tiny.toml", "--on", "H100", "--json", *(word for pair in words.items() for word in pair))
    assert done.code == 2
    assert f"Invalid value for '{option}'" in done.err


def test_what_is_kept_in_fp32_takes_twice_the_memory_and_the_time_is_said_to_be_of_bf16(corpora: Path) -> None:
    words = "plan", "tiny.toml", "--on", "H100", "--json", "--pairs", "10", "--tokens", "3", "--set"
    half, whole = (json.loads(tfm(*words, f"training.precision={precision}").out) for precision in ("auto", "fp32"))
    assert whole["memory"]["activations"] == 2 * half["memory"]["activations"]
    assert "training.precision = fp32 takes another time" in whole["assumptions"][-1]
    assert not any("takes another time" in each for each in half["assumptions"])
