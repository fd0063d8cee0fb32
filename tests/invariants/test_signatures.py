"""Two scores with one signature were computed by one definition: what changes a score changes its signature too."""

from pathlib import Path
from typing import Any

import pytest

from tests.tiny_wordnet import write_wordnet
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, score_texts

HYPOTHESES = [
    "A car ran fast",
    "the Dog strolls, slowly",
    "große Straße 3-4",
    "",
    "men walked home today",
    "the dog it",
    "the Cat",
]
REFERENCES = [
    "a auto ran quickly",
    "The dog walks slowly now",
    "Große Straße 3 4 da",
    "",
    "Men walk home today .",
    "the dog",
    "the cat",
]
OF_ALL_TEXTS: Any = tuple(name for name in METRIC_FUNCTIONS if name != "entity_f1")
"""Entity F1 is of tags alone: see below."""
BASE = EvaluationConfig(metrics=OF_ALL_TEXTS, bleu_tokenize="13a", rouge_tokenize="unicode", labels="word")
ALWAYS_ZERO = {"bleu_paper"}
"""Metrics that are not smoothed: no four words of these texts are right."""
ROUGE = {name for name in METRIC_FUNCTIONS if name.startswith("rouge")}
OTHER_SETTINGS: dict[str, tuple[object, set[str]]] = {
    "lowercase": (True, {"bleu", "bleu_paper", "chrf", "chrf++", "exact_match", "wer", "cer", "per"}),
    "words": ("line", {"wer"}),
    "bleu_tokenize": ("char", {"bleu", "bleu_paper"}),
    "rouge_tokenize": ("rouge-score", ROUGE),
    "rouge_stemmer": (True, ROUGE),
    "wordnet": ("wordnet", {"meteor"}),
    "labels": ("line", {"accuracy", "macro_f1"}),
    "entities": ("IOBES", set()),  # see below
    "samples": (3, set()),
    "stride": (2, set()),
    "tests": ("final", set()),
    "external": ((), set()),
    "metrics": (BASE.metrics, set()),
}
"""Each key of [evaluation] with another value, and the metrics of texts whose definition it changes."""


def signatures(config: EvaluationConfig, references: list[list[str]]) -> dict[str, str]:
    return {name: score.signature for name, score in score_texts(HYPOTHESES, references, config).items()}


def test_every_key_of_evaluation_is_tried() -> None:
    assert OTHER_SETTINGS.keys() == EvaluationConfig.model_fields.keys()


@pytest.mark.parametrize("key", OTHER_SETTINGS)
def test_a_signature_changes_where_a_key_changes_the_definition_and_nowhere_else(key: str, tmp_path: Path) -> None:
    value, metrics = OTHER_SETTINGS[key]
    if key == "wordnet":
        value = str(write_wordnet(tmp_path / "wordnet"))
    before, after = (
        score_texts(HYPOTHESES, [REFERENCES], config) for config in (BASE, BASE.model_copy(update={key: value}))
    )
    assert before.keys() == after.keys() == {*OF_ALL_TEXTS}
    assert {name for name in before if before[name].signature != after[name].signature} == metrics
    assert {name for name in before if before[name].score != after[name].score} <= metrics
    assert metrics - ALWAYS_ZERO <= {name for name in before if before[name].score != after[name].score}


def test_the_way_entities_are_read_changes_the_signature_of_their_f1() -> None:
    given, wanted = ["O I-A E-A"], [["O I-A E-A"]]
    configs = [EvaluationConfig(metrics=("entity_f1",), entities=each) for each in ("conlleval", "IOE2")]
    one, other = (score_texts(given, wanted, each)["entity_f1"] for each in configs)
    assert one.signature != other.signature


def test_the_number_of_references_is_said_as_sacrebleu_says_it() -> None:
    """Of all metrics that read several: one, two, or another number for each segment; a blank line is none."""
    second = ["a car ran", "dogs walk", "eine Straße", "x", "all men go", "a dog here", "cats"]
    first = [text or "nothing at all" for text in REFERENCES]
    some = [text if place % 2 else "" for place, text in enumerate(second)]
    for columns, said in (([first], "1"), ([first, second], "2"), ([first, some], "var"), ([first, [" "] * 7], "1")):
        found = signatures(BASE, columns)
        numbers = {name: text.split("|")[0] for name, text in found.items() if text.startswith("nrefs:")}
        assert numbers == dict.fromkeys({*OF_ALL_TEXTS} - {"accuracy", "macro_f1"}, f"nrefs:{said}")
    assert signatures(BASE, [first, [""] * 7]) == signatures(BASE, [first])


def test_a_unit_of_labels_is_said() -> None:
    """A line of several words is one label or several; of one word each they are the same labels, counted alike."""
    words = ["A", "B", "A", "C", "A", "B"]
    by_line, by_word = (
        score_texts(words, [words], BASE.model_copy(update={"labels": unit, "metrics": ("accuracy", "macro_f1")}))
        for unit in ("line", "word")
    )
    for name in ("accuracy", "macro_f1"):
        assert by_line[name].score == by_word[name].score == 100
        assert by_line[name].signature != by_word[name].signature


@pytest.mark.parametrize("blank", ["", " ", "\u3000"])
def test_a_blank_output_is_right_where_a_blank_text_is_wanted_by_every_metric(blank: str) -> None:
    """A perfect output has a perfect score, also with a blank line in it; METEOR and CIDEr-D have their own perfect
    scores of each text, so that these are of texts of which one alone is blank."""
    wanted = ["the big dog runs home now", blank, "a car stands in the road there"]
    perfect = {
        **dict.fromkeys(("ter", "wer", "cer", "per"), 0.0),
        "cider_d": 10.0,
        "meteor": None,
        "accuracy": 100.0,
        "macro_f1": 100.0,
    }
    found, without = (score_texts(each, [each], BASE) for each in (wanted, [wanted[0], wanted[2]]))
    for name, score in found.items():
        expected = perfect.get(name, 100.0)
        if expected is None:
            expected = (2 * without[name].score + 100) / 3
        assert score.score == pytest.approx(expected, abs=1e-9), name
    wrong = score_texts([wanted[0], "noise", wanted[2]], [wanted], BASE)
    for name in (*ROUGE, "meteor", "exact_match", "cider_d"):
        assert wrong[name].score < found[name].score, f"{name}: something is no nothing"
    for name in (*ROUGE, "meteor", "cider_d"):
        assert "|without-words:1|blank:right|" in found[name].signature, f"{name}: unlike its reference implementation"
        assert wrong[name].signature == found[name].signature, "by the references alone"
        assert "blank" not in without[name].signature


def test_a_blank_line_beside_a_reference_is_no_wanted_text() -> None:
    first, second = ["the big dog runs home", "a car stands there now"], ["", "the car is there now"]
    found = score_texts(["", first[1]], [first, second], BASE)
    for name in (*ROUGE, "meteor", "exact_match"):
        assert found[name].score <= 50
        assert "blank" not in found[name].signature
