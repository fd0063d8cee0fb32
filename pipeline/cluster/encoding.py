"""Pairs of texts encoded on a cluster: the same chunks as `data.dataset.examples.encode_rows` gives, in the same order.

A unit of work is PORTIONS_PER_CHUNK times the rows that one process encodes at a time. Its result is an Arrow stream of
token ids, one record batch for each of them.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.corpora.language_codes import select_source_tokenizer
from tfm.data.corpora.references import Row
from tfm.data.dataset.examples import CHUNK_ROWS, EncodedSide, ExampleChunk, encode_chunk, split_row_columns
from tfm.data.dataset.split import TokenIdColumn
from tfm.data.dataset.store import list_array, words_cover_source
from tfm.data.formats.arrow_stream import read_arrow_stream
from tfm.data.lines import chunk_rows
from tfm.pipeline.artifacts.artifact import Input, read_artifact
from tfm.pipeline.cluster import session
from tfm.pipeline.cluster.chunk_store import damaged_chunk_error, hash_text_columns
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.cluster.session import ClusterSession
from tfm.pipeline.cluster.shared_folder import check_folder_is_shared
from tfm.tokenizer.tokenizer import Tokenizer

PORTIONS_PER_CHUNK = 10

SourceTargetColumns = tuple[list[str], list[str]]


@dataclass(frozen=True)
class ClusterEncoder:
    """Encodes rows on a cluster.

    Args:
        cluster: the cluster, or this machine.
        tokenizer: the tokenizer's artifact, in a folder that every node has.
        vocab_sizes: the number of pieces of the source's and the target's vocabulary.
    """

    cluster: ClusterSession | LocalSession
    tokenizer: Input
    vocab_sizes: tuple[int, int]

    def encode(
        self,
        rows: Iterable[Row],
        languages: tuple[str, ...],
        tag: str | None,
        *,
        counts_words: bool,
        multi_reference: bool,
    ) -> Iterator[ExampleChunk]:
        """Encode pairs, as `encode_rows` does.

        Args:
            rows: the texts of each pair.
            languages: the codes of `Tokenizer.select_target_language`; none if sources begin with no language.
            tag: the tag that sources begin with; None for none.
            counts_words: whether the words of sources are counted.
            multi_reference: whether rows may have more than two texts.

        Yields:
            Chunks of CHUNK_ROWS rows, as `chunk_rows` cuts them.

        Raises:
            DataError: a kept result is none of these pairs and tokenizers.
        """
        first = 0
        for portions, result in self.cluster.map_in_order(
            encode_columns, self._make_chunks(rows, languages, tag, multi_reference=multi_reference)
        ):
            try:
                batches = read_columns(
                    result, [len(each) for each in portions], self.vocab_sizes, counts_words=counts_words
                )
            except ValueError as error:
                raise damaged_chunk_error(error, self.cluster.store) from error
            for portion, (source, target) in zip(portions, batches, strict=True):
                sources, targets, extra = split_row_columns(portion, multi_reference=multi_reference)
                sides = EncodedSide(sources, *source), EncodedSide(targets, *target[:2])
                yield ExampleChunk(np.arange(first, first + len(portion)), *sides, extra)
                first += len(portion)

    def _make_chunks(
        self, rows: Iterable[Row], languages: tuple[str, ...], tag: str | None, *, multi_reference: bool
    ) -> Iterator[tuple[list[list[Row]], session.ComputeChunk]]:
        portions = chunk_rows(rows, CHUNK_ROWS)
        folder = str(Path(self.tokenizer.path or "").absolute())
        while chunk_portions := list(islice(portions, PORTIONS_PER_CHUNK)):
            columns = [split_row_columns(each, multi_reference=multi_reference)[:2] for each in chunk_portions]
            settings = [repr(languages), repr(tag)]
            key = hash_text_columns(settings, *(texts for each in columns for texts in each))
            yield (
                chunk_portions,
                session.ComputeChunk(key, (folder, self.tokenizer.fingerprint, languages, tag, columns)),
            )


def encode_columns(
    folder: str, fingerprint: str, languages: tuple[str, ...], tag: str | None, portions: Sequence[SourceTargetColumns]
) -> bytes:
    """Encode some portions of pairs, on a node.

    Args:
        folder: of the tokenizer.
        fingerprint: of the tokenizer.
        languages: as `ClusterEncoder.encode` has them.
        tag: as `ClusterEncoder.encode` has it.
        portions: the sources and the targets of each.

    Returns:
        An Arrow stream with a record batch for each portion.
    """
    source, target = _load_tokenizers(folder, fingerprint, languages, tag)
    sink = pa.BufferOutputStream()
    counts_words = target.label_kind == "tags"
    with pa.ipc.new_stream(sink, _encoded_rows_schema(counts_words=counts_words)) as stream:
        for columns in portions:
            chunk = encode_chunk(list(zip(*columns, strict=True)), 0, source, target, multi_reference=False)
            arrays = [list_array(side.ids, side.lengths) for side in (chunk.source, chunk.target)]
            arrays += [] if chunk.source.words is None else [list_array(*chunk.source.words)]
            stream.write_batch(pa.record_batch(arrays, schema=_encoded_rows_schema(counts_words=counts_words)))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_columns(
    content: bytes, sizes: Sequence[int], vocab_sizes: tuple[int, int], *, counts_words: bool
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Read what `encode_columns` wrote: of each portion the ids, lengths and words of the sources, and of the targets.

    Raises ValueError if the content is not that of portions of these sizes, or has ids of no piece.
    """
    try:
        batches = read_arrow_stream(
            pa.BufferReader(content), [_encoded_rows_schema(counts_words=counts_words)]
        ).to_batches()
    except (OSError, struct.error, pa.ArrowException) as error:
        raise ValueError(str(error)) from error
    if [len(each) for each in batches] != list(sizes):
        raise ValueError("it has another number of rows")
    return [_validate_columns(batch, vocab_sizes) for batch in batches]


def _validate_columns(batch: pa.RecordBatch, vocab_sizes: tuple[int, int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    def flatten_column(column_index: int) -> tuple[Any, Any]:
        column = batch.column(column_index)
        return column.flatten().to_numpy(), np.diff(column.offsets.to_numpy()).astype(np.int64)

    source, target = flatten_column(0), flatten_column(1)
    for name, (ids, _), vocab_size in zip(("source", "target"), (source, target), vocab_sizes, strict=True):
        if len(ids) and not (ids.min() >= 0 and ids.max() < vocab_size):
            raise ValueError(f"a {name} has token ids that the tokenizer does not have")
    words = (flatten_column(2),) if batch.num_columns > 2 else ()
    if words and not words_cover_source(TokenIdColumn.from_flat(*words[0]), source[1]):
        raise ValueError("there are words without pieces, or pieces without words")
    return (*source, *words), target


def _encoded_rows_schema(*, counts_words: bool) -> pa.Schema:
    ids = pa.list_(pa.int32())
    return pa.schema({"source": ids, "target": ids, **({"words": ids} if counts_words else {})})


@lru_cache(maxsize=8)
def _load_tokenizers(
    folder: str, fingerprint: str, languages: tuple[str, ...], tag: str | None
) -> tuple[Tokenizer, Tokenizer]:
    check_folder_is_shared(Path(folder))
    tokenizer_input = Input(fingerprint, folder)
    source, target = read_artifact(
        Path(folder), lambda _: load_tokenizer_pair(Path(folder)), must_match=tokenizer_input
    )
    return select_source_tokenizer(source, languages, tag), target
