"""The preprocess stage: corpora and a tokenizer to a dataset of encoded examples, and a report on it."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.config import DEFAULT_SHARD_ROWS, DataConfig
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import resolve_splits
from tfm.data.corpora.splits import has_contiguous_parts, truncation_message, unused_settings_message
from tfm.data.corpus_keys.table_keys import drop_unset_keys
from tfm.data.dataset.directions import Direction, Directions, temperature_sampling_weights
from tfm.data.dataset.empty_texts import EmptyTextCounter
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.store import IMAGES_FOLDER, TOKENIZER_FOLDER, load_split
from tfm.data.dataset.unseen_labels import count_unseen_labels, unseen_labels_message
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.store import load_images
from tfm.pipeline.artifacts.artifact import Draft, Input, Plan, is_fresh, publish, read_artifact
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.artifacts.corpus_inputs import download_corpora
from tfm.pipeline.cleaning.corpora import check_clean_unchanged, cleaned_inputs, cleaned_splits
from tfm.pipeline.cluster.encoding import ClusterEncoder
from tfm.pipeline.cluster.session import connect_to_cluster
from tfm.pipeline.dataset_encoding import encode_split
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.dataset_report import SplitCount, make_dataset_report
from tfm.pipeline.reports.dataset_tables import MAX_CHARACTERS_SHOWN, describe_batches, report_tables
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.text_files import show_remarks
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

TOKENIZER_STAGES = ("tokenize", "train")
"""A model has a tokenizer too: one that was imported has it from elsewhere."""


def plan_dataset(data: DataConfig, tokenizer: Path, out: Path, clean: Path | None = None) -> Plan:
    """Return the plan of `preprocess`.

    Args:
        data: the [data] part of a recipe.
        tokenizer: the folder of the tokenizer.
        out: the folder of the dataset.
        clean: the folder of the training data that `tfm clean` has left, in place of the corpora's.

    Raises:
        DataError: a corpus is not there.
    """
    tokenizer_input, splits = Input.from_artifact(tokenizer, TOKENIZER_STAGES), resolve_splits(data)
    inputs = {"tokenizer": tokenizer_input, **cleaned_inputs(splits.corpora_by_split(), clean, online=data.online)}
    # The order of the test sets counts: the first is the main one. Where data came from the network does not.
    # Datasets that were made before there was running_text stay fresh where it changes nothing.
    ignored_keys = {"online"} if has_contiguous_parts(splits) else {"online", "running_text"}
    if data.shard_rows == DEFAULT_SHARD_ROWS:
        ignored_keys.add("shard_rows")  # as datasets lack it that were made before there was one
    settings = drop_unset_keys(data.model_dump(mode="json", exclude=ignored_keys))
    config: dict[str, JSON] = {"data": settings, "tests": list(splits.tests)}
    return Plan("preprocess", out, config, inputs, seed=None)


def preprocess(
    data: DataConfig,
    tokenizer: Path,
    out: Path,
    *,
    clean: Path | None = None,
    command: Sequence[str],
    reporter: Reporter,
    cluster: str | None = None,
) -> None:
    """Check, split, encode and measure the corpora of a recipe, and publish the dataset.

    Training pairs beyond `data.limits` are dropped, and no pair of validation and test data, unless validation is on a
    fold of the training data; `report.json` and the printed tables have the figures.

    Args:
        data: the [data] part of a recipe.
        tokenizer: the folder of the tokenizer.
        out: the folder of the dataset.
        clean: the folder of the training data that `tfm clean` has left, in place of the corpora's.
        command: the command line, for the manifest.
        reporter: receives messages.
        cluster: the address of a cluster that encodes the texts; None for this process alone.

    Raises:
        DataError: a corpus is not in order, before any work; or a training pair that was not dropped exceeds
            `data.batch_tokens`.
    """
    download_corpora(data, reporter)
    stage_plan = plan_dataset(data, tokenizer, out, clean)
    if is_fresh(stage_plan, reporter):
        return
    splits = cleaned_splits(resolve_splits(data), clean)
    if note := unused_settings_message(data, splits):
        reporter.warn(note)
    with publish(stage_plan, command=command) as draft, ExitStack() as files, show_remarks(reporter.line):
        sizes = check_and_count_splits(splits, online=data.online).values()
        if not splits.unused and (note := truncation_message(splits)):  # otherwise the note above says it
            reporter.warn(note)
        tokenizers = read_artifact(
            tokenizer, lambda _: load_tokenizer_pair(tokenizer), must_match=stage_plan.inputs["tokenizer"]
        )
        if data.limits.cut_sources and tokenizers[1].label_kind == "tags":
            raise RecipeError(
                "data.limits.cut_sources: each word of a sentence has a tag, so sentences cannot be truncated"
            )
        encoder = None if cluster is None else _open_encoder(cluster, data, tokenizers, stage_plan, files)
        total = None if None in sizes else sum(size or 0 for size in sizes)
        empty = {name: EmptyTextCounter() for name in splits.corpora_by_split() if name != "train"}
        with reporter.bar("encoding", total, "pairs") as bar:
            counts = {
                name: encode_split(
                    name, corpora, data, tokenizers, draft.folder / name, bar, files, empty.get(name), encoder
                )
                for name, corpora in splits.corpora_by_split().items()
            }
        check_clean_unchanged(clean, stage_plan.inputs)
        _set_sampling_factors(counts["train"], data.temperature)
        _write_tokenizers_and_metadata(draft, data, tokenizers, list(splits.tests), counts)
        report = _write_report(draft, data, counts)
        unknown = _unseen_labels(draft.folder, [*splits.corpora_by_split()], tokenizers[1])
    _show_results(data, counts, report, reporter)
    drops_empty = data.limits.empty == "drop"
    empty_warnings = (each.warning(name, training_drops_empty=drops_empty) for name, each in empty.items())
    for warning in (*unknown, *empty_warnings):
        if warning is not None:
            reporter.warn(warning)
    reporter.line(f"dataset: {out}")


def _open_encoder(
    cluster: str, data: DataConfig, tokenizers: tuple[Tokenizer, Tokenizer], plan: Plan, files: ExitStack
) -> ClusterEncoder:
    """Return what encodes texts on a cluster until `files` is closed. Raises RecipeError for images."""
    if data.images is not None:
        raise RecipeError("--cluster has no effect on images, which this process decodes. Remove it")
    session = files.enter_context(connect_to_cluster(cluster, plan))
    vocab_sizes = tokenizers[0].vocab_size, tokenizers[1].vocab_size
    return ClusterEncoder(session, plan.inputs["tokenizer"], vocab_sizes)


def _set_sampling_factors(train: SplitCount, temperature: float) -> None:
    """Set the factor by which each training corpus is sampled: 1, unless there is a temperature."""
    factors = temperature_sampling_weights([corpus.rows for corpus in train.corpora], temperature)
    for corpus, factor in zip(train.corpora, factors, strict=True):
        corpus.factor = factor if temperature != 1 else 1.0


def _write_tokenizers_and_metadata(
    draft: Draft,
    data: DataConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    tests: list[str],
    counts: Mapping[str, SplitCount],
) -> None:
    """Write the other inputs of a training: tokenizers, settings of batches, and the transform of images."""
    (draft.folder / TOKENIZER_FOLDER).mkdir()
    save_pair(*tokenizers, draft.folder / TOKENIZER_FOLDER)
    images = data.images
    write_metadata(
        draft.folder,
        tests=tests,
        batch_tokens=data.batch_tokens,
        train_corpora=[each.as_json() for each in counts["train"].corpora],
        directions=_count_directions(counts),
        augmentation=None if images is None else Augmentation(images.shift, images.flip, images.crop),
        shard_rows=None if data.shard_rows == DEFAULT_SHARD_ROWS else data.shard_rows,
    )
    if images is not None:
        train_images = load_images(draft.folder / "train" / IMAGES_FOLDER)
        ImageTransform(train_images.shape, train_images.statistics).write(draft.folder / TOKENIZER_FOLDER)


def _write_report(draft: Draft, data: DataConfig, counts: Mapping[str, SplitCount]) -> dict[str, Any]:
    """Write report.json and keep the figures; return the report."""
    report = make_dataset_report(counts, batch_tokens=data.batch_tokens, seed=data.split_seed)
    if data.images is not None:  # how many tokens an image is depends on the model, and so do batches
        del report["batches"]
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    (draft.folder / "report.json").write_text(text, encoding="utf-8")
    draft.figures["rows"] = {name: count.rows for name, count in counts.items()}
    if data.images is None:
        draft.figures["padding"] = report["batches"]["padding"]
    return report


def _show_results(
    data: DataConfig, counts: Mapping[str, SplitCount], report: dict[str, Any], reporter: Reporter
) -> None:
    """Print the tables of the report, images that were dropped and sources that were cut."""
    for table in report_tables(report):
        reporter.table(*table)
    if data.images is None:
        reporter.line(describe_batches(report))
    for reason in counts["train"].images["refused"]["first"][:MAX_CHARACTERS_SHOWN] if counts["train"].images else ():
        reporter.warn(f"an image of the training data was dropped: {reason}")
    if num_cut := {name: count.cut for name, count in counts.items() if count.cut}:
        summary = ", ".join(f"{number:,} of {name}" for name, number in num_cut.items())
        reporter.line(f"sources cut to data.limits.max_length = {data.limits.max_length} pieces: {summary}")


def _count_directions(counts: Mapping[str, SplitCount]) -> Directions:
    """The languages of each split's rows, if they are said."""
    directions = {
        name: tuple(Direction(*each.corpus.languages, each.rows) for each in count.corpora if each.corpus.languages)
        for name, count in counts.items()
    }
    return directions if any(directions.values()) else {}


def _unseen_labels(folder: Path, splits: Sequence[str], target: Tokenizer) -> list[str]:
    """Return warnings of names in other splits that training does not have, where targets are names."""
    eval_splits = [name for name in splits if name != "train"] if target.label_kind is not None else []
    labels_by_split = {name: count_unseen_labels(load_split(folder / name, texts=True), target) for name in eval_splits}
    messages = [unseen_labels_message(names, f"the {name} split") for name, names in labels_by_split.items() if names]
    if target.label_kind is not None and target.vocab_size == len(SPECIAL_TOKENS) + 1:
        messages.append(
            f"the training data has only the label {target.decode([len(SPECIAL_TOKENS)])!r}: a model that learns from "
            "it can give no other"
        )
    return messages
