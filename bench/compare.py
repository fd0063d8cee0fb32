"""Contestants measured alternately, A B A B ..., and the table of results.

The speed of a machine drifts: only the ratio of two medians of one run is meaningful, given with the smallest and
largest ratio of a round.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

Figures = Mapping[str, float]
Rounds = Mapping[str, Sequence[Figures]]


@dataclass(frozen=True)
class Contestant:
    """A name, and what runs one round as a process of its own.

    The figures of a round: "rate", what is compared; "peak", bytes of memory; any others.
    predicted: the ratio of its rate to that of the first contestant, as expected before.
    """

    name: str
    run: Callable[[], Figures]
    predicted: float | None = None


@dataclass(frozen=True)
class Summary:
    """A contestant's rounds, and their ratios to those of the first contestant."""

    name: str
    rounds: tuple[float, ...]
    median: float
    ratio: float
    lowest: float
    highest: float
    peak: float | None
    predicted: float | None = None

    def inverse(self) -> tuple[float, float, float]:
        """Ratio, lowest and highest of the first contestant to this one."""
        return 1 / self.ratio, 1 / self.highest, 1 / self.lowest


def alternate(
    contestants: Sequence[Contestant], rounds: int, on_round: Callable[[str], None] = lambda text: None
) -> dict[str, list[Figures]]:
    """The figures of each contestant, alternating rounds; `on_round` is called after every round."""
    names = [each.name for each in contestants]
    if len(set(names)) < len(names):
        raise ValueError(f"two contestants have one name: {', '.join(names)}")
    rounds_by_name: dict[str, list[Figures]] = {name: [] for name in names}
    for turn in range(rounds):
        for contestant in contestants:
            figures = contestant.run()
            rounds_by_name[contestant.name].append(figures)
            on_round(f"round {turn + 1} of {rounds}: {contestant.name} {format_number(figures['rate'])}")
    return rounds_by_name


def summarize(contestants: Sequence[Contestant], rounds_by_name: Rounds) -> list[Summary]:
    """Medians and ratios of every contestant, in their order."""
    first = [each["rate"] for each in rounds_by_name[contestants[0].name]]
    result = []
    for contestant in contestants:
        rounds = rounds_by_name[contestant.name]
        rates = tuple(each["rate"] for each in rounds)
        ratios = [rate / other for rate, other in zip(rates, first, strict=True)]
        median = statistics.median(rates)
        ratio = median / statistics.median(first)
        peak = max((each["peak"] for each in rounds if "peak" in each), default=None)
        result.append(
            Summary(contestant.name, rates, median, ratio, min(ratios), max(ratios), peak, contestant.predicted)
        )
    return result


def summary_table(
    summaries: Sequence[Summary], unit: str, extra: Mapping[str, Mapping[str, object]] | None = None
) -> tuple[list[str], list[list[object]]]:
    """Headings and rows, without empty columns; `extra`: further columns, each by the contestant's name."""
    first, rest = summaries[0].name, summaries[1:]
    columns: dict[str, list[object]] = {
        "": [each.name for each in summaries],
        unit: [format_number(each.median) for each in summaries],
        "rounds": [", ".join(map(format_number, each.rounds)) for each in summaries],
        f"to {first}": [f"{each.ratio:.2f}" if rest else None for each in summaries],
        "of a round": [None, *(f"{each.lowest:.2f}-{each.highest:.2f}" for each in rest)],
        "predicted": [None if each.predicted is None else f"{each.predicted:.2f}" for each in summaries],
        "peak MiB": [None if each.peak is None else round(each.peak / 2**20) for each in summaries],
    }
    for heading, cells in (extra or {}).items():
        columns[heading] = [cells.get(each.name) for each in summaries]
    columns = {heading: cells for heading, cells in columns.items() if any(cell is not None for cell in cells)}
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def prediction_verdicts(summaries: Sequence[Summary], unit: str) -> list[str]:
    """The ratio of the first contestant to each of the others, in words."""
    result = []
    for summary in summaries[1:]:
        ratio, lowest, highest = summary.inverse()
        spread = f"(rounds: {lowest:.2f} to {highest:.2f})"
        result.append(f"{summaries[0].name}: {ratio:.2f} times the {unit} of {summary.name} {spread}")
    return result


def as_json(summaries: Sequence[Summary], rounds: Rounds) -> list[dict[str, object]]:
    """The summaries, each with all that its rounds gave."""
    return [{**asdict(each), "figures": [dict(figures) for figures in rounds[each.name]]} for each in summaries]


def median_figure(figures: Sequence[Figures], key: str) -> float:
    """The median of one figure over the rounds."""
    return statistics.median(each[key] for each in figures)


def format_number(value: float) -> str:
    """Three significant digits at least: 12,345 or 3.21 or 0.0512."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
