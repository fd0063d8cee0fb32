"""The preprocess stage: corpora and a tokenizer to a dataset of encoded examples, and a report on it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.config import DEFAULT_SHARD_ROWS, DataConfig
from tfm.data.corpora.image_sources import read_images
from tfm.data.corpora.language_codes import language_codes, select_source_tokenizer
from tfm.data.corpora.portions import Corpus, Portion, flatten_portions
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_rows, resolve_splits, with_word_lists
from tfm.data.corpora.splits import has_contiguous_parts, truncation_message, unused_settings_message
from tfm.data.dataset.directions import Direction, Directions, temperature_sampling_weights
from tfm.data.dataset.duplicate_keys import DuplicateKeyFile
from tfm.data.dataset.empty_texts import EmptyTextCounter
from tfm.data.dataset.examples import ExampleChunk, PairFilter, encode_rows
from tfm.data.dataset.image_examples import encode_images
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.pair_checks import check_each_word_has_tag, check_token_budget
from tfm.data.dataset.split_files import write_split_files
from tfm.data.dataset.store import IMAGES_FOLDER, TOKENIZER_FOLDER, load_split
from tfm.data.dataset.unseen_labels import count_unseen_labels, unseen_labels_message
from tfm.data.dataset.unwritable import UnwritableCharacterCounts
from tfm.data.errors import DataError
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.store import ImageWriter, load_images
from tfm.data.table_keys import drop_unset_keys
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish, read_artifact
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.artifacts.remote_corpora import download_corpora
from tfm.pipeline.cleaning.corpora import check_clean_unchanged, cleaned_inputs, cleaned_splits
from tfm.pipeline.cluster.encoding import ClusterEncoder
from tfm.pipeline.cluster.session import connect_to_cluster
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.dataset_report import CorpusCount, SplitCount, make_dataset_report
from tfm.pipeline.reports.dataset_tables import MAX_CHARACTERS_SHOWN, describe_batches, report_tables
from tfm.pipeline.runtime.progress import Bar, Reporter
from tfm.tokenizer.code_points import save_pair
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
    of_tokenizer, splits = Input.from_artifact(tokenizer, TOKENIZER_STAGES), resolve_splits(data)
    inputs = {"tokenizer": of_tokenizer, **cleaned_inputs(splits.corpora_by_split(), clean, online=data.online)}
    # The order of the test sets counts: the first is the main one. Where data came from the network does not.
    # Datasets that were made before there was running_text stay fresh where it changes nothing.
    left_out = {"online"} if has_contiguous_parts(splits) else {"online", "running_text"}
    if data.shard_rows == DEFAULT_SHARD_ROWS:
        left_out.add("shard_rows")  # as datasets lack it that were made before there was one
    described = drop_unset_keys(data.model_dump(mode="json", exclude=left_out))
    config: dict[str, JSON] = {"data": described, "tests": list(splits.tests)}
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
    with publish(stage_plan, command=command) as draft, ExitStack() as files, collect_remarks() as remarks:
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
        encoder = None
        if cluster is not None:
            if data.images is not None:
                raise RecipeError("--cluster has no effect on images, which this process decodes. Remove it")
            session = files.enter_context(connect_to_cluster(cluster, stage_plan))
            vocab_sizes = tokenizers[0].vocab_size, tokenizers[1].vocab_size
            encoder = ClusterEncoder(session, stage_plan.inputs["tokenizer"], vocab_sizes)
        total = None if None in sizes else sum(size or 0 for size in sizes)
        empty = {name: EmptyTextCounter() for name in splits.corpora_by_split() if name != "train"}
        with reporter.bar("encoding", total, "pairs") as bar:
            counts = {
                name: _encode_split(
                    name, corpora, data, tokenizers, draft.folder / name, bar, files, empty.get(name), encoder
                )
                for name, corpora in splits.corpora_by_split().items()
            }
        check_clean_unchanged(clean, stage_plan.inputs)
        of_train = counts["train"].corpora
        for each, factor in zip(
            of_train, temperature_sampling_weights([each.rows for each in of_train], data.temperature), strict=True
        ):
            each.factor = factor if data.temperature != 1 else 1.0
        (draft.folder / TOKENIZER_FOLDER).mkdir()
        save_pair(*tokenizers, draft.folder / TOKENIZER_FOLDER)
        write_metadata(
            draft.folder,
            tests=list(splits.tests),
            batch_tokens=data.batch_tokens,
            train_corpora=[each.as_json() for each in counts["train"].corpora],
            directions=_count_directions(counts),
            augmentation=(
                None if data.images is None else Augmentation(data.images.shift, data.images.flip, data.images.crop)
            ),
            shard_rows=None if data.shard_rows == DEFAULT_SHARD_ROWS else data.shard_rows,
        )
        if data.images is not None:
            of_training = load_images(draft.folder / "train" / IMAGES_FOLDER)
            ImageTransform(of_training.shape, of_training.statistics).write(draft.folder / TOKENIZER_FOLDER)
        report = make_dataset_report(counts, batch_tokens=data.batch_tokens, seed=data.split_seed)
        if data.images is not None:  # how many tokens an image is depends on the model, and so do batches
            del report["batches"]
        text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
        (draft.folder / "report.json").write_text(text, encoding="utf-8")
        draft.figures["rows"] = {name: count.rows for name, count in counts.items()}
        if data.images is None:
            draft.figures["padding"] = report["batches"]["padding"]
        unknown = _unseen_labels(draft.folder, [*splits.corpora_by_split()], tokenizers[1])
    for remark in remarks:
        reporter.line(remark)
    for table in report_tables(report):
        reporter.table(*table)
    if data.images is None:
        reporter.line(describe_batches(report))
    for refused in counts["train"].images["refused"]["first"][:MAX_CHARACTERS_SHOWN] if counts["train"].images else ():
        reporter.warn(f"an image of the training data was dropped: {refused}")
    if cut := {name: count.cut for name, count in counts.items() if count.cut}:
        found = ", ".join(f"{number:,} of {name}" for name, number in cut.items())
        reporter.line(f"sources cut to data.limits.max_length = {data.limits.max_length} pieces: {found}")
    for warning in (*unknown, *(each.warning(name) for name, each in empty.items())):
        if warning is not None:
            reporter.warn(warning)
    reporter.line(f"dataset: {out}")


def _encode_split(
    name: str,
    corpora: Sequence[Corpus],
    data: DataConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    bar: Bar,
    files: ExitStack,
    empty_text_counter: EmptyTextCounter | None,
    cluster: ClusterEncoder | None,
) -> SplitCount:
    """Encode and write one split. Only training data and a fold of it are sieved; only the others keep their texts.

    Temporary files of counts are closed with `files`.
    """
    training = name == "train"
    is_fold = name == "valid" and data.fold is not None
    sieve = PairFilter(data.limits) if training or is_fold else None
    pairs_seen, sources_seen, targets_seen = (
        DuplicateKeyFile(files.enter_context(TemporaryFile(dir=folder.parent)))  # noqa: SIM115
        for _ in range(3)
    )
    # names that are unknown have a warning of their own
    unwritable = None if training or tokenizers[1].label_kind is not None else UnwritableCharacterCounts(tokenizers[1])
    dropped = sieve.dropped if sieve else {}
    count = SplitCount(pairs_seen, sources_seen, targets_seen, dropped=dropped, unwritable=unwritable)
    is_test = name not in ("train", "valid")
    with write_split_files(
        folder, training=training, words=tokenizers[1].label_kind == "tags", images=data.images
    ) as written:
        for corpus in flatten_portions(corpora) if data.target_languages else corpora:
            count.corpora.append(CorpusCount(corpus))
            refused = written.num_rejected_captions
            for chunk in _encode_chunks(
                corpus,
                data,
                tokenizers,
                written.images,
                is_test=is_test,
                drop_refused_images=sieve is not None,
                cluster=cluster,
            ):
                count.corpora[-1].read += len(chunk)
                bar.advance(len(chunk))
                if data.limits.cut_sources:
                    count.cut += int((chunk.source.lengths > data.limits.max_length).sum())
                    chunk = replace(chunk, source=chunk.source.truncate(data.limits.max_length))
                if sieve:
                    chunk = sieve(chunk, has_source=corpus.has_source and not corpus.has_images)
                    check_token_budget(chunk, corpus, data.batch_tokens)
                check_each_word_has_tag(chunk, corpus)
                count.add(chunk)
                if empty_text_counter is not None:
                    empty_text_counter.add(chunk, corpus)
                written.write(chunk, weight=corpus.weight if training else None)
            count.corpora[-1].read += written.num_rejected_captions - refused
        count.images = written.image_report()
        if written.num_rejected_captions:
            count.dropped["image refused"] = written.num_rejected_captions
        if not count.rows:
            why = ", ".join(f"{reason}: {pairs:,}" for reason, pairs in count.dropped.items() if pairs)
            raise DataError(f"no pair is left in the {name} split; dropped: {why or 'none'}; see data.limits")
    return count


def _encode_chunks(
    corpus: Corpus,
    data: DataConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    image_writer: ImageWriter | None,
    *,
    is_test: bool,
    drop_refused_images: bool,
    cluster: ClusterEncoder | None,
) -> Iterator[ExampleChunk]:
    """The examples of a corpus, encoded. drop: whether images that are refused are left out."""
    if image_writer is not None:
        found = read_images(corpus, read_rows, online=data.online, on_skipped=image_writer.report.add_skipped)
        yield from encode_images(
            image_writer.decode_images(found, drop_invalid=drop_refused_images), tokenizers[1], multi_reference=is_test
        )
        return
    if tokenizers[1].label_kind == "tags":
        corpus = with_word_lists(corpus)
    several = not isinstance(corpus, Portion) and corpus.has_references
    rows, codes = read_rows(corpus, online=data.online), language_codes(corpus, tokenizers[0])
    if cluster is not None:
        words = tokenizers[1].label_kind == "tags"
        yield from cluster.encode(rows, codes, corpus.tag, counts_words=words, multi_reference=several)
        return
    source = select_source_tokenizer(tokenizers[0], codes, corpus.tag)
    yield from encode_rows(rows, source, tokenizers[1], multi_reference=several)


def _count_directions(counts: Mapping[str, SplitCount]) -> Directions:
    """The languages of each split's rows, if they are said."""
    found = {
        name: tuple(Direction(*each.corpus.languages, each.rows) for each in count.corpora if each.corpus.languages)
        for name, count in counts.items()
    }
    return found if any(found.values()) else {}


def _unseen_labels(folder: Path, splits: Sequence[str], target: Tokenizer) -> list[str]:
    """Return warnings of names in other splits that training does not have, where targets are names."""
    others = [name for name in splits if name != "train"] if target.label_kind is not None else []
    found = {name: count_unseen_labels(load_split(folder / name, texts=True), target) for name in others}
    return [unseen_labels_message(names, f"the {name} split") for name, names in found.items() if names]
