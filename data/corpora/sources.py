"""Corpora -> text pairs, streamed: one reader a format. Lines end at "\\n" and nowhere else."""

import csv
import glob
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tfm.data.corpora import image_sources
from tfm.data.corpora.portions import Corpus, Portion, Reread
from tfm.data.corpora.references import Row, merged
from tfm.data.corpora.splits import Splits, resolve
from tfm.data.corpora.table_cells import all_of, one_of, sides_of, table_rows, top_columns
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, listed
from tfm.data.formats import huggingface
from tfm.data.formats.conllu import read_conllu
from tfm.data.formats.fasttext import read_labelled
from tfm.data.lines import check_lines, one_line, open_lines, opened
from tfm.data.synthetic import registry

__all__ = [
    "READERS", "Splits", "describe", "files", "identity", "open_lines", "pairs", "resolve", "rows",
]  # fmt: skip

Pairs: TypeAlias = Iterator[tuple[str, str]]
Rows: TypeAlias = Iterator[Row]


def pairs(corpus: Corpus, *, online: bool = False) -> Pairs:
    """The (source, target) texts of a corpus in order, read as they are asked for; without a source it is "".

    Of images these are the name of an image and a caption, for each of its captions.

    online: whether a Hugging Face dataset may be downloaded. Raises DataError naming file, line and byte.
    """
    if corpus.has_images:
        return image_sources.captions(corpus, rows, online=online)
    if isinstance(corpus, Portion):
        parts = (corpus.of(each, Reread(partial(pairs, each, online=online))) for each in corpus.corpora)
        return chain.from_iterable(parts)
    found = rows(corpus, online=online)
    if corpus.has_references:
        return ((source, target) for source, target, *_ in found)
    return cast(Pairs, found)


def rows(corpus: Corpus, *, online: bool = False) -> Iterator[Row]:
    """The pairs of a corpus, each with its further references after it; of images as `pairs` has them."""
    if isinstance(corpus, Portion) or corpus.has_images:
        return pairs(corpus, online=online)
    found = READERS[corpus.format](corpus, online)
    # A built-in corpus makes exactly as many pairs as requested.
    size = None if corpus.size is None or corpus.format == "generated" else corpus.skip + corpus.size
    wanted = islice(found, corpus.skip, size)
    return merged(wanted) if corpus.merge_references else wanted


def identity(corpus: Corpus, *, online: bool = False) -> list[tuple[str, Path | None, str]]:
    """What a corpus is made of, as (label, file or None, fingerprint): the same fingerprints mean the same text."""
    if isinstance(corpus, Portion):
        return [part for each in corpus.corpora for part in identity(each, online=online)]
    if corpus.format == "generated":
        return [(describe(corpus), None, f"{describe(corpus)} {registry.version(_path(corpus))}")]
    if corpus.has_images:
        return image_sources.identity(corpus, describe(corpus), rows, online=online)
    if corpus.format == "huggingface":
        dataset = huggingface.open_split(_path(corpus), corpus.split, online=online)
        with huggingface.damage_told(_path(corpus), "whole dataset"):
            return [(describe(corpus), None, huggingface.digest(dataset, top_columns(corpus, dataset.column_names)))]
    return [(str(path), path, _sha256(path)) for path in files(corpus)]


def describe(corpus: Corpus) -> str:
    """A corpus in a few words, for messages and reports."""
    if isinstance(corpus, Portion):
        return f"{corpus.part} of {', '.join(describe(each) for each in corpus.corpora)}"
    if corpus.format == "text":
        name = corpus.target if corpus.source is None else f"{corpus.source} | {corpus.target}"
    else:
        name = str(corpus.path)
    what = "image" if corpus.has_images else "pair"
    parts = [name, corpus.split, None if corpus.size is None else f"{corpus.size} {what}s"]
    parts += [f"{key} {value}" for key in ("length", "nesting") if (value := getattr(corpus, key)) is not None]
    parts += ["mixed"] if corpus.mix else []
    if corpus.format == "generated" and corpus.path == "languages":
        parts.append(f"{corpus.target} alone" if corpus.source is None else f"{corpus.source} to {corpus.target}")
    parts += [f"from {what} {corpus.skip + 1} on"] if corpus.skip else []
    return " ".join(part for part in parts if part is not None)


def files(corpus: CorpusConfig) -> list[Path]:
    """The files of a corpus, in the order they are read; none for those that are not files."""
    if corpus.format == "text":
        return [Path(each) for each in sides_of(corpus) if each is not None]
    if corpus.format in ("generated", "huggingface"):
        return []
    path = _path(corpus)
    found = [path] if Path(path).exists() else sorted(glob.glob(path))
    if not found:
        raise DataError("no such file", file=path)
    return [Path(each) for each in found]


def line_counts_differ(counts: Mapping[Path, int]) -> DataError:
    """The error of aligned files that are not aligned, the source first."""
    source, num_sources = next(iter(counts.items()))
    other, count = next((file, count) for file, count in counts.items() if count != num_sources)
    problem = f"has {num_sources} lines, but {other} has {count}: "
    return DataError(f"{problem}line i of one must be the translation of line i of the other", file=source)


def _text(corpus: CorpusConfig, online: bool) -> Rows:
    if corpus.source is None:
        yield from (("", line) for line in open_lines(Path(corpus.target)))
        return
    try:
        yield from zip(*map(open_lines, files(corpus)), strict=True)
    except ValueError:
        raise line_counts_differ({file: check_lines(file) for file in files(corpus)}) from None


def _tsv(corpus: CorpusConfig, online: bool) -> Rows:
    for path in files(corpus):
        rows = ((number, line.split("\t")) for number, line in enumerate(open_lines(path), 1))
        sides = sides_of(corpus)
        is_headed = not all(each is None or each.isdecimal() for each in sides)
        names = next(rows, (0, [""]))[1] if is_headed else []
        yield from _cells(path, rows, *(_place(path, names, each) for each in sides))


def _csv(corpus: CorpusConfig, online: bool) -> Rows:
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
        yield from _cells(path, rows(), *(_place(path, names, each) for each in sides_of(corpus)))


def _cells(path: Path, rows: Iterable[tuple[int, list[str]]], *sides: int) -> Rows:
    """The cells of each row at two places, or more; at place -1 is none."""
    source, target, *more = sides
    for line, row in rows:
        try:
            first = "" if source < 0 else one_line(row[source])
            yield first, one_line(row[target]), *[one_line(row[each]) for each in more]
        except IndexError:
            problem = f"has {len(row)} columns, but column {max(sides) + 1} is needed"
            raise DataError(problem, file=path, line=line) from None


def _place(path: Path, names: list[str], column: str | None) -> int:
    """The index of a column, by its name or, without a header, its number; -1 where there is no such side."""
    if column is None:
        return -1
    if not names:
        return int(column)
    if column not in names:
        raise DataError(f"there is no column {column!r}; its header names: {listed(names)}", file=path, line=1)
    return names.index(column)


def _jsonl(corpus: CorpusConfig, online: bool) -> Rows:
    for path in files(corpus):
        for number, line in enumerate(open_lines(path), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"not JSON: {error}", file=path, line=number) from None
                source, *targets = sides_of(corpus)
                first = "" if source is None else one_of(_value(row, source, path, number), source, corpus, path)
                yield (
                    first,
                    *[
                        text
                        for each in targets
                        if each is not None
                        for text in all_of(_value(row, each, path, number), each, corpus, path)
                    ],
                )


def _value(row: object, column: str, path: Path, line: int) -> str | list[str]:
    """The text or texts at a key; `a.b` is key b of the object at key a. null is an empty text."""
    value: object = row
    for key in [column] if isinstance(row, dict) and column in row else column.split("."):
        if not isinstance(value, dict) or key not in value:
            has = f"; it has {listed(row)}" if isinstance(row, dict) else ""
            raise DataError(f"there is no {column!r}{has}", file=path, line=line)
        value = value[key]
    if isinstance(value, list):
        return [_text_of(each, column, path, line) for each in value]
    return _text_of(value, column, path, line)


def _text_of(value: object, column: str, path: Path, line: int) -> str:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{column!r} holds {json.dumps(value):.40}, not text", file=path, line=line)
    text = one_line(value or "")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{column!r} contains half a surrogate pair, which is not a character", file=path, line=line)
    return text


def _parquet(corpus: CorpusConfig, online: bool) -> Rows:
    for path in files(corpus):
        with opened(path) as stream, huggingface.damage_told(path, "Parquet file"):
            file = pq.ParquetFile(stream)
            columns = top_columns(corpus, file.schema_arrow.names)
            num_rows = 0
            for batch in file.iter_batches(columns=columns or None):
                yield from table_rows(pa.Table.from_batches([batch]), corpus, str(path))
                num_rows += len(batch)
            if num_rows != file.metadata.num_rows:
                raise DataError(f"has {num_rows} rows, but its metadata says {file.metadata.num_rows}", file=path)


def _huggingface(corpus: CorpusConfig, online: bool) -> Rows:
    path = _path(corpus)
    dataset = huggingface.open_split(path, corpus.split, online=online)
    with huggingface.damage_told(path, "whole dataset"):
        for table in dataset.with_format("arrow").iter(batch_size=10_000):
            yield from table_rows(table, corpus, path)


def _columns(read: Callable[[Path, Sequence[str]], Iterator[tuple[str, ...]]], corpus: CorpusConfig, _: bool) -> Pairs:
    """The pairs of a format whose reader gives the columns it is asked for."""
    columns = [each for each in (corpus.source, corpus.target) if each is not None]
    for path in files(corpus):
        for row in read(path, columns):
            yield "" if corpus.source is None else row[0], row[-1]


def _generated(corpus: CorpusConfig, online: bool) -> Pairs:
    made = registry.generate(corpus)
    return made if corpus.source is not None else (("", target) for _, target in made)


def _captions(corpus: CorpusConfig, online: bool) -> Pairs:
    return image_sources.captions(corpus, rows, online=online)


def _path(corpus: CorpusConfig) -> str:
    assert corpus.path is not None  # so says CorpusConfig
    return corpus.path


def _sha256(path: Path) -> str:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError("is a pipe or device, but a corpus is read more than once: give a file", file=path)
    with opened(path, packed=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


READERS: Mapping[str, Callable[[CorpusConfig, bool], Rows]] = {
    "text": _text,
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "labelled": partial(_columns, read_labelled),
    "conllu": partial(_columns, read_conllu),
    "huggingface": _huggingface,
    "generated": _generated,
    "imagefolder": _captions,
    "idx": _captions,
}
