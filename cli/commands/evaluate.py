"""`tfm evaluate`: hypotheses and references to scores with signatures."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tfm.cli.options import (
    Device,
    Forced,
    From,
    Out,
    Prefix,
    Prefixes,
    RecipeFile,
    Seed,
    Sets,
    To,
    argv,
    config_section,
    reject_flags,
    require,
    seed_of,
    stage_of_recipe,
)
from tfm.cli.streams import print_json
from tfm.pipeline.model_io.model_folder import model_folder


def evaluate(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="With --final: the runs that validation chooses from."),
    ] = None,
    recipe: RecipeFile = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="DIR",
            help="Model to evaluate; it translates --source, or without that scores --reference.",
        ),
    ] = None,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option("--ensemble", metavar="MODEL", help="Another model of an ensemble with --model; repeatable."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", metavar="FILE", help="The source text, one sentence per line.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option("--hypotheses", metavar="FILE", help="Translations to score, one per line.")
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            "--reference", metavar="FILE", help="Reference translations or a language model's text; repeatable."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this score (bleu, chrf, ter, ...); repeatable."),
    ] = None,
    lowercase: Annotated[
        bool | None,
        typer.Option("--lowercase/--no-lowercase", help="BLEU, chrF, exact match and error rates ignore case."),
    ] = None,
    wordnet: Annotated[
        Path | None, typer.Option("--wordnet", metavar="DIR", help="WordNet's database files, for --metric meteor.")
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option("--stride", metavar="N", help="Windows of a language model's text begin N tokens apart."),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", metavar="W", help="Beam width of the model's search.")] = None,
    forced: Forced = None,
    prefix: Prefix = None,
    prefixes: Prefixes = None,
    to: To = None,
    source_language: From = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            metavar="SHARE",
            min=0,
            max=1,
            help="Mistype this share of the characters of --source, by --seed.",
        ),
    ] = None,
    choices: Annotated[
        str | None,
        typer.Option("--choices", metavar="FILE", help="JSON lines: which choice is likeliest after its context?"),
    ] = None,
    contrast: Annotated[
        str | None,
        typer.Option(
            "--contrast",
            metavar="FILE|it",
            help="JSON lines: is the right target likelier than wrong ones? it: the built-in set.",
        ),
    ] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Score the tests of the run that validation chooses, once; see the ledger.")
    ] = False,
    by: Annotated[
        str | None, typer.Option("--by", metavar="METRIC", help="With --final: the validation figure that chooses.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="With --final: even if the tests were used before.")] = False,
    allow_external: Annotated[
        bool,
        typer.Option("--allow-external", help="With --final: run the commands that only the run itself names."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the content of scores.json.")] = False,
    device: Device = None,
    seed: Seed = None,
    sets: Sets = None,
    out: Out = None,
) -> None:
    """Score translations, or how probable a model finds a text.

    The texts are a recipe's test sets, or any files.

    With --final: the test sets, once, of the run that validation chooses. With --choices or --contrast: how often a
    model finds the right one of some texts the likeliest. The table goes to stdout; with --json the content of
    scores.json instead.
    """
    files = {"--model": model, "--source": source, "--hypotheses": hypotheses, "--reference": reference}
    search: dict[str, object] = {"--ensemble": ensemble, "--beam": beam, "--forced": forced, "--prefix": prefix}
    search |= {"--prefixes": prefixes, "--to": to, "--from": source_language, "--noise": noise}
    flags: dict[str, object] = {"evaluation.metrics": metric or None, "evaluation.lowercase": lowercase}
    flags |= {"evaluation.wordnet": None if wordnet is None else str(wordnet), "evaluation.stride": stride}
    scoring = {"--metric": metric, "--lowercase": lowercase, "--wordnet": wordnet, "--stride": stride, "--seed": seed}
    given = {"--choices": choices, "--contrast": contrast}
    if final:
        others = {**files, **search, **scoring, **given, "--out": out, "--set": None if recipe else sets}
        reject_flags(others, "not allowed with --final: the run says what is scored, and how")
        scores = _final(runs or [], recipe, sets, device, by, again, allow_external, as_json)
    elif runs or by or again or allow_external:
        only_final = {"RUN": runs, "--by": by, "--again": again, "--allow-external": allow_external}
        reject_flags(only_final, "is for --final; otherwise give a model with --model")
    elif choices is not None or contrast is not None:
        others = {
            "--recipe": recipe,
            **files,
            "--model": None,
            **search,
            "--ensemble": None,
            "--to": None,
            "--from": None,
            **scoring,
            "--set": sets,
        }
        option = "--choices" if contrast is None else "--contrast"
        reject_flags(
            {**others, "--choices": choices and contrast}, f"not allowed with {option}, which compares given texts"
        )
        scores = _alternatives(choices, contrast, model, ensemble or [], device, (to, source_language), out, as_json)
    elif recipe is not None:
        reject_flags({**files, **search}, "not allowed with --recipe, which scores the recipe's translations")
        scores = _tests(recipe, sets, {**flags, "seed": seed, "training.device": device}, out, as_json)
    else:
        references = require(reference or None, "--reference")
        about: dict[str, Any] = {"seed": seed_of(seed), "command": argv(), "device": device or "auto", "out": out}
        if model is not None and hypotheses is None and source is None:
            reject_flags(search, "give --source as well: without it a text is scored, and nothing is translated")
            scores = _texts(model, references, sets, flags, as_json, about)
        else:
            if hypotheses is not None:
                reject_flags(
                    {**search, "--ensemble": None}, "not allowed with --hypotheses, when nothing is translated"
                )
            reject_flags({"--prefixes": prefix and prefixes}, "give either --prefix or --prefixes")
            about |= {"prefix": prefix, "prefixes": prefixes, "forced": forced, "noise": noise}
            about |= {"to": to, "source_language": source_language}
            translated = hypotheses, model, ensemble or [], source
            scores = _files(*translated, references, sets, flags, beam, as_json, about)
    if as_json:
        print_json(scores, indent=2)


def _texts(
    model: Path,
    texts: list[Path],
    sets: list[str] | None,
    flags: dict[str, object],
    as_json: bool,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Score how probable a model finds some texts; the content of scores.json."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.stages.evaluate_texts import evaluate_texts

    config = config_section(EvaluationConfig, sets, flags, beside=("decoding",))
    return evaluate_texts(
        model_folder(model), texts, config, **about, reporter=make_reporter(tables_on_stdout=not as_json)
    )


def _files(
    hypotheses: Path | None,
    model: Path | None,
    ensemble: list[Path],
    source: Path | None,
    references: list[Path],
    sets: list[str] | None,
    flags: dict[str, object],
    beam: int | None,
    as_json: bool,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Score the hypotheses of a file, or those of a model for the sources of a file; the content of scores.json."""
    if hypotheses is None and model is None:
        raise typer.BadParameter("give it, or --model and --source, or --recipe", param_hint="--hypotheses")
    if model is None:
        reject_flags({"--ensemble": ensemble}, "give --model as well")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import DecodingConfig, EvaluationConfig
    from tfm.pipeline.stages.evaluate_files import evaluate_files

    return evaluate_files(
        config_section(EvaluationConfig, sets, flags, beside=("decoding",)),
        hypotheses=hypotheses,
        model=None if model is None else model_folder(model),
        ensemble=[model_folder(each) for each in ensemble],
        source=source,
        references=references,
        decoding=config_section(DecodingConfig, sets, {"decoding.beam": beam}, beside=("evaluation",)),
        **about,
        reporter=make_reporter(tables_on_stdout=not as_json),
    )


def _final(
    runs: list[Path],
    recipe: Path | None,
    sets: list[str] | None,
    device: Device,
    by: str | None,
    again: bool,
    allow_external: bool,
    as_json: bool,
) -> dict[str, Any]:
    """Score the test sets of one of some runs; the content of scores.json."""
    if not runs and recipe is None:
        raise typer.BadParameter("give the folders of runs, or --recipe", param_hint="--final")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.recipes.final_evaluation import run_validation, score_tests_once

    reporter, named = make_reporter(tables_on_stdout=not as_json), None
    if recipe is not None:
        from tfm.pipeline.recipes.recipe import load_recipe

        flags = {"evaluation.tests": "final", "training.device": device}
        resolved = load_recipe(recipe, sets or (), flags)
        runs = [*runs, run_validation(resolved, command=argv(), reporter=make_reporter())]
        named = resolved.evaluation
    return score_tests_once(
        runs,
        by=by,
        again=again,
        named=named,
        allow_external=allow_external,
        command=argv(),
        reporter=reporter,
        device=device or "auto",
    )


def _alternatives(
    choices: str | None,
    contrast: str | None,
    model: Path | None,
    ensemble: list[Path],
    device: Device,
    languages: tuple[str | None, str | None],
    out: Path | None,
    as_json: bool,
) -> dict[str, Any]:
    """Score which of some texts is likelier; the content of scores.json."""
    if model is None:
        raise typer.BadParameter("give the model whose probabilities are compared", param_hint="--model")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.evaluate_alternatives import evaluate_alternatives

    return evaluate_alternatives(
        "choices" if contrast is None else "contrast",
        choices or contrast or "",
        model=model_folder(model),
        ensemble=[model_folder(each) for each in ensemble],
        out=out,
        command=argv(),
        reporter=make_reporter(tables_on_stdout=not as_json),
        device=device or "auto",
        to=languages[0],
        source_language=languages[1],
    )


def _tests(
    recipe: Path, sets: list[str] | None, flags: dict[str, object], out: Path | None, as_json: bool
) -> dict[str, Any]:
    """Score the test sets of a recipe; the content of scores.json."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.recipes.chain import run_of

    reporter = make_reporter(tables_on_stdout=not as_json)
    resolved = stage_of_recipe("evaluate", recipe, sets, flags, out, reporter=reporter)
    file = (out or run_of(resolved).scores) / "scores.json"
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content
