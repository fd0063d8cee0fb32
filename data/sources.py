"""Corpora -> text pairs, streamed: one reader a format. Lines end at "\\n" and nowhere else."""

import csv
import glob
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from data import hub
from data.config import CorpusConfig
from data.errors import DataError, listed
from data.lines import check_lines, open_lines, opened, stream_lines
from data.splits import Corpus, Portion, Splits, resolve

__all__ = ["READERS", "Splits", "describe", "files", "identity", "open_lines", "pairs", "resolve", "stream_lines"]

Pairs: TypeAlias = Iterator[tuple[str, str]]
# Built-in corpora are the same for every seed of training, so that scores compare.
GENERATED_SEED = 1


def pairs(corpus: Corpus, *, online: bool = False) -> Pairs:
    """The (source, target) texts of a corpus in order, read as they are asked for.

    online: whether a Hugging Face dataset may be downloaded. Raises DataError naming file, line and byte.
    """
    if isinstance(corpus, Portion):
        whole = chain.from_iterable(pairs(each, online=online) for each in corpus.corpora)
        return (pair for pair in whole if corpus.holds(pair[0]))
    return READERS[corpus.format](corpus, online)


def identity(corpus: Corpus, *, online: bool = False) -> list[tuple[str, Path | None, str]]:
    """What a corpus is made of, as (label, file or None, fingerprint): the same fingerprints mean the same text."""
    if isinstance(corpus, Portion):
        return [part for each in corpus.corpora for part in identity(each, online=online)]
    if corpus.format == "generated":
        return [(describe(corpus), None, f"{describe(corpus)} seed {GENERATED_SEED} code {_generator_code()}")]
    if corpus.format == "huggingface":
        dataset = hub.open_split(_path(corpus), corpus.split, online=online)
        return [(describe(corpus), None, dataset._fingerprint)]
    return [(str(path), path, _sha256(path)) for path in files(corpus)]


def describe(corpus: Corpus) -> str:
    """A corpus in a few words, for messages and reports."""
    if isinstance(corpus, Portion):
        share = f"{corpus.high - corpus.low:.0%}"
        return f"random {share} of {', '.join(describe(each) for each in corpus.corpora)}"
    if corpus.format == "text":
        return f"{corpus.source} | {corpus.target}"
    parts = [str(corpus.path), corpus.split, None if corpus.size is None else f"{corpus.size} pairs"]
    return " ".join(part for part in parts if part is not None)


def files(corpus: CorpusConfig) -> list[Path]:
    """The files of a corpus, in the order they are read; none for those that are not files."""
    if corpus.format == "text":
        return [Path(corpus.source), Path(corpus.target)]
    if corpus.format in ("generated", "huggingface"):
        return []
    path = _path(corpus)
    found = [path] if Path(path).exists() else sorted(glob.glob(path))
    if not found:
        raise DataError("no such file", file=path)
    return [Path(each) for each in found]


def line_counts_differ(corpus: CorpusConfig, num_sources: int, num_targets: int) -> DataError:
    """The error of aligned files that are not aligned."""
    return DataError(
        f"has {num_sources} lines, but {corpus.target} has {num_targets}: "
        "line i of one must be the translation of line i of the other",
        file=corpus.source,
    )


def _text(corpus: CorpusConfig, online: bool) -> Pairs:
    one, other = Path(corpus.source), Path(corpus.target)
    try:
        yield from zip(open_lines(one), open_lines(other), strict=True)
    except ValueError:
        raise line_counts_differ(corpus, check_lines(one), check_lines(other)) from None


def _tsv(corpus: CorpusConfig, online: bool) -> Pairs:
    for path in files(corpus):
        rows = ((number, line.split("\t")) for number, line in enumerate(open_lines(path), 1))
        names = [] if corpus.source.isdecimal() and corpus.target.isdecimal() else next(rows, (0, [""]))[1]
        yield from _cells(path, rows, _place(path, names, corpus.source), _place(path, names, corpus.target))


def _csv(corpus: CorpusConfig, online: bool) -> Pairs:
    for path in files(corpus):
        table = csv.reader((line + "\n" for line in open_lines(path)), strict=True)

        def rows(table: Any = table, path: Path = path) -> Iterator[tuple[int, list[str]]]:
            try:
                for row in table:
                    if row:
                        yield table.line_num, row
            except csv.Error as error:
                raise DataError(f"not a CSV row: {error}", file=path, line=table.line_num) from None

        names = next(rows(), (0, [""]))[1]
        yield from _cells(path, rows(), _place(path, names, corpus.source), _place(path, names, corpus.target))


def _cells(path: Path, rows: Iterable[tuple[int, list[str]]], source: int, target: int) -> Pairs:
    for line, row in rows:
        try:
            yield _one_line(row[source]), _one_line(row[target])
        except IndexError:
            problem = f"has {len(row)} columns, but column {max(source, target) + 1} is wanted"
            raise DataError(problem, file=path, line=line) from None


def _place(path: Path, names: list[str], column: str) -> int:
    """The index of a column, by its name or, without a header, its number."""
    if not names:
        return int(column)
    if column not in names:
        raise DataError(f"there is no column {column!r}; its header names: {listed(names)}", file=path, line=1)
    return names.index(column)


def _jsonl(corpus: CorpusConfig, online: bool) -> Pairs:
    for path in files(corpus):
        for number, line in enumerate(open_lines(path), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"not JSON: {error}", file=path, line=number) from None
                yield _value(row, corpus.source, path, number), _value(row, corpus.target, path, number)


def _value(row: object, column: str, path: Path, line: int) -> str:
    """The text at a key; `a.b` is key b of the object at key a. null is an empty text."""
    value: object = row
    for key in [column] if isinstance(row, dict) and column in row else column.split("."):
        if not isinstance(value, dict) or key not in value:
            has = f"; it has {listed(row)}" if isinstance(row, dict) else ""
            raise DataError(f"there is no {column!r}{has}", file=path, line=line)
        value = value[key]
    if value is not None and not isinstance(value, str):
        raise DataError(f"{column!r} holds {json.dumps(value):.40}, not text", file=path, line=line)
    text = _one_line(value or "")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{column!r} holds half a surrogate pair, which is no character", file=path, line=line)
    return text


def _parquet(corpus: CorpusConfig, online: bool) -> Pairs:
    for path in files(corpus):
        with opened(path) as stream, _damage_told(path, "Parquet file"):
            file = pq.ParquetFile(stream)
            wanted = {corpus.source.split(".")[0], corpus.target.split(".")[0], "translation"}
            columns = [name for name in file.schema_arrow.names if {name, name.split(".")[0]} & wanted]
            num_rows = 0
            for batch in file.iter_batches(columns=columns or None):
                yield from _table_pairs(pa.Table.from_batches([batch]), corpus, str(path))
                num_rows += len(batch)
            if num_rows != file.metadata.num_rows:
                raise DataError(f"has {num_rows} rows, but says that it has {file.metadata.num_rows}", file=path)


def _huggingface(corpus: CorpusConfig, online: bool) -> Pairs:
    path = _path(corpus)
    dataset = hub.open_split(path, corpus.split, online=online)
    with _damage_told(path, "whole dataset"):
        for table in dataset.with_format("arrow").iter(batch_size=10_000):
            yield from _table_pairs(table, corpus, path)


@contextmanager
def _damage_told(path: Path | str, what: str) -> Iterator[None]:
    """Within, what Arrow raises at a damaged file is a DataError."""
    try:
        yield
    except hub.DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it is the disk; of a damaged file Arrow raises one without a number
        raise DataError(f"not a {what}: {listed(str(error).split(), ' ')}", file=path) from error


def _table_pairs(table: pa.Table, corpus: CorpusConfig, path: str) -> Pairs:
    table.validate(full=True)  # of offsets that lead elsewhere nothing must be read
    sides = (_table_column(table, name, path) for name in (corpus.source, corpus.target))
    return zip(*sides, strict=True)


def _table_column(table: pa.Table, name: str, path: str) -> list[str]:
    """A text column; `a.b`, and `b` within a column `translation` (a habit of the hub), is a field of a struct."""
    table = table.combine_chunks()
    if name not in table.column_names:
        table = table.flatten()
    found = next((each for each in (name, f"translation.{name}") if each in table.column_names), None)
    if found is None:
        raise DataError(f"there is no column {name!r}; it has {listed(table.column_names)}", file=path)
    column = table.column(found)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise DataError(f"column {name!r} holds {column.type}, not text", file=path)
    return [_one_line(value or "") for value in column.to_pylist()]


def _generated(corpus: CorpusConfig, online: bool) -> Pairs:
    from data import grammar, toys  # imported here, because whoever only reads lines need not build a grammar

    # So says CorpusConfig, which knows the names too.
    assert corpus.split is not None
    assert corpus.size is not None
    generators: dict[str, Callable[[str, int, int], Pairs]] = {"grammar": grammar.generate, **toys.TOYS}
    yield from generators[_path(corpus)](corpus.split, corpus.size, GENERATED_SEED)


@cache
def _generator_code() -> str:
    """sha256 of the source files of the built-in corpora and of all in this package that they import."""
    from data import grammar, toys

    waiting: list[ModuleType] = [grammar, toys]
    found = set(waiting)
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if name is not None and name.startswith("data.") and (module := sys.modules[name]) not in found:
                found.add(module)
                waiting.append(module)
    digest = hashlib.sha256()
    for file in sorted(str(module.__file__) for module in found):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _path(corpus: CorpusConfig) -> str:
    assert corpus.path is not None  # so says CorpusConfig
    return corpus.path


def _one_line(text: str) -> str:
    """A cell's text on one line, as everything after this expects: line breaks within it become spaces."""
    return text.replace("\n", " ") if "\n" in text else text


def _sha256(path: Path) -> str:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError("is a pipe or device; a corpus is read more than once, so give a file", file=path)
    with opened(path, packed=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


READERS: Mapping[str, Callable[[CorpusConfig, bool], Pairs]] = {
    "text": _text,
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "huggingface": _huggingface,
    "generated": _generated,
}
