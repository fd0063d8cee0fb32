"""Warnings about the texts of an evaluation, of a model's run and of files alike: scores of them mislead."""

from collections.abc import Mapping, Sequence

from tfm.data.errors import format_names, format_share
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.breakdown import has_label_metrics
from tfm.pipeline.scoring.evaluation.line_pairs import case_warning, misplaced_lines_warning
from tfm.pipeline.scoring.evaluation.written_pieces import hypothesis_form_warnings, unseen_character_warnings
from tfm.pipeline.scoring.metrics.entities.scores import ENTITY_F1, entity_tags_warning, unknown_tags_warning
from tfm.pipeline.scoring.metrics.inapplicable_metrics import word_error_rate_warning
from tfm.pipeline.scoring.metrics.labels import label_count_warning, label_warnings, unknown_labels_warning
from tfm.pipeline.scoring.metrics.references import num_blank_segments
from tfm.pipeline.scoring.metrics.registry import looks_tokenized


def reference_warnings(references: Sequence[Sequence[str]], config: EvaluationConfig) -> list[str]:
    """Warnings about references: labels that measure little or are scored as words, blank texts.

    Args:
        references: one or more lists.
        config: `metrics` and `labels` are read.
    """
    if has_label_metrics(config):
        return [*label_warnings(references[0], config), *_further_references_warnings(references, config)]
    warnings = []
    if count := num_blank_segments(references):
        blank = format_share(count, len(references[0]), "segment", "has", "have")
        problem = f"{blank} a blank reference, of which only a blank output is right"
        warnings.append(f"{problem}; remove those whose reference is missing")
    for lines in references:
        warnings += unseen_character_warnings(lines, "references")
    further = (entity_tags_warning(references[0]), word_error_rate_warning(references, config))
    return [*warnings, *(warning for warning in further if warning is not None)]


def hypothesis_warnings(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    skip_reasons: Mapping[str, str],
) -> list[str]:
    """Warnings about hypotheses: they are tokenised, blank, hold something else than texts, or labels that are no tags.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long.
        config: `bleu_tokenize`, `metrics`, `labels` and `entities` are read.
        skip_reasons: the metrics that are not computed.
    """
    warnings = []
    if config.bleu_tokenize != "none" and looks_tokenized(hypotheses):
        warnings.append(
            '100 or more hypotheses end in " .", as tokenised text does; '
            "detokenise them, or the scores are not comparable with others"
        )
    columns = zip(hypotheses, *references, strict=True)
    missing = sum(not given.strip() and any(map(str.strip, texts)) for given, *texts in columns)
    if missing:
        are = "is blank, where the reference has" if missing == 1 else "are blank, where references have"
        warnings.append(f"{missing:,} of {len(hypotheses):,} hypotheses {are} text: if a system failed, run it again")
    warnings += hypothesis_form_warnings(hypotheses, references[0])
    if not has_label_metrics(config):
        pair_warnings = (
            misplaced_lines_warning(hypotheses, references[0]),
            case_warning(hypotheses, references[0], config),
        )
        warnings += [warning for warning in pair_warnings if warning is not None]
    if ENTITY_F1 in config.metrics and ENTITY_F1 not in skip_reasons:
        tags_warning = unknown_tags_warning(hypotheses, config)
        warnings += [] if tags_warning is None else [tags_warning]
    has_labels = not {"accuracy", "macro_f1"}.isdisjoint(config.metrics)
    has_tags = ENTITY_F1 in config.metrics and ENTITY_F1 not in skip_reasons
    label_problems = (
        label_count_warning(hypotheses, references[0], config)
        if has_tags or (has_labels and config.labels != "line")
        else None,
        unknown_labels_warning(hypotheses, references[0], config) if has_labels else None,
    )
    return [*warnings, *(problem for problem in label_problems if problem is not None)]


def _further_references_warnings(references: Sequence[Sequence[str]], config: EvaluationConfig) -> list[str]:
    """A warning that labels are held against the first reference, where there are several."""
    names = [name for name in config.metrics if name in ("accuracy", "macro_f1", ENTITY_F1)]
    if len(references) < 2:
        return []
    read = "reads" if len(names) == 1 else "read"
    return [f"{format_names(names)} {read} the first of {len(references)} references alone: score each by itself"]
