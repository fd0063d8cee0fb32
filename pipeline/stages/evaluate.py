"""The evaluate stage: scores with signatures and a report, from translations or from files alone."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.artifact_tokenizers import load_pair
from tfm.data.dataset.directions import Direction, targets_of
from tfm.data.dataset.store import load_dataset
from tfm.data.typing_errors import mistyped_lines
from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact, read_artifact
from tfm.pipeline.artifacts.compatibility import check_made_from, check_tokenizer, task_of
from tfm.pipeline.config import DecodingConfig, Device, EvaluationConfig, Scored
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.translation import best_texts
from tfm.pipeline.reports.published_scores import published_scores, shown_scores, warn_of_failed
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import aligned, splits_scored, translated
from tfm.pipeline.scoring.evaluation import Evaluation, Segments, assess
from tfm.pipeline.scoring.ledger import looker_of, looker_of_files
from tfm.pipeline.scoring.metrics.external import external_scores, inputs_of
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.scoring.metrics.tokenization import check_installed
from tfm.pipeline.scoring.metrics.wordnet import check_folder, fingerprint, folder_of
from tfm.pipeline.scoring.metrics.wrong_language import LanguageIdentifier, identifier_of, wrong_language
from tfm.pipeline.tasks.abilities import ABILITIES, evaluation_of

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel


def plan(
    model: Path,
    dataset: Path,
    translations: Path | None,
    config: EvaluationConfig,
    out: Path,
    *,
    seed: int = 1,
    scored: Scored = "tests",
) -> Plan:
    """What `evaluate_tests` will make, from what. Raises DataError where the translations are of something else."""
    manifests = {"model": open_artifact(model, "train"), "dataset": open_artifact(dataset, "preprocess")}
    if translations is None:
        check_tokenizer(manifests["model"], manifests["dataset"])
    else:
        made = manifests[input_name(scored)] = open_artifact(translations, "translate")
        check_made_from(made, model=manifests["model"], dataset=manifests["dataset"])
    return Plan(
        stage="evaluate",
        folder=out,
        config=_resolved(config) | ({} if scored == "tests" else {"split": scored}),
        inputs={name: manifest.as_input() for name, manifest in manifests.items()} | _inputs(config),
        seed=seed,
    )


def input_name(scored: Scored) -> str:
    """What the translations are called among the inputs of their scores."""
    return "translations" if scored == "tests" else f"translations-{scored}"


def evaluate_tests(
    model: Path,
    dataset: Path,
    translations: Path | None,
    training: Path | None,
    config: EvaluationConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    scored: Scored = "tests",
    chosen: str = "recipe",
) -> dict[str, Any]:
    """Scores the translations of every test set of `dataset`, or of its validation split, into `out`.

    The first test set is the main one. Without translations (of a model that makes none) the model is scored by how
    probable it finds the test sets. `training` is the folder whose metrics.jsonl the report draws; `chosen` says for
    the ledger how the model was chosen. Returns the content of scores.json.
    """
    config = evaluation_of(task_of(open_artifact(model, "train")), config)
    _check(config)
    todo = plan(model, dataset, translations, config, out, seed=seed, scored=scored)

    def work(folder: Path | None) -> list[Evaluation]:
        if translations is None:
            from tfm.pipeline.scoring.held_out import held_out  # here, as it needs torch

            data = read_artifact(dataset, lambda _: load_dataset(dataset), known=todo.inputs["dataset"])
            reads = _load(model, device, todo.inputs["model"])
            return [
                held_out(reads, name, split, data.batch_tokens, reporter, stride=config.stride)
                for name, split in splits_scored(data, scored).items()
            ]
        loaded = _load(model, device, todo.inputs["model"]) if "perplexity" in config.metrics else None
        tests = read_artifact(
            translations, lambda _: translated(dataset, translations, scored), known=todo.inputs[input_name(scored)]
        )
        judge = partial(_assess, config=config, loaded=loaded, asked=True, seed=seed, reporter=reporter)
        if not any(segments.directions for segments in tests):
            return [judge(segments) for segments in tests]
        data = read_artifact(dataset, lambda _: load_dataset(dataset), known=todo.inputs["dataset"])
        trained = data.directions["train"]
        identifier = identifier_of(data.train, trained, *load_pair(data.tokenizer_folder))
        if scored == "valid":
            tests += [part for segments in tests for part in segments.by_direction()]
        return [_in_languages(judge(segments, identifier=identifier), segments, trained) for segments in tests]

    looker = looker_of(model, todo.inputs["model"].fingerprint, chosen) if scored == "tests" else None
    content = published_scores(todo, work, training, command, reporter, looker)
    if scored == "valid":
        reporter.line("these are scores of the validation split; the test sets are for `tfm evaluate --final`")
    warn_of_failed(content, [metric.name for metric in config.external], out, reporter)
    return content


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
    noise: float | None = None,
) -> dict[str, Any]:
    """Scores the hypotheses in a file, or those that `model` gives for `source`, against one or more references.

    Perplexity needs both `model` and `source`. `ensemble`, `prefixes` and `forced` are those of `tfm translate`, and
    `prefix` is one for all lines; `to` is the language, of a model of several. With `out`, an artifact is published
    there, with the hypotheses if the model made them. `noise`: the share of the source's characters that is mistyped
    before the model reads it (`data.typing_errors`), drawn by `seed`; each score's signature says so. Returns the
    content of scores.json. Raises DataError where line counts differ, RecipeError where nothing gives hypotheses.
    """
    if not references:
        raise RecipeError("there is no reference: give --reference FILE")
    _check(config)
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
    lines = aligned({name: file for name, file in files.items() if file is not None})
    if noise is not None:
        if not 0 <= noise <= 1:
            raise RecipeError(f"--noise {noise} is no share: give a number from 0 to 1")
        lines["source"] = mistyped_lines(lines["source"], noise, seed)

    def work(folder: Path | None) -> list[Evaluation]:
        # without a source the model has nothing to do
        loaded = None if model is None or source is None else _load(model, device, ensemble=ensemble).towards(to)
        if loaded is not None:
            loaded.check_reads_text("`tfm translate MODEL IMAGES --out DIR` writes captions, which --hypotheses scores")
        if loaded is not None and hypotheses is None:
            if not ABILITIES[loaded.config.task].gives_hypotheses:
                how = "omit --source, and the model says how probable it finds the text in --reference"
                raise DataError(f"was trained for {loaded.config.task} and does not translate: {how}", file=model)
            if noise is not None and loaded.config.vision is not None:
                raise DataError("reads images, and typing errors are made in texts: omit --noise", file=model)
            starts = lines.get("prefixes", None if prefix is None else [prefix] * len(lines["source"]))
            words = {"prefixes": starts, "forced": lines.get("forced")}
            lines["hypotheses"] = best_texts(loaded, lines["source"], decoding, reporter, **words)
            for name in ("hypotheses",) if noise is None else ("hypotheses", "source"):
                if folder is not None:
                    text = "".join(line + "\n" for line in lines[name])
                    (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
        segments = Segments(
            name=references[0].name + ("" if noise is None else f", noise {noise:g}"),
            sources=lines.get("source"),
            hypotheses=lines["hypotheses"],
            references=[lines[name] for name in lines if name.startswith("reference_")],
        )
        if loaded is not None:
            from tfm.pipeline.inference.labelling import warn_of_unseen  # with the model torch is there anyway

            warn_of_unseen(loaded, segments.references, reporter)
        asked = model is not None or "metrics" in config.model_fields_set
        suited = config if loaded is None else evaluation_of(loaded.config.task, config)
        found = _assess(segments, suited, loaded, asked, seed=seed, reporter=reporter)
        return [found if noise is None else found.signed(f"noise:{noise:g}|noise-seed:{seed}")]

    members = [] if model is None else [open_artifact(each, "train") for each in (model, *ensemble)]
    looker = looker_of_files(members, hypotheses)
    if out is None:
        return shown_scores(work(None), reporter, looker)
    inputs = {name: Input.of_file(file) for name, file in files.items() if file is not None}
    inputs |= {f"model {number}" if number > 1 else "model": each.as_input() for number, each in enumerate(members, 1)}
    inputs |= _inputs(config)
    given: dict[str, Any] = {"prefix": prefix, "to": to, "noise": noise}
    given |= {"decoding": decoding.model_dump(mode="json") if hypotheses is None else None}
    resolved = _resolved(config) | {name: value for name, value in given.items() if value is not None}
    todo = Plan(stage="evaluate", folder=out, config=resolved, inputs=inputs, seed=seed)
    content = published_scores(todo, work, None, command, reporter, looker)
    warn_of_failed(content, [metric.name for metric in config.external], out, reporter)
    return content


def _check(config: EvaluationConfig) -> None:
    """Raise before anything is translated: RecipeError where BLEU's tokenizer is not installed, DataError where the
    folder of METEOR's WordNet is none."""
    if "bleu" in config.metrics:
        check_installed(config)
    if folder := folder_of(config):
        check_folder(folder)


def _resolved(config: EvaluationConfig) -> dict[str, Any]:
    """What determines scores: when they are made is no part of it."""
    return {"evaluation": config.model_dump(mode="json", exclude={"tests"})}


def _inputs(config: EvaluationConfig) -> dict[str, Input]:
    """What the metrics read: METEOR's WordNet, and the files that external commands name."""
    folder = folder_of(config)
    wordnet = {} if folder is None else {"wordnet": Input.of_value(fingerprint(folder), str(folder))}
    return wordnet | inputs_of(config.external)


def _assess(
    segments: Segments,
    config: EvaluationConfig,
    loaded: "LoadedModel | None",
    asked: bool,
    *,
    seed: int,
    reporter: Reporter,
    identifier: LanguageIdentifier | None = None,
) -> Evaluation:
    """All scores of `segments`, perplexity among them where there is a model and a source, and external metrics.

    `asked`: whether perplexity was requested, so that its absence is reported. `identifier`: tells the languages of
    hypotheses, where the segments have some.
    """
    extra: dict[str, Score] = {}
    if identifier is not None:
        extra["wrong_language"] = wrong_language(segments.hypotheses, targets_of(segments.directions), identifier)
    missing: dict[str, str] = {}
    likelihoods = None
    if "perplexity" in config.metrics:
        if loaded is not None and not ABILITIES[loaded.config.task].translates:
            missing["perplexity"] = f"does not apply to references: the model was trained for {loaded.config.task}"
        elif loaded is not None and loaded.images is not None and segments.images is None:
            missing["perplexity"] = "needs the images, which only a recipe's test sets have"
        elif loaded is not None and segments.sources is not None:
            # here, not at the top: scoring files alone needs no torch
            from tfm.pipeline.scoring.perplexity import perplexity

            read = segments.sources if segments.images is None else segments.images
            of_model, likelihoods = perplexity(
                loaded, read, segments.references, reporter=reporter, directions=segments.directions
            )
            extra |= of_model
        elif asked:
            missing["perplexity"] = "needs a model and a source: give --model DIR and --source FILE"
    texts = segments.sources, segments.hypotheses, segments.references
    others = external_scores(config.external, segments.name, *texts, reporter)
    return assess(
        segments,
        config,
        seed=seed,
        reporter=reporter,
        extra=extra | others.scores,
        missing=missing | others.missing,
        likelihoods=likelihoods,
        external=others.numbers,
    )


def _in_languages(found: Evaluation, segments: Segments, trained: Sequence[Direction]) -> Evaluation:
    """The evaluation of a test set with its languages, where they are the same in all rows."""
    pairs = {each.pair for each in segments.directions}
    if len(pairs) != 1:
        return found
    (pair,) = pairs
    return replace(found, direction=pair, zero_shot=pair not in {each.pair for each in trained})


def _load(model: Path, device: Device, known: Input | None = None, *, ensemble: Sequence[Path] = ()) -> "LoadedModel":
    from tfm.pipeline.model_io.ensemble import load_ensemble
    from tfm.pipeline.model_io.loaded_model import load_model

    return load_ensemble([model, *ensemble], device) if ensemble else load_model(model, device, known=known)
