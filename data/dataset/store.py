"""Encoded examples on disk: one Arrow dataset for each split, which `datasets.load_from_disk` opens; memory-mapped.

A split has the columns source and target (token ids without start and end token), then, in training data, weight, or,
in validation and test data, source_text and target_text; last, if targets are tags, words: the number of pieces of each
word of the source.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tfm.data.arrays import Ints, arrow_values
from tfm.data.config import DEFAULT_SHARD_ROWS
from tfm.data.dataset.curriculum import read_corpus_epochs
from tfm.data.dataset.directions import read_directions
from tfm.data.dataset.metadata import DATASET_FILE, read_metadata, write_json
from tfm.data.dataset.split import Dataset, Ids, Split, TokenIdColumn
from tfm.data.errors import DataError, format_count
from tfm.data.formats.arrow_stream import read_arrow_stream
from tfm.data.formats.lazy_arrays import LazyArray, MappedListOffsets, piecewise_constant
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.preparation import read_image_transform
from tfm.data.images.row_images import RowImages
from tfm.data.images.store import load_images

ARROW_FILE = "data-00000-of-00001.arrow"
TOKENIZER_FOLDER = "tokenizer"
IMAGES_FOLDER = "images"  # within a split


class SplitWriter:
    """Appends rows to the Arrow file of one split; see `write_split`."""

    def __init__(self, writer: Any, schema: pa.Schema):
        self._writer = writer
        self._schema = schema
        self._digest = hashlib.blake2b(str(schema).encode(), digest_size=8)

    def write(
        self,
        source: tuple[Ids, Ints],
        target: tuple[Ids, Ints],
        *extra: Sequence[str] | NDArray[np.float64],
        words: tuple[Ids, Ints] | None = None,
    ) -> None:
        """Append rows.

        Args:
            source: flat ids, and their number in each row.
            target: flat ids, and their number in each row.
            *extra: the weights, or source and target texts.
            words: the number of pieces of each source word, end to end, and the number of words of each source.
        """
        columns = [list_array(*source), list_array(*target)]
        columns += [pa.array(values, self._schema.field(2 + i).type) for i, values in enumerate(extra)]
        columns += [] if words is None else [list_array(*words)]
        for column in columns:
            for buffer in column.buffers():
                self._digest.update(b"" if buffer is None else buffer)
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    @property
    def fingerprint(self) -> str:
        """A digest of all that was written."""
        return self._digest.hexdigest()


@contextmanager
def write_split(folder: Path, *, texts: bool, words: bool = False) -> Iterator[SplitWriter]:
    """Write one split into a folder, batch of rows by batch of rows, without holding it in memory.

    Args:
        folder: to write into.
        texts: whether rows carry their texts (validation and test data) or their weight (training data).
        words: whether rows carry the number of pieces of each word of the source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = _make_schema(texts=texts, words=words)
    with open(folder / ARROW_FILE, "wb") as sink, pa.ipc.new_stream(sink, schema) as stream:
        writer = SplitWriter(stream, schema)
        yield writer
    write_json(folder / "dataset_info.json", _dataset_info_document(schema))
    write_json(folder / "state.json", _state_document(writer.fingerprint))


def load_split(folder: Path, *, texts: bool | None = None, shard_rows: int | None = None) -> Split:
    """Open a split, its token columns as zero-copy views of the mapped file.

    Args:
        folder: of the split.
        texts: as for write_split, if known.
        shard_rows: rows above which starts, lengths and weights stay in the file until they are asked for; None: they
            are read.

    Raises:
        DataError: the file is not what `write_split` writes: nothing in it is believed before it is checked.
    """
    path = folder / ARROW_FILE
    if not path.is_file():
        raise DataError("there is no such split: make the dataset with `tfm preprocess`", file=folder)
    kinds = [each for each in (True, False) if texts in (each, None)]
    schemas = [_make_schema(texts=each, words=words) for each in kinds for words in (False, True)]
    try:
        file = pa.memory_map(str(path))
        table = read_arrow_stream(file, schemas)
        file.seek(0)
        id_buffer = file.read_buffer(file.size() // 4 * 4)
        # Arrow aligns every buffer of a file to 8 bytes: the ids of all record batches are slices of one int32 array.
        flat = np.frombuffer(id_buffer, np.int32)
        lazy = shard_rows is not None and len(table) > shard_rows
        has_weights = "weight" in table.column_names
        weights = _read_weights(table.column("weight"), lazy=lazy) if has_weights else np.ones(len(table))
        names = [name for name in ("source", "target", "words") if name in table.column_names]
        source, target, *rest = (_read_column(table.column(name), flat, id_buffer.address, lazy=lazy) for name in names)
        words = rest[0] if rest else None
        if words is not None and not words_cover_source(words, source.lengths):
            raise ValueError("there are words without pieces, or pieces without words")
        return Split(source, target, weights, table, words=words, folder=folder, shard_rows=shard_rows or sys.maxsize)
    except (ValueError, OSError, MemoryError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"is not a split made by tfm ({reason:.200}): make the dataset again", file=path) from error


def load_dataset(folder: Path) -> Dataset:
    """Open every split of a `dataset/` folder that `tfm preprocess` wrote."""
    metadata = read_metadata(folder)
    train = load_split(folder / "train", texts=False, shard_rows=metadata.get("shard_rows", DEFAULT_SHARD_ROWS))
    corpus_epochs = read_corpus_epochs(metadata["train_corpora"], len(train), folder / DATASET_FILE)
    weights = train.weights
    if (factors := _temperature_factors(metadata["train_corpora"], len(train), folder / DATASET_FILE)) is not None:
        weights = weights * factors if isinstance(weights, LazyArray) else weights * np.asarray(factors)
    data = Dataset(
        train=replace(train, corpus_epochs=corpus_epochs, weights=weights),
        valid=load_split(folder / "valid", texts=True),
        tests={name: load_split(folder / name, texts=True) for name in metadata["tests"]},
        batch_tokens=metadata["batch_tokens"],
        tokenizer_folder=folder / TOKENIZER_FOLDER,
        directions=read_directions(metadata, folder / DATASET_FILE),
    )
    if (data.tokenizer_folder / IMAGES_FILE).exists():
        data = replace(_attach_images(data, folder), augmentation=_read_augmentation(metadata, folder))
    if data.directions:
        splits = {"train": data.train, "valid": data.valid, **data.tests}
        num_rows_by_split = {
            name: sum(each.rows for each in split_directions) for name, split_directions in data.directions.items()
        }
        if num_rows_by_split != {name: len(split) for name, split in splits.items()}:
            raise DataError("has no valid `directions`: not one for each row", file=folder / DATASET_FILE)
    return data


def _attach_images(data: Dataset, folder: Path) -> Dataset:
    """The dataset with the images of its rows. Raises DataError if a row has none."""
    preparation = read_image_transform(data.tokenizer_folder)

    def attach_to_split(split: Split, name: str) -> Split:
        store = load_images(folder / name / IMAGES_FOLDER)
        if len(store) != len(split) or store.shape != preparation.shape:
            problem = (
                f"has {format_count(len(store), 'row')} of images for {len(split)} of texts, or images of another shape"
            )
            raise DataError(f"{problem}: make the dataset again", file=folder / name)
        return replace(split, images=RowImages(store, preparation))

    tests = {name: attach_to_split(split, name) for name, split in data.tests.items()}
    train, valid = attach_to_split(data.train, "train"), attach_to_split(data.valid, "valid")
    return replace(data, train=train, valid=valid, tests=tests, preparation=preparation)


def _read_augmentation(metadata: dict[str, Any], folder: Path) -> Augmentation:
    """Read how training varies images. Raises DataError if dataset.json has no valid `augmentation`."""
    try:
        return Augmentation(**metadata["augmentation"])
    except (KeyError, TypeError, ValueError):
        raise DataError("has no valid `augmentation`", file=folder / DATASET_FILE) from None


def _temperature_factors(corpora: Sequence[dict[str, Any]], num_rows: int, file: Path) -> LazyArray | None:
    """The factors (rows,) by which `data.temperature` changes the weights; None if it does not."""
    if all("factor" not in each for each in corpora):
        return None
    try:
        factors = np.array([float(each.get("factor", 1.0)) for each in corpora])
        sizes = [int(each["rows"]) for each in corpora]
    except (TypeError, ValueError, KeyError, OverflowError):
        factors, sizes = np.empty(0), []
    if sum(sizes) != num_rows or min(sizes, default=0) < 0 or not (np.isfinite(factors) & (factors > 0)).all():
        raise DataError("has no valid `train_corpora`", file=file)
    return piecewise_constant(sizes, factors.tolist())


def check_token_ids(data: Dataset, source_vocab: int, target_vocab: int) -> Dataset:
    """Check that the token ids of a dataset are those of its tokenizers; ids of sharded training data are checked when
    they are read.

    Args:
        data: the dataset.
        source_vocab: the number of pieces of the source.
        target_vocab: the number of pieces of the target.

    Returns:
        The dataset.

    Raises:
        DataError: an id is that of no piece.
    """
    train = data.train
    if train.is_sharded:
        source, target = replace(train.source, vocab_size=source_vocab), replace(train.target, vocab_size=target_vocab)
        data = replace(data, train=replace(train, source=source, target=target))
    for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
        if not split.is_sharded and not split.has_valid_ids(source_vocab, target_vocab):
            problem = "it contains token ids that its tokenizer does not have: make the dataset again"
            raise DataError(problem, file=data.tokenizer_folder.parent / name)
    return data


def _make_schema(*, texts: bool, words: bool) -> pa.Schema:
    ids = pa.list_(pa.int32())
    extra = {"source_text": pa.string(), "target_text": pa.string()} if texts else {"weight": pa.float64()}
    return pa.schema({"source": ids, "target": ids, **extra, **({"words": ids} if words else {})})


def words_cover_source(words: TokenIdColumn, source_lengths: Ints | LazyArray) -> bool:
    """Whether every word has pieces, and those of the words of each row are all that the row has."""
    sizes, counts = words.take(np.arange(len(words)))
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[np.cumsum(counts)]
    return bool((sizes > 0).all() and (np.diff(ends, prepend=0) == source_lengths).all())


def list_array(ids: Ids, lengths: Ints) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids, pa.int32()))


def _read_weights(chunks: pa.ChunkedArray, *, lazy: bool) -> NDArray[np.float64] | LazyArray:
    """Read the weights (rows,), if `lazy` as runs of equal weights. Raises ValueError if one is not positive."""
    parts = [arrow_values(chunk) for chunk in chunks.iterchunks() if len(chunk)]
    is_piecewise = lazy and all((part == part[0]).all() for part in parts)
    weights: NDArray[np.float64] = (
        np.array([part[0] for part in parts]) if is_piecewise else np.concatenate(parts or [np.empty(0)])
    )
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("there are weights that are not positive")
    return piecewise_constant([len(part) for part in parts], weights.tolist()) if is_piecewise else weights


def _read_column(chunks: pa.ChunkedArray, mapped_values: Ids, base_address: int, *, lazy: bool) -> TokenIdColumn:
    if lazy:
        lists = MappedListOffsets(chunks, mapped_values, base_address)
        return TokenIdColumn(mapped_values, lists.starts(), lists.lengths())
    starts, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chunk in chunks.iterchunks():
        if chunk.values.null_count:
            raise ValueError("there are rows with empty fields")
        offsets = arrow_values(chunk.offsets).astype(np.int64)
        ids = chunk.values.buffers()[1]
        begin = ids.address - base_address if len(chunk.values) else 0
        if begin % 4 or not 0 <= begin <= mapped_values.nbytes - 4 * len(chunk.values):
            raise ValueError("its token ids are not within the file")
        starts.append(offsets[:-1] + begin // 4)
        lengths.append(np.diff(offsets))
    return TokenIdColumn(mapped_values, np.concatenate(starts), np.concatenate(lengths))


def _huggingface_features(schema: pa.Schema) -> Iterator[tuple[str, dict[str, Any]]]:
    for column in schema:
        if pa.types.is_list(column.type):
            yield column.name, {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}
        else:
            yield column.name, {"dtype": "float64" if column.type == pa.float64() else "string", "_type": "Value"}


def _dataset_info_document(schema: pa.Schema) -> dict[str, Any]:
    return {
        "citation": "",
        "description": "",
        "features": dict(_huggingface_features(schema)),
        "homepage": "",
        "license": "",
    }


def _state_document(fingerprint: str) -> dict[str, Any]:
    return {
        "_data_files": [{"filename": ARROW_FILE}],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
