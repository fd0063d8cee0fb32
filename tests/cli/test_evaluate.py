"""`tfm evaluate` of a model searches as `tfm translate` does: ensembles, forced words, prefixes."""

import json
import math
from pathlib import Path

import pytest
import torch

from tests.cli.user import Stages, commands_of, tfm, write_lines
from tests.rounding import assert_rounds_like
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.progress import Quiet
from tfm.pipeline.scoring.perplexity import perplexity

CPU = ("--device", "cpu")


@pytest.fixture(scope="module")
def other(stages: Stages, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of another seed on the same dataset."""
    run = tmp_path_factory.mktemp("other")
    words = commands_of(corpora, stages.folder)["train"]
    place = words.index("--out")
    done = tfm(*words[:place], "--out", run, "--seed", "3")
    assert done.code == 0, done.err
    return run


def scores(*words: str | Path) -> dict[str, float]:
    done = tfm("evaluate", *words, *CPU, "--json")
    assert done.code == 0, done.err
    return {name: each["score"] for name, each in json.loads(done.out)["metrics"].items()}


@pytest.fixture
def searches(stages: Stages, corpora: Path, other: Path, tmp_path: Path) -> dict[str, tuple[str | Path, ...]]:
    count = len((corpora / "test.de").read_text("utf-8").splitlines())
    starts = write_lines(tmp_path / "starts", ["two one", "", "three"] * count)
    starts.write_text("".join(starts.read_text().splitlines(keepends=True)[:count]))
    words = write_lines(tmp_path / "words", ["six\tfive one"] * count)
    return {
        "plain": ("--beam", "2"),
        "ensemble": ("--beam", "2", "--ensemble", other),
        "prefix": ("--beam", "2", "--prefix", "six"),
        "prefixes": ("--beam", "2", "--prefixes", starts),
        "forced": ("--beam", "4", "--forced", words),
    }


def test_a_model_that_translates_needs_a_source(stages: Stages, corpora: Path) -> None:
    for more in ((), ("--metric", "bleu"), ("--stride", "2")):
        refused = tfm("evaluate", "--model", stages.folder, "--reference", corpora / "test.en", *more)
        assert refused.code == 2
        assert "was trained for translation: give --source FILE as well, or --hypotheses FILE" in refused.err
    of_pairs = ("--model", stages.folder, "--source", corpora / "test.de", "--reference", corpora / "test.en")
    refused = tfm("evaluate", *of_pairs, "--stride", "2")
    assert refused.code == 2
    assert "evaluation.stride = 2 is for the texts of a language model" in refused.err


def test_hypotheses_are_those_of_translate(
    stages: Stages, corpora: Path, tmp_path: Path, searches: dict[str, tuple[str | Path, ...]]
) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    of_each = {}
    for name, search in searches.items():
        out = tmp_path / name
        found = scores("--model", stages.folder, *texts, *search, "--out", out)
        translated = tfm("translate", stages.folder, corpora / "test.de", *search, *CPU)
        assert translated.code == 0, translated.err
        of_each[name] = (out / "hypotheses.txt").read_text("utf-8")
        assert of_each[name] == translated.out
        again = tfm("evaluate", "--model", stages.folder, *texts, *search, *CPU, "--out", out)
        assert "up to date" in again.err
        hypotheses = ("--hypotheses", out / "hypotheses.txt", "--reference", corpora / "test.en")
        alone = scores(*hypotheses, "--metric", "bleu", "--metric", "chrf")
        assert {metric: found[metric] for metric in alone} == alone
    assert len(set(of_each.values())) >= 4
    assert all(line.startswith("six") for line in of_each["prefix"].splitlines())
    assert all("five one" in line for line in of_each["forced"].splitlines())
    changed = tfm("evaluate", "--model", stages.folder, *texts, "--prefix", "five", *CPU, "--out", tmp_path / "prefix")
    assert "config changed: " in changed.err


def test_perplexity_of_an_ensemble_is_of_the_mean_of_probabilities(
    stages: Stages, corpora: Path, other: Path, tmp_path: Path
) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en", "--metric", "perplexity")
    one, two = (scores("--model", each, *texts)["perplexity"] for each in (stages.folder, other))
    same = scores("--model", stages.folder, "--ensemble", stages.folder, *texts)["perplexity"]
    both = scores("--model", stages.folder, "--ensemble", other, *texts)["perplexity"]
    lines = [(corpora / f"test.{side}").read_text("utf-8").splitlines() for side in ("de", "en")]
    exact, _ = perplexity(
        load_model(stages.folder / "model", "cpu", torch.float64), lines[0], [lines[1]], reporter=Quiet()
    )
    in_float64 = torch.tensor([exact["perplexity"].score], dtype=torch.float64)
    assert_rounds_like(torch.tensor([same]), torch.tensor([one]), in_float64)
    # of each token, log((p + q) / 2) lies between the mean of log p and log q, and the greater of them
    assert both < math.sqrt(one * two)
    assert both != pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("flag", ["--beam", "--prefix", "--prefixes", "--forced"])
def test_what_would_have_no_effect_is_refused(corpora: Path, flag: str) -> None:
    text = corpora / "test.en"
    refused = tfm("evaluate", "--hypotheses", text, "--reference", text, flag, "1")
    assert refused.code == 2
    assert "nothing is translated" in " ".join(refused.err.split())
    assert tfm("evaluate", "--hypotheses", text, "--reference", text, "--ensemble", "x").code == 2


def test_lines_of_prefixes_are_counted(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    few = write_lines(tmp_path / "few", ["six"])
    refused = tfm("evaluate", "--model", stages.folder, *texts, "--prefixes", few, *CPU)
    assert refused.code == 65
    assert "has 1 lines" in " ".join(refused.err.split())
