"""Entities against seqeval where it is installed, and against regular expressions over the tags."""

import json
import random
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.cli.user import tfm, write_lines
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.entities.schemes import PREFIXES_BY_SCHEME, extract_entities
from tfm.pipeline.scoring.metrics.entities.scores import entity_scores, has_entity_tags, unknown_tags_warning
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.significance.segment_statistics import segment_statistics

WAYS = tuple(PREFIXES_BY_SCHEME)
# of one type, each tag a letter: what an entity is, as an expression; longest first, from the left
ENTITY = {
    "conlleval": "[BI]I*E?|[ES]",
    "IOB2": "BI*",
    "IOE2": "I*E",
    "IOBES": "BI*E|S",
    "BILOU": "BI*L|U",
}
PARTIAL = {"IOE2": "I+", "IOBES": "BI*", "BILOU": "BI*"}
"""What is read without being an entity: it takes its tags with it."""


def config(way: str) -> EvaluationConfig:
    return EvaluationConfig.model_validate({"metrics": ("entity_f1",), "entities": way})


def tagged(way: str, count: int, seed: int) -> list[str]:
    """Texts of random tags of a way, valid or not."""
    draw = random.Random(seed)
    prefixes = "BIES" if way == "conlleval" else PREFIXES_BY_SCHEME[way]
    tags = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("PER", "LOC"))]
    return [" ".join(draw.choices(tags, k=draw.randint(1, 9))) for _ in range(count)]


def by_expression(labels: list[str], way: str) -> set[tuple[int, int, str]]:
    """The entities by a regular expression over each stretch of tags of one type."""
    found, place = set(), 0
    for kind, stretch in _stretches(labels):
        letters = "".join(label[0] for label in stretch)
        if kind:
            pattern = "|".join(filter(None, (f"(?P<entity>{ENTITY[way]})", PARTIAL.get(way))))
            found |= {
                (place + match.start(), place + match.end(), kind)
                for match in re.finditer(pattern, letters)
                if match["entity"] is not None
            }
        place += len(stretch)
    return found


def _stretches(labels: list[str]) -> list[tuple[str, list[str]]]:
    stretches: list[tuple[str, list[str]]] = []
    for label in labels:
        kind = label[2:]
        if stretches and stretches[-1][0] == kind:
            stretches[-1][1].append(label)
        else:
            stretches.append((kind, [label]))
    return stretches


def test_the_ways_are_those_of_the_recipe() -> None:
    assert get_args(EvaluationConfig.model_fields["entities"].annotation) == WAYS


@pytest.mark.parametrize("way", WAYS)
def test_entities_are_those_of_an_expression(way: str) -> None:
    for text in tagged(way, 2000, 1):
        assert {*extract_entities(text.split(), way)} == by_expression(text.split(), way), text


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_seqevals(way: str) -> None:
    seqeval: Any = pytest.importorskip("seqeval.metrics", reason="needs seqeval")
    import seqeval.scheme as schemes

    given, wanted = ([text.split() for text in tagged(way, 300, seed)] for seed in (2, 3))
    given = [(one + ["O"] * len(other))[: len(other)] for one, other in zip(given, wanted, strict=True)]
    strict = {} if way == "conlleval" else {"mode": "strict", "scheme": getattr(schemes, way)}
    report = seqeval.classification_report(wanted, given, output_dict=True, zero_division=0, **strict)
    found = entity_scores([*map(" ".join, given)], [*map(" ".join, wanted)], config(way))
    mine = found.by_type | {f"{name} avg": each for name, each in found.averages.items()}
    assert mine.keys() == report.keys()
    for name, each in mine.items():
        theirs = report[name]
        assert (each.precision, each.recall, each.f1) == pytest.approx(
            tuple(100 * theirs[key] for key in ("precision", "recall", "f1-score"))
        )
        assert each.support == theirs["support"]


@pytest.mark.parametrize("way", WAYS)
def test_the_score_is_micro_and_segments_give_it(way: str) -> None:
    given, wanted = tagged(way, 200, 4), tagged(way, 200, 5)
    score = score_texts(given, [wanted], config(way))["entity_f1"]
    right = sum(
        len(by_expression(a.split(), way) & by_expression(b.split(), way)) for a, b in zip(given, wanted, strict=True)
    )
    num_given, num_wanted = (sum(len(by_expression(text.split(), way)) for text in side) for side in (given, wanted))
    assert score.score == pytest.approx(200 * right / (num_given + num_wanted))
    assert (score.precision, score.recall) == pytest.approx((100 * right / num_given, 100 * right / num_wanted))
    assert f"entities:{way}" in score.signature
    for name, value in (("", score.score), (".recall", score.recall), (".precision", score.precision)):
        (found,) = segment_statistics(f"entity_f1{name}", [given], [wanted], config(way))
        assert found.value == pytest.approx(value)


def test_the_middle_of_bmes_is_inside() -> None:
    """Chinese sets of names (MSRA, Resume) have B, M, E and S."""
    for text in tagged("conlleval", 200, 3):
        assert extract_entities(text.replace("I-", "M-").split(), "conlleval") == extract_entities(
            text.split(), "conlleval"
        )
    assert extract_entities("B-X M-X E-X S-X M-X".split(), "conlleval") == [(0, 3, "X"), (3, 4, "X"), (4, 5, "X")]
    assert extract_entities("W-X B-X M-X E-X W-Y".split(), "conlleval") == [(0, 1, "X"), (1, 4, "X"), (4, 5, "Y")]


def test_labels_of_hypotheses_that_are_no_tags_are_counted() -> None:
    """The score was 0.00 without a word."""
    said = unknown_tags_warning(["PER-B O", "B-X PER-B"], config("conlleval"))
    assert said == "of the hypotheses, 2 of 4 labels are no tag of an entity (PER-B), and count as O"
    assert unknown_tags_warning(["B-X O", "M-X"], config("conlleval")) is None
    assert unknown_tags_warning(["S-X"], config("IOB2")) is not None


def test_conlleval_and_strict_differ_where_a_begin_is_missing() -> None:
    given, wanted = ["O I-PER I-PER"], ["O B-PER I-PER"]
    scores = {way: score_texts(given, [wanted], config(way))["entity_f1"].score for way in ("conlleval", "IOB2")}
    assert scores == {"conlleval": 100.0, "IOB2": 0.0}
    assert extract_entities(["B-PER", "I-LOC", "E-LOC"], "conlleval") == [(0, 1, "PER"), (1, 3, "LOC")]
    assert extract_entities(["B-a-b", "I-a-b"], "IOB2") == [(0, 2, "a-b")], "a type may have a hyphen"


def test_labels_that_are_missing_or_too_many() -> None:
    found = score_texts(["B-PER", "O O B-LOC"], [["B-PER B-PER", "O O"]], config("IOB2"))["entity_f1"]
    assert (found.precision, found.recall) == (50.0, 50.0)
    assert score_texts(["x y"], [["B-PER O"]], config("IOB2"))["entity_f1"].score == 0


def test_what_is_no_entity_is_said_and_what_is_one_is_found() -> None:
    assert "NOUN" in inapplicable_metrics(["O"], [["O NOUN"]], config("IOB2"))["entity_f1"]
    assert "line 2" in inapplicable_metrics(["O", "O"], [["O", "S-PER"]], config("IOB2"))["entity_f1"]
    assert inapplicable_metrics(["O"], [["O O"]], config("IOB2")) == {"entity_f1": "the references have no entity"}
    assert has_entity_tags(["O B-PER", "I-PER"])
    assert not has_entity_tags(["O O"])
    assert not has_entity_tags(["NOUN B-PER"])
    assert not has_entity_tags(["B I"])


def test_entities_in_scores_json_in_the_table_and_in_the_report(tmp_path: Path) -> None:
    given, wanted = ["B-<b> O", "B-LOC O"], ["B-<b> O", "B-LOC I-LOC"]
    found = evaluate_segments(
        Segments("test", None, given, [wanted]), config("conlleval"), seed=1, reporter=NullReporter()
    )
    (again,) = evaluations_from_json(json.loads(json.dumps(evaluations_as_json([found]))))
    assert again.entities == found.entities
    assert found.entities is not None
    assert found.entities.by_type["<b>"].f1 == 100
    files = [write_lines(tmp_path / name, lines) for name, lines in (("h", given), ("r", wanted))]
    scored = ("evaluate", "--hypotheses", files[0], "--reference", files[1], "--metric", "entity_f1")
    done = tfm(*scored, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "micro average" in done.out
    assert "entity F1 recall" in done.out
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    hinted = tfm(*scored[:-1], "accuracy")
    assert "entity_f1 in evaluation.metrics" in hinted.err


@pytest.mark.parametrize("blank", [True, False])
@pytest.mark.parametrize(("begin", "end", "scheme"), [("B", "I", "conlleval"), ("B", "I", "IOB2"), ("B", "L", "BILOU")])
def test_a_column_of_tags_is_no_line_of_a_sentence(blank: bool, begin: str, end: str, scheme: str) -> None:
    """A tag a line, as cut from CoNLL, made each word a sentence, whose entities have one word: F1 was of others."""
    config = EvaluationConfig.model_validate({"metrics": ["entity_f1"], "entities": scheme})
    sentences = [["O", f"{begin}-PER", f"{end}-PER"], ["O"], [f"{begin}-LOC", f"{end}-LOC", "O"]]
    column = [tag for sentence in sentences for tag in [*sentence, *[""] * blank]]
    reasons = inapplicable_metrics(column, [column], config)
    assert reasons["entity_f1"].startswith("each line of the references has one tag, and that of line 3 goes on")
    assert inapplicable_metrics(column, [[" ".join(sentence) for sentence in sentences]], config) == {}
    words = ["I-PER", "I-PER", "", "B-LOC", "O", "I-PER"] if end == "I" else ["U-PER", "O", "U-PER"]
    assert inapplicable_metrics(words, [words], config.model_copy(update={"entities": "conlleval"})) == {}
