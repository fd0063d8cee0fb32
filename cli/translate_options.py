"""The arguments and options of `tfm translate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tfm.cli.options import (
    ClusterAddress,
    Device,
    ForbiddenTexts,
    ForcedWordsFile,
    NoRepeatNgramSize,
    OutFolder,
    Prefix,
    PrefixesFile,
    RecipeFile,
    RecipeOverrides,
    ReplaceUnknown,
    SamplingSeed,
    SourceLanguage,
    TargetLanguage,
    Temperature,
    TopK,
    TopP,
    require_flag,
)
from tfm.cli.text_argument import parse_file_or_text
from tfm.pipeline.model_io.model_folder import resolve_model_folder


@dataclass(frozen=True)
class TranslateOptions:
    """Arguments and options of `tfm translate`."""

    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A trained model: its model/, or the folder of its run.")
    ] = None
    file: Annotated[
        Path | None,
        typer.Argument(
            parser=parse_file_or_text,
            metavar="[FILE|-|TEXT|IMAGE]",
            help="File with one sentence per line; default or -: stdin; or a text. Of a model that reads images: an "
            "image, or a folder of them.",
        ),
    ] = None
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[IMAGE]...", help="Further images, or folders of them.")
    ] = None
    recipe: RecipeFile = None
    ensemble: Annotated[
        list[Path] | None,
        typer.Option("--ensemble", metavar="MODEL", help="Another model of an ensemble with the first; repeatable."),
    ] = None
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="N|last", help="Use a checkpoint of the run's training."),
    ] = None
    beam: Annotated[int | None, typer.Option("--beam", metavar="W", help="Beam width; 1 is greedy search.")] = None
    n_best: Annotated[
        int | None,
        typer.Option(
            "--n-best",
            metavar="N",
            help="N hypotheses (labels) for each line, as LINE, SCORE, TEXT separated by tabs; or N texts for each "
            "[MASK], as LINE, MASK, PROBABILITY, TEXT.",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="NAME",
            help="search (for the most probable), sample (at random), or mbr (most like others).",
        ),
    ] = None
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: SamplingSeed = None
    length_norm: Annotated[str | None, typer.Option("--length-norm", metavar="NAME", help="none, average or wu.")] = (
        None
    )
    alpha: Annotated[
        float | None, typer.Option("--alpha", metavar="X", help="Strength of the length normalisation.")
    ] = None
    min_length: Annotated[
        int | None, typer.Option("--min-length", metavar="N", help="Minimum number of pieces of a hypothesis.")
    ] = None
    max_length: Annotated[
        int | None, typer.Option("--max-length", metavar="N", help="Maximum number of pieces of a hypothesis.")
    ] = None
    no_repeat_ngram: NoRepeatNgramSize = None
    forbidden: ForbiddenTexts = None
    forced: ForcedWordsFile = None
    replace_unknown: ReplaceUnknown = False
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="NAME", help="Precision of matrix products: fp32, bf16, int8."),
    ] = None
    prefix: Prefix = None
    prefixes: PrefixesFile = None
    to: TargetLanguage = None
    source_language: SourceLanguage = None
    unit: Annotated[
        Literal["piece", "word"] | None,
        typer.Option("--unit", help="What a masked language model predicts for [MASK]: piece (default) or word."),
    ] = None
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object per line: source, translations, scores.")
    ] = False
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="FILE",
            dir_okay=False,
            help="Also write a line for each translation: 0-0 1-2, places of words of source and translation.",
        ),
    ] = None
    device: Device = None
    cluster: ClusterAddress = None
    sets: RecipeOverrides = None
    out: OutFolder = None

    @property
    def decoding_flags(self) -> dict[str, object]:
        """Values of keys of [decoding]."""
        return {
            "decoding.beam": self.beam,
            "decoding.n_best": self.n_best,
            "decoding.strategy": self.strategy,
            "decoding.temperature": self.temperature,
            "decoding.top_k": self.top_k,
            "decoding.top_p": self.top_p,
            "decoding.seed": self.seed,
            "decoding.no_repeat_ngram": self.no_repeat_ngram,
            "decoding.forbidden": self.forbidden or None,
            "decoding.replace_unknown": self.replace_unknown or None,
            "decoding.length_norm": self.length_norm,
            "decoding.alpha": self.alpha,
            "decoding.min_length": self.min_length,
            "decoding.max_length": self.max_length,
            "decoding.precision": self.precision,
        }

    @property
    def model_folders(self) -> list[Path]:
        """The folders of the model and of those that form an ensemble with it."""
        return [resolve_model_folder(each) for each in (require_flag(self.model, "MODEL"), *(self.ensemble or ()))]
