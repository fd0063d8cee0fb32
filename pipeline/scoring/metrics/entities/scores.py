"""Precision, recall and F1 of entities: one is right if its first word, its last word and its type are."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tfm.data.errors import format_names, format_share
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.entities.schemes import (
    PREFIXES_BY_SCHEME,
    continues_entity,
    extract_entities,
    parse_tag,
)
from tfm.pipeline.scoring.metrics.labels import LabelScore, label_score
from tfm.pipeline.scoring.metrics.score import Score

ENTITY_F1 = "entity_f1"
TAGS_COMMAND = """awk 'NF {printf "%s ", $NF; next} {print ""}' FILE"""
"""The command that writes the tags of a sentence, the last column of CoNLL, in a line."""


@dataclass(frozen=True)
class EntityScores:
    """Scores of each type of entity, in 0..100, and averages: micro of all entities, macro and weighted of types."""

    by_type: Mapping[str, LabelScore]
    averages: Mapping[str, LabelScore]


def entity_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the micro F1 of the entities in 0..100, with their recall and precision.

    With `config.entities = "conlleval"` the score is that program's, and seqeval's by default; otherwise seqeval's in
    mode strict, by the scheme that is named.

    Args:
        hypotheses: tags of each segment, between spaces.
        references: one or more lists as long; the first is read.
        config: `entities` is read.
    """
    num_right, num_hypothesis, num_reference = (
        sum(column) for column in zip(*entity_counts(hypotheses, references[0], config), strict=True)
    )
    micro = label_score(num_right, num_hypothesis, num_reference)
    signature = f"unit:entity|entities:{config.entities}|count:{num_reference}|stat:micro-f1*100"
    return Score(micro.f1, signature, micro.recall, micro.precision)


def entity_counts(
    hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig
) -> list[tuple[int, int, int]]:
    """Count the entities of each segment: right ones, those in the hypothesis, and those in the reference.

    Args:
        hypotheses: tags of each segment, between spaces.
        references: the right tags, as many lines.
        config: `entities`, the scheme of the tags, is read.

    Returns:
        (right, in the hypothesis, in the reference) of each segment.
    """
    counts = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        hypothesis_entities, reference_entities = (
            extract_entities(text.split(), config.entities) for text in (hypothesis, reference)
        )
        counts.append(
            (len({*hypothesis_entities} & {*reference_entities}), len(hypothesis_entities), len(reference_entities))
        )
    return counts


def entity_scores(hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig) -> EntityScores:
    """Score each type of entity that either side has, by name, as seqeval's `classification_report` does.

    Args:
        hypotheses: tags of each segment, between spaces.
        references: the right tags, as many lines.
        config: `entities` is read.
    """
    num_right, num_hypothesis, num_reference = Counter[str](), Counter[str](), Counter[str]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        hypothesis_entities, reference_entities = (
            extract_entities(text.split(), config.entities) for text in (hypothesis, reference)
        )
        num_hypothesis.update(kind for _, _, kind in hypothesis_entities)
        num_reference.update(kind for _, _, kind in reference_entities)
        num_right.update(kind for _, _, kind in {*hypothesis_entities} & {*reference_entities})
    names = sorted({*num_hypothesis, *num_reference})
    by_type = {name: label_score(num_right[name], num_hypothesis[name], num_reference[name]) for name in names}
    averages = {"micro": label_score(num_right.total(), num_hypothesis.total(), num_reference.total())}
    averages["macro"] = _weighted_mean(list(by_type.values()), [1] * len(by_type))
    averages["weighted"] = _weighted_mean(list(by_type.values()), [each.support for each in by_type.values()])
    return EntityScores(by_type, averages)


def _weighted_mean(scores: Sequence[LabelScore], weights: Sequence[int]) -> LabelScore:
    """The mean of scores by weights; 0 if these are."""
    total = max(sum(weights), 1)
    precision, recall, f1 = (
        math.fsum(weight * getattr(each, name) for each, weight in zip(scores, weights, strict=True)) / total
        for name in ("precision", "recall", "f1")
    )
    return LabelScore(precision, recall, f1, sum(each.support for each in scores))


def no_entities_reason(references: Sequence[str], config: EvaluationConfig) -> str | None:
    """Return the reason why the references cannot be scored by their entities; None if they can."""
    for line, text in enumerate(references, 1):
        for label in text.split():
            if parse_tag(label, config.entities) is None:
                tags = ", ".join(f"{prefix}-TYPE" for prefix in PREFIXES_BY_SCHEME[config.entities])
                return f'"{label}" of line {line} is no tag of an entity ({config.entities}: O, {tags})'
    if (split_line := _split_entity_line(references, config)) is not None:
        place = f"that of line {split_line} goes on with the entity before"
        problem = f"each line of the references has one tag, and {place}"
        return f"{problem}: write the tags of a sentence in one line, as by {TAGS_COMMAND}"
    if not any(extract_entities(text.split(), config.entities) for text in references):
        return "the references have no entity"
    return None


def _split_entity_line(references: Sequence[str], config: EvaluationConfig) -> int | None:
    """The first line whose tag goes on with an entity that begins in the line before, where no line has two tags, as in
    a column of CoNLL; None if there is none.
    """
    lines = [text.split() for text in references]
    if any(len(labels) > 1 for labels in lines):
        return None
    tags = [parse_tag(labels[0], config.entities) if labels else None for labels in lines]
    pairs = enumerate(pairwise(tags), 2)
    return next(
        (line for line, (first, tag) in pairs if first and tag and first[0] == "B" and continues_entity(first, tag)),
        None,
    )


def unknown_tags_warning(hypotheses: Sequence[str], config: EvaluationConfig) -> str | None:
    """Return a warning about labels of the hypotheses that are no tags, and count as O; None if all are tags."""
    labels = Counter(label for text in hypotheses for label in text.split())
    unknown = {label: count for label, count in labels.items() if parse_tag(label, config.entities) is None}
    if not unknown:
        return None
    share = format_share(sum(unknown.values()), labels.total(), "label", "is", "are")
    return f"of the hypotheses, {share} no tag of an entity ({format_names(sorted(unknown))}), and count as O"


def has_entity_tags(references: Sequence[str]) -> bool:
    """Whether all labels are tags of entities, in any scheme, and some are of one."""
    labels = {label for text in references for label in text.split()}
    return bool(labels - {"O"}) and all(
        label == "O" or ("-" in label and parse_tag(label, "conlleval")) for label in labels
    )


def entity_tags_warning(references: Sequence[str]) -> str | None:
    """A warning that tags of entities are scored as words of texts; None if the references are others."""
    if not has_entity_tags(references):
        return None
    remedy = "entity_f1 (evaluation.metrics, --metric) counts entities"
    return f"its references are tags of entities, scored as words: {remedy}"
