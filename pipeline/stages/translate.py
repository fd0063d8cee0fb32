"""The translate stage: lines of text to translations by a trained model, streamed, in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm.data.dataset.directions import Direction
from tfm.data.dataset.store import load_dataset
from tfm.data.images.row_images import RowImages
from tfm.data.lines import open_lines
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, open_artifact, publish, read_artifact
from tfm.pipeline.artifacts.compatibility import check_same_tokenizer
from tfm.pipeline.cluster.translation import Languages, open_cluster_translator, select_languages
from tfm.pipeline.config import DecodingConfig, Device, EvalSplit
from tfm.pipeline.inference.translation import translate_images, translate_lines
from tfm.pipeline.inference.translation_records import (
    IMAGE_CONTENTS_KEY,
    IMAGES_UNIT,
    Translation,
    join_to_one_line,
    reference_file_name,
    write_translations,
)
from tfm.pipeline.model_io.shortlist_folder import STAGE as SHORTLIST_STAGE
from tfm.pipeline.model_io.shortlist_folder import load_shortlist, shortlist_inputs
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import select_splits_to_score

if TYPE_CHECKING:
    from tfm.pipeline.decoding.shortlist import Shortlist
    from tfm.pipeline.model_io.loaded_model import LoadedModel

# torch is imported where it is needed: a stage that is up to date reports so without it

CHUNK_IMAGES = 8192


def plan_test_translation(
    model: Path, dataset: Path, config: DecodingConfig, out: Path, *, seed: int = 1, eval_split: EvalSplit = "tests"
) -> Plan:
    """Return the plan of `translate_tests`.

    Args:
        model: the folder of the model.
        dataset: the folder of the dataset.
        config: the [decoding] part of a recipe.
        out: the folder of the translations.
        seed: the seed of the run.
        eval_split: the split to translate.

    Raises:
        DataError: the model has another tokenizer.
    """
    network, data = open_artifact(model, "train"), open_artifact(dataset, "preprocess")
    check_same_tokenizer(network, data)
    plan = _make_plan({"model": network.as_input(), "dataset": data.as_input()}, config, out, seed)
    return plan if eval_split == "tests" else replace(plan, config={**plan.config, "split": eval_split})


def plan_file_translation(
    model: Path,
    source: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
    to: str | None = None,
    source_language: str | None = None,
) -> Plan:
    """Return the plan of `translate_file`.

    Args:
        model: the folder of the model.
        source: the file of sources.
        config: the [decoding] part of a recipe.
        out: the folder of the translations.
        seed: the seed of the run.
        prefixes: the file of prefixes; None for none.
        forced: the file of forced phrases; None for none.
        ensemble: the folders of the other models of the ensemble.
        to: the target language, of a model of several.
        source_language: the source language, of a model of several.
    """
    inputs = {"model": Input.from_artifact(model, "train"), "source": Input.from_file(source)}
    inputs |= {f"model {number}": Input.from_artifact(folder, "train") for number, folder in enumerate(ensemble, 2)}
    for name, file in (("prefixes", prefixes), ("forced", forced)):
        if file is not None:
            inputs[name] = Input.from_file(file)
    plan = _make_plan(inputs, config, out, seed)
    languages = {"to": to, "from": source_language}
    return replace(plan, config={**plan.config, **{name: code for name, code in languages.items() if code is not None}})


def _make_plan(inputs: dict[str, Input], config: DecodingConfig, out: Path, seed: int) -> Plan:
    return Plan("translate", out, {"decoding": config.as_json()}, inputs | shortlist_inputs(config), seed)


def translate_tests(
    model: Path,
    dataset: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    eval_split: EvalSplit = "tests",
    cluster: str | None = None,
) -> None:
    """Translate the source of every test set of a dataset, or of its validation split.

    For each test set: NAME.txt, best translations one a line; NAME.jsonl, all `n_best` with scores; NAME.source.txt
    and NAME.reference.txt; further references in NAME.reference.2.txt, ..., an empty line where a segment has not so
    many.

    Args:
        model: the folder of the model.
        dataset: the folder of the dataset.
        config: the [decoding] part of a recipe.
        out: the folder of the translations.
        seed: the seed of the run.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        eval_split: the split to translate.
        cluster: the address of a cluster that translates texts; None for this process alone.
    """
    plan = plan_test_translation(model, dataset, config, out, seed=seed, eval_split=eval_split)
    if is_fresh(plan, reporter):
        return
    from tfm.pipeline.model_io.loaded_model import load_model

    with publish(plan, command=command) as draft, ExitStack() as stack:
        loaded = load_model(model, device, must_match=plan.inputs["model"])
        shortlist = load_shortlist(loaded, config, plan.inputs.get(SHORTLIST_STAGE))
        remote = None
        if cluster is not None:
            loaded.check_reads_text("translate them without --cluster")
            remote = stack.enter_context(open_cluster_translator(cluster, plan, [plan.inputs["model"]], config, device))
        data = read_artifact(dataset, lambda _: load_dataset(dataset), must_match=plan.inputs["dataset"])
        for name, split in select_splits_to_score(data, eval_split).items():
            sources, references = split.texts()
            for number, column in enumerate((references, *split.further_references()), 1):
                with open(
                    draft.folder / reference_file_name(name, number), "w", encoding="utf-8", newline="\n"
                ) as file:
                    file.writelines(join_to_one_line(reference) + "\n" for reference in column)
            unit = "sentences" if split.images is None else "images"
            with reporter.bar(f"translating {name}", len(sources), unit) as bar:
                if split.images is not None:
                    translate_split = partial(_translate_images, loaded, split.images, config, reporter, bar.advance)
                    extra_figures = (
                        {} if (contents := split.images.store.contents) is None else {IMAGE_CONTENTS_KEY: contents}
                    )
                    source_name = f"{name}.source"
                    write_translations(
                        draft,
                        name,
                        source_name,
                        sources,
                        translate_split,
                        reporter,
                        unit=IMAGES_UNIT,
                        extra_figures=extra_figures,
                    )
                    continue
                if remote is None:
                    translate_sources = partial(_translate_locally, loaded, config, reporter, bar.advance, shortlist)
                else:
                    translate_sources = partial(remote.translate, reporter=reporter, on_done=bar.advance)
                translate_by_direction = partial(
                    _translate_directions, translate_sources, data.directions.get(name, ())
                )
                write_translations(draft, name, f"{name}.source", sources, translate_by_direction, reporter)


def _translate_images(
    loaded: "LoadedModel",
    images: RowImages,
    config: DecodingConfig,
    reporter: Reporter,
    on_done: Callable[[int], None],
    _: Iterable[str],
) -> Iterator[list[Translation]]:
    """The captions or labels of a split's images."""
    images = images.with_image_transform(loaded.require_image_transform())
    rows = range(0, len(images), CHUNK_IMAGES)
    portions = (images.select_rows(np.arange(first, min(first + CHUNK_IMAGES, len(images)))) for first in rows)
    return translate_images(loaded, portions, config, reporter=reporter, on_done=on_done)


def _translate_locally(
    loaded: "LoadedModel",
    config: DecodingConfig,
    reporter: Reporter,
    on_done: Callable[[int], None],
    shortlist: "Shortlist | None",
    sources: Iterable[str],
    languages: Languages,
) -> Iterator[list[Translation]]:
    """The translations of some sources by this process."""
    translator = select_languages(loaded, languages)
    return translate_lines(translator, sources, config, reporter=reporter, on_done=on_done, shortlist=shortlist)


def _translate_directions(
    translate: Callable[[Iterable[str], Languages], Iterator[list[Translation]]],
    directions: Sequence[Direction],
    sources: Iterable[str],
) -> Iterator[list[Translation]]:
    """The translations of a split's sources, of each row into the language that the split says."""
    if not directions:
        yield from translate(sources, (None, None))
    sources = iter(sources)
    for direction in directions:
        yield from translate(islice(sources, direction.rows), direction)


def translate_file(
    model: Path,
    source: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
    to: str | None = None,
    source_language: str | None = None,
    cluster: str | None = None,
) -> None:
    """Translate a text file into a folder: hypotheses.txt, hypotheses.jsonl with scores, and source.txt.

    Args:
        model: the folder of the model.
        source: the file of sources.
        config: the [decoding] part of a recipe.
        out: the folder of the translations.
        seed: the seed of the run.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        prefixes: a file with the prefix of each translation, line by line; None for none.
        forced: a file with the forced phrases of each translation, between tabs; None for none.
        ensemble: the folders of models that translate together with the first.
        to: the target language, of a model of several.
        source_language: the source language, of a model of several.
        cluster: the address of a cluster that translates; None for this process alone.
    """
    extra_files: dict[str, Any] = {"prefixes": prefixes, "forced": forced, "ensemble": ensemble}
    plan = plan_file_translation(
        model, source, config, out, seed=seed, **extra_files, to=to, source_language=source_language
    )
    if is_fresh(plan, reporter):
        return
    from tfm.pipeline.model_io.ensemble import load_ensemble

    with publish(plan, command=command) as draft, ExitStack() as stack:
        loaded = load_ensemble([model, *ensemble], device, reporter=reporter)
        loaded = loaded.for_languages(to, source_language)
        starts, words = (None if file is None else open_lines(file) for file in (prefixes, forced))
        with reporter.bar("translating", None, "sentences") as bar:
            settings: dict[str, Any] = {
                "reporter": reporter,
                "prefixes": starts,
                "forced": words,
                "on_done": bar.advance,
            }
            if cluster is None:
                shortlist = load_shortlist(loaded, config, plan.inputs.get(SHORTLIST_STAGE))
                translate = partial(translate_lines, loaded, config=config, shortlist=shortlist, **settings)
            else:
                loaded.check_reads_text("translate them without --cluster")
                members = [each for name, each in plan.inputs.items() if name.split()[0] == "model"]
                remote = stack.enter_context(open_cluster_translator(cluster, plan, members, config, device))
                translate = partial(remote.translate, languages=(to, source_language), **settings)
            write_translations(draft, "hypotheses", "source", open_lines(source), translate, reporter)
