"""A model of several languages, as a user trains and asks it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import Result, tfm
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.model_io.loaded_model import load_model

RECIPE = """
name = "three"
[tokenizer]
kind = "word"
vocab_size = 300
[data]
batch_tokens = 512
train = [
  {LANG("train", 60, "eng", "deu")}, {LANG("train", 60, "deu", "eng")},
  {LANG("train", 60, "eng", "hin")}, {LANG("train", 60, "hin", "eng")},
]
valid = [{LANG("test", 20, "eng", "deu")}, {LANG("test", 20, "eng", "hin")}]
[data.tests]
eng-deu = {LANG("test", 20, "eng", "deu")}
eng-hin = {LANG("test", 20, "eng", "hin")}
deu-hin = {LANG("test", 20, "deu", "hin")}
hin-deu = {LANG("test", 20, "hin", "deu")}
[model]
encoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
decoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
[training]
max_steps = 120
precision = "fp32"
device = "cpu"
schedule = { peak = 0.01, warmup_steps = 10 }
validation.every_steps = 120
[decoding]
beam = 1
max_length = 12
[evaluation]
metrics = ["bleu", "chrf", "perplexity"]
"""


def lang(split: str, size: int, source: str, target: str) -> str:
    where = f'format = "generated", path = "languages", split = "{split}", size = {size}'
    sides = f'source = "{source}", target = "{target}"'
    return f'{{ {where}, {sides}, source_language = "{source}", target_language = "{target}" }}'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("three")
    parts = RECIPE.split("{LANG(")
    text = parts[0] + "".join(
        lang(*json.loads("[" + part.partition(")}")[0] + "]")) + part.partition(")}")[2] for part in parts[1:]
    )
    (folder / "three.toml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = tfm("run", "three.toml")
    assert done.code == 0, done.err
    return folder / "runs" / "three", done


@pytest.mark.slow
def test_scores_are_by_direction_and_in_the_mean(run: tuple[Path, Result]) -> None:
    folder, said = run
    content = json.loads((folder / "scores" / "scores.json").read_text("utf-8"))
    tests = {entry["split"]: entry for entry in (content, *content["others"].values())}
    assert {name: (each["direction"], each["zero_shot"]) for name, each in tests.items()} == {
        "eng-deu": (["eng", "deu"], False),
        "eng-hin": (["eng", "hin"], False),
        "deu-hin": (["deu", "hin"], True),
        "hin-deu": (["hin", "deu"], True),
    }
    for group, names in {
        "all": list(tests),
        "trained": ["eng-deu", "eng-hin"],
        "zero-shot": ["deu-hin", "hin-deu"],
    }.items():
        mean = content["means"][group]
        for metric in ("bleu", "chrf", "wrong_language"):
            numbers = [tests[name]["metrics"][metric]["score"] for name in names]
            assert mean[metric]["score"] == pytest.approx(sum(numbers) / len(numbers))
        assert "perplexity" not in mean
    assert "mean of zero-shot directions" in " ".join((said.out + said.err).split())
    page = (folder / "scores" / "report.html").read_text("utf-8")
    assert "Mean of zero-shot directions" in page
    assert "wrong language" in page


@pytest.mark.slow
def test_validation_is_by_direction_and_in_the_mean(run: tuple[Path, Result]) -> None:
    """Its texts are those of two test sets: so are its figures, which another stage computes from files."""
    folder, said = run
    content = json.loads((folder / "scores" / "scores.json").read_text("utf-8"))
    tests = {entry["split"]: entry["metrics"] for entry in (content, *content["others"].values())}
    made: Any = open_artifact(folder / "model", "train").figures["validation"]
    assert [*made["directions"]] == ["eng-deu", "eng-hin"]
    for name, found in made["directions"].items():
        assert found["perplexity"] == pytest.approx(tests[name]["perplexity"]["score"], rel=1e-5)
        assert found["bleu"] == pytest.approx(tests[name]["bleu"]["score"])
        assert found["bleu_signature"] == tests[name]["bleu"]["signature"]
        assert f"  {name}: loss " in said.err
    for figure in ("loss", "accuracy", "bleu"):
        numbers = [found[figure] for found in made["directions"].values()]
        assert made[figure] == pytest.approx(sum(numbers) / 2)
    assert made["bleu"] > 0
    lines = [json.loads(line) for line in (folder / "training" / "metrics.jsonl").read_text("utf-8").splitlines()]
    last = [line for line in lines if line["event"] == "valid"][-1]
    assert last["loss"] == pytest.approx((last["eng-deu/loss"] + last["eng-hin/loss"]) / 2)


@pytest.mark.slow
def test_runs_that_are_not_to_see_their_tests_are_chosen_by_the_mean(run: tuple[Path, Result]) -> None:
    folder, _ = run
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parents[1])
        names = {"early": ("name=early", "training.max_steps=10"), "three": ()}
        for sets in ((*each, "evaluation.tests=final") for each in names.values()):
            done = tfm("run", "three.toml", *(word for each in sets for word in ("--set", each)))
            assert done.code == 0, done.err
        found = {name: json.loads(Path(f"runs/{name}/scores-valid/scores.json").read_text("utf-8")) for name in names}
        chosen = tfm("evaluate", "--final", "runs/early", "runs/three", "--by", "chrf")
    assert chosen.code == 0, chosen.err
    means = {}
    for name, content in found.items():
        assert content["split"] == "valid"
        assert [*content["others"]] == ["valid.eng-deu", "valid.eng-hin"]
        numbers = [each["metrics"]["chrf"]["score"] for each in content["others"].values()]
        means[name] = sum(numbers) / 2
        assert content["means"]["all"]["chrf"]["score"] == pytest.approx(means[name])
    best = max(means, key=means.__getitem__)
    assert f"runs/{best}: chosen by chrF {means[best]:.4g} of validation" in chosen.err


def test_perplexity_is_of_the_direction_that_was_asked(run: tuple[Path, Result], tmp_path: Path) -> None:
    """The test set's perplexity, again from its files: with the language it has, and with another."""
    folder, _ = run
    source, reference = (folder / "translations" / f"deu-hin.{side}.txt" for side in ("source", "reference"))
    content = json.loads((folder / "scores" / "scores.json").read_text("utf-8"))
    words = ("evaluate", "--model", folder, "--source", source, "--reference", reference, "--metric", "perplexity")
    found = {
        to: json.loads(tfm(*words, "--to", to, "--json", "--device", "cpu").out)["metrics"]["perplexity"]["score"]
        for to in ("hin", "deu")
    }
    assert found["hin"] == pytest.approx(content["others"]["deu-hin"]["metrics"]["perplexity"]["score"], rel=1e-4)
    assert found["deu"] != pytest.approx(found["hin"], rel=1e-4)


def test_translating_needs_a_language_that_the_model_has(run: tuple[Path, Result]) -> None:
    folder, _ = run
    source = folder / "translations" / "hin-deu.source.txt"
    asked = tfm(
        "translate", folder, source, "--to", "deu", "--beam", "1", "--set", "decoding.max_length=12", "--device", "cpu"
    )
    assert asked.out == (folder / "translations" / "hin-deu.txt").read_text("utf-8")
    without = tfm("translate", folder, "Anna sleeps.", "--device", "cpu")
    assert without.code == 65
    assert "say which, --to deu or eng or hin" in " ".join(without.err.split())
    other = tfm("translate", folder, "Anna sleeps.", "--to", "fra", "--device", "cpu")
    assert other.code == 65
    assert "does not translate into fra; it translates into deu, eng, hin" in " ".join(other.err.split())
    assert tfm("attend", folder, "Anna sees Paul.", "--to", "hin", "--json").out.count(">>hin<<")
    assert tfm("attend", folder, "Anna sees Paul.", "--json").code == 65


def test_an_empty_line_stays_one_and_a_token_in_a_text_is_text(run: tuple[Path, Result]) -> None:
    folder, _ = run
    found = tfm("translate", folder, "-", "--to", "deu", "--device", "cpu", stdin="\n  \n>>hin<< Anna\n")
    assert found.code == 0, found.err
    assert found.out.split("\n")[:2] == ["", ""]
    tokenizer = load_model(folder / "model", "cpu").for_languages("deu").source_tokenizer
    ids = tokenizer.encode(">>hin<< Anna")
    assert ids[0] == tokenizer.languages["deu"]
    assert tokenizer.languages["hin"] not in ids
