"""`tfm evaluate` of a model searches as `tfm translate` does: ensembles, forced words, prefixes."""

import json
import math
from pathlib import Path

import pytest
import torch

from bench.noise_run import measure_run
from tests.cli.user import Stages, commands_of, tfm, write_lines
from tests.rounding import assert_rounds_like
from tfm.data.typing_errors import add_typos_to_lines
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.progress import NullReporter
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_perplexity_of_an_ensemble_is_of_the_mean_of_probabilities(
    stages: Stages, corpora: Path, other: Path, tmp_path: Path
) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en", "--metric", "perplexity")
    one, two = (scores("--model", each, *texts)["perplexity"] for each in (stages.folder, other))
    same = scores("--model", stages.folder, "--ensemble", stages.folder, *texts)["perplexity"]
    both = scores("--model", stages.folder, "--ensemble", other, *texts)["perplexity"]
    lines = [(corpora / f"test.{side}").read_text("utf-8").splitlines() for side in ("de", "en")]
    exact, _ = perplexity(
        load_model(stages.folder / "model", "cpu", torch.float64), lines[0], [lines[1]], reporter=NullReporter()
    )
    in_float64 = torch.tensor([exact["perplexity"].score], dtype=torch.float64)
    assert_rounds_like(torch.tensor([same]), torch.tensor([one]), in_float64)
    # of each token, log((p + q) / 2) lies between the mean of log p and log q, and the greater of them
    assert both < math.sqrt(one * two)
    assert both != pytest.approx(one, rel=1e-4)


@pytest.mark.slow
def test_noise_is_made_in_the_source_and_every_score_says_so(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    texts = ("--model", stages.folder, "--source", corpora / "test.de", "--reference", corpora / "test.en", *CPU)
    out = tmp_path / "noisy"
    done = tfm("evaluate", *texts, "--noise", "0.2", "--seed", "7", "--json", "--out", out)
    assert done.code == 0, done.err
    found, clean = json.loads(done.out), scores(*texts[:-2])
    assert found["split"] == "test.en, noise 0.2"
    of_lengths = [each for group in found["lengths"] for each in group["metrics"].values()]
    for each in (*found["metrics"].values(), *of_lengths):
        assert each["signature"].endswith("|noise:0.2|noise-seed:7")
    source = (corpora / "test.de").read_text("utf-8").splitlines()
    typed = (out / "source.txt").read_text("utf-8").splitlines()
    assert typed == add_typos_to_lines(source, 0.2, 7)
    assert sum(one != two for one, two in zip(source, typed, strict=True)) > len(source) / 2
    translated = tfm("translate", stages.folder, out / "source.txt", *CPU)
    assert (out / "hypotheses.txt").read_text("utf-8") == translated.out
    assert found["metrics"]["perplexity"]["score"] > clean["perplexity"]
    again = tfm("evaluate", *texts, "--noise", "0.2", "--seed", "7", "--out", out)
    assert "up to date" in again.err
    other = tfm("evaluate", *texts, "--noise", "0.1", "--seed", "7", "--out", out)
    assert "config changed: noise" in other.err
    none = tfm("evaluate", *texts, "--noise", "0", "--json")
    assert {name: each["score"] for name, each in json.loads(none.out)["metrics"].items()} == clean


@pytest.mark.slow
def test_the_bench_of_noise_finds_the_same_scores(stages: Stages, corpora: Path) -> None:
    found = measure_run(stages.folder, [0.0, 0.2], 2, beam=2)
    assert found["figure"] == "bleu"
    texts = ("--model", stages.folder, "--source", corpora / "test.de", "--reference", corpora / "test.en")
    for rate, of_seeds in zip((0.0, 0.2), found["scores"], strict=True):
        for seed, score in enumerate(of_seeds, 1):
            noise = ("--noise", str(rate), "--seed", str(seed), "--metric", "bleu", "--beam", "2")
            assert scores(*texts, *noise)["bleu"] == score
    assert found["scores"][0][0] == found["scores"][0][1] != found["scores"][1][0]
    assert found["sentences_per_second"] > 0


def test_noise_needs_a_source_and_is_a_share(stages: Stages, corpora: Path) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en", *CPU)
    for share in ("1.5", "-0.1", "nan"):
        refused = tfm("evaluate", "--model", stages.folder, *texts, "--noise", share)
        assert refused.code == 2, share
    alone = tfm("evaluate", "--model", stages.folder, "--reference", corpora / "test.en", "--noise", "0.1")
    assert alone.code == 2
    assert "give --source as well" in " ".join(alone.err.split())


@pytest.mark.parametrize(
    "words",
    [(flag, "1") for flag in ("--beam", "--prefix", "--prefixes", "--forced", "--noise")]
    + [("--set", "decoding.beam=1")],
)
def test_what_would_have_no_effect_is_refused(corpora: Path, words: tuple[str, str]) -> None:
    text = corpora / "test.en"
    refused = tfm("evaluate", "--hypotheses", text, "--reference", text, *words)
    assert refused.code == 2
    assert "nothing is translated" in " ".join(refused.err.split())
    assert tfm("evaluate", "--hypotheses", text, "--reference", text, "--ensemble", "x").code == 2


def test_lines_of_prefixes_are_counted(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    few = write_lines(tmp_path / "few", ["six"])
    refused = tfm("evaluate", "--model", stages.folder, *texts, "--prefixes", few, *CPU)
    assert refused.code == 65
    assert "has 1 line, " in " ".join(refused.err.split())


def test_json_and_the_artifact_have_details_that_the_table_does_not_wait_for(corpora: Path, tmp_path: Path) -> None:
    words = ("evaluate", "--hypotheses", corpora / "valid.de", "--reference", corpora / "valid.de", "--metric", "bleu")
    printed, published = tfm(*words, "--json").out, tfm(*words, "--out", tmp_path / "scores")
    content, kept = json.loads(printed), json.loads((tmp_path / "scores" / "scores.json").read_text("utf-8"))
    assert content == {key: kept[key] for key in content}
    assert content["lengths"]
    assert content["samples"]["worst"]
    table = tfm(*words)
    assert table.out == published.out
    assert "sample, line" in table.err
