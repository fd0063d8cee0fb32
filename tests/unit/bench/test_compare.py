"""Contestants in turn, and the arithmetic of their table."""

from collections.abc import Iterator

import pytest

from bench.compare import Contestant, alternate, as_json, format_number, prediction_verdicts, summarize, summary_table


def playing(name: str, rates: list[float], log: list[str], **figures: float) -> Contestant:
    """A contestant that has these rates, one a round, and says when it runs."""
    left: Iterator[float] = iter(rates)

    def run() -> dict[str, float]:
        log.append(name)
        return {"rate": next(left), **figures}

    return Contestant(name, run, predicted=figures.get("predicted"))


def test_contestants_alternate_and_are_told() -> None:
    log: list[str] = []
    told: list[str] = []
    contestants = [playing("a", [1, 2, 3], log), playing("b", [4, 5, 6], log), playing("c", [7, 8, 9], log)]
    found = alternate(contestants, 3, told.append)
    assert "".join(log) == "abcabcabc"
    assert [each["rate"] for each in found["b"]] == [4, 5, 6]
    assert told[4] == "round 2 of 3: b 5"


def test_ratios_are_of_medians_and_their_spread_of_rounds() -> None:
    contestants = [playing("a", [100, 200, 300], []), playing("b", [50, 60, 30], [], peak=2**20)]
    first, second = summarize(contestants, alternate(contestants, 3))
    assert (first.median, first.ratio, first.lowest, first.highest, first.peak) == (200, 1, 1, 1, None)
    assert (second.median, second.ratio) == (50, 0.25)
    assert (second.lowest, second.highest) == (0.1, 0.5)
    assert second.peak == 2**20
    assert second.inverse() == (4, 2, 10)


def test_the_table_has_a_row_each_and_no_empty_column() -> None:
    contestants = [playing("a", [1000], []), playing("b", [250], [], peak=3 * 2**20, predicted=0.3)]
    rounds = alternate(contestants, 1)
    found = summarize(contestants, rounds)
    columns, rows = summary_table(found, "tokens/s", {"padding": {"b": "3 %"}, "nothing": {}})
    assert columns == ["", "tokens/s", "rounds", "to a", "of a round", "predicted", "peak MiB", "padding"]
    assert rows[0] == ["a", "1,000", "1,000", "1.00", None, None, None, None]
    assert rows[1] == ["b", "250", "250", "0.25", "0.25-0.25", "0.30", 3, "3 %"]
    assert prediction_verdicts(found, "tokens/s") == ["a: 4.00 times the tokens/s of b (rounds: 4.00 to 4.00)"]
    assert as_json(found, rounds)[1]["figures"] == [{"rate": 250, "peak": 3 * 2**20, "predicted": 0.3}]


def test_a_contestant_alone_has_no_ratio() -> None:
    alone = [playing("a", [1000], [])]
    assert summary_table(summarize(alone, alternate(alone, 1)), "tokens/s")[0] == ["", "tokens/s", "rounds"]


def test_names_differ() -> None:
    with pytest.raises(ValueError, match="one name"):
        alternate([playing("a", [1], []), playing("a", [1], [])], 1)


@pytest.mark.parametrize(("value", "text"), [(12345.6, "12,346"), (123.4, "123"), (3.214, "3.21"), (0.05123, "0.0512")])
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert format_number(value) == text
