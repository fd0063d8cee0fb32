"""Losses, perplexities and greedy translations a second time, by a plain forward pass in float64."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch

from tests.meaning.campaign import number, printed
from tests.meaning.conftest import Case
from tests.meaning.plain_forward import UNK, Plain
from tests.meaning.test_scores import signed
from tests.rounding import assert_rounds_like

pytestmark = [pytest.mark.slow, pytest.mark.meaning("model")]
# Choices won by less are not held against the plain pass: rounding in fp32 may turn them.
NEAR_TIE = 1e-4


def with_errors(in_fp32: Iterable[float], in_float64: Iterable[float]) -> tuple[float, float]:
    """A sum of log p with the errors that each term has in fp32, all of one sign; and the sum itself."""
    pairs = [*zip(in_fp32, in_float64, strict=True)]
    exact = sum(right for _, right in pairs)
    return exact - sum(abs(left - right) for left, right in pairs), exact


def log_probs_of(models: Sequence[Plain], pairs: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """log p of all targets by the plain pass in fp32, at its worst, and in float64."""
    return with_errors(*((model.forced(*pair)[0] for pair in pairs) for model in models))


def assert_near(found: float, of: Callable[[float], float], log_probs: Sequence[float]) -> None:
    """Whether a figure that is computed in fp32 errs as it does if log p comes from the plain pass in fp32.

    of: the figure, from log p. log_probs: of the plain pass in fp32, at its worst, and in float64.
    """
    plain, exact = map(of, log_probs)
    assert_rounds_like(torch.tensor([found]), torch.tensor([plain]), torch.tensor([exact], dtype=torch.float64))


def both(case: Case) -> tuple[Plain, Plain]:
    """The plain pass in fp32 and in float64."""
    return Plain(case.run.folder / "model", torch.float32), Plain(case.run.folder / "model")


def test_perplexity_of_references(case: Case, record_property: Any) -> None:
    models, metrics = both(case), case.run.scores["test"]["metrics"]
    log_probs, model = log_probs_of(models, case.corpora.pairs["test"]), models[1]
    tokens = unknown = 0
    for _, target in case.corpora.pairs["test"]:
        tokens += len(model.ids(target)) + 1
        unknown += model.ids(target).count(model.id(UNK))
    targets = case.corpora.targets("test")
    words, characters = sum(len(line.split()) for line in targets), sum(map(len, targets))
    wanted = {
        "perplexity": (lambda log_prob: math.exp(-log_prob / tokens), tokens),
        "word_perplexity": (lambda log_prob: math.exp(-log_prob / words), words),
        "bits_per_character": (lambda log_prob: -log_prob / math.log(2) / characters, characters),
    }
    rows = {row[0]: row for row in printed(case.run.said.out, f"test: {len(targets)} segments")}
    names = ("perplexity ↓", "perplexity by word ↓", "bits a character ↓")
    for (name, (of, count)), label in zip(wanted.items(), names, strict=True):
        assert_near(metrics[name]["score"], of, log_probs)
        assert int(signed(metrics[name])["count"]) == count
        assert int(signed(metrics[name]).get("unknown", 0)) == unknown
        assert number(rows[label][1]) == pytest.approx(metrics[name]["score"], abs=0.005 + 1e-9)
    assert unknown == 2
    record_property("figures", 6)


def test_loss_and_accuracy_of_validation(case: Case, record_property: Any) -> None:
    models, figures = both(case), case.run.json("model/manifest.json")["figures"]
    log_probs = log_probs_of(models, case.corpora.pairs["valid"])
    sums = [models[1].forced(source, target) for source, target in case.corpora.pairs["valid"]]
    _, right, count = (sum(column) for column in zip(*sums, strict=True))
    found = figures["validation"]
    assert_near(found["loss"], lambda log_prob: -log_prob / count, log_probs)
    assert_near(found["perplexity"], lambda log_prob: math.exp(-log_prob / count), log_probs)
    assert found["accuracy"] == pytest.approx(right / count, abs=1.5 / count)  # one near tie may fall either way
    losses = [line["loss"] for line in case.run.metrics("valid")]
    assert found["loss"] == min(losses)
    assert f"validation loss {found['loss']:.4f}, perplexity {found['perplexity']:.2f}" in case.run.said.err
    record_property("figures", 3)


def test_greedy_translations(case: Case, record_property: Any) -> None:
    """Every fourth line: the likeliest piece again and again, each time from the whole sentence so far."""
    model, wrong = Plain(case.run.folder / "model"), []
    hypotheses = case.run.lines("translations/test.txt")
    for source, hypothesis in [*zip(case.corpora.sources("test"), hypotheses, strict=True)][::4]:
        ids, margin = model.greedy(source, 2 * (len(model.ids(source)) + 1) + 20)
        text = model.tokenizer.decode(ids, skip_special_tokens=False).strip()
        if margin > NEAR_TIE and UNK not in text:
            record_property("translations", 1)
            wrong += [(source, text, hypothesis)] * (text != hypothesis.strip())
    assert wrong == []


def test_the_translations_own_scores(case: Case, record_property: Any) -> None:
    """log p in the JSON lines of the translations is that of the plain pass over the same pieces."""
    models, found = both(case), []
    for line in map(json.loads, case.run.lines("translations/again.jsonl")[::5]):
        best = line["translations"][0]
        ids = models[1].ids(best["text"])
        if len(ids) + 1 == best["num_tokens"]:  # a text may have been said in other pieces than it is read in
            found.append([best["log_prob"], *(model.forced(line["source"], best["text"])[0] for model in models)])
            record_property("figures", 1)
    fast, plain, exact = torch.tensor(found, dtype=torch.float64).unbind(1)
    assert_rounds_like(fast.float(), plain.float(), exact)
