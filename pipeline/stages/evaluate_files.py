"""Files of hypotheses scored, or those that a model gives for a file of sources."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.image_config import IMAGES_FILE
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
    from tfm.pipeline.artifacts.manifest import Input, Manifest
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
    with_details: bool = True,
) -> dict[str, Any]:
    """Score the hypotheses in a file, or those that a model gives for a file of sources, against one or more
    references.

    Perplexity needs both `model` and `source`.

    Args:
        config: the [evaluation] part of a recipe.
        hypotheses: the file of hypotheses; None if the model gives them.
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
        with_details: whether scores by length and samples are found where `out` is None, and nothing shows them.

    Returns:
        The content of scores.json.

    Raises:
        DataError: line counts differ.
        RecipeError: nothing gives hypotheses.
    """
    _check_request(config, hypotheses, model, source, references)
    members: list[Manifest] = []
    if model is not None:
        from tfm.pipeline.artifacts.manifest import open_artifact  # here, as files alone are no artifacts

        members = [open_artifact(each, "train") for each in (model, *ensemble)]
    if source is not None and any(IMAGES_FILE in each.files for each in members):
        raise DataError(f"reads images, not text: {CAPTIONS_ADVICE}", file=model)
    files = {"source": source, "hypotheses": hypotheses, "prefixes": prefixes, "forced": forced}
    files |= {f"reference_{number}": reference for number, reference in enumerate(references, 1)}
    lines = read_given_files({name: file for name, file in files.items() if file is not None}, reporter)
    if noise is not None:
        if not 0 <= noise <= 1:
            raise RecipeError(f"--noise {noise} is no share: give a number from 0 to 1")
        from tfm.data.typing_errors import add_typos_to_lines  # loads regex, which most texts do without

        lines["source"] = add_typos_to_lines(lines["source"], noise, seed)
    shortlist: dict[str, Input] = {}
    if hypotheses is None and decoding.shortlist is not None:
        from tfm.pipeline.model_io.shortlist_folder import shortlist_inputs  # loads numpy, which files do without

        shortlist = shortlist_inputs(decoding)
    task_config = config
    if members:
        from tfm.pipeline.artifacts.compatibility import trained_task

        task_config = task_evaluation_config(trained_task(members[0]), config)
    if task_config.lowercase and {*task_config.metrics} <= {"accuracy", "macro_f1", "entity_f1"}:
        raise RecipeError(
            "evaluation.lowercase has no effect on accuracy, macro_f1 and entity_f1, which respect case. Remove it"
        )
    translator = None
    if members and source is not None:  # without a source a model has nothing to do
        languages = to, source_language
        translator = FileTranslator(members, decoding, prefix, shortlist, device, languages, cluster)
    wants_perplexity = model is not None or "metrics" in config.model_fields_set
    set_name = references[0].name + ("" if noise is None else f", noise {noise:g}")

    def score_files(folder: Path | None) -> list[Evaluation]:
        evaluation = score_lines(
            lines,
            set_name,
            task_config,
            translator,
            folder,
            wants_perplexity=wants_perplexity,
            seed=seed,
            reporter=reporter,
            with_details=with_details or folder is not None,
        )
        return [evaluation if noise is None else evaluation.add_to_signatures(f"noise:{noise:g}|noise-seed:{seed}")]

    evaluated_model = evaluated_model_of_files(members, hypotheses)
    if out is None:
        return show_unpublished_scores(score_files(None), reporter, evaluated_model)
    from tfm.pipeline.artifacts import artifact  # here, as scores that are shown alone are no artifact

    inputs = {name: artifact.Input.from_file(file) for name, file in files.items() if file is not None}
    inputs |= {f"model {number}" if number > 1 else "model": each.as_input() for number, each in enumerate(members, 1)}
    inputs |= metric_inputs(config) | shortlist
    request: dict[str, Any] = {"prefix": prefix, "to": to, "from": source_language, "noise": noise}
    request |= {"decoding": decoding.as_json() if hypotheses is None else None}
    settings = score_relevant_config(config) | {name: value for name, value in request.items() if value is not None}
    plan = artifact.Plan(stage="evaluate", folder=out, config=settings, inputs=inputs, seed=seed)
    content = publish_scores(plan, score_files, None, command, reporter, evaluated_model)
    warn_of_failed_metrics(content, [metric.name for metric in config.external], out, reporter)
    return content


def _check_request(
    config: EvaluationConfig,
    hypotheses: Path | None,
    model: Path | None,
    source: Path | None,
    references: Sequence[Path],
) -> None:
    """Raise RecipeError if nothing can be scored, or a setting is of something else."""
    if not references:
        raise RecipeError("there is no reference: give --reference FILE")
    check_metrics(config)
    if not config.metrics and not config.external:
        raise RecipeError("evaluation.metrics = [] is no score: give --metric NAME")
    if hypotheses is None and (model is None or source is None):
        raise RecipeError("nothing to score: give --hypotheses FILE, or --model DIR and --source FILE")
    if config.tests != "always":
        raise RecipeError(f'evaluation.tests = "{config.tests}" is for recipes: files are scored when they are given')
    if config.stride is not None:
        raise RecipeError(
            f"evaluation.stride = {config.stride} is for the texts of a language model: give --model DIR and "
            "--reference FILE alone"
        )


@dataclass(frozen=True)
class FileTranslator:
    """A model, or an ensemble, that gives hypotheses for the sources of a file, and perplexity.

    Args:
        members: the models, the main one first.
        decoding: the [decoding] part of a recipe.
        prefix: the prefix of all hypotheses; None for none.
        shortlist: the input of a manifest that names the shortlist, if decoding has one.
        device: name of the device.
        languages: target and source language, of a model of several.
        cluster: the address of a cluster that translates; None for this process alone.
    """

    members: "Sequence[Manifest]"
    decoding: DecodingConfig
    prefix: str | None
    shortlist: "Mapping[str, Input]"
    device: Device
    languages: tuple[str | None, str | None]
    cluster: str | None

    def load(self, reporter: Reporter) -> "LoadedModel":
        """The loaded model. Raises DataError if it reads no text.

        Args:
            reporter: shows warnings.
        """
        from tfm.pipeline.model_io.ensemble import load_ensemble  # here, as they need torch
        from tfm.pipeline.model_io.loaded_model import load_model

        folders = [each.path for each in self.members]
        loaded = (
            load_ensemble(folders, self.device, reporter=reporter)
            if len(folders) > 1
            else load_model(folders[0], self.device)
        )
        return loaded.for_languages(*self.languages)

    def translate(self, loaded: "LoadedModel", lines: Mapping[str, list[str]], reporter: Reporter) -> list[str]:
        """The best hypothesis of each source.

        Args:
            loaded: the loaded model.
            lines: of the source, and of prefixes and forced phrases where there are such.
            reporter: receives progress.

        Raises:
            DataError: the model gives no hypotheses.
        """
        if not TASK_SPECS[loaded.config.task].gives_hypotheses:
            remedy = "remove --source, and the model says how probable it finds the text in --reference"
            raise DataError(
                f"was trained for {loaded.config.task} and does not translate: {remedy}", file=loaded.folder
            )
        sources = lines["source"]
        starts = lines.get("prefixes", None if self.prefix is None else [self.prefix] * len(sources))
        line_constraints: dict[str, Any] = {"prefixes": starts, "forced": lines.get("forced")}
        if self.cluster is None:
            from tfm.pipeline.inference.translation import translate_texts  # with the model torch is there anyway
            from tfm.pipeline.model_io.shortlist_folder import load_shortlist

            shortlist = load_shortlist(loaded, self.decoding, next(iter(self.shortlist.values()), None))
            return translate_texts(loaded, sources, self.decoding, reporter, **line_constraints, shortlist=shortlist)
        with self._open_cluster(self.cluster) as remote, reporter.bar("translating", len(sources), "sentences") as bar:
            hypotheses = remote.translate(
                sources, self.languages, reporter=reporter, on_done=bar.advance, **line_constraints
            )
            return [translations[0].text for translations in hypotheses]

    def _open_cluster(self, address: str) -> "AbstractContextManager[ClusterTranslator]":
        from tfm.pipeline.cluster.translation import open_cluster_translator  # loads what models need

        members = [each.as_input() for each in self.members]
        return open_cluster_translator(address, None, members, self.decoding, self.device)


def score_lines(
    lines: Mapping[str, list[str]],
    set_name: str,
    config: EvaluationConfig,
    translator: FileTranslator | None,
    folder: Path | None,
    *,
    wants_perplexity: bool,
    seed: int,
    reporter: Reporter,
    with_details: bool = True,
) -> Evaluation:
    """Score the lines of files.

    Args:
        lines: of hypotheses, unless the translator gives them, of references by number, and of others that there are.
        set_name: the name of the test set.
        config: the [evaluation] part that suits the task.
        translator: gives hypotheses and perplexity; None if no model reads the sources.
        folder: where the texts are written; None for nowhere.
        wants_perplexity: whether perplexity was requested, so that its absence is reported.
        seed: the seed of the run.
        reporter: receives messages.
        with_details: whether scores by length and samples are found, as `evaluate_segments` has it.
    """
    loaded = None if translator is None else translator.load(reporter)
    hypotheses = lines.get("hypotheses")
    is_translated = hypotheses is None
    if hypotheses is None:
        assert translator is not None
        assert loaded is not None
        hypotheses = translator.translate(loaded, lines, reporter)
    references = [lines[name] for name in lines if name.startswith("reference_")]
    segments = Segments(name=set_name, sources=lines.get("source"), hypotheses=hypotheses, references=references)
    if folder is not None:
        write_texts(folder, segments.sources, segments.hypotheses, segments.references)
    if loaded is not None:
        from tfm.pipeline.inference.labelling import warn_of_unseen_labels  # with the model torch is there anyway

        warn_of_unseen_labels(loaded, segments.references, reporter)
    evaluation = evaluate_with_model(
        segments, config, loaded, wants_perplexity, seed=seed, reporter=reporter, with_details=with_details
    )
    is_replaced = is_translated and translator is not None and translator.decoding.replace_unknown
    return evaluation.add_replaced_words_to_signatures() if is_replaced else evaluation
