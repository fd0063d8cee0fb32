"""Error rates of words, characters and units: edits from reference to hypothesis / units of the references."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.references import drop_blank_references, num_references_signature
from tfm.pipeline.scoring.metrics.score import Score

ERROR_RATES = ("wer", "cer", "per")
MAX_CONFUSIONS = 50
"""The most confusions that are kept: the commonest."""
NO_UNIT = ""
"""Mark for a unit that one side lacks."""

Units = list[str]
UnitSplitter = Callable[[str], Units]


@dataclass(frozen=True)
class EditCounts:
    """The edits that an error rate counts, over all segments.

    Args:
        unit: of the edits.
        units: the number of units of the references.
        insertions: their number.
        deletions: their number.
        substitutions: their number.
        confusions: (unit of the reference, unit given, count), the commonest first; NO_UNIT where a side lacks it.
            Several alignments may be as short; these are of the one that rapidfuzz finds.
    """

    unit: str
    units: int
    insertions: int
    deletions: int
    substitutions: int
    confusions: Sequence[tuple[str, str, int]] = field(default_factory=tuple)


def error_rate(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> Score:
    """Percentage of edits (insertions, deletions, substitutions) in the units of the references; it may exceed 100.

    Args:
        name: wer, cer or per.
        hypotheses: one for each segment.
        references: one or more lists as long; of several the one with the fewest edits counts, then the longest.
        config: `words` and `lowercase` are read.
    """
    edits, units = (sum(column) for column in zip(*edits_and_units(name, hypotheses, references, config), strict=True))
    num = num_references_signature(references)
    of_several = "" if num == "1" else "|refs:fewest-edits"
    case = "lc" if config.lowercase else "mixed"
    unit = error_rate_unit(name, references, config)
    return Score(100 * edits / max(units, 1), f"nrefs:{num}{of_several}|case:{case}|unit:{unit}|stat:edits/units*100")


def edits_and_units(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> list[tuple[int, int]]:
    """Count the edits that each segment needs, and the units of the reference that counts.

    Args:
        name: wer, cer or per.
        hypotheses: one for each segment.
        references: one or more lists as long; of several the one with the fewest edits counts, then the longest.
        config: `words` and `lowercase` are read.

    Returns:
        (edits, units) of each segment.
    """
    from rapidfuzz.distance import Levenshtein

    split = unit_splitter(name, references, config)
    return [
        (Levenshtein.distance(reference, hypothesis), len(reference))
        for hypothesis, reference in _nearest_references(hypotheses, references, split)
    ]


def count_errors(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> EditCounts:
    """Count the edits of each kind over all segments, and the units that are taken for others.

    Args:
        name: wer, cer or per.
        hypotheses: one for each segment.
        references: one or more lists as long; of several the one with the fewest edits counts, then the longest.
        config: `words` and `lowercase` are read.
    """
    from rapidfuzz.distance import Levenshtein

    counts: Counter[str] = Counter()
    confusions: Counter[tuple[str, str]] = Counter()
    split, units = unit_splitter(name, references, config), 0
    for hypothesis, reference in _nearest_references(hypotheses, references, split):
        units += len(reference)
        for edit in Levenshtein.editops(reference, hypothesis):
            counts[edit.tag] += 1
            expected = NO_UNIT if edit.tag == "insert" else reference[edit.src_pos]
            confusions[expected, NO_UNIT if edit.tag == "delete" else hypothesis[edit.dest_pos]] += 1
    commonest = sorted(confusions.items(), key=lambda each: (-each[1], each[0]))[:MAX_CONFUSIONS]
    pairs = tuple((expected, actual, count) for (expected, actual), count in commonest)
    unit = error_rate_unit(name, references, config)
    return EditCounts(unit, units, counts["insert"], counts["delete"], counts["replace"], pairs)


def error_rate_unit(name: str, references: Sequence[Sequence[str]], config: EvaluationConfig) -> str:
    """Return the unit of an error rate, as signatures have it.

    The units of per stand between spaces, such as phones; if no reference has a space within, they are characters.

    Args:
        name: wer, cer or per.
        references: one or more lists.
        config: `words` is read.
    """
    if name == "wer":
        return "line" if config.words == "line" else "word"
    has_units = name == "per" and any(len(text.split()) > 1 for column in references for text in column)
    return "between-spaces" if has_units else "code-point"


def unit_splitter(name: str, references: Sequence[Sequence[str]], config: EvaluationConfig) -> UnitSplitter:
    """Return the function from a text to the units of an error rate.

    Args:
        name: wer, cer or per.
        references: one or more lists.
        config: `words` and `lowercase` are read.
    """
    split = UNIT_SPLITTERS[error_rate_unit(name, references, config)]
    return (lambda text: split(text.lower())) if config.lowercase else split


UNIT_SPLITTERS: Mapping[str, UnitSplitter] = {
    "word": str.split,
    "line": lambda text: [" ".join(text.split())] if text.strip() else [],
    "between-spaces": str.split,
    "code-point": lambda text: list(text.strip()),
}
"""The units of a text, by their name in a signature."""


def _nearest_references(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], split: UnitSplitter
) -> list[tuple[Units, Units]]:
    """The units of each segment's hypothesis, and of its reference with the fewest edits, then the longest."""
    from rapidfuzz.distance import Levenshtein

    nearest_pairs = []
    for text, *segment in zip(hypotheses, *references, strict=True):
        hypothesis, candidates = split(text), [split(each) for each in drop_blank_references(segment)]
        nearest = candidates[0]
        if len(candidates) > 1:
            nearest = min(candidates, key=lambda each: (Levenshtein.distance(each, hypothesis), -len(each)))
        nearest_pairs.append((hypothesis, nearest))
    return nearest_pairs
