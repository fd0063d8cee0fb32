"""Corpora -> text pairs, streamed: one reader a format. Lines end at "\\n" and nowhere else."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from tfm.data.corpora import image_sources
from tfm.data.corpora.delimited import read_csv, read_tsv
from tfm.data.corpora.json_rows import read_json
from tfm.data.corpora.markup.problems import PROBLEMS_OF_PAIRS, check_lines, line_end_problem, markup_problem
from tfm.data.corpora.paths.corpus_files import corpus_files, files_with_display_names, required_path
from tfm.data.corpora.portions import Corpus, Portion, RereadablePairs
from tfm.data.corpora.references import Row, group_references
from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.splits import Splits, resolve_splits
from tfm.data.corpora.table_cells import column_names, read_tables, top_level_columns
from tfm.data.corpora.tables.structures import audio_remark
from tfm.data.corpora.text_remarks import read_lines_with_verses, table_remark
from tfm.data.corpora.unseen_characters import remark_unseen_characters
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_count, format_names
from tfm.data.formats import huggingface
from tfm.data.formats.arrow_files import read_arrow
from tfm.data.formats.class_labels import ClassNames, unused_names_problem
from tfm.data.formats.conll.columns import read_conll
from tfm.data.formats.conllu import read_conllu
from tfm.data.formats.fasttext import read_labelled
from tfm.data.formats.hub.hub_folder import DataFiles
from tfm.data.formats.parquet import read_parquet
from tfm.data.formats.translations.po import read_po
from tfm.data.formats.translations.tmx import read_tmx
from tfm.data.formats.translations.xliff import read_xliff
from tfm.data.lines import blank_lines_remedy, count_lines, open_lines, open_maybe_compressed
from tfm.data.synthetic import registry
from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.labels import SPACE_WITHIN_WORD

__all__ = [
    "READERS",
    "Splits",
    "content_fingerprints",
    "corpus_files",
    "describe_corpus",
    "open_lines",
    "read_pairs",
    "read_rows",
    "resolve_splits",
    "with_lists_of",
]

PairIterator: TypeAlias = Iterator[tuple[str, str]]
RowIterator: TypeAlias = Iterator[Row]
ContentFingerprint: TypeAlias = tuple[str, Path | None, str]

FORMATS_WITH_INTEGER_LABELS = ("jsonl", "parquet", "arrow")
"""Kinds of files in which a label may be an integer; in the others all is text."""


def read_pairs(corpus: Corpus, *, online: bool = False) -> PairIterator:
    """The (source, target) texts of a corpus in order, read as they are asked for; without a source it is "".

    For images these are the name of an image and a caption, for each of its captions.

    online: whether a Hugging Face dataset may be downloaded. Raises DataError naming file, line and byte.
    """
    if corpus.has_images:
        return image_sources.read_captions(corpus, read_rows, online=online)
    if isinstance(corpus, Portion):
        parts = (
            corpus.select_pairs(member, RereadablePairs(partial(read_pairs, member, online=online)))
            for member in corpus.corpora
        )
        return chain.from_iterable(parts)
    rows = read_rows(corpus, online=online)
    if corpus.has_references:
        return ((source, target) for source, target, *_ in rows)
    return cast(PairIterator, rows)


def read_rows(corpus: Corpus, *, online: bool = False) -> Iterator[Row]:
    """The pairs of a corpus, each with its further references after it; of images as `read_pairs` has them."""
    if isinstance(corpus, Portion) or corpus.has_images:
        return read_pairs(corpus, online=online)
    rows = READERS[corpus.format](corpus, online)
    # A built-in corpus makes exactly as many pairs as requested.
    size = None if corpus.size is None or corpus.format == "generated" else corpus.skip + corpus.size
    selected_rows: Iterator[Row] = islice(rows, corpus.skip, size)
    if not corpus.is_stage_text and corpus.format != "generated":
        noun = "line" if corpus.format == "text" else "text" if corpus.source is None else "pair"
        selected_rows = remark_unseen_characters(selected_rows, describe_corpus(corpus), noun, corpus.skip)
    return group_references(selected_rows) if corpus.merge_references else selected_rows


def content_fingerprints(corpus: Corpus, *, online: bool = False) -> list[ContentFingerprint]:
    """The contents of a corpus, as (label, file or None, fingerprint): the same fingerprints mean the same text."""
    if isinstance(corpus, Portion):
        return [part for each in corpus.corpora for part in content_fingerprints(each, online=online)]
    if corpus.format == "generated":
        name = describe_corpus(corpus)
        return [(name, None, f"{name} {registry.corpus_version(required_path(corpus))}")]
    if corpus.has_images:
        return image_sources.image_fingerprints(corpus, describe_corpus(corpus), read_rows, online=online)
    if corpus.format == "huggingface":
        split = huggingface.open_split(required_path(corpus), corpus.split, online=online)
        if isinstance(split, DataFiles):
            contents: list[ContentFingerprint] = [(str(path), path, _sha256(path)) for path in split.files]
            contents += [(f"separator of {required_path(corpus)}", None, mark) for mark in split.separator]
            classes = {column: names for column, names in split.class_names.items() if column in column_names(corpus)}
            return contents + ([(f"classes of {required_path(corpus)}", None, repr(classes))] if classes else [])
        with huggingface.corruption_as_data_error(required_path(corpus), "whole dataset"):
            names = top_level_columns(corpus, split.column_names)
            return [(describe_corpus(corpus), None, huggingface.hash_dataset(split, names))]
    return [(label, path, _sha256(path)) for label, path in files_with_display_names(corpus, online=online)]


def with_lists_of(corpus: Corpus, label_kind: LabelKind | None) -> Corpus:
    """The same corpus for targets of some kind, whose lists are not joined.

    For tags texts in lists are words, and spaces within words are WITHIN; for labels a list in a target is one label.
    """
    if label_kind is None:
        return corpus
    if isinstance(corpus, Portion):
        return replace(corpus, corpora=tuple(with_lists_of(each, label_kind) for each in corpus.corpora))
    if label_kind == "label":
        return corpus.model_copy(update={"lists": "label"}) if corpus.lists == "join" else corpus
    has_words = corpus.lists == "join" or corpus.format in ("conllu", "conll")
    return corpus.model_copy(update={"lists": "words"}) if has_words else corpus


def describe_corpus(corpus: Corpus) -> str:
    """A corpus in a few words, for messages and reports."""
    if isinstance(corpus, Portion):
        return f"{corpus.part} of {', '.join(describe_corpus(each) for each in corpus.corpora)}"
    if corpus.format == "text":
        name = corpus.target if corpus.source is None else f"{corpus.source} | {corpus.target}"
    else:
        name = str(corpus.path)
    noun = "image" if corpus.has_images else "pair"
    parts = [name, corpus.split, None if corpus.size is None else f"{corpus.size} {noun}s"]
    parts += [f"{key} {value}" for key in ("length", "nesting") if (value := getattr(corpus, key)) is not None]
    parts += ["mixed"] if corpus.mix else []
    if corpus.format == "generated" and corpus.path == "languages":
        parts.append(f"{corpus.target} alone" if corpus.source is None else f"{corpus.source} to {corpus.target}")
    parts += [f"from {noun} {corpus.skip + 1} on"] if corpus.skip else []
    return " ".join(part for part in parts if part is not None)


def line_count_error(counts: Mapping[Path, int]) -> DataError:
    """The error of aligned files that are not aligned, the source first."""
    source, num_sources = next(iter(counts.items()))
    other_file, count = next((file, count) for file, count in counts.items() if count != num_sources)
    longer = source if num_sources > count else other_file
    remedy = blank_lines_remedy(longer, islice(open_lines(longer), min(num_sources, count), None))
    problem = f"has {format_count(num_sources, 'line')}, but {other_file} has {count}: "
    return DataError(f"{problem}line i of one must be the translation of line i of the other{remedy}", file=source)


def _read_text(corpus: CorpusConfig, online: bool) -> RowIterator:
    files = corpus_files(corpus, online=online)
    problems = [markup_problem, *(PROBLEMS_OF_PAIRS if corpus.source is not None else ())]
    for file in () if corpus.is_stage_text else files:
        if (remark := table_remark(check_lines(open_lines(file), file, problems))) is not None:
            add_remark(file, remark)
    if corpus.source is None:
        for file in files:
            yield from (("", line) for line in read_lines_with_verses(file))
        return
    try:
        yield from zip(*map(read_lines_with_verses, files), strict=True)
    except ValueError:
        raise line_count_error({file: count_lines(file) for file in files}) from None


def _read_files(
    read_file: Callable[[Path, CorpusConfig], RowIterator], corpus: CorpusConfig, online: bool
) -> RowIterator:
    """The rows of a format that is read file by file."""
    for path in corpus_files(corpus, online=online):
        yield from _with_audio_remark(path, read_file(path, corpus))


def _with_audio_remark(path: Path, rows: RowIterator) -> RowIterator:
    """The rows, with a remark if the first source is the name of a recording."""
    first = list(islice(rows, 1))
    if first and (text := audio_remark(first[0][0])) is not None:
        add_remark(path, text)
    return chain(first, rows)


def _read_parquet(path: Path, corpus: CorpusConfig, class_names: ClassNames | None = None) -> RowIterator:
    with open_maybe_compressed(path) as stream, huggingface.corruption_as_data_error(path, "Parquet file"):
        tables = read_parquet(cast(BinaryIO, stream), partial(top_level_columns, corpus))
        yield from read_tables(tables, corpus, str(path), class_names)


def _read_arrow(path: Path, corpus: CorpusConfig, class_names: ClassNames | None = None) -> RowIterator:
    with huggingface.corruption_as_data_error(path, "whole Arrow file"):
        yield from read_tables(read_arrow(path), corpus, str(path), class_names)


def _read_lines(path: Path, corpus: CorpusConfig) -> RowIterator:
    """The lines of a file that counts as a table with one column, `text`."""
    if corpus.source is not None or corpus.target != "text":
        raise DataError('holds lines, which are one column: set source = "none", target = "text"', file=path)
    return (("", line) for line in open_lines(path))


def _read_huggingface(corpus: CorpusConfig, online: bool) -> RowIterator:
    path = required_path(corpus)
    split = huggingface.open_split(path, corpus.split, online=online)
    if isinstance(split, DataFiles):
        read_file = FILE_READERS[split.kind]
        if corpus.classes and split.kind not in FORMATS_WITH_INTEGER_LABELS:
            raise DataError(unused_names_problem(corpus.target), file=path)
        if split.merged_folders:
            text = f"files of the same name in its folders {format_names(split.merged_folders)} are read as one set"
            add_remark(path, f"{text}; for one of them set path to it, as {Path(path) / split.merged_folders[0]}")
        if split.differing_names:
            names = format_names(split.differing_names[:3])
            add_remark(path, f"its files {names} are read as one set: name those that are wanted in data.train")
        if split.other_configurations:
            names = format_names(split.other_configurations)
            add_remark(path, f"its default configuration is read; {path}:NAME is one of the others ({names})")
        if split.separator:
            read_file = partial(read_csv, separator=split.separator)
        elif split.class_names and split.kind in FORMATS_WITH_INTEGER_LABELS:
            read_file = partial(read_file, class_names=split.class_names)
        for file in split.files:
            yield from _with_audio_remark(file, read_file(file, corpus))
        return
    with huggingface.corruption_as_data_error(path, "whole dataset"):
        tables = split.with_format("arrow").iter(batch_size=1000)
        yield from read_tables(tables, corpus, path, huggingface.class_names_of_split(split))


def _read_columns(
    read_columns: Callable[[Path, Sequence[str]], Iterator[tuple[str, ...]]], corpus: CorpusConfig, online: bool
) -> PairIterator:
    """The pairs of a format with a reader that returns requested columns."""
    for path in corpus_files(corpus, online=online):
        check_lines(open_lines(path), path, (line_end_problem,))
        for row in read_columns(path, [*corpus.source_columns, corpus.target]):
            yield "" if corpus.source is None else row[0], row[-1]


def _read_words(
    read_columns: Callable[..., Iterator[tuple[str, ...]]], corpus: CorpusConfig, online: bool
) -> PairIterator:
    """The same of a format with a word a line, in which words may contain spaces."""
    return _read_columns(
        partial(read_columns, space_replacement=SPACE_WITHIN_WORD if corpus.lists == "words" else " "), corpus, online
    )


def _generate_pairs(corpus: CorpusConfig, online: bool) -> PairIterator:
    pairs = registry.generate(corpus)
    return pairs if corpus.source is not None else (("", target) for _, target in pairs)


def _read_captions(corpus: CorpusConfig, online: bool) -> PairIterator:
    return image_sources.read_captions(corpus, read_rows, online=online)


def _sha256(path: Path) -> str:
    with open_maybe_compressed(path, keep_compressed=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


FILE_READERS: Mapping[str, Callable[..., RowIterator]] = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "lines": _read_lines,
}
READERS: Mapping[str, Callable[[CorpusConfig, bool], RowIterator]] = {
    "text": _read_text,
    "tsv": partial(_read_files, read_tsv),
    "csv": partial(_read_files, read_csv),
    "jsonl": partial(_read_files, read_json),
    "parquet": partial(_read_files, _read_parquet),
    "labelled": partial(_read_columns, partial(read_labelled, on_warning=add_remark)),
    "conllu": partial(_read_words, read_conllu),
    "tmx": partial(_read_files, partial(read_tmx, on_warning=add_remark)),
    "xliff": partial(_read_files, partial(read_xliff, on_warning=add_remark)),
    "po": partial(_read_files, partial(read_po, on_warning=add_remark)),
    "conll": partial(_read_words, partial(read_conll, on_warning=add_remark)),
    "huggingface": _read_huggingface,
    "generated": _generate_pairs,
    "imagefolder": _read_captions,
    "idx": _read_captions,
}
