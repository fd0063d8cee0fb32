"""Hugging Face datasets, from a folder or by name; downloaded only if this is enabled."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfm.data.errors import DataError, listed

# What `datasets` and Arrow raise when they meet a file that is not what they wrote.
AT_ONCE = 1000
DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException)


def open_splits(path: str, *, online: bool = False) -> Mapping[str, Any]:
    """The splits of a dataset by name, each a `datasets.Dataset`.

    path: a folder that `save_to_disk` wrote or that holds data files, or a dataset's NAME or NAME:CONFIGURATION.
    Raises DataError if it cannot be opened, or is not on this machine and online is False.
    """
    return _open_splits(path, online, _stamp(Path(path)))


def _stamp(folder: Path) -> tuple[object, ...]:
    """What changes when a file in a folder does: each one's name, times, size and inode."""
    found = ((str(file), file.lstat()) for file in sorted(folder.rglob("*"))) if folder.is_dir() else ()
    return tuple((name, now.st_mtime_ns, now.st_size, now.st_ino) for name, now in found)


@lru_cache(maxsize=8)
def _open_splits(path: str, online: bool, stamp: tuple[object, ...]) -> Mapping[str, Any]:
    # Imported here, because it takes a second and only this kind of corpus needs it.
    import datasets

    with _network(allowed=online):
        bars = datasets.are_progress_bars_disabled()
        datasets.disable_progress_bars()
        try:
            return _open(datasets, path)
        except (*DAMAGE, datasets.exceptions.DatasetsError) as error:
            reason = next(iter(str(error).splitlines()), "")
            reason = f"{type(error).__name__} {reason}" if isinstance(error, LookupError) or not reason else reason
            remedy = "" if online or Path(path).exists() else "; no such folder; to download it, set data.online = true"
            raise DataError(f"cannot open this dataset: {reason}{remedy}", file=path) from error
        finally:
            if not bars:
                datasets.enable_progress_bars()


def open_split(path: str, split: str | None, *, online: bool = False) -> Any:
    """One split of a dataset as `datasets.Dataset`; its only one if `split` is None."""
    splits = open_splits(path, online=online)
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None or split not in splits:
        problem = "name the split" if split is None else f"there is no split {split!r}"
        raise DataError(f"{problem}; it has {', '.join(splits)}", file=path)
    return splits[split]


def digest(dataset: Any, columns: Collection[str]) -> str:
    """sha256, in hex, of the contents of some columns of a `datasets.Dataset`, independent of where it is stored.

    (Its own `_fingerprint` says how it was made, and does not change when the file is edited.)
    """
    found = hashlib.sha256(f"{len(dataset)} rows".encode())
    wanted = [name for name in dataset.column_names if name in columns]
    if wanted:
        for table in dataset.select_columns(wanted).with_format("arrow").iter(batch_size=AT_ONCE):
            table.validate(full=True)  # of offsets that lead elsewhere nothing must be read
            # taken out, the values lie as they would in any other file
            plain = table.replace_schema_metadata(None).take(pa.array(range(len(table)))).combine_chunks()
            with pa.BufferOutputStream() as sink:
                with pa.ipc.new_stream(sink, plain.schema) as stream:
                    stream.write_table(plain)
                found.update(sink.getvalue())
    return found.hexdigest()


@contextmanager
def damage_told(path: Path | str, what: str) -> Iterator[None]:
    """Within, what Arrow raises at a damaged file is a DataError."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it is the disk; of a damaged file Arrow raises one without a number
        raise DataError(f"not a {what}: {listed(str(error).split(), ' ')}", file=path) from error


def _open(datasets: Any, path: str) -> Mapping[str, Any]:
    folder = Path(path)
    if (folder / "dataset_dict.json").is_file():
        return dict(datasets.load_from_disk(path))
    if (folder / "state.json").is_file():
        return {"train": datasets.load_from_disk(path)}
    name, _, configuration = (path, "", "") if folder.exists() else path.partition(":")
    return dict(datasets.load_dataset(name, configuration or None))


@contextmanager
def _network(*, allowed: bool) -> Iterator[None]:
    """Forbid the libraries the network while this is open, unless it is allowed."""
    import datasets.config
    import huggingface_hub.constants

    holders: tuple[Any, ...] = () if allowed else (datasets.config, huggingface_hub.constants)
    before = [holder.HF_HUB_OFFLINE for holder in holders]
    try:
        for holder in holders:
            holder.HF_HUB_OFFLINE = True
        yield
    finally:
        for holder, flag in zip(holders, before, strict=True):
            holder.HF_HUB_OFFLINE = flag
