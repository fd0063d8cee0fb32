"""The arguments and options of `tfm evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer

from tfm.cli.options import (
    ClusterAddress,
    Device,
    ForcedWordsFile,
    OutFolder,
    Prefix,
    PrefixesFile,
    RecipeFile,
    RecipeOverrides,
    ReplaceUnknown,
    Seed,
    SourceLanguage,
    TargetLanguage,
    config_section,
)


@dataclass(frozen=True)
class EvaluateOptions:
    """Arguments and options of `tfm evaluate`."""

    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="With --final: the runs that validation chooses from."),
    ] = None
    recipe: RecipeFile = None
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="DIR",
            help="Model to evaluate; it translates --source, or without that scores --reference.",
        ),
    ] = None
    ensemble: Annotated[
        list[Path] | None,
        typer.Option("--ensemble", metavar="MODEL", help="Another model of an ensemble with --model; repeatable."),
    ] = None
    source: Annotated[
        Path | None, typer.Option("--source", metavar="FILE", help="The source text, one sentence per line.")
    ] = None
    hypotheses: Annotated[
        Path | None, typer.Option("--hypotheses", metavar="FILE", help="Translations to score, one per line.")
    ] = None
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            "--reference", metavar="FILE", help="Reference translations or a language model's text; repeatable."
        ),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this score (bleu, chrf, ter, ...); repeatable."),
    ] = None
    lowercase: Annotated[
        bool | None,
        typer.Option("--lowercase/--no-lowercase", help="BLEU, chrF, exact match and error rates ignore case."),
    ] = None
    wordnet: Annotated[
        Path | None, typer.Option("--wordnet", metavar="DIR", help="WordNet's database files, for --metric meteor.")
    ] = None
    stride: Annotated[
        int | None,
        typer.Option("--stride", metavar="N", help="Windows of a language model's text begin N tokens apart."),
    ] = None
    beam: Annotated[int | None, typer.Option("--beam", metavar="W", help="Beam width of the model's search.")] = None
    forced: ForcedWordsFile = None
    replace_unknown: ReplaceUnknown = False
    prefix: Prefix = None
    prefixes: PrefixesFile = None
    to: TargetLanguage = None
    source_language: SourceLanguage = None
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            metavar="SHARE",
            min=0,
            max=1,
            help="Mistype this share of the characters of --source, by --seed.",
        ),
    ] = None
    choices: Annotated[
        str | None,
        typer.Option("--choices", metavar="FILE", help="JSON lines: which choice is likeliest after its context?"),
    ] = None
    contrast: Annotated[
        str | None,
        typer.Option(
            "--contrast",
            metavar="FILE|it",
            help="JSON lines: is the right target likelier than wrong ones? it: the built-in set.",
        ),
    ] = None
    final: Annotated[
        bool, typer.Option("--final", help="Score the tests of the run that validation chooses, once; see the ledger.")
    ] = False
    by: Annotated[
        str | None, typer.Option("--by", metavar="METRIC", help="With --final: the validation figure that chooses.")
    ] = None
    again: Annotated[bool, typer.Option("--again", help="With --final: even if the tests were used before.")] = False
    allow_external: Annotated[
        bool,
        typer.Option("--allow-external", help="With --final: run the commands that only the run itself names."),
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the content of scores.json.")] = False
    device: Device = None
    cluster: ClusterAddress = None
    seed: Seed = None
    sets: RecipeOverrides = None
    out: OutFolder = None

    @property
    def evaluation_flags(self) -> dict[str, object]:
        """Values of keys of [evaluation]."""
        wordnet = None if self.wordnet is None else str(self.wordnet)
        return {
            "evaluation.metrics": self.metric or None,
            "evaluation.lowercase": self.lowercase,
            "evaluation.wordnet": wordnet,
            "evaluation.stride": self.stride,
        }


def metrics_of_texts(metrics: Sequence[str] | None, sets: Sequence[str] | None) -> list[str] | None:
    """The values of --metric for evaluation.metrics, without external metrics of --set, which are computed anyway.

    Args:
        metrics: values of --metric.
        sets: `--set` texts.

    Returns:
        The metrics; empty if all are external, None if none was given.
    """
    if not metrics:
        return None
    from tfm.pipeline.config import EvaluationConfig, EvaluationMetric

    if {*metrics} <= {*get_args(EvaluationMetric)}:
        return [*metrics]
    external = [text for text in sets or () if text.partition("=")[0].strip() == "evaluation.external"]
    names = {each.name for each in config_section(EvaluationConfig, external, {}).external}
    return [name for name in metrics if name not in names]
