"""Files of hypotheses scored, or those that a model gives for a file of sources."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.typing_errors import add_typos_to_lines
from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact
from tfm.pipeline.artifacts.compatibility import trained_task
from tfm.pipeline.config import DecodingConfig, Device, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.reports.published_scores import publish_scores, show_unpublished_scores, warn_of_failed_metrics
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_given_files, write_texts
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.full_evaluation import (
    check_metrics,
    evaluate_with_model,
    metric_inputs,
    score_relevant_config,
)
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.ledger import evaluated_model_of_files
from tfm.pipeline.tasks.abilities import CAPTIONS_ADVICE, TASK_SPECS, task_evaluation_config

if TYPE_CHECKING:
    from tfm.pipeline.cluster.translation import ClusterTranslator
    from tfm.pipeline.model_io.loaded_model import LoadedModel


def evaluate_files(
    config: EvaluationConfig,
    *,
    hypotheses: Path | None,
    model: Path | None,
    ensemble: Sequence[Path] = (),
    source: Path | None,
    references: Sequence[Path],
    decoding: DecodingConfig,
    prefix: str | None = None,
    prefixes: Path | None = None,
    forced: Path | None = None,
    out: Path | None,
    seed: int = 1,
    command: Sequence[str] = (),
    reporter: Reporter,
    device: Device = "auto",
    to: str | None = None,
    source_language: str | None = None,
    noise: float | None = None,
    cluster: str | None = None,
) -> dict[str, Any]:
    """Score the hypotheses in a file, or those that a model gives for a file of sources, against one or more
    references.

    Perplexity needs both `model` and `source`.

    Args:
        config: the [evaluation] part of a recipe.
        hypotheses: the file of hypotheses; None where the model gives them.
        model: the folder of the model; None for none.
        ensemble: the folders of the other models of an ensemble.
        source: the file of sources; None for none.
        references: the files of references.
        decoding: the [decoding] part of a recipe.
        prefix: the prefix of all hypotheses; None for none.
        prefixes: the file of prefixes, as of `tfm translate`; None for none.
        forced: the file of forced phrases, as of `tfm translate`; None for none.
        out: the folder where an artifact is published, with the hypotheses if the model made them; None for none.
        seed: the seed of the run, by which `noise` is drawn.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        to: the target language, of a model of several.
        source_language: the source language, for a model that is told it.
        noise: the share of the source's characters that is mistyped before the model reads it (`data.typing_errors`),
            as each score's signature says; None for none.
        cluster: the address of a cluster that translates the sources; None for this process alone.

    Returns:
        The content of scores.json.

    Raises:
        DataError: line counts differ.
        RecipeError: nothing gives hypotheses.
    """
    if not references:
        raise RecipeError("there is no reference: give --reference FILE")
    check_metrics(config)
    if hypotheses is None and (model is None or source is None):
        raise RecipeError("nothing to score: give --hypotheses FILE, or --model DIR and --source FILE")
    if config.tests != "always":
        raise RecipeError(f'evaluation.tests = "{config.tests}" is for recipes: files are scored when they are given')
    if config.stride is not None:
        raise RecipeError(
            f"evaluation.stride = {config.stride} is for the texts of a language model: give --model DIR and "
            "--reference FILE alone"
        )
    files = {"source": source, "hypotheses": hypotheses, "prefixes": prefixes, "forced": forced}
    files |= {f"reference_{number}": reference for number, reference in enumerate(references, 1)}
    lines = read_given_files({name: file for name, file in files.items() if file is not None})
    if noise is not None:
        if not 0 <= noise <= 1:
            raise RecipeError(f"--noise {noise} is no share: give a number from 0 to 1")
        lines["source"] = add_typos_to_lines(lines["source"], noise, seed)

    def score_files(folder: Path | None) -> list[Evaluation]:
        # without a source the model has nothing to do
        loaded = None
        if model is not None and source is not None:
            loaded = _load_models(model, ensemble, device).for_languages(to, source_language)
        if loaded is not None:
            loaded.check_reads_text(CAPTIONS_ADVICE)
        if loaded is not None and hypotheses is None:
            remote = None
            if cluster is not None:
                from tfm.pipeline.cluster.translation import open_cluster_translator  # loads what models need

                remote = partial(
                    open_cluster_translator, cluster, None, [each.as_input() for each in members], decoding, device
                )
            languages = to, source_language
            lines["hypotheses"] = _translate_lines(
                loaded, lines, prefix, decoding, reporter, remote, languages, next(iter(shortlist.values()), None)
            )
        segments = Segments(
            name=references[0].name + ("" if noise is None else f", noise {noise:g}"),
            sources=lines.get("source"),
            hypotheses=lines["hypotheses"],
            references=[lines[name] for name in lines if name.startswith("reference_")],
        )
        if folder is not None:
            write_texts(folder, segments.sources, segments.hypotheses, segments.references)
        if loaded is not None:
            from tfm.pipeline.inference.labelling import warn_of_unseen_labels  # with the model torch is there anyway

            warn_of_unseen_labels(loaded, segments.references, reporter)
        requested = model is not None or "metrics" in config.model_fields_set
        found = evaluate_with_model(segments, suited, loaded, requested, seed=seed, reporter=reporter)
        if decoding.replace_unknown and hypotheses is None:
            found = found.add_replaced_words_to_signatures()
        return [found if noise is None else found.add_to_signatures(f"noise:{noise:g}|noise-seed:{seed}")]

    shortlist: dict[str, Input] = {}
    if hypotheses is None and decoding.shortlist is not None:
        from tfm.pipeline.model_io.shortlist_folder import shortlist_inputs  # loads numpy, which files do without

        shortlist = shortlist_inputs(decoding)
    members = [] if model is None else [open_artifact(each, "train") for each in (model, *ensemble)]
    suited = task_evaluation_config(trained_task(members[0]), config) if members else config
    if suited.lowercase and {*suited.metrics} <= {"accuracy", "macro_f1", "entity_f1"}:
        raise RecipeError(
            "evaluation.lowercase has no effect on accuracy, macro_f1 and entity_f1, which respect case. Remove it"
        )
    looker = evaluated_model_of_files(members, hypotheses)
    if out is None:
        return show_unpublished_scores(score_files(None), reporter, looker)
    inputs = {name: Input.from_file(file) for name, file in files.items() if file is not None}
    inputs |= {f"model {number}" if number > 1 else "model": each.as_input() for number, each in enumerate(members, 1)}
    inputs |= metric_inputs(config) | shortlist
    given: dict[str, Any] = {"prefix": prefix, "to": to, "from": source_language, "noise": noise}
    given |= {"decoding": decoding.as_json() if hypotheses is None else None}
    resolved = score_relevant_config(config) | {name: value for name, value in given.items() if value is not None}
    plan = Plan(stage="evaluate", folder=out, config=resolved, inputs=inputs, seed=seed)
    content = publish_scores(plan, score_files, None, command, reporter, looker)
    warn_of_failed_metrics(content, [metric.name for metric in config.external], out, reporter)
    return content


def _translate_lines(
    loaded: "LoadedModel",
    lines: Mapping[str, list[str]],
    prefix: str | None,
    decoding: DecodingConfig,
    reporter: Reporter,
    open_cluster_translator: "Callable[[], AbstractContextManager[ClusterTranslator]] | None",
    languages: tuple[str | None, str | None],
    known_shortlist: Input | None,
) -> list[str]:
    """Return the model's hypothesis of each source. Raises DataError for a model that gives none."""
    from tfm.pipeline.inference.translation import translate_texts  # with the model torch is there anyway
    from tfm.pipeline.model_io.shortlist_folder import load_shortlist

    if not TASK_SPECS[loaded.config.task].gives_hypotheses:
        how = "remove --source, and the model says how probable it finds the text in --reference"
        raise DataError(f"was trained for {loaded.config.task} and does not translate: {how}", file=loaded.folder)
    starts = lines.get("prefixes", None if prefix is None else [prefix] * len(lines["source"]))
    given: dict[str, Any] = {"prefixes": starts, "forced": lines.get("forced")}
    if open_cluster_translator is None:
        shortlist = load_shortlist(loaded, decoding, known_shortlist)
        return translate_texts(loaded, lines["source"], decoding, reporter, **given, shortlist=shortlist)
    with open_cluster_translator() as translator, reporter.bar("translating", len(lines["source"]), "sentences") as bar:
        found = translator.translate(lines["source"], languages, reporter=reporter, on_done=bar.advance, **given)
        return [translations[0].text for translations in found]


def _load_models(model: Path, ensemble: Sequence[Path], device: Device) -> "LoadedModel":
    from tfm.pipeline.model_io.ensemble import load_ensemble  # here, as they need torch
    from tfm.pipeline.model_io.loaded_model import load_model

    return load_ensemble([model, *ensemble], device) if ensemble else load_model(model, device)
