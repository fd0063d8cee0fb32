"""Sides whose lines seem not to belong together: in another order, or in another case."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.written_pieces import describe_sample, line_step, sample_lines

MIN_LINES_JUDGED = 20
MIN_SIMILARITY = 0.1
"""The mean similarity of lines of the same text, below which none of them says anything."""
MAX_CANDIDATES = 20
"""The lines with most of a hypothesis' rare words that are compared with it."""
MAX_UNIT_SHARE = 0.02
"""The share of the lines that a rare word stands in at most."""
MIN_COPY_SIMILARITY = 0.7
CASE_SHARE = 0.95
"""The share of a side's lines that are in one case, if it has been given to all."""
CASED_METRICS = ("bleu", "bleu_paper", "chrf", "chrf++", "exact_match", "wer", "cer", "per")


def misplaced_lines_warning(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    """A warning that hypotheses are nearer to the reference of the line before or after, or of another line, than to
    their own.

    Lines are near by the words that they share; with so many lines, chance and a poor system give no such majority.
    """
    if len(references) < MIN_LINES_JUDGED:
        return None
    judged = range(0, len(references), line_step(len(references)))
    given = {row: _text_units(hypotheses[row]) for row in judged}
    own = {row: _similarity(given[row], _text_units(references[row])) for row in judged}
    for offset, place in ((1, "after"), (-1, "before")):
        rows = [row for row in judged if 0 <= row + offset < len(references)]
        moved = {row: _similarity(given[row], _text_units(references[row + offset])) for row in rows}
        nearer, farther = (sum(sign * (moved[row] - own[row]) > 0 for row in rows) for sign in (1, -1))
        if nearer >= MIN_LINES_JUDGED and nearer > 3 * farther and sum(moved.values()) > MIN_SIMILARITY * len(rows):
            lines = describe_sample(len(references), "hypotheses")
            problem = f"{nearer:,} of {lines} are nearer to the reference in the line {place} theirs"
            return f"{problem} than to their own: does one file begin with a line too many, such as a header?"
    num_unlike = sum(2 * similarity < 1 for similarity in own.values())
    return _other_order_warning(given, references, own) if 2 * num_unlike > len(judged) else None


def _other_order_warning(
    given: Mapping[int, frozenset[str]], references: Sequence[str], own: Mapping[int, float]
) -> str | None:
    """A warning that most hypotheses are nearly the reference of some other line, each of another one.

    Args:
        given: the units of the hypotheses that are judged, by line.
        references: those of all lines.
        own: the similarity of both in each line that is judged.
    """
    wanted = [_text_units(text) for text in references]
    rows_by_unit: dict[str, list[int]] = {}
    for row, units in enumerate(wanted):
        for unit in units:
            rows_by_unit.setdefault(unit, []).append(row)
    max_rows = max(2, int(MAX_UNIT_SHARE * len(wanted)))
    rare_rows = {unit: rows for unit, rows in rows_by_unit.items() if len(rows) <= max_rows}
    places = []
    for row, units in given.items():
        found = Counter(other for unit in units for other in rare_rows.get(unit, ())).most_common(MAX_CANDIDATES)
        similarity, place = max(((_similarity(units, wanted[each]), each) for each, _ in found), default=(0.0, row))
        if similarity >= MIN_COPY_SIMILARITY and 2 * own[row] < similarity:
            places.append(place)
    if 2 * len(places) <= len(given) or len({*places}) < MIN_COPY_SIMILARITY * len(places):
        return None
    lines = describe_sample(len(references), "hypotheses")
    problem = f"{len(places):,} of {lines} are nearly the reference of another line"
    return f"{problem}: bring them into the order of the references, as by sort -V before the numbers of lines are cut"


def case_warning(hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig) -> str | None:
    """A warning that one side is in lower or in upper case, the other one in both; None if metrics ignore case.

    Args:
        hypotheses: one for each segment.
        references: as many lines.
        config: `metrics` and `lowercase` are read.
    """
    if config.lowercase or set(CASED_METRICS).isdisjoint(config.metrics):
        return None
    sides = {"hypotheses": sample_lines(hypotheses), "references": sample_lines(references)}
    for case, is_in_case in (("lower", str.islower), ("upper", str.isupper)):
        shares = {side: _share_in_case(lines, is_in_case) for side, lines in sides.items()}
        for side, other in (("hypotheses", "references"), ("references", "hypotheses")):
            share, other_share = shares[side], shares[other]
            if share is not None and other_share is not None and share >= CASE_SHARE and other_share < 1 / 2:
                problem = f"the {side} are in {case} case, the {other} are not"
                return f"{problem}: --lowercase (evaluation.lowercase) ignores case"
    return None


def _share_in_case(lines: Sequence[str], is_in_case: Callable[[str], bool]) -> float | None:
    """The share of the lines with cased letters that are in one case; None if too few have some."""
    cased = [line for line in lines if line.lower() != line.upper()]
    return sum(map(is_in_case, cased)) / len(cased) if len(cased) >= MIN_LINES_JUDGED else None


def _text_units(text: str) -> frozenset[str]:
    """The words of a text, or if it has no spaces its pairs of characters."""
    words = text.lower().split()
    return frozenset(words if len(words) > 1 else (first + second for first, second in pairwise(text)))


def _similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of units that two texts have in common (Dice)."""
    return 2 * len(first & second) / max(len(first) + len(second), 1)
