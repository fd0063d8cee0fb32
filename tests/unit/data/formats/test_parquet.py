"""Parquet files in tables of bounded size: the same rows as pyarrow has, and no more memory than a batch."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.errors import DataError
from tfm.data.formats.parquet import BATCH_BYTES, read_parquet
from tfm.data.formats.parquet_pages import read_pages, read_row_groups
from tfm.data.formats.row_sizes import row_sizes, split_table

WORDS = ("", "ein", "Haus", "über", "x" * 300)


def written(table: pa.Table, **how: Any) -> io.BytesIO:
    stream = io.BytesIO()
    pq.write_table(table, stream, **how)
    return stream


def usual_table() -> pa.Table:
    draw = random.Random(1)
    texts = [draw.choice(WORDS) + str(number) for number in range(3000)]
    lists = [None if number % 7 == 0 else draw.choices(WORDS, k=number % 5) for number in range(3000)]
    return pa.table({
        "text": texts, "list": lists, "number": list(range(3000)), "empty": [None, "x"] * 1500,
        "translation": [{"de": text, "en": text[::-1]} for text in texts], "a.b": texts,
    })  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("how", [
    {}, {"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"row_group_size": 700},
    {"data_page_size": 500}, {"store_schema": False},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
])  # fmt: skip
def test_usual_files_have_the_rows_that_pyarrow_reads(how: dict[str, Any]) -> None:
    table = usual_table()
    head, *batches = read_parquet(written(table, **how), lambda names: names)
    assert head.column_names == table.column_names
    assert [row for batch in batches for row in batch.to_pylist()] == table.to_pylist()
    head, *batches = read_parquet(written(table, **how), lambda names: ["a.b", "list"])
    assert [row for batch in batches for row in batch.to_pylist()] == table.select(["a.b", "list"]).to_pylist()
    assert len(list(read_parquet(written(table, **how), lambda names: []))) == 1


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_pages_are_those_of_the_file(version: str) -> None:
    table = usual_table()
    stream = written(table, data_page_version=version, data_page_size=2000, row_group_size=1000)
    metadata = pq.ParquetFile(stream).metadata
    for number, group in enumerate(read_row_groups(stream)):
        for leaf, chunk in enumerate(group):
            column = metadata.row_group(number).column(leaf)
            found = list(read_pages(stream, chunk))
            assert ".".join(chunk.path) == column.path_in_schema
            assert sum(page.num_values for page in found if not page.is_dictionary) == column.num_values
            assert [page.is_dictionary for page in found].count(True) == column.has_dictionary_page
            headers = column.total_uncompressed_size - sum(page.num_bytes for page in found)
            assert 0 < headers < 200 * len(found)


@pytest.mark.slow
def test_a_text_that_a_dictionary_repeats_is_decoded_few_rows_at_a_time() -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(400), pa.int32()), pa.array(["x" * 10**6]))
    table = pa.table({"text": repeated})
    stream = written(table, store_schema=False, dictionary_pagesize_limit=2**30, compression="zstd")
    batches = list(read_parquet(stream, lambda names: names))
    assert sum(map(len, batches)) == 400
    assert len(batches) > 5
    for batch in read_parquet(stream, lambda names: names):
        assert batch.nbytes <= BATCH_BYTES + 10**6


def test_rows_are_measured_as_texts_and_too_long_ones_named() -> None:
    table = pa.table({"a": ["", None, "über"], "b": [["x"], None, ["x", "yz"]]})
    assert row_sizes(table).tolist() == [65, 0, 5 + 2 * 64 + 3]
    assert row_sizes(table.slice(1)).tolist() == [0, 136]
    encoded = pa.table({"a": pa.array(["x" * 2**23, "y"]).dictionary_encode().take(pa.array([0] * 9 + [1]))})
    parts = list(split_table(encoded, "a.parquet"))
    assert [len(part) for part in parts] == [4, 4, 2]
    long = pa.table({"a": ["x", "y" * (2**24 + 1)]})
    with pytest.raises(DataError, match=r"a\.parquet: row 11 holds more than 16,777,216 bytes"):
        list(split_table(long, "a.parquet", 10))


def test_a_few_bytes_that_stand_for_gigabytes_are_refused_with_the_limit(tmp_path: Path) -> None:
    """12,000 rows of one text of a megabyte, by its dictionary: the first 512 MiB decide."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 12_000, pa.int32()), pa.array(["a" * 1_000_000]))
    pq.write_table(pa.table({"source": texts}), tmp_path / "bomb.parquet", compression="zstd")
    size = (tmp_path / "bomb.parquet").stat().st_size
    with (
        open(tmp_path / "bomb.parquet", "rb") as stream,
        pytest.raises(ValueError, match=f"its {size} bytes unpack to more than 536,870,912"),
    ):
        for _ in read_parquet(stream, lambda names: names):
            pass


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_row_groups_without_rows_are_read(use_dictionary: bool) -> None:
    """Data that begin nowhere: a filter that left nothing was told as damage."""
    table, buffer = usual_table(), io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema, use_dictionary=use_dictionary) as writer:
        for rows in (table.slice(0, 0), table.slice(0, 3), table.slice(0, 0)):
            writer.write_table(rows)
    assert sum(map(len, read_parquet(buffer, lambda names: names))) == 3
    empty = written(table.slice(0, 0), use_dictionary=use_dictionary)
    assert [len(each) for each in read_parquet(empty, lambda names: names)] in ([0], [0, 0])
