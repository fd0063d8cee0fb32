"""Folders of `tfm evaluate --out` whose parts contradict each other, since somebody changed them by hand.

Their checksums hold against accidents; a changed folder may have them all in order.
"""

import math
from collections.abc import Mapping, Sequence

from tfm.data.errors import DataError, format_count
from tfm.pipeline.artifacts.artifact import Manifest
from tfm.pipeline.comparison.systems import SegmentValues
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.ledger import are_same_texts, texts_fingerprint
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.scoring.segment_scores import SEGMENTS_FILE

SCORES_FILE = "scores.json"
SCORE_MISMATCH_REMEDY = "remove the folder and run `tfm evaluate` again"
SCORE_TOLERANCE = 1e-6


def check_scores_match_texts(
    manifest: Manifest,
    evaluation: Evaluation,
    segments: Segments,
    figures: Mapping[str, Sequence[SegmentValues]],
    config: EvaluationConfig,
) -> None:
    """Check that the scores in a folder are those of the texts in it.

    A score is computed again where this version of tfm would give it the same signature.

    Args:
        manifest: the manifest of the folder.
        evaluation: what its scores.json says.
        segments: the texts in it.
        figures: what its segments.jsonl says, by test set.
        config: the settings of the scores.

    Raises:
        DataError: naming the file that says something else than another.
    """
    num = len(segments.hypotheses)
    lines = {name: len(rows) for name, rows in figures.items()}
    if SEGMENTS_FILE not in manifest.files:
        raise DataError(f"is missing: {SCORE_MISMATCH_REMEDY}", file=manifest.path / SEGMENTS_FILE)
    if lines != {evaluation.name: num}:
        counts = (
            " and ".join(f"{format_count(count, 'line')} of {name!r:.80}" for name, count in lines.items())
            or "no lines"
        )
        num_texts = format_count(num, "hypothesis", "hypotheses")
        problem = f"has {counts}, but the folder has {num_texts} of {evaluation.name!r:.80}: {SCORE_MISMATCH_REMEDY}"
        raise DataError(problem, file=manifest.path / SEGMENTS_FILE)
    if evaluation.num_segments != num:
        num_texts = format_count(num, "hypothesis", "hypotheses")
        problem = (
            f"is of {evaluation.num_segments!r:.40} segments, but the folder has {num_texts}: {SCORE_MISMATCH_REMEDY}"
        )
        raise DataError(problem, file=manifest.path / SCORES_FILE)
    references = segments.references[0]
    fingerprints = {texts_fingerprint(references, segments.identifying_sources), texts_fingerprint(references)}
    if evaluation.texts is not None and not any(are_same_texts(evaluation.texts, each) for each in fingerprints):
        raise DataError(
            f"is of other references than reference.txt: {SCORE_MISMATCH_REMEDY}", file=manifest.path / SCORES_FILE
        )
    for name, score in score_texts(segments.hypotheses, segments.references, config).items():
        saved_score = evaluation.scores.get(name)
        if saved_score is None or saved_score.signature != score.signature:
            continue
        if not math.isclose(saved_score.score, score.score, rel_tol=SCORE_TOLERANCE, abs_tol=SCORE_TOLERANCE):
            difference = f"says {name} {saved_score.score:.4f}, but the texts in the folder have {score.score:.4f}"
            problem = f"{difference}: {SCORE_MISMATCH_REMEDY}"
            raise DataError(problem, file=manifest.path / SCORES_FILE)
