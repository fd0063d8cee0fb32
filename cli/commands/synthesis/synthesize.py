"""`tfm synthesize`: training text that models make, with its log-probabilities."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import (
    ClusterAddress,
    Device,
    OutFolder,
    RecipeFile,
    RecipeOverrides,
    SamplingSeed,
    SourceLanguage,
    TargetLanguage,
    Temperature,
    TopK,
    TopP,
    command_line,
    config_section,
    reject_flags,
    require_flag,
    run_recipe_stage,
)
from tfm.cli.typed_options import values_by_flag, with_options
from tfm.pipeline.model_io.model_folder import resolve_model_folder


@dataclass(frozen=True)
class SynthesizeOptions:
    """Arguments and options of `tfm synthesize`."""

    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[MODEL]...", help="Trained models, or the folders of their runs: an ensemble."),
    ] = None
    recipe: RecipeFile = None
    source: Annotated[
        Path | None,
        typer.Option("--source", metavar="FILE", help="The text that is translated, one sentence per line."),
    ] = None
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="FILE",
            help="References of the text: of each line the closest of its --n-best translations is kept.",
        ),
    ] = None
    utility: Annotated[
        str | None,
        typer.Option("--utility", metavar="NAME", help="Likeness to the reference: bleu, chrf or exact_match."),
    ] = None
    test: Annotated[
        list[Path] | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="A test set whose lines are not translated, beside those that the models know; repeatable.",
        ),
    ] = None
    beam: Annotated[int | None, typer.Option("--beam", metavar="W", help="Beam width; 1 is greedy search.")] = None
    n_best: Annotated[
        int | None, typer.Option("--n-best", metavar="N", help="N pairs of each line: of the beam, or samples.")
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", metavar="NAME", help="search (for the most probable), sample (at random), or mbr."),
    ] = None
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: SamplingSeed = None
    noise: Annotated[
        bool, typer.Option("--noise", help="Hide, leave out and move words of what is written (synthesis.noise).")
    ] = False
    min_score: Annotated[
        float | None,
        typer.Option("--min-score", metavar="X", help="Drop pairs of a lower log-probability a token, in nats (-1.5)."),
    ] = None
    percentile: Annotated[
        float | None, typer.Option("--percentile", metavar="P", help="Drop the P per cent with the worst scores.")
    ] = None
    to: TargetLanguage = None
    source_language: SourceLanguage = None
    device: Device = None
    cluster: ClusterAddress = None
    sets: RecipeOverrides = None
    out: OutFolder = None

    @property
    def recipe_flags(self) -> dict[str, object]:
        """Values of keys of [synthesis]."""
        return {
            **{f"synthesis.decoding.{name}": getattr(self, name) for name in DECODING_FLAGS},
            "synthesis.utility": self.utility,
            "synthesis.noise": {} if self.noise else None,
            "synthesis.min_score": self.min_score,
            "synthesis.percentile": self.percentile,
            "synthesis.tests": [str(file) for file in self.test] if self.test else None,
            "synthesis.to": self.to,
            "synthesis.source_language": self.source_language,
        }


DECODING_FLAGS = ("beam", "n_best", "strategy", "temperature", "top_k", "top_p", "seed")


@with_options
def synthesize(options: SynthesizeOptions) -> None:
    """Make training text: translate a text by a model, or by several as an ensemble, into pairs with their scores.

    A recipe takes it by [[data.train]] with synthetic = "DIR". Lines of the models' test sets are left out.

    With --recipe: by the recipe's model and [synthesis], into runs/NAME/synthetic.
    """
    if options.strategy == "sample":
        reject_flags(values_by_flag(options, "beam"), "is for searching, and not for --strategy sample")
    if options.recipe is not None:
        reject_flags(
            {"MODEL": options.models, **values_by_flag(options, "source", "reference")},
            "not allowed with --recipe, whose [synthesis] names models and text",
        )
        flags = {**options.recipe_flags, "training.device": options.device}
        run_recipe_stage("synthesize", options.recipe, options.sets, flags, options.out, cluster=options.cluster)
        return
    first, *other_models = [resolve_model_folder(each) for each in require_flag(options.models or None, "MODEL")]
    source, out = require_flag(options.source, "--source"), require_flag(options.out, "--out")
    from tfm.pipeline.synthesis.config import SynthesisConfig

    if options.reference is None:
        text = {"format": "text", "source": "none", "target": str(source)}
    else:
        text = {"format": "text", "source": str(source), "target": str(options.reference)}
    flags = {
        "synthesis.text": text,
        "synthesis.models": [str(each) for each in other_models] or None,
        **options.recipe_flags,
    }
    config = config_section(SynthesisConfig, options.sets, flags)
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.synthesize import synthesize as synthesize_stage

    synthesize_stage(
        config,
        first,
        out,
        command=command_line(),
        reporter=make_reporter(),
        device=options.device or "auto",
        cluster=options.cluster,
    )
