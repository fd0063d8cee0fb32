"""Means over folds: of one definition, or none is given."""

import json

import pytest

from tfm.cli.commands.recipes.run import folds_table
from tfm.pipeline.recipes.cross_validation import CrossValidation, FoldResult

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:{}|smooth:exp|version:2.6.0"


def folds(*tokenizers: str) -> CrossValidation:
    """Folds whose BLEU was computed with these tokenizers."""
    results = [
        FoldResult(
            number,
            f"r-{number}",
            10,
            5,
            {"loss": float(number), "bleu": 10.0 * number},
            {"bleu": SIGNATURE.format(each)},
        )
        for number, each in enumerate(tokenizers, 1)
    ]
    return CrossValidation("r", tuple(results))


def test_a_mean_has_the_signature_of_its_figures() -> None:
    found = folds("13a", "13a")
    content = json.loads(json.dumps(found.as_json()))
    assert content["bleu"] == {"mean": 15.0, "deviation": pytest.approx(50**0.5), "signature": SIGNATURE.format("13a")}
    assert content["loss"] == {"mean": 1.5, "deviation": pytest.approx(0.5**0.5)}
    assert folds_table(found)[1][-1] == ["mean", "", "", "1.5000 ± 0.7071", "15.0000 ± 7.0711"]


def test_figures_of_several_definitions_have_no_mean_and_it_is_said_why() -> None:
    found = folds("13a", "13a", "zh")
    content = found.as_json()
    assert (content["bleu"]["mean"], content["bleu"]["deviation"], content["bleu"]["signature"]) == (None, None, None)
    for part in ("tok:13a", "in fold 1", "tok:zh", "in fold 3", "set evaluation.bleu_tokenize"):
        assert part in content["bleu"]["why"]
    assert content["folds"][2]["signatures"] == {"bleu": SIGNATURE.format("zh")}
    assert content["loss"]["mean"] == 2
    assert folds_table(found)[1][-1] == ["mean", "", "", "2.0000 ± 1.0000", "–"]
