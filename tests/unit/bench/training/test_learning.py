"""What `python -m bench learning` reads of a training, and how it shows it."""

import pytest

from bench.processes import ProcessError
from bench.training.learning import CurvePoint, draw_curves, learning_table, read_points

LINES = [
    {"event": "train", "step": 50, "seconds": 20.0},
    {"event": "valid", "step": 50, "seconds": 3.0, "bleu": 11.5},
    {"event": "train", "step": 100, "seconds": 45.0},
    {"event": "valid", "step": 100, "seconds": 3.0, "bleu": 21.25},
    {"event": "valid", "step": 100, "seconds": 3.0, "bleu": None},
]


def test_a_validation_has_the_seconds_of_the_training_before_it() -> None:
    assert read_points(LINES) == [CurvePoint(50, 20.0, 11.5), CurvePoint(100, 45.0, 21.25)]


def test_a_training_without_bleu_has_no_curve() -> None:
    with pytest.raises(ProcessError, match="no validation has a BLEU"):
        read_points(LINES[:1])


def test_rows_follow_the_clock_and_curves_are_drawn_alike_twice() -> None:
    found = {"tfm": read_points(LINES), "peer": [CurvePoint(7, 1_030.0, 2.0), CurvePoint(3, 30.0, 1.0)]}
    heads, rows = learning_table(found)
    assert heads == ["seconds", "", "update", "BLEU"]
    assert [row[0] for row in rows] == ["20", "30", "45", "1,030"]
    assert rows[2] == ["45", "tfm", "100", "21.25"]
    drawn = draw_curves(found)
    assert drawn == draw_curves(found)
    assert all(name in drawn for name in ("tfm", "peer", "minutes", "validation BLEU"))
