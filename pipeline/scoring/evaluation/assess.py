"""The evaluation of one set of hypotheses: scores, quality by length, samples."""

from collections.abc import Mapping, Sequence

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.breakdown import (
    LengthBin,
    SampleSegment,
    breakdown_by_length,
    has_label_metrics,
    random_samples,
    worst_samples,
)
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.evaluation.text_warnings import hypothesis_warnings, reference_warnings
from tfm.pipeline.scoring.ledger import texts_fingerprint
from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer
from tfm.pipeline.scoring.metrics.entities.scores import ENTITY_F1, entity_scores, has_entity_tags
from tfm.pipeline.scoring.metrics.error_rates import ERROR_RATES, count_errors
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.labels import label_scores
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, Score, score_texts
from tfm.pipeline.scoring.segment_scores import Likelihoods
from tfm.pipeline.scoring.summaries import (
    NO_SOURCES_REASON,
    SUMMARY_METRICS,
    SummaryStatistics,
    summary_scores,
    summary_statistics,
)

NUM_SAMPLES = 5  # samples printed at the end of an evaluation


def evaluate_segments(
    segments: Segments,
    config: EvaluationConfig,
    *,
    seed: int,
    reporter: Reporter,
    extra: Mapping[str, Score] | None = None,
    missing_reasons: Mapping[str, str] | None = None,
    likelihoods: Likelihoods | None = None,
    external_numbers: Mapping[str, Sequence[float]] | None = None,
    with_details: bool = True,
) -> Evaluation:
    """Compute scores, quality by length and samples of a test set.

    Args:
        segments: the texts of the test set.
        config: settings of the evaluation.
        seed: of the samples.
        reporter: shows warnings.
        extra: scores that texts alone do not give, by name.
        missing_reasons: reasons why other scores are missing, by name.
        likelihoods: probabilities of the references of each segment.
        external_numbers: numbers of external metrics, by name.
        with_details: whether scores by length and samples are found, which a report and scores.json have; they take
            longer than BLEU does.
    """
    sources, hypotheses, references = segments.sources, segments.hypotheses, segments.references
    config = _choose_bleu_tokenizer(config, segments, reporter)
    skip_reasons = inapplicable_metrics(hypotheses, references, config)
    warnings = hypothesis_warnings(hypotheses, references, config, skip_reasons)
    for warning in (*reference_warnings(references, config), *warnings):
        reporter.warn(f"{segments.name}: {warning}")
    if has_label_metrics(config) and ENTITY_F1 not in config.metrics and has_entity_tags(references[0]):
        reporter.line(f"{segments.name}: its labels are tags of entities, which entity_f1 in evaluation.metrics scores")
    names = [name for name in config.metrics if name in METRIC_FUNCTIONS and name not in skip_reasons]
    texts, lengths, worst = segments.source_texts, list[LengthBin](), list[SampleSegment]()
    with reporter.bar(f"scoring {segments.name}", len(names) + 2 * with_details, "parts") as bar:
        scores = score_texts(hypotheses, references, config, lambda name: bar.advance(1, name), skip_reasons)
        if with_details:
            length_texts = references[0] if texts is None else texts
            lengths = breakdown_by_length(length_texts, hypotheses, references, config, skip_reasons)
            bar.advance(1, "lengths")
            worst = worst_samples(sources, hypotheses, references, config.samples, config=config)
            bar.advance(1, "samples")
    summaries, of_summaries, without_sources = summary_statistics_and_scores(segments, config)
    return Evaluation(
        name=segments.name,
        num_segments=len(hypotheses),
        scores={**scores, **of_summaries, **(extra or {})},
        lengths=lengths,
        length_of="reference" if texts is None else "source",
        worst=worst,
        random=random_samples(sources, hypotheses, references, config.samples * with_details, seed, config=config),
        terminal_samples=random_samples(sources, hypotheses, references, NUM_SAMPLES, seed, config=config),
        missing={**skip_reasons, **without_sources, **(missing_reasons or {})},
        labels=label_scores(hypotheses, references, config) if has_label_metrics(config) else None,
        entities=entity_scores(hypotheses, references[0], config) if ENTITY_F1 in names else None,
        summaries=summaries,
        errors={name: count_errors(name, hypotheses, references, config) for name in names if name in ERROR_RATES},
        texts=texts_fingerprint(references[0], segments.identifying_sources),
        likelihoods=likelihoods,
        external=external_numbers or {},
    )


def summary_statistics_and_scores(
    segments: Segments, config: EvaluationConfig
) -> tuple[dict[str, SummaryStatistics], dict[str, Score], dict[str, str]]:
    """Compute the figures of summaries of both sides, as scores those that are asked for.

    Args:
        segments: the texts.
        config: `metrics` is read.

    Returns:
        Figures by side, scores by metric, and the reasons why other metrics that are asked for are missing.
    """
    metric_names, sources = [name for name in config.metrics if name in SUMMARY_METRICS], segments.source_texts
    if not metric_names:
        return {}, {}, {}
    if sources is None:
        return {}, {}, dict.fromkeys(metric_names, NO_SOURCES_REASON)
    sides = {"hypotheses": segments.hypotheses, "references": segments.references[0]}
    statistics = {side: summary_statistics(sources, texts) for side, texts in sides.items()}
    return statistics, *summary_scores(metric_names, statistics["hypotheses"])


def _choose_bleu_tokenizer(config: EvaluationConfig, segments: Segments, reporter: Reporter) -> EvaluationConfig:
    """The config with BLEU's tokenizer; shows one that was chosen and is not the usual one."""
    if config.bleu_tokenize != "auto":
        return config
    choice = choose_tokenizer(segments.references)
    if choice.name != "13a" and "bleu" in config.metrics:
        reporter.line(f"{segments.name}: BLEU with tokenizer {choice.name}: {choice.reason}")
    return config.model_copy(update={"bleu_tokenize": choice.name})
