"""Texts of a user's own, scored by how probable a model without hypotheses finds them: a language model above all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfm.data.config import DataConfig
from tfm.data.corpora.markup.problems import check_lines, markup_problem
from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.data.lines import open_lines
from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact
from tfm.pipeline.artifacts.compatibility import trained_task
from tfm.pipeline.config import Device, EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.published_scores import publish_scores, show_unpublished_scores
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.ledger import read_evaluated_model
from tfm.pipeline.tasks.abilities import CAPTIONS_ADVICE, TASK_SPECS
from tfm.pipeline.text_files import warn_of_form


def evaluate_texts(
    model: Path,
    texts: Sequence[Path],
    config: EvaluationConfig,
    *,
    out: Path | None,
    seed: int = 1,
    command: Sequence[str] = (),
    reporter: Reporter,
    device: Device = "auto",
) -> dict[str, Any]:
    """Score text files, the main one first, as `evaluate_tests` scores the test sets of a model without hypotheses.

    Args:
        model: the folder of the model.
        texts: the files.
        config: the [evaluation] part of a recipe.
        out: the folder where an artifact is published; None for none.
        seed: the seed of the run.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.

    Returns:
        The content of scores.json.

    Raises:
        RecipeError: the model gives hypotheses, so that there is something to compare texts with, or a setting has no
            effect on its scores.
    """
    manifest = open_artifact(model, "train")
    task = trained_task(manifest)
    if TASK_SPECS[task].gives_hypotheses:
        if IMAGES_FILE in manifest.files:
            raise DataError(f"reads images, not text: {CAPTIONS_ADVICE}", file=model)
        raise RecipeError(f"{model} was trained for {task}: give --source FILE as well, or --hypotheses FILE")
    effective_keys = {"stride"} if TASK_SPECS[task].continues_text else set()
    for name in sorted(config.model_fields_set - effective_keys):
        if getattr(config, name) != EvaluationConfig.model_fields[name].default:
            raise RecipeError(f"evaluation.{name} has no effect on the scores of a {task} model. Remove it")
    file_names = [file.name for file in texts]
    names = {file.name if file_names.count(file.name) == 1 else str(file): file for file in texts}
    lines = {name: list(open_lines(file)) for name, file in names.items()}
    for name, file in names.items():
        warn_of_form(check_lines(lines[name], file, (markup_problem,)), file, reporter)
        if not lines[name]:
            raise DataError("is empty: there is nothing to score", file=file)

    def score_texts_of_files(_: Path | None) -> list[Evaluation]:
        from tfm.pipeline.model_io.loaded_model import load_model
        from tfm.pipeline.scoring.likelihood_scores import score_likelihood, split_from_lines

        loaded, batch_tokens = load_model(model, device, must_match=manifest.as_input()), DataConfig().batch_tokens
        tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
        return [
            score_likelihood(
                loaded, name, split_from_lines(text_lines, *tokenizers), batch_tokens, reporter, stride=config.stride
            )
            for name, text_lines in lines.items()
        ]

    evaluated_model = read_evaluated_model(manifest.path, manifest.fingerprint, "files")
    if out is None:
        return show_unpublished_scores(score_texts_of_files(None), reporter, evaluated_model)
    inputs = {"model": manifest.as_input(), **{f"text {name}": Input.from_file(file) for name, file in names.items()}}
    settings: dict[str, Any] = {"evaluation": {"stride": config.stride}}
    settings["texts"] = list(names)  # in their order, as the first is the main one
    plan = Plan(stage="evaluate", folder=out, config=settings, inputs=inputs, seed=seed)
    return publish_scores(plan, score_texts_of_files, None, command, reporter, evaluated_model)
