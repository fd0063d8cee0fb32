"""Results on test sets: scores, quality by length, samples; and the means over languages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfm.pipeline.scoring.breakdown import (
    LengthBin,
    SampleSegment,
)
from tfm.pipeline.scoring.metrics.entities.scores import EntityScores
from tfm.pipeline.scoring.metrics.error_rates import EditCounts
from tfm.pipeline.scoring.metrics.labels import LabelScores
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.scoring.metrics.score import mean_of_directions
from tfm.pipeline.scoring.segment_scores import Likelihoods, SegmentScores
from tfm.pipeline.scoring.summaries import SummaryStatistics

LIKELIHOOD_METRICS = ("perplexity", "word_perplexity", "bits_per_character")  # of test sets of different languages


@dataclass(frozen=True)
class Evaluation:
    """All that was found on one test set.

    Args:
        name: of the test set.
        num_segments: of the test set.
        scores: by metric.
        lengths: scores by length.
        length_of: the text whose length it is: "source" or "reference".
        worst: the worst segments.
        random: segments drawn at random.
        terminal_samples: a few of these, for the terminal.
        missing: metrics asked for that cannot be computed, each with the reason.
        labels: scores of each label, where labels are scored.
        entities: scores of each type, where entities are scored.
        summaries: figures of hypotheses and references, where asked for.
        errors: of error rates, by their names.
        texts: `ledger.fingerprint` of its texts, by which test sets are told apart.
        likelihoods: log probabilities of each segment, for segments.jsonl alone.
        external: numbers of external metrics of each segment, by their names, for segments.jsonl alone.
        direction: the languages that are translated from and into.
        zero_shot: whether training has no pair of these languages.
    """

    name: str
    num_segments: int
    scores: Mapping[str, Score]
    lengths: Sequence[LengthBin]
    length_of: str
    worst: Sequence[SampleSegment]
    random: Sequence[SampleSegment]
    terminal_samples: Sequence[SampleSegment]  # a few random ones, for the terminal
    missing: Mapping[str, str] = field(default_factory=dict)  # metrics asked for that cannot be computed -> why
    labels: LabelScores | None = None  # where labels are scored: each of them
    entities: EntityScores | None = None  # where entities are scored: each type of them
    summaries: Mapping[str, SummaryStatistics] = field(default_factory=dict)  # hypotheses, references: where asked for
    errors: Mapping[str, EditCounts] = field(default_factory=dict)  # of error rates, by their names
    texts: str | None = None  # `ledger.fingerprint` of its texts, by which test sets are told apart
    # of each segment, for segments.jsonl alone: log probabilities, and the numbers of external metrics by their names
    likelihoods: Likelihoods | None = field(default=None, compare=False)
    external: Mapping[str, Sequence[float]] = field(default_factory=dict, compare=False)
    direction: tuple[str, str] | None = None
    zero_shot: bool = False

    def add_to_signatures(self, addition: str, *, excluded_metrics: Collection[str] = ()) -> "Evaluation":
        """Return the same evaluation, each score's signature with an addition, for settings that change the numbers.

        Args:
            addition: key and value.
            excluded_metrics: names of scores that the setting leaves as they are.
        """

        def extend_metric_signatures(scores: Mapping[str, Score]) -> dict[str, Score]:
            return {
                name: score if name in excluded_metrics else replace(score, signature=f"{score.signature}|{addition}")
                for name, score in scores.items()
            }

        lengths = [replace(group, scores=extend_metric_signatures(group.scores)) for group in self.lengths]
        return replace(self, scores=extend_metric_signatures(self.scores), lengths=lengths)

    def add_replaced_words_to_signatures(self) -> "Evaluation":
        """Return the same evaluation, whose signatures say that unknown words were replaced by words of the source."""
        return self.add_to_signatures("unknown:source", excluded_metrics=LIKELIHOOD_METRICS)


def segment_scores(evaluation: Evaluation) -> SegmentScores:
    """Return the contents of segments.jsonl for an evaluation."""
    return SegmentScores(evaluation.name, evaluation.num_segments, evaluation.likelihoods, evaluation.external)


def mean_scores_by_group(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, Score]]:
    """The mean of each score over the test sets with known languages: over all of them and, if there are both, over
    those with and without training pairs (zero-shot). A score that a test set lacks has no mean.
    """
    directed = [each for each in evaluations if each.direction is not None]
    groups = {
        "all": directed,
        "trained": [each for each in directed if not each.zero_shot],
        "zero-shot": [each for each in directed if each.zero_shot],
    }
    means = {}
    for name, group in groups.items():
        if len(group) < 2 or (name != "all" and len(group) == len(directed)):
            continue
        shared = [each for each in group[0].scores if all(each in other.scores for other in group)]
        means[name] = {
            metric: mean_of_directions({each.name: each.scores[metric] for each in group})
            for metric in shared
            if metric not in LIKELIHOOD_METRICS
        }
    return means
