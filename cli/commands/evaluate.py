"""`tfm evaluate`: hypotheses and references to scores with signatures."""

import json
from collections.abc import Callable
from typing import Any

import typer

from tfm.cli.evaluate_options import EvaluateOptions, metrics_of_texts
from tfm.cli.options import command_line, config_section, reject_flags, require_flag, run_recipe_stage, seed_or_default
from tfm.cli.streams import print_json
from tfm.cli.typed_options import values_by_flag, with_options
from tfm.pipeline.model_io.model_folder import resolve_model_folder

FILE_OPTIONS = ("model", "source", "hypotheses", "reference")
DECODING_OPTIONS = (
    "ensemble",
    "beam",
    "forced",
    "replace_unknown",
    "prefix",
    "prefixes",
    "to",
    "source_language",
    "noise",
    "cluster",
)
SCORING_OPTIONS = ("metric", "lowercase", "wordnet", "stride", "seed")
ScoresJson = dict[str, Any]
"""The content of scores.json."""


@with_options
def evaluate(options: EvaluateOptions) -> None:
    """Score translations, or how probable a model finds a text.

    The texts are a recipe's test sets, or any files.

    With --final: the test sets, once, of the run that validation chooses. With --choices or --contrast: how often a
    model finds the right one of some texts the likeliest. The table goes to stdout; with --json the content of
    scores.json instead.
    """
    scores = _choose_evaluation(options)(options)
    if options.as_json:
        print_json(scores, indent=2)


def _choose_evaluation(options: EvaluateOptions) -> Callable[[EvaluateOptions], ScoresJson]:
    """The way to evaluate that the options ask for."""
    if options.final:
        return _score_final_tests
    final_flags = values_by_flag(options, "runs", "by", "again", "allow_external")
    reject_flags(final_flags, "is for --final; otherwise give a model with --model")
    if options.choices is not None or options.contrast is not None:
        return _evaluate_contrast_or_choices
    if options.recipe is not None:
        return _evaluate_tests
    require_flag(options.reference or None, "--reference")
    if options.model is not None and options.hypotheses is None and options.source is None:
        return _evaluate_texts
    return _evaluate_files


def _score_final_tests(options: EvaluateOptions) -> ScoresJson:
    """Score the test sets of one of some runs."""
    other_flags = values_by_flag(
        options, *FILE_OPTIONS, *DECODING_OPTIONS, *SCORING_OPTIONS, "choices", "contrast", "out"
    )
    other_flags |= {"--set": None if options.recipe else options.sets}
    reject_flags(other_flags, "not allowed with --final: the run says what is scored, and how")
    runs = options.runs or []
    if not runs and options.recipe is None:
        raise typer.BadParameter("give the folders of runs, or --recipe", param_hint="--final")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.recipes.final_evaluation.final_scores import run_validation, score_tests_once

    reporter, recipe_evaluation = make_reporter(tables_on_stdout=not options.as_json), None
    if options.recipe is not None:
        from tfm.pipeline.recipes.recipe import load_recipe

        flags = {"evaluation.tests": "final", "training.device": options.device}
        resolved = load_recipe(options.recipe, options.sets or (), flags)
        runs = [*runs, run_validation(resolved, command=command_line(), reporter=make_reporter())]
        recipe_evaluation = resolved.evaluation
    return score_tests_once(
        runs,
        figure=options.by,
        again=options.again,
        named_evaluation=recipe_evaluation,
        allow_external=options.allow_external,
        command=command_line(),
        reporter=reporter,
        device=options.device or "auto",
    )


def _evaluate_contrast_or_choices(options: EvaluateOptions) -> ScoresJson:
    """Score which of some texts is likelier."""
    inapplicable_options = {*FILE_OPTIONS, *DECODING_OPTIONS, *SCORING_OPTIONS, "recipe", "sets"} - {
        "model",
        "ensemble",
        "to",
        "source_language",
    }
    option = "--choices" if options.contrast is None else "--contrast"
    has_both = options.contrast is not None and options.choices
    reject_flags(
        {**values_by_flag(options, *sorted(inapplicable_options)), "--choices": has_both},
        f"not allowed with {option}, which compares given texts",
    )
    if options.model is None:
        raise typer.BadParameter("give the model whose probabilities are compared", param_hint="--model")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.evaluate_alternatives import evaluate_alternatives

    return evaluate_alternatives(
        "choices" if options.contrast is None else "contrast",
        options.choices or options.contrast or "",
        model=resolve_model_folder(options.model),
        ensemble=[resolve_model_folder(each) for each in options.ensemble or ()],
        out=options.out,
        command=command_line(),
        reporter=make_reporter(tables_on_stdout=not options.as_json),
        device=options.device or "auto",
        to=options.to,
        source_language=options.source_language,
    )


def _evaluate_tests(options: EvaluateOptions) -> ScoresJson:
    """Score the test sets of a recipe."""
    reject_flags(
        values_by_flag(options, *FILE_OPTIONS, *DECODING_OPTIONS),
        "not allowed with --recipe, which scores the recipe's translations",
    )
    assert options.recipe is not None
    from tfm.cli.console import make_reporter
    from tfm.pipeline.recipes.run_paths import get_run_paths

    flags = {**options.evaluation_flags, "seed": options.seed, "training.device": options.device}
    reporter = make_reporter(tables_on_stdout=not options.as_json)
    resolved = run_recipe_stage("evaluate", options.recipe, options.sets, flags, options.out, reporter=reporter)
    file = (options.out or get_run_paths(resolved).scores) / "scores.json"
    content: ScoresJson = json.loads(file.read_text(encoding="utf-8"))
    return content


def _decoding_overrides(options: EvaluateOptions) -> dict[str, str]:
    """The values of [decoding] that --set gives, by what is typed before them."""
    overrides = (text.partition("=") for text in options.sets or ())
    return {f"--set {key.strip()}": value for key, _, value in overrides if key.strip().startswith("decoding.")}


def _evaluate_texts(options: EvaluateOptions) -> ScoresJson:
    """Score how probable a model finds some texts."""
    reject_flags(
        {**values_by_flag(options, *DECODING_OPTIONS), **_decoding_overrides(options)},
        "give --source as well: without it a text is scored, and nothing is translated",
    )
    assert options.model is not None
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.stages.evaluate_texts import evaluate_texts

    return evaluate_texts(
        resolve_model_folder(options.model),
        options.reference or [],
        config_section(EvaluationConfig, options.sets, options.evaluation_flags),
        seed=seed_or_default(options.seed),
        command=command_line(),
        device=options.device or "auto",
        out=options.out,
        reporter=make_reporter(tables_on_stdout=not options.as_json),
    )


def _evaluate_files(options: EvaluateOptions) -> ScoresJson:
    """Score the hypotheses of a file, or those of a model for the sources of a file."""
    if options.hypotheses is not None:
        search_flags = values_by_flag(options, *(name for name in DECODING_OPTIONS if name != "ensemble"))
        reject_flags(
            {**search_flags, **_decoding_overrides(options)},
            "not allowed with --hypotheses, when nothing is translated",
        )
    reject_flags({"--prefixes": options.prefix and options.prefixes}, "give either --prefix or --prefixes")
    if options.hypotheses is None and options.model is None:
        raise typer.BadParameter("give it, or --model and --source, or --recipe", param_hint="--hypotheses")
    if options.model is None:
        reject_flags(values_by_flag(options, "ensemble"), "give --model as well")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import DecodingConfig, EvaluationConfig
    from tfm.pipeline.stages.evaluate_files import evaluate_files

    decoding_flags = {"decoding.beam": options.beam, "decoding.replace_unknown": options.replace_unknown or None}
    metrics = metrics_of_texts(options.metric, options.sets)
    evaluation_flags = {**options.evaluation_flags, "evaluation.metrics": metrics}
    return evaluate_files(
        config_section(EvaluationConfig, options.sets, evaluation_flags, other_sections=("decoding",)),
        hypotheses=options.hypotheses,
        model=None if options.model is None else resolve_model_folder(options.model),
        ensemble=[resolve_model_folder(each) for each in options.ensemble or ()],
        source=options.source,
        references=options.reference or [],
        decoding=config_section(DecodingConfig, options.sets, decoding_flags, other_sections=("evaluation",)),
        prefix=options.prefix,
        prefixes=options.prefixes,
        forced=options.forced,
        noise=options.noise,
        to=options.to,
        source_language=options.source_language,
        seed=seed_or_default(options.seed),
        command=command_line(),
        device=options.device or "auto",
        out=options.out,
        cluster=options.cluster,
        with_details=options.as_json,
        reporter=make_reporter(tables_on_stdout=not options.as_json),
    )
