"""Scores of labels are those of scikit-learn; a label that one side lacks is wrong."""

import pytest

from pipeline.config import EvaluationConfig
from pipeline.scoring.labels import accuracy, macro_f1

CONFIG = EvaluationConfig()


def test_labels_are_scored_as_by_hand() -> None:
    given, wanted = ["A B", "C", "B B B"], [["A A", "B", "B B"]]
    # pairs: A A, B A, C B, B B, B B, and B where there should be nothing
    assert accuracy(given, wanted, CONFIG).score == pytest.approx(100 * 3 / 6)
    # A: 2 * 1 / (1 + 2); B: 2 * 2 / (4 + 3); C, which is only given: 0
    assert macro_f1(given, wanted, CONFIG).score == pytest.approx(100 * (2 / 3 + 4 / 7) / 3)
    assert "labels:3|" in macro_f1(given, wanted, CONFIG).signature
