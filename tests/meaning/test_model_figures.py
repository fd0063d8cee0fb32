"""Losses, perplexities and greedy translations a second time, by a plain forward pass in float64."""

import json
import math
from typing import Any

import pytest

from tests.meaning.campaign import number, printed
from tests.meaning.conftest import Case
from tests.meaning.plain_forward import UNK, Plain
from tests.meaning.test_scores import signed

pytestmark = [pytest.mark.slow, pytest.mark.meaning("model")]
# What fp32 may differ by from float64 in a sum of some hundred log-probabilities of a model this small.
FP32 = 1e-4


def test_perplexity_of_references(case: Case, record_property: Any) -> None:
    model, metrics = Plain(case.run.folder / "model"), case.run.scores["test"]["metrics"]
    log_prob = tokens = unknown = 0.0
    for source, target in case.corpora.pairs["test"]:
        found, _, count = model.forced(source, target)
        log_prob, tokens = log_prob + found, tokens + count
        unknown += model.ids(target).count(model.id(UNK))
    targets = case.corpora.targets("test")
    words, characters = sum(len(line.split()) for line in targets), sum(map(len, targets))
    wanted = {
        "perplexity": (math.exp(-log_prob / tokens), tokens),
        "word_perplexity": (math.exp(-log_prob / words), words),
        "bits_per_character": (-log_prob / math.log(2) / characters, characters),
    }
    rows = {row[0]: row for row in printed(case.run.said.err, f"test: {len(targets)} segments")}
    names = ("perplexity ↓", "perplexity by word ↓", "bits a character ↓")
    for (name, (value, count)), label in zip(wanted.items(), names, strict=True):
        assert metrics[name]["score"] == pytest.approx(value, rel=FP32), name
        assert int(signed(metrics[name])["count"]) == count
        assert int(signed(metrics[name]).get("unknown", 0)) == unknown
        assert number(rows[label][1]) == pytest.approx(metrics[name]["score"], abs=0.005 + 1e-9)
    assert unknown == 2
    record_property("figures", 6)


def test_loss_and_accuracy_of_validation(case: Case, record_property: Any) -> None:
    model, figures = Plain(case.run.folder / "model"), case.run.json("model/manifest.json")["figures"]
    sums = [model.forced(source, target) for source, target in case.corpora.pairs["valid"]]
    log_prob, right, count = (sum(column) for column in zip(*sums, strict=True))
    found = figures["validation"]
    assert found["loss"] == pytest.approx(-log_prob / count, rel=FP32)
    assert found["perplexity"] == pytest.approx(math.exp(-log_prob / count), rel=FP32)
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
        if margin > FP32 and UNK not in text:
            record_property("translations", 1)
            wrong += [(source, text, hypothesis)] * (text != hypothesis.strip())
    assert wrong == []


def test_the_translations_own_scores(case: Case, record_property: Any) -> None:
    """log p in the JSON lines of the translations is that of the plain pass over the same pieces."""
    model = Plain(case.run.folder / "model")
    for line in map(json.loads, case.run.lines("translations/again.jsonl")[::5]):
        best = line["translations"][0]
        ids = model.ids(best["text"])
        if len(ids) + 1 == best["num_tokens"]:  # a text may have been said in other pieces than it is read in
            found, _, count = model.forced(line["source"], best["text"])
            assert count == best["num_tokens"]
            assert best["log_prob"] == pytest.approx(found, rel=FP32, abs=FP32)
            record_property("figures", 1)
