"""The model card: README.md with the block that the Hugging Face Hub reads at its top.

The block is YAML; each of its values is written as JSON, which is YAML too. Names come from files that somebody else
may have sent (a test set in scores.json, an input in a manifest), so that none of them is markup here.
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.model_io.markdown import code_span, escape_markdown, to_yaml_value

ScoresByTestSet = Mapping[str, Mapping[str, tuple[float, str]]]
"""A score and its signature, by test set and metric."""


@dataclass(frozen=True)
class ModelCard:
    """Contents of a model card that the model itself does not have.

    Args:
        languages: codes of the languages that the model reads and writes.
        license: an identifier, such as apache-2.0; None: the card says that none is given.
        name: of the model.
        figures: a score and its signature, by test set and metric.
    """

    languages: Sequence[str] = ()
    license: str | None = None
    name: str = "model"
    figures: ScoresByTestSet = field(default_factory=dict)


def card_text(card: ModelCard, manifest: Manifest, *, class_name: str, task: str, usage_code: str) -> str:
    """Return the README.md of a model.

    Args:
        card: its contents.
        manifest: of the model.
        class_name: the class of transformers.
        task: as the Hub calls it.
        usage_code: code that uses the model.
    """
    head: dict[str, Any] = {
        "language": list(card.languages),
        "license": card.license,
        "library_name": "transformers",
        "pipeline_tag": task,
        "tags": ["tfm", class_name],
        "model-index": _model_index(card, task),
    }
    lines = [f"{key}: {to_yaml_value(value)}" for key, value in head.items() if value]
    license_text = escape_markdown(card.license or "not stated by whoever exported it")
    languages = ", ".join(map(escape_markdown, card.languages))
    parameters = manifest.figures.get("parameters")
    size = f", {parameters:,} parameters" if isinstance(parameters, int) else ""
    return "\n".join(
        [
            *("---", *lines, "---", ""),
            *(f"# {escape_markdown(card.name)}", ""),
            *(f"A `{class_name}`{size}, trained by `tfm` and exported with `tfm export --to huggingface`.", ""),
            *(f"Languages: {languages or 'not stated'}. License: {license_text}.", ""),
            *("## Use", "", "```python", usage_code, "```", ""),
            *("## Scores", "", *_metrics_table(card.figures), ""),
            *(
                "## Made from",
                "",
                f"- model `{manifest.fingerprint}`",
                *_lineage_lines(manifest.as_input().as_json(), 1),
                "",
            ),
        ]
    )


def artifact_card_text(card: ModelCard, manifest: Manifest, repository: str) -> str:
    """Return the README.md of a repository that has a model of ours as it is.

    Args:
        card: its contents.
        manifest: of the model.
        repository: OWNER/NAME.
    """
    task = str(manifest.config.get("model", {}).get("task", "model")).replace("_", " ")
    head: dict[str, Any] = {
        "language": list(card.languages),
        "license": card.license,
        "library_name": "tfm-toolkit",
        "tags": ["tfm"],
        "model-index": _model_index(card, task),
    }
    lines = [f"{key}: {to_yaml_value(value)}" for key, value in head.items() if value]
    parameters = manifest.figures.get("parameters")
    size = f", {parameters:,} parameters" if isinstance(parameters, int) else ""
    return "\n".join(
        [
            *("---", *lines, "---", ""),
            *(f"# {escape_markdown(card.name)}", ""),
            *(f"A model for {escape_markdown(task)}{size}, trained by `tfm` and sent with `tfm push`.", ""),
            *(f"License: {escape_markdown(card.license or 'not stated by whoever sent it')}.", ""),
            *(
                "## Use",
                "",
                "```",
                shlex.join(["tfm", "pull", repository, "--out", f"runs/{card.name}"]),
                shlex.join(["tfm", "inspect", f"runs/{card.name}"]),
                "```",
            ),
            *("", "## Scores", "", *_metrics_table(card.figures), ""),
            *("## Made from", "", f"- model `{manifest.fingerprint}`"),
            *_lineage_lines(manifest.as_input().as_json(), 1),
            "",
        ]
    )


def _model_index(card: ModelCard, task: str) -> list[dict[str, Any]]:
    results = []
    for test, scores in card.figures.items():
        metrics = [
            {"type": metric, "name": metric, "value": value, "args": {"signature": signature}}
            for metric, (value, signature) in scores.items()
            if math.isfinite(value)
        ]
        results.append({"task": {"type": task}, "dataset": {"type": test, "name": test}, "metrics": metrics})
    return [{"name": card.name, "results": results}] if results else []


def _metrics_table(figures: ScoresByTestSet) -> Iterator[str]:
    if not figures:
        yield "None are recorded beside this model."
        return
    yield from ("| test set | metric | score | signature |", "|---|---|---|---|")
    for test, scores in figures.items():
        for metric, (value, signature) in scores.items():
            yield f"| {escape_markdown(test)} | {escape_markdown(metric)} | {value:.4f} | {code_span(signature)} |"


def _lineage_lines(entry: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The origin of an artifact, by name and fingerprint; the folders of its author are left out."""
    lineage = entry.get("lineage") or {}
    for label, parent in lineage.get("inputs", {}).items():
        kind, _, path = label.partition(": ")
        name = f"{kind}: {path.rpartition('/')[2]}" if path else kind
        yield f"{'  ' * depth}- {escape_markdown(name)} {code_span(parent['fingerprint'])}"
        yield from _lineage_lines(parent, depth + 1)
