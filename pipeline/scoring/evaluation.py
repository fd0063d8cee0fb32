"""The evaluation of one set of hypotheses: scores, quality by length, samples; and its form in scores.json."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tfm.data.dataset.directions import Direction, rows_of
from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.breakdown import (
    LengthBin,
    Sample,
    by_length,
    random_samples,
    scores_labels,
    worst_samples,
)
from tfm.pipeline.scoring.ledger import fingerprint
from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer
from tfm.pipeline.scoring.metrics.labels import LabelScore, LabelScores, label_scores
from tfm.pipeline.scoring.metrics.left_out import left_out
from tfm.pipeline.scoring.metrics.registry import METRICS, Score, looks_tokenized, score_texts
from tfm.pipeline.scoring.segment_scores import Likelihoods, SegmentScores

NUM_SHOWN = 5  # samples printed at the end of an evaluation


@dataclass(frozen=True)
class Segments:
    """A test set with its hypotheses, line by line; without sources where only files to compare are given.

    images: of a test set of images, where they are at hand. sources_are_names: of images, and so no texts.
    """

    name: str
    sources: Sequence[str] | None
    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    directions: Sequence[Direction] = ()  # the languages of its rows, of a dataset that says them
    images: RowImages | None = None
    sources_are_names: bool = False

    @property
    def source_texts(self) -> Sequence[str] | None:
        """The sources, where they are texts."""
        return None if self.sources_are_names else self.sources

    def by_direction(self) -> list["Segments"]:
        """The segments of each direction, called NAME.eng-deu; none where there are not several."""
        pairs = {each.name: each.pair for each in self.directions}
        found = rows_of(self.directions)
        return [self._of(rows.tolist(), pairs[name]) for name, rows in found.items()] if len(found) > 1 else []

    def _of(self, rows: Sequence[int], pair: tuple[str, str]) -> "Segments":
        direction = Direction(*pair, len(rows))
        return Segments(
            f"{self.name}.{direction.name}",
            None if self.sources is None else [self.sources[row] for row in rows],
            [self.hypotheses[row] for row in rows],
            [[column[row] for row in rows] for column in self.references],
            (direction,),
        )


@dataclass(frozen=True)
class Evaluation:
    """All that was found on one test set. `length_of` says what `lengths` measures: "source" or "reference".

    direction: the languages that are translated from and into; zero_shot: which training has no pair of.
    """

    name: str
    num_segments: int
    scores: Mapping[str, Score]
    lengths: Sequence[LengthBin]
    length_of: str
    worst: Sequence[Sample]
    random: Sequence[Sample]
    shown: Sequence[Sample]  # a few random ones, for the terminal
    missing: Mapping[str, str] = field(default_factory=dict)  # metrics asked for that cannot be computed -> why
    labels: LabelScores | None = None  # where labels are scored: each of them
    texts: str | None = None  # `ledger.fingerprint` of its texts, by which test sets are told apart
    # of each segment, for segments.jsonl alone: log probabilities, and the numbers of external metrics by their names
    likelihoods: Likelihoods | None = field(default=None, compare=False)
    external: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False)
    direction: tuple[str, str] | None = None
    zero_shot: bool = False

    def signed(self, addition: str) -> "Evaluation":
        """The same, each score's signature with an addition: what else changes the numbers."""
        lengths = [replace(group, scores=_signed(group.scores, addition)) for group in self.lengths]
        return replace(self, scores=_signed(self.scores, addition), lengths=lengths)

    def as_json(self) -> dict[str, Any]:
        """The evaluation as scores.json has it."""
        lengths = [
            {
                "shortest": group.shortest,
                "longest": group.longest,
                "num_segments": group.num_segments,
                "metrics": _metrics_json(group.scores),
            }
            for group in self.lengths
        ]
        languages = {} if self.direction is None else {"direction": [*self.direction], "zero_shot": self.zero_shot}
        return {
            "split": self.name,
            **languages,
            "texts": self.texts,
            "metrics": _metrics_json(self.scores),
            "missing": dict(self.missing),
            "num_segments": self.num_segments,
            "labels": None if self.labels is None else asdict(self.labels),
            "length_of": self.length_of,
            "lengths": lengths,
            "samples": {
                "worst": [_sample_json(sample) for sample in self.worst],
                "random": [_sample_json(sample) for sample in self.random],
                "shown": [_sample_json(sample) for sample in self.shown],
            },
        }


def assess(
    segments: Segments,
    config: EvaluationConfig,
    *,
    seed: int,
    reporter: Reporter,
    extra: Mapping[str, Score] | None = None,
    missing: Mapping[str, str] | None = None,
    likelihoods: Likelihoods | None = None,
    external: Mapping[str, Sequence[float]] | None = None,
) -> Evaluation:
    """Scores, quality by length and samples of `segments`. `extra` are scores that texts alone do not give."""
    sources, hypotheses, references = segments.sources, segments.hypotheses, segments.references
    config = _with_tokenizer(config, segments, reporter)
    without = left_out(hypotheses, references, config)
    if config.bleu_tokenize != "none" and looks_tokenized(hypotheses):
        reporter.warn(
            f'{segments.name}: 100 or more hypotheses end in " .", as tokenised text does; '
            "detokenise them, or the scores are not comparable with others"
        )
    names = [name for name in config.metrics if name in METRICS and name not in without]
    with reporter.bar(f"scoring {segments.name}", len(names) + 2, "parts") as bar:
        scores = score_texts(hypotheses, references, config, lambda name: bar.advance(1, name))
        texts = segments.source_texts
        length_of = "reference" if texts is None else "source"
        lengths = by_length(references[0] if texts is None else texts, hypotheses, references, config, without)
        bar.advance(1, "lengths")
        worst = worst_samples(sources, hypotheses, references, config.samples, config=config)
        bar.advance(1, "samples")
    return Evaluation(
        name=segments.name,
        num_segments=len(hypotheses),
        scores={**scores, **(extra or {})},
        lengths=lengths,
        length_of=length_of,
        worst=worst,
        random=random_samples(sources, hypotheses, references, config.samples, seed, config=config),
        shown=random_samples(sources, hypotheses, references, NUM_SHOWN, seed, config=config),
        missing={**without, **(missing or {})},
        labels=label_scores(hypotheses, references, config) if scores_labels(config) else None,
        texts=fingerprint(references[0]),
        likelihoods=likelihoods,
        external=external or {},
    )


def _with_tokenizer(config: EvaluationConfig, segments: Segments, reporter: Reporter) -> EvaluationConfig:
    """The config with BLEU's tokenizer; where one was chosen that is not the usual one, it says so."""
    if config.bleu_tokenize != "auto":
        return config
    choice = choose_tokenizer(segments.references)
    if choice.name != "13a" and "bleu" in config.metrics:
        reporter.line(f"{segments.name}: BLEU with tokenizer {choice.name}: {choice.why}")
    return config.model_copy(update={"bleu_tokenize": choice.name})


def by_segment(evaluation: Evaluation) -> SegmentScores:
    """What segments.jsonl has of an evaluation."""
    return SegmentScores(evaluation.name, evaluation.num_segments, evaluation.likelihoods, evaluation.external)


def as_json(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """The content of scores.json: the first evaluation at the top, the rest by name under "others"."""
    first, *others = [evaluation.as_json() for evaluation in evaluations]
    content = {**first, "others": {other["split"]: other for other in others}}
    means = {name: _metrics_json(scores) for name, scores in means_of(evaluations).items()}
    return content if not means else {**content, "means": means}


NOT_AVERAGED = ("perplexity", "word_perplexity", "bits_per_character")  # of test sets of different languages


def means_of(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, Score]]:
    """The mean of each score over the test sets whose languages are known: over all, those that training has pairs of,
    and the others (zero-shot), where there are several. A score that a test set lacks has no mean."""
    directed = [each for each in evaluations if each.direction is not None]
    groups = {
        "all": directed,
        "trained": [each for each in directed if not each.zero_shot],
        "zero-shot": [each for each in directed if each.zero_shot],
    }
    found = {}
    for name, group in groups.items():
        if len(group) < 2 or (name != "all" and len(group) == len(directed)):
            continue
        shared = [each for each in group[0].scores if all(each in other.scores for other in group)]
        found[name] = {
            metric: Score(
                math.fsum(each.scores[metric].score for each in group) / len(group), f"mean-of:{len(group)}-test-sets"
            )
            for metric in shared
            if metric not in NOT_AVERAGED
        }
    return found


def from_json(content: Mapping[str, Any]) -> list[Evaluation]:
    """The evaluations that `as_json` wrote."""
    return [_evaluation(entry) for entry in (content, *content["others"].values())]


@contextmanager
def reading_scores(file: Path, *, again: str) -> Iterator[None]:
    """Within, a scores.json is read and used: what comes up where it is none of ours is a DataError.

    again: how it is made anew, in words.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"has no scores made by tfm; remove the folder and {again}", file=file) from error


def _evaluation(entry: Mapping[str, Any]) -> Evaluation:
    samples: dict[str, Any] = {
        kind: [Sample(**{**sample, "references": tuple(sample["references"])}) for sample in entry["samples"][kind]]
        for kind in ("worst", "random", "shown")
    }
    lengths = [
        LengthBin(group["shortest"], group["longest"], group["num_segments"], _scores(group["metrics"]))
        for group in entry["lengths"]
    ]
    return Evaluation(
        name=entry["split"],
        num_segments=entry["num_segments"],
        scores=_scores(entry["metrics"]),
        lengths=lengths,
        length_of=entry["length_of"],
        missing=entry["missing"],
        labels=_labels(entry.get("labels")),
        texts=entry.get("texts"),  # which scores.json of former times do not have
        direction=(entry["direction"][0], entry["direction"][1]) if "direction" in entry else None,
        zero_shot=entry.get("zero_shot", False),
        **samples,
    )


def _signed(scores: Mapping[str, Score], addition: str) -> dict[str, Score]:
    return {name: replace(score, signature=f"{score.signature}|{addition}") for name, score in scores.items()}


def _labels(entry: Mapping[str, Any] | None) -> LabelScores | None:
    """The scores by label, which scores.json of former times do not have."""
    if entry is None:
        return None
    by_label = {name: LabelScore(**each) for name, each in entry["by_label"].items()}
    return LabelScores(by_label, entry["confusion"])


def _sample_json(sample: Sample) -> dict[str, Any]:
    return {**asdict(sample), "references": list(sample.references)}


def _metrics_json(scores: Mapping[str, Score]) -> dict[str, dict[str, float | str | None]]:
    """Numbers with signatures, and an F-score's recall and precision. JSON knows no infinity: it is written as null."""
    found: dict[str, dict[str, float | str | None]] = {}
    for name, score in scores.items():
        found[name] = {"score": score.score if math.isfinite(score.score) else None, "signature": score.signature}
        if score.recall is not None:
            found[name] |= {"recall": score.recall, "precision": score.precision}
    return found


def _scores(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Score]:
    return {
        name: Score(
            math.inf if entry["score"] is None else entry["score"],
            entry["signature"],
            entry.get("recall"),  # which scores.json of former times do not have
            entry.get("precision"),
        )
        for name, entry in metrics.items()
    }
