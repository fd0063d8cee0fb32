"""Every score of ten scripts a second time, by plain code over the lines that lie in the run's folder."""

import math
import re
from typing import Any

import pytest
from sacrebleu.metrics.ter import TER

from tests.cli.user import tfm
from tests.meaning import plain_scores as plain
from tests.meaning.campaign import number, printed
from tests.meaning.conftest import Case
from tests.meaning.plain_tokens import BLEU_TOKENS, num_words, tokens_of_ascii, tokens_of_words

pytestmark = [pytest.mark.slow, pytest.mark.meaning("scores")]
TESTS = {"test": "test", "again": "valid"}  # test set -> the split it is
ROUGE = {"rouge1": 1, "rouge2": 2, "rougeL": None, "rougeLsum": None}  # a line is one sentence to the last
NAMES = {"bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2"}
NAMES |= {"ter": "TER", "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum", "exact_match": "exact match"}


def signed(score: dict[str, Any]) -> dict[str, str]:
    """A signature's parts."""
    return dict(part.split(":", 1) for part in score["signature"].split("|") if ":" in part)


def recomputed(name: str, score: dict[str, Any], hypotheses: list[str], references: list[str]) -> float:
    """A score by plain code, of the tokens that its signature names."""
    tok = signed(score).get("tok", "")
    if name == "bleu":
        tokens = BLEU_TOKENS[tok]
        effective = signed(score)["eff"] == "yes"
        return plain.bleu([*map(tokens, hypotheses)], [[*map(tokens, references)]], effective_order=effective)
    if name.startswith("chrf"):
        return plain.chrf(hypotheses, [references], word_order=int(signed(score)["nw"]))
    if name in ROUGE:
        return rouge_parts(name, score, hypotheses, references)[0]
    if name == "ter":  # with shifts, which plain code would only copy: the library itself, with the signature's options
        options = signed(score)
        metric = TER(normalized=options["norm"] == "yes", asian_support=options["asian"] == "yes")
        return metric.corpus_score(hypotheses, [references]).score
    assert name == "exact_match"
    return plain.exact_match(hypotheses, references)


def rouge_parts(
    name: str, score: dict[str, Any], hypotheses: list[str], references: list[str]
) -> tuple[float, float, float]:
    """F1, recall and precision of a ROUGE by plain code, of the tokens that its signature names."""
    split = tokens_of_ascii if "a-z" in signed(score)["tok"] else tokens_of_words
    return plain.rouge_parts(ROUGE[name], [*map(split, hypotheses)], [*map(split, references)])


@pytest.mark.parametrize("test", TESTS)
def test_scores_are_those_of_plain_code(case: Case, test: str, record_property: Any) -> None:
    references = case.corpora.targets(TESTS[test])
    hypotheses = case.run.lines(f"translations/{test}.txt")
    assert case.run.lines(f"translations/{test}.reference.txt") == references
    found = case.run.scores[test]
    assert found["num_segments"] == len(references) == len(hypotheses)
    names = {
        row[0].removesuffix(" ↓"): row for row in printed(case.run.said.out, f"{test}: {len(references)} segments")
    }
    checked = 0
    for name, score in found["metrics"].items():
        if name in NAMES:
            assert score["score"] == pytest.approx(recomputed(name, score, hypotheses, references), abs=1e-9), name
            assert number(names[NAMES[name]][1]) == pytest.approx(score["score"], abs=0.005 + 1e-9), name
            assert names[NAMES[name]][2] == score["signature"]
            checked += 1
        if name in ROUGE:
            mine = dict(
                zip(("score", "recall", "precision"), rouge_parts(name, score, hypotheses, references), strict=True)
            )
            assert {part: score[part] for part in mine} == pytest.approx(mine, abs=1e-9), name
            row = names[f"{NAMES[name]} recall"]
            assert number(row[1]) == pytest.approx(score["recall"], abs=0.005 + 1e-9)
            checked += 2
    assert checked >= 5
    record_property("figures", checked)


def test_scores_by_length_are_those_of_plain_code(case: Case, record_property: Any) -> None:
    sources, references = case.corpora.sources("test"), case.corpora.targets("test")
    hypotheses = case.run.lines("translations/test.txt")
    groups = case.run.scores["test"]["lengths"]
    assert sum(group["num_segments"] for group in groups) == len(sources)
    for group in groups:
        rows = [row for row, text in enumerate(sources) if group["shortest"] <= num_words(text) <= group["longest"]]
        assert len(rows) == group["num_segments"]
        for name, score in group["metrics"].items():
            mine = recomputed(name, score, [hypotheses[row] for row in rows], [references[row] for row in rows])
            assert score["score"] == pytest.approx(mine, abs=1e-9), (name, group)
            record_property("figures", 1)


def test_validation_scores_what_evaluation_scores(case: Case, record_property: Any) -> None:
    """The validation split is a test set, too: both times the same hypotheses, the same BLEU, the same signature."""
    validation = case.run.json("model/manifest.json")["figures"]["validation"]
    tested = case.run.scores["again"]["metrics"]["bleu"]
    assert validation["bleu"] == pytest.approx(tested["score"], abs=1e-9)
    assert validation["bleu_signature"] == tested["signature"]
    assert [line["bleu"] for line in case.run.metrics("valid")].count(validation["bleu"]) >= 1
    record_property("figures", 1)


def test_no_metric_is_zero_for_text_that_is_largely_right(case: Case) -> None:
    """What is told of a model that is half right must not be that it is all wrong: a metric that cannot read the
    script is left out, and it is said why."""
    found = case.run.scores["test"]
    match = found["metrics"]["exact_match"]["score"]
    for name in ("bleu", "rouge1", "rougeL", "chrf"):
        if name not in found["metrics"]:
            assert found["missing"][name]
        elif match > 10:
            assert found["metrics"][name]["score"] > match / 4, name


def test_the_right_answers_score_100(case: Case, tmp_path: Any, record_property: Any) -> None:
    """Hypotheses that are the references are perfect by every metric there is, and TER is 0."""
    reference = case.corpora.folder / "valid.tgt"
    words = ("evaluate", "--hypotheses", reference, "--reference", reference)
    rows = {row[0]: row[1] for row in printed(tfm(*words).out, "valid.tgt: 40 segments") if len(row) > 1}
    for name, text in rows.items():
        if re.fullmatch(r"[\d.]+", text):
            assert number(text) == pytest.approx(0.0 if name == "TER ↓" else 100.0), name
            record_property("figures", 1)
    assert rows["exact match"] == "100.00"
    assert math.isclose(number(rows["BLEU"]), 100.0)
