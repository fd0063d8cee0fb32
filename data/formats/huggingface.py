"""Hugging Face datasets, from a folder or by name; downloaded only if this is enabled.

A folder may come from anybody: `datasets` gets to see only what `save_to_disk` wrote, after its names are checked; the
data files of other folders are looked up in `hub/hub_folder.py` and read by our own readers.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from tfm.data.errors import DataError, format_names
from tfm.data.formats.class_labels import ClassNames, feature_class_names
from tfm.data.formats.hub.hub_folder import DataFiles, find_folder_splits
from tfm.data.formats.saved_dataset import check_saved_dataset, find_saved_splits

# What `datasets` and Arrow raise when they meet a file that is not what they wrote.
DIGEST_BATCH_ROWS = 1000
CORRUPT_FILE_ERRORS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    ImportError,
    pa.ArrowException,
)
DATASET_NAME_PATTERN = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
HUB_PREFIX = "hf://datasets/"
OpenedSplit: TypeAlias = DataFiles | Any
"""The files of a split, or a `datasets.Dataset`."""


def open_splits(path: str, *, online: bool = False) -> Mapping[str, OpenedSplit]:
    """The splits of a dataset by name.

    Args:
        path: a folder that `save_to_disk` wrote or that holds data files, or a dataset's NAME; the latter two also with
            :CONFIGURATION.
        online: whether a dataset may be downloaded.

    Raises:
        DataError: it cannot be opened, or is not on this machine and `online` is False.
    """
    name, _, configuration = (path, "", "") if os.path.exists(path) else path.partition(":")
    folder = Path(name)
    if not os.path.isdir(folder):
        return _open_hub_dataset(path, online)
    if (saved := find_saved_splits(folder)) is None:
        return find_folder_splits(folder, configuration or None)
    if configuration:
        raise DataError(
            f"was written by save_to_disk and has no configurations: remove :{configuration:.80}", file=name
        )
    # Never cached: a file may be replaced by one of the same size and time.
    with _errors_as_data_error(path, online=False) as datasets:
        return _load_saved_splits(datasets, saved)


@lru_cache(maxsize=8)
def _open_hub_dataset(path: str, online: bool) -> Mapping[str, OpenedSplit]:
    _check_name(path)
    with _errors_as_data_error(path, online=online) as datasets:
        return _load_hub_dataset(datasets, path, online=online)


@contextmanager
def _errors_as_data_error(path: str, *, online: bool) -> Iterator[Any]:
    """The library `datasets`, within without progress bars and, unless allowed, the network; what it raises is a
    DataError."""
    # Imported here, because it takes a second and only this kind of corpus needs it.
    import datasets

    with _set_network(allowed=online):
        bars = datasets.are_progress_bars_disabled()
        datasets.disable_progress_bars()
        try:
            yield datasets
        except DataError:
            raise
        except (*CORRUPT_FILE_ERRORS, datasets.exceptions.DatasetsError) as error:
            reason = next(iter(str(error).splitlines()), "")
            reason = f"{type(error).__name__} {reason}" if isinstance(error, LookupError) or not reason else reason
            remedy = (
                "" if online or os.path.exists(path) else "; no such folder; to download it, set data.online = true"
            )
            raise DataError(f"cannot open this dataset: {reason}{remedy}", file=path) from error
        finally:
            if not bars:
                datasets.enable_progress_bars()


def open_split(path: str, split: str | None, *, online: bool = False) -> OpenedSplit:
    """One split of a dataset; its only one if `split` is None."""
    splits = open_splits(path, online=online)
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None or split not in splits:
        problem = "name the split" if split is None else f"there is no split {split!r}"
        raise DataError(f"{problem}; it has {', '.join(splits)}", file=path)
    return splits[split]


def class_names_of_split(split: OpenedSplit) -> ClassNames:
    """The names of classes that a split stores as integers, per column."""
    if isinstance(split, DataFiles):
        return split.class_names
    return feature_class_names(split.features.to_dict() if split.features is not None else None)


def hash_dataset(dataset: Any, columns: Collection[str]) -> str:
    """sha256, in hex, of the contents of some columns of a `datasets.Dataset`, independent of where it is stored.

    (Its own `_fingerprint` says how it was made, and does not change when the file is edited.)
    """
    digest = hashlib.sha256(f"{len(dataset)} rows".encode())
    if names := {name: each for name, each in class_names_of_split(dataset).items() if name in columns}:
        digest.update(repr(names).encode("utf-8", "surrogatepass"))
    present_columns = [name for name in dataset.column_names if name in columns]
    if present_columns:
        for table in dataset.select_columns(present_columns).with_format("arrow").iter(batch_size=DIGEST_BATCH_ROWS):
            table.validate(full=True)  # of offsets that lead elsewhere nothing must be read
            # taken out, the values lie as they would in any other file
            plain_table = table.replace_schema_metadata(None).take(pa.array(range(len(table)))).combine_chunks()
            with pa.BufferOutputStream() as sink:
                with pa.ipc.new_stream(sink, plain_table.schema) as stream:
                    stream.write_table(plain_table)
                digest.update(sink.getvalue())
    return digest.hexdigest()


@contextmanager
def corruption_as_data_error(path: Path | str, content: str) -> Iterator[None]:
    """Turn errors of Arrow at a damaged file into a DataError while the body runs."""
    try:
        yield
    except CORRUPT_FILE_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it is the disk; of a damaged file Arrow raises one without a number
        raise DataError(f"not a {content}: {format_names(str(error).split(), ' ')}", file=path) from error


def _load_saved_splits(datasets: Any, saved: Mapping[str, Path]) -> Mapping[str, Any]:
    for folder in saved.values():
        with corruption_as_data_error(folder, "whole dataset"):
            check_saved_dataset(folder)
    return {split: datasets.load_from_disk(str(folder)) for split, folder in saved.items()}


def _check_name(path: str) -> None:
    """Raise DataError if a name is that of no dataset: a URL, a file, or a reader of `datasets`, which would read the
    files beside it."""
    if os.path.exists(path):
        raise DataError("is a file, and a Hugging Face dataset is a folder or a name", file=path)
    name = path.partition(":")[0]
    if not DATASET_NAME_PATTERN.fullmatch(name) or "::" in path or "://" in path:
        remedy = "no such folder; a dataset on the Hub is called NAME, USER/NAME or NAME:CONFIGURATION"
        raise DataError(f"cannot open this dataset: {remedy}", file=path)
    from datasets import packaged_modules

    if name in packaged_modules._PACKAGED_DATASETS_MODULES:
        raise DataError("is a reader of `datasets`, not a dataset: give a folder", file=path)


def _load_hub_dataset(datasets: Any, path: str, *, online: bool) -> Mapping[str, Any]:
    name, _, configuration = path.partition(":")
    if not online:
        return dict(datasets.load_dataset(name, configuration or None))
    builder = datasets.load_dataset_builder(name, configuration or None)
    for files in (builder.config.data_files or {}).values():
        for file in files:
            if not str(file).startswith(HUB_PREFIX) or "::" in str(file):
                raise DataError(f"names {format_names([file])}, which is not a file of its repository", file=path)
    builder.download_and_prepare()
    return dict(builder.as_dataset())


@contextmanager
def _set_network(*, allowed: bool) -> Iterator[None]:
    """Forbid the libraries the network while this is open, unless it is allowed."""
    import datasets.config
    import huggingface_hub.constants

    holders: tuple[Any, ...] = () if allowed else (datasets.config, huggingface_hub.constants)
    previous_flags = [holder.HF_HUB_OFFLINE for holder in holders]
    try:
        for holder in holders:
            holder.HF_HUB_OFFLINE = True
        yield
    finally:
        for holder, flag in zip(holders, previous_flags, strict=True):
            holder.HF_HUB_OFFLINE = flag
