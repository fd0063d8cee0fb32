"""Evaluations as scores.json has them, written and read."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.pipeline.scoring.breakdown import (
    LengthBin,
    SampleSegment,
)
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation, mean_scores_by_group
from tfm.pipeline.scoring.metrics.entities.scores import EntityScores
from tfm.pipeline.scoring.metrics.error_rates import EditCounts
from tfm.pipeline.scoring.metrics.labels import LabelScore, LabelScores
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.scoring.summaries import SummaryStatistics


def evaluations_as_json(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """The content of scores.json: the first evaluation at the top, the rest by name under "others"."""
    first, *other_entries = [evaluation_entry(evaluation) for evaluation in evaluations]
    content = {**first, "others": {other["split"]: other for other in other_entries}}
    means = {name: _metrics_json(scores) for name, scores in mean_scores_by_group(evaluations).items()}
    return content if not means else {**content, "means": means}


def evaluation_entry(evaluation: Evaluation) -> dict[str, Any]:
    """One evaluation as scores.json has it."""
    lengths = [
        {
            "shortest": group.shortest,
            "longest": group.longest,
            "num_segments": group.num_segments,
            "metrics": _metrics_json(group.scores),
            **({} if group.unit == "words" else {"unit": group.unit}),
        }
        for group in evaluation.lengths
    ]
    languages = (
        {}
        if evaluation.direction is None
        else {"direction": [*evaluation.direction], "zero_shot": evaluation.zero_shot}
    )
    return {
        "split": evaluation.name,
        **languages,
        "texts": evaluation.texts,
        "metrics": _metrics_json(evaluation.scores),
        "missing": dict(evaluation.missing),
        "num_segments": evaluation.num_segments,
        "labels": None if evaluation.labels is None else asdict(evaluation.labels),
        **({} if evaluation.entities is None else {"entities": asdict(evaluation.entities)}),
        **(
            {"summaries": {side: asdict(each) for side, each in evaluation.summaries.items()}}
            if evaluation.summaries
            else {}
        ),
        **({"errors": {name: asdict(each) for name, each in evaluation.errors.items()}} if evaluation.errors else {}),
        "length_of": evaluation.length_of,
        "lengths": lengths,
        "samples": {
            "worst": [_sample_json(sample) for sample in evaluation.worst],
            "random": [_sample_json(sample) for sample in evaluation.random],
            "shown": [_sample_json(sample) for sample in evaluation.terminal_samples],
        },
    }


def evaluations_from_json(content: Mapping[str, Any]) -> list[Evaluation]:
    """The evaluations that `evaluations_as_json` wrote."""
    return [_parse_evaluation(entry) for entry in (content, *content["others"].values())]


@contextmanager
def raise_scores_file_errors(file: Path, *, remedy: str) -> Iterator[None]:
    """Turn errors in reading and using a scores.json that tfm did not write into a DataError while the body runs.

    remedy: how it is made again, in words.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, FileNotFoundError) as error:
        raise DataError(f"has no scores made by tfm; remove the folder and {remedy}", file=file) from error


def _parse_evaluation(entry: Mapping[str, Any]) -> Evaluation:
    samples: dict[str, Any] = {
        kind: [
            SampleSegment(**{**sample, "references": tuple(sample["references"])}) for sample in entry["samples"][kind]
        ]
        for kind in ("worst", "random", "shown")
    }
    samples["terminal_samples"] = samples.pop("shown")
    lengths = [
        LengthBin(
            group["shortest"],
            group["longest"],
            group["num_segments"],
            _parse_scores(group["metrics"]),
            group.get("unit", "words"),
        )
        for group in entry["lengths"]
    ]
    return Evaluation(
        name=entry["split"],
        num_segments=entry["num_segments"],
        scores=_parse_scores(entry["metrics"]),
        lengths=lengths,
        length_of=entry["length_of"],
        missing=entry["missing"],
        labels=_parse_labels(entry.get("labels")),
        entities=_parse_entities(entry.get("entities")),
        summaries={side: _parse_summary(each) for side, each in entry.get("summaries", {}).items()},
        errors={name: _parse_edit_counts(each) for name, each in entry.get("errors", {}).items()},
        texts=entry.get("texts"),  # which scores.json of former times do not have
        direction=(entry["direction"][0], entry["direction"][1]) if "direction" in entry else None,
        zero_shot=entry.get("zero_shot", False),
        **samples,
    )


def _parse_labels(entry: Mapping[str, Any] | None) -> LabelScores | None:
    """The scores by label, which scores.json of former times do not have."""
    if entry is None:
        return None
    by_label = {name: LabelScore(**each) for name, each in entry["by_label"].items()}
    return LabelScores(by_label, entry["confusion"])


def _parse_entities(entry: Mapping[str, Any] | None) -> EntityScores | None:
    """The scores of entities, where there are some."""
    if entry is None:
        return None
    parts = ({name: LabelScore(**each) for name, each in entry[part].items()} for part in ("by_type", "averages"))
    return EntityScores(*parts)


def _parse_summary(entry: Mapping[str, Any]) -> SummaryStatistics:
    """The figures of summaries of one side; JSON has orders as texts."""
    novelty = {int(order): None if share is None else float(share) for order, share in entry["novelty"].items()}
    compression = entry["compression"]
    return SummaryStatistics(float(entry["length"]), None if compression is None else float(compression), novelty)


def _parse_edit_counts(entry: Mapping[str, Any]) -> EditCounts:
    """The edits of an error rate. Raises TypeError or ValueError if they are none."""
    confusions = tuple(
        (str(reference), str(hypothesis), int(count)) for reference, hypothesis, count in entry["confusions"]
    )
    counts = {name: int(entry[name]) for name in ("units", "insertions", "deletions", "substitutions")}
    return EditCounts(str(entry["unit"]), **counts, confusions=confusions)


def _sample_json(sample: SampleSegment) -> dict[str, Any]:
    return {**asdict(sample), "references": list(sample.references)}


def _metrics_json(scores: Mapping[str, Score]) -> dict[str, dict[str, float | str | None]]:
    """Numbers with signatures, and an F-score's recall and precision. JSON knows no infinity: it is written as null."""
    entries: dict[str, dict[str, float | str | None]] = {}
    for name, score in scores.items():
        entries[name] = {"score": score.score if math.isfinite(score.score) else None, "signature": score.signature}
        if score.recall is not None:
            entries[name] |= {"recall": score.recall, "precision": score.precision}
    return entries


def _parse_scores(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Score]:
    return {name: _parse_score(entry) for name, entry in metrics.items()}


def _parse_score(entry: Mapping[str, Any]) -> Score:
    """A score of a metric. Raises TypeError or ValueError if it is none."""
    if not isinstance(entry["signature"], str):
        raise TypeError("a signature is a text")
    # recall and precision: scores.json of former times do not have them
    score, recall, precision = (_parse_number(entry.get(key)) for key in ("score", "recall", "precision"))
    return Score(math.inf if score is None else score, entry["signature"], recall, precision)


def _parse_number(value: object) -> float | None:
    if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
        raise TypeError("a score is a finite number, or null")
    return value
