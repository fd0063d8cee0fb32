"""Validation and evaluation are one path with one config: the same texts get the same BLEU and the same signature."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import RECIPE, tfm, write_lines
from tfm.pipeline.artifacts.artifact import open_artifact

WORDS = {"eins": "a一", "zwei": "b一", "drei": "c三", "vier": "c四", "fünf": "a五", "sechs": "a六"}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose test set is its validation set: Chinese without spaces, and Latin letters of another case."""
    folder, draw = tmp_path_factory.mktemp("chinese"), random.Random(1)
    for split, size, cased in (("train", 200, str.lower), ("valid", 20, str.upper)):
        sources = [draw.choices(list(WORDS), k=draw.randint(2, 6)) for _ in range(size)]
        targets = [cased("".join(WORDS[word] for word in words)) + "。" for words in sources]
        write_lines(folder / f"{split}.de", [" ".join(words) for words in sources])
        write_lines(folder / f"{split}.zh", targets)
    text = RECIPE.format(folder=folder).replace(".en", ".zh").replace("test.", "valid.")
    text = text.replace('kind = "word"\nvocab_size = 40', 'kind = "char"\nvocab_size = 60')
    text = text.replace("max_steps = 10", 'max_steps = 30\nearly_stopping.metric = "bleu"')
    text += "[training.schedule]\npeak = 0.01\nwarmup_steps = 5\n[training.validation]\nevery_steps = 15\nbeam = 2\n"
    text += 'metrics = ["wer", "cer", "exact_match", "chrf"]\n'
    return write_lines(folder / "recipe.toml", text.splitlines())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs" / "tiny"


def figures(run: Path) -> tuple[tuple[float, str], tuple[float, str]]:
    """BLEU and its signature by validation, and by evaluation of the test set."""
    found: Any = open_artifact(run / "model", "train").figures["validation"]
    scores = json.loads((run / "scores" / "scores.json").read_text())["metrics"]["bleu"]
    return (found["bleu"], found["bleu_signature"]), (scores["score"], scores["signature"])


@pytest.mark.slow
def test_of_the_same_texts_both_say_the_same(recipe: Path, here: Path) -> None:
    lowercase = ("--set", "evaluation.lowercase=true")
    done = tfm("run", recipe, *lowercase)
    assert done.code == 0, done.err
    of_validation, of_evaluation = figures(here)
    assert of_validation == of_evaluation
    assert 0 < of_validation[0] < 100
    assert "|case:lc|eff:no|tok:zh|" in of_validation[1]

    texts = (recipe.parent / "valid.de", recipe.parent / "valid.zh")
    written = write_lines(here / "written", tfm("translate", here, texts[0], "--beam", "2", "--set",
                          "decoding.max_length=12").out.splitlines())  # fmt: skip
    said = tfm("evaluate", "--hypotheses", written, "--reference", texts[1], "--lowercase", "--json")
    metrics = json.loads(said.out)["metrics"]
    assert (metrics["bleu"]["score"], metrics["bleu"]["signature"]) == of_validation
    others: Any = open_artifact(here / "model", "train").figures["validation"]
    names = [word for name in others["scores"] for word in ("--metric", name)]
    said = tfm("evaluate", "--hypotheses", written, "--reference", texts[1], "--lowercase", "--json", *names)
    found = json.loads(said.out)["metrics"]
    assert {name: (each["score"], each["signature"]) for name, each in found.items()} == {
        name: (each["score"], each["signature"]) for name, each in others["scores"].items()
    }
    assert others["scores"].keys() == {"wer", "cer", "exact_match", "chrf"}

    # what validation does not use trains nothing again; what it uses does
    fresh = tfm("train", "--recipe", recipe, *lowercase, "--set", 'evaluation.metrics=["bleu", "rouge1"]', "--set",
                "evaluation.samples=3", "--set", 'evaluation.rouge_tokenize="rouge-score"')  # fmt: skip
    assert "up to date" in fresh.err, fresh.err
    again = tfm("train", "--recipe", recipe)
    assert "was moved to" in again.err, again.err
    cased: Any = open_artifact(here / "model", "train").figures["validation"]
    assert "|case:mixed|eff:no|tok:zh|" in cased["bleu_signature"]
    assert cased["bleu"] < of_validation[0]


def test_validation_that_bleu_cannot_judge_is_refused_or_goes_without(recipe: Path, here: Path) -> None:
    """A tokenizer for which a Chinese line is one token: BLEU would be 0.00 throughout."""
    wrong = ("--set", "evaluation.bleu_tokenize=13a", "--set", "training.max_steps=1")
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", recipe).code == 0
    refused = tfm("train", "--recipe", recipe, *wrong)
    assert refused.code == 65
    assert "validation has no BLEU: " in refused.err
    assert "evaluation.bleu_tokenize" in refused.err
    warned = tfm("train", "--recipe", recipe, *wrong, "--set", "training.early_stopping.metric=loss")
    assert warned.code == 0, warned.err
    assert "validation has no BLEU: " in warned.err
    found: Any = open_artifact(here / "model", "train").figures["validation"]
    assert found["bleu"] is None
