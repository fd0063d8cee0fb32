"""Options shared by several commands, and how flags, `--set` and a recipe are merged into one config."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tfm.pipeline.recipes.recipe import Recipe
    from tfm.pipeline.runtime.progress import Reporter

    Section = TypeVar("Section", bound=BaseModel)

T = TypeVar("T")
IO_ERROR_EXIT_CODE = 74  # the exit code of an OSError

RecipeFile = Annotated[
    Path | None, typer.Option("--recipe", metavar="FILE", help="Take all settings from this recipe (TOML).")
]
RecipeOverrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one value of the recipe, as in training.max_steps=500."),
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Output folder; with --recipe: runs/NAME/...")
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of all random numbers (1).")
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", metavar="X", help="Temperature of sampling; 0: always the most probable piece."),
]
TopK = Annotated[int | None, typer.Option("--top-k", metavar="K", help="Sample from the K most probable pieces.")]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", metavar="P", help="Sample from the fewest pieces whose probabilities sum to P or more."),
]
SamplingSeed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of sampling (1).")]
NoRepeatNgramSize = Annotated[
    int | None,
    typer.Option("--no-repeat-ngram", metavar="N", help="N-gram blocking: no N pieces in a row occur twice."),
]
ForbiddenTexts = Annotated[
    list[str] | None,
    typer.Option("--forbidden", metavar="TEXT", help="A word or phrase that must not occur; repeatable."),
]
ForcedWordsFile = Annotated[
    Path | None,
    typer.Option("--forced", metavar="FILE", help="Forced words: line n has those of line n, separated by tabs."),
]
ReplaceUnknown = Annotated[
    bool,
    typer.Option(
        "--replace-unknown",
        help="Of a model with a vocabulary of words: unknown words become the words of the source that they belong to.",
    ),
]
Prefix = Annotated[
    str | None, typer.Option("--prefix", metavar="TEXT", help="Text with which every translation begins.")
]
PrefixesFile = Annotated[
    Path | None, typer.Option("--prefixes", metavar="FILE", help="Line n is the beginning of line n's translation.")
]
TargetLanguage = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Target language (deu), for multilingual models."),
]
SourceLanguage = Annotated[
    str | None,
    typer.Option("--from", metavar="LANGUAGE", help="Source language (eng), for models that need it."),
]
DeviceName = Literal["auto", "cpu", "cuda", "mps"]
Device = Annotated[DeviceName | None, typer.Option("--device", help="Device to compute on (auto).")]

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|ADDRESS",
        help="Work on a cluster of Ray (10.0.0.1:6379); auto: one of this machine, started for this command.",
    ),
]


def command_line() -> list[str]:
    """The command as the user typed it, for manifests and for resuming stopped work."""
    return ["tfm", *sys.argv[1:]]


def require_flag(value: T | None, flag: str) -> T:
    """The value of a flag that must be given when there is no recipe; typer's usage error without it."""
    if value is None:
        raise typer.BadParameter("give it, or --recipe", param_hint=flag)
    return value


def reject_flags(flags: Mapping[str, object], reason: str) -> None:
    """A usage error for the first flag of `flags` that the user set; 0 is a value."""
    for flag, value in flags.items():
        if value is not None and value is not False and value != [] and value != ():
            raise typer.BadParameter(reason, param_hint=flag)


def run_recipe_stage(
    stage: str,
    recipe: Path,
    sets: Sequence[str] | None,
    flags: Mapping[str, object | None],
    out: Path | None,
    *,
    reporter: "Reporter | None" = None,
    cluster: str | None = None,
) -> "Recipe":
    """Run one stage of a recipe, and return the recipe.

    Args:
        stage: name of the stage.
        recipe: the recipe's file.
        sets: `--set` texts.
        flags: values by dotted key, None if not given; applied after `sets`.
        out: the folder of the artifact, instead of the run's own.
        reporter: receives messages; None for a new one.
        cluster: the address of a cluster that does the work; None for this process alone.
    """
    from tfm.cli import console
    from tfm.pipeline.recipes.chain import run_stage
    from tfm.pipeline.recipes.recipe import load_recipe

    resolved = load_recipe(recipe, sets or (), flags)
    talk = reporter or console.make_reporter()
    run_stage(resolved, stage, out=out, command=command_line(), reporter=talk, cluster=cluster)
    return resolved


def config_section(
    section: "type[Section]",
    sets: Sequence[str] | None,
    flags: Mapping[str, object | None],
    *,
    other_sections: Sequence[str] = (),
    known_sections: "Sequence[BaseModel]" = (),
) -> "Section":
    """Return one part of a recipe from flags and `--set` texts, without a recipe.

    Args:
        section: the class of the part.
        sets: `--set` texts.
        flags: values by dotted key, None if not given.
        other_sections: other parts that the command takes.
        known_sections: those of the other parts on which it depends whether a key has an effect.
    """
    if not sets and all(value is None for value in flags.values()) and not has_required_keys(section):
        return section()  # by far faster: all that a recipe may have, and its checks, are not imported
    from tfm.pipeline.recipes.section_validation import section_from_flags

    for text in sets or ():
        if text.partition("=")[0].strip() == "seed":
            raise typer.BadParameter(
                "without a recipe the seed is set by --seed, if the command has it", param_hint="--set"
            )
    # flags are keyed as in a whole recipe: training.max_steps
    return section_from_flags(
        section,
        {key.partition(".")[2]: value for key, value in flags.items()},
        sets or (),
        other_sections=other_sections,
        known_sections=known_sections,
    )


def has_required_keys(section: "type[Section]") -> bool:
    """Return whether a part of a recipe has keys without a default."""
    return any(field.is_required() for field in section.model_fields.values())


def seed_or_default(flag: int | None) -> int:
    """The seed if no recipe is given."""
    from tfm.pipeline.config import DEFAULT_SEED

    return DEFAULT_SEED if flag is None else flag
