"""Scores of one system's output: of a file of hypotheses, computed; of a folder of `tfm evaluate --out`, read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.artifact import Input, Manifest, open_artifact, read_artifact
from tfm.pipeline.comparison.score_checks import check_scores_match_texts
from tfm.pipeline.comparison.systems import SegmentValues, System, read_test_scores
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_given_files, read_texts_of_scores
from tfm.pipeline.scoring.evaluation.assess import summary_statistics_and_scores
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json, raise_scores_file_errors
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.evaluation.text_warnings import hypothesis_warnings, reference_warnings
from tfm.pipeline.scoring.ledger import texts_fingerprint
from tfm.pipeline.scoring.metrics.external.scores import external_scores
from tfm.pipeline.scoring.metrics.inapplicable_metrics import coverage_reasons, too_long_reasons
from tfm.pipeline.scoring.metrics.registry import (
    METRIC_FUNCTIONS,
    SACREBLEU_METRICS,
    Score,
    count_segments,
    score_texts,
)

PLACEHOLDER_SETTINGS: Mapping[str, str] = {"model.architecture": "–", "model.task": ""}
"""Settings of outputs of unknown origin: no column shows them."""


@dataclass(frozen=True)
class SystemOutput:
    """The output of a system on a test set: its name, and a file of hypotheses or a folder of scores."""

    name: str
    path: Path

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()


def score_files(
    outputs: Sequence[SystemOutput],
    source: Path | None,
    references: Sequence[Path],
    evaluation: EvaluationConfig,
    reporter: Reporter,
) -> list[tuple[RunSummary, System]]:
    """Each output scored against the references; a folder's hypotheses are those that it holds."""
    text_files = {} if source is None else {"source": source}
    text_files |= {f"reference {number}": file for number, file in enumerate(references, 1)}
    files = {each.name: _hypotheses_file(each) for each in outputs}
    lines = read_given_files({**{f"output {name}": file for name, file in files.items()}, **text_files}, reporter)
    columns = [lines[name] for name in text_files if name.startswith("reference ")]
    # as signatures call a text
    texts_signature = "|".join(
        f"{name.removesuffix(' 1').replace(' ', '_')}:{Input.from_file(file).fingerprint[:12]}"
        for name, file in text_files.items()
    )
    hypotheses = {each.name: lines[f"output {each.name}"] for each in outputs}
    for warning in reference_warnings(columns, evaluation):
        reporter.warn(f"{references[0]}: {warning}")
    coverage = coverage_reasons(columns, evaluation)
    skip_reasons = {
        name: {**coverage, **too_long_reasons(given_texts, columns, evaluation)}
        for name, given_texts in hypotheses.items()
    }
    for name, given_texts in hypotheses.items():
        for warning in hypothesis_warnings(given_texts, columns, evaluation, skip_reasons[name]):
            reporter.warn(f"{name}: {warning}")
    metrics = [
        metric
        for metric in SACREBLEU_METRICS
        if metric in evaluation.metrics and not any(metric in reasons for reasons in skip_reasons.values())
    ]
    results = []
    with reporter.bar("scoring", len(metrics) + len(outputs), "parts") as bar:
        count_segments(
            list(hypotheses.values()),
            columns,
            evaluation.model_copy(update={"metrics": metrics}),
            lambda metric: bar.advance(1, metric),
        )
        for output in outputs:
            segments = Segments(references[0].name, lines.get("source"), hypotheses[output.name], columns)
            fingerprint = Input.from_file(files[output.name]).fingerprint
            manifest = _placeholder_manifest(output.path, fingerprint)
            results.append(
                _score_output(
                    output.name, segments, manifest, texts_signature, evaluation, skip_reasons[output.name], reporter
                )
            )
            bar.advance(1, output.name)
    return results


def _score_output(
    name: str,
    segments: Segments,
    manifest: Manifest,
    texts: str,
    evaluation: EvaluationConfig,
    reasons: Mapping[str, str],
    reporter: Reporter,
) -> tuple[RunSummary, System]:
    """An output's scores; `texts` is what signatures say of the files, `reasons` those of metrics not to compute."""
    columns = segments.references
    skip_reasons: dict[str, str] = {metric: reasons[metric] for metric in evaluation.metrics if metric in reasons}
    scores = score_texts(segments.hypotheses, columns, evaluation, skip_reasons=skip_reasons)
    _, summary_scores, summary_reasons = summary_statistics_and_scores(segments, evaluation)
    notes = [f"{metric} is not computed: {reason}" for metric, reason in {**skip_reasons, **summary_reasons}.items()]
    external = external_scores(evaluation.external, name, segments.sources, segments.hypotheses, columns, reporter)
    notes += [f"{metric} {reason}" for metric, reason in external.missing.items()]
    figures = {
        f"test.{metric}": replace(score, signature=f"{score.signature}|{texts}")
        for metric, score in {**scores, **summary_scores, **external.scores}.items()
    }
    segment_values = [
        SegmentValues(None, None, None, {metric: float(numbers[row]) for metric, numbers in external.numbers.items()})
        for row in range(len(segments.hypotheses) if external.numbers else 0)
    ]
    run = RunSummary(name, manifest, dict(PLACEHOLDER_SETTINGS), figures, notes=notes)
    test_fingerprint = texts_fingerprint(columns[0], segments.identifying_sources)
    test = segments.name
    return run, System(
        name, {test: segments}, {test: segment_values} if segment_values else {}, test, test_fingerprint, evaluation
    )


def _hypotheses_file(output: SystemOutput) -> Path:
    """The file of an output's hypotheses, of a folder of scores verified."""
    if not output.is_folder:
        return output.path
    manifest = open_artifact(output.path, "evaluate")
    if "hypotheses.txt" not in manifest.files:
        raise DataError("has no hypotheses.txt: remove the folder and run `tfm evaluate` again", file=output.path)
    return manifest.folder / "hypotheses.txt"


def read_scored_folder(output: SystemOutput) -> tuple[RunSummary, System]:
    """Read a folder of `tfm evaluate --out`: its scores, and the texts that they are of."""
    manifest, content = read_artifact(output.path, _read_scores, "evaluate")
    fingerprints, figures, (first, *_), texts = content
    name = first.name
    texts_signature = "|".join(
        f"{label.removesuffix('_1')}:{file.fingerprint[:12]}"
        for label, file in sorted(
            manifest.inputs.items(), key=lambda entry: (entry[0] != "source", len(entry[0]), entry[0])
        )
        if label == "source" or label.startswith("reference")
    )
    scores = {
        f"test.{n}": replace(score, signature=f"{score.signature}|{texts_signature}")
        for n, score in first.scores.items()
    }
    segments = Segments(name, texts.get("source"), texts["hypotheses"], [texts[n] for n in texts if "reference" in n])
    try:
        evaluation = EvaluationConfig.model_validate(manifest.config.get("evaluation", {}))
    except ValidationError:
        problem = "another version of tfm made it: remove the folder and run `tfm evaluate` again"
        raise DataError(problem, file=output.path) from None
    check_scores_match_texts(manifest, first, segments, figures, evaluation)
    run = RunSummary(output.name, manifest, dict(PLACEHOLDER_SETTINGS), scores)
    return run, System(output.name, {name: segments}, figures, name, fingerprints.get(name), evaluation)


def ignore_unshared_sources(outputs: Sequence[tuple[RunSummary, System]]) -> list[tuple[RunSummary, System]]:
    """The same outputs; where some have no source, the signatures of metrics that read none are without it.

    Args:
        outputs: of folders of `tfm evaluate --out`, of which each may have been given the source or not.
    """
    sources = [system.texts is not None and system.texts.sources is not None for _, system in outputs]
    if all(sources):
        return list(outputs)

    def remove_source(figure: str, score: Score) -> Score:
        if figure.removeprefix("test.") not in METRIC_FUNCTIONS:
            return score
        parts = [part for part in score.signature.split("|") if not part.startswith("source:")]
        return replace(score, signature="|".join(parts))

    return [
        (replace(run, figures={name: remove_source(name, score) for name, score in run.figures.items()}), system)
        for run, system in outputs
    ]


def _read_scores(manifest: Manifest) -> Any:
    path = manifest.path / "scores.json"
    with raise_scores_file_errors(path, remedy="score again"):
        evaluations = evaluations_from_json(read_json(manifest.folder / "scores.json", displayed_path=path))
    return manifest, (*read_test_scores(manifest), evaluations, read_texts_of_scores(manifest))


def _placeholder_manifest(path: Path, fingerprint_: str) -> Manifest:
    """A manifest in place of that of the model, for an output of unknown origin."""
    return Manifest(path, path.parent, "hypotheses", fingerprint_, [], {}, {}, {}, None, {}, {})
