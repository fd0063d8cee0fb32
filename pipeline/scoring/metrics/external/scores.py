"""External metrics: a command reads segments as JSON lines on stdin and prints one number for each on stdout.

A metric may therefore live in an environment of its own, whose packages need not go together with those of tfm.
"""

import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.pipeline.artifacts.canonical_json import sha256_of_json
from tfm.pipeline.external_metric import ExternalMetric
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.metrics.external.command import ExternalMetricError, run_command
from tfm.pipeline.scoring.metrics.references import num_references_signature
from tfm.pipeline.scoring.metrics.score import LOWER_IS_BETTER_SIGNATURE, Score

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.manifest import Input

MAX_COMMAND_LENGTH = 200  # characters of a command in a signature
ELLIPSIS = "…"  # what a longer one ends in
MAX_FILES = 1000  # files of a folder that a command names, which are inputs of its scores


@dataclass
class ExternalScores:
    """Results of external metrics on a test set.

    Args:
        scores: by name of the metric.
        missing: by name the reason why there is none.
        numbers: by name those of each segment (n,).
    """

    scores: dict[str, Score] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, Sequence[float]] = field(default_factory=dict)


def external_scores(
    metrics: Sequence[ExternalMetric],
    test: str,
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    reporter: Reporter,
) -> ExternalScores:
    """Compute the mean of each metric's numbers over the segments of a test set.

    A metric that fails costs itself alone, and a warning says why.

    Args:
        metrics: commands, with their names.
        test: the name of the test set.
        sources: one for each segment, if they are known.
        hypotheses: one for each segment.
        references: one or more lists as long.
        reporter: shows progress, and warnings.
    """
    results = ExternalScores()
    for metric in metrics:
        try:
            with reporter.bar(metric.name, len(hypotheses), "segments") as bar:
                numbers = run_command(metric, sources, hypotheses, references, bar.advance)
            score = Score(_mean_of_numbers(numbers), external_signature(metric, references))
        except ExternalMetricError as failure:
            reporter.warn(f"{test}: {metric.name} {failure}")
            results.missing[metric.name] = str(failure)
        else:
            results.scores[metric.name], results.numbers[metric.name] = score, numbers
    return results


def external_signature(metric: ExternalMetric, references: Sequence[Sequence[str]]) -> str:
    """Return the signature of a metric, by which it can be computed again.

    The signature has the command, and a hash over the command and the contents of the files that it names.
    """
    text = " ".join(shlex.join(metric.command).split()).replace("|", "¦")
    text = text if len(text) <= MAX_COMMAND_LENGTH else text[: MAX_COMMAND_LENGTH - 1] + ELLIPSIS
    files = {label: each.fingerprint for label, each in command_files(metric).items()}
    digest = sha256_of_json([list(metric.command), files])[:12]
    direction = "" if metric.higher_is_better else f"|{LOWER_IS_BETTER_SIGNATURE}"
    nrefs = num_references_signature(references)
    return f"external:{metric.name}|nrefs:{nrefs}|command:{text}|sha256:{digest}{direction}|stat:mean"


def command_files(metric: ExternalMetric) -> "dict[str, Input]":
    """The files that a command names, such as a script, as inputs of its scores; the program where it has a path.

    A word is a name, or has one after its first equals sign (`--model=FILE`). All files of a folder count, unless they
    are more than MAX_FILES.
    """
    from tfm.pipeline.artifacts.manifest import Input  # here, as scores that are not published have no inputs

    first, *rest = metric.command
    words = [*([first] if "/" in first else []), *rest]
    names = dict.fromkeys([*words, *(word.partition("=")[2] for word in words)])
    files_by_name = {name: _script_files(name) for name in names if name}
    return {
        f"external {metric.name}: {file}": Input.from_file(Path(file))
        for files in files_by_name.values()
        for file in files
    }


def external_metric_inputs(metrics: Sequence[ExternalMetric]) -> "dict[str, Input]":
    """The files of all commands: if one changes, scores are computed again."""
    return {label: each for metric in metrics for label, each in command_files(metric).items()}


def _mean_of_numbers(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:
        raise ExternalMetricError("printed numbers whose sum is too large") from None


def _script_files(name: str) -> list[str]:
    """The files of a name: its own, or those of a folder in order; none if there is neither, or too many."""
    try:
        if not Path(name).is_dir():
            return [name] if Path(name).is_file() else []
        paths = (os.path.join(folder, each) for folder, _, files in os.walk(name) for each in files)
        files_in_folder = list(islice(paths, MAX_FILES + 1))
        return sorted(filter(os.path.isfile, files_in_folder)) if len(files_in_folder) <= MAX_FILES else []
    except (OSError, ValueError):
        return []
