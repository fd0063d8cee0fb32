"""Values that are no texts, in Parquet and JSON: each is refused with a remedy, and none becomes text unasked."""

import datetime
import decimal
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.corpora.paths.single_files import suggest_corpus_table
from tfm.data.corpora.sources import read_rows
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, ExportableFileError

TEXTS = ["a b", "c d", "e f"]
IMAGE_STRUCT = pa.struct({"bytes": pa.binary(), "path": pa.string()})
TURNS = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def read(file: Path, source: str, target: str, **keys: Any) -> list[tuple[str, ...]]:
    format_ = "parquet" if file.suffix == ".parquet" else "jsonl"
    return list(
        read_rows(
            CorpusConfig.model_validate(
                {"format": format_, "path": str(file), "source": source, "target": target, **keys}
            )
        )
    )


def write_parquet(folder: Path, column: pa.Array) -> Path:
    pq.write_table(pa.table({"text": TEXTS, "value": column}), folder / "a.parquet")
    return folder / "a.parquet"


def write_json(folder: Path, value: object) -> Path:
    rows = [{"text": text, "value": value} for text in TEXTS]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder / "a.jsonl"


@pytest.mark.parametrize(
    ("column", "remedy"),
    [
        (pa.array([datetime.datetime(2020, 1, 1)] * 3), "write texts in their place"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), "write texts in their place"),
        (pa.array([datetime.time(1)] * 3), "write texts in their place"),
        (pa.array([datetime.timedelta(1)] * 3), "write texts in their place"),
        (pa.array([b"a", b"\xff", b"c"]), 'Series.str.decode("utf-8")'),
        (pa.array([b"a", b"b", b"c"], pa.large_binary()), 'Series.str.decode("utf-8")'),
        (pa.array([b"a", b"b", b"c"], pa.binary(1)), 'Series.str.decode("utf-8")'),
        (pa.array([decimal.Decimal("1.5")] * 3), "write them as texts"),
        (pa.array([[("en", "dog")]] * 3, pa.map_(pa.string(), pa.string())), "write a column for each key"),
        (pa.array([{"bytes": b"RIFF", "path": "a.wav"}] * 3, IMAGE_STRUCT), 'image = "value"'),
        (pa.array([{"array": [0.5], "sampling_rate": 8000, "path": "a.wav"}] * 3), "tfm reads no sound"),
        (pa.array([{"en": "a", "de": "b"}] * 3), "name what is read in it, as value.en"),
        (pa.array([[["a"], ["b"]]] * 3), "| .value |= flatten' FILE"),
        (pa.array([[{"start": 1, "text": "a"}]] * 3), "| .value |= (.[0] | .text)' FILE"),
        (pa.array([TURNS] * 3), "it holds turns of conversations"),
        (pa.array([0.5] * 3), ""),
        (pa.array([1] * 3), ""),
    ],
)  # fmt: skip
def test_columns_of_parquet(column: pa.Array, remedy: str, tmp_path: Path) -> None:
    file = write_parquet(tmp_path, column)
    sides = [("value", "text")] if pa.types.is_integer(column.type) else [("text", "value"), ("value", "text")]
    for source, target in sides:
        for lists in (None, "join", "words"):
            with pytest.raises(DataError) as error:
                read(file, source, target, lists=lists)
            assert "'value' holds " in str(error.value)
            assert remedy in str(error.value).partition("not text: ")[2]
            assert str(error.value).partition("not text: ")[2]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ({"path": "a.wav", "bytes": None}, 'image = "value"'),
        ({"path": "a.wav", "array": [0.5], "sampling_rate": 8000}, "tfm reads no sound"),
        ({"en": "x", "de": "y"}, "name what is read in it, as value.en"),
        ([["a"], ["b"]], "| .value |= flatten' FILE"),
        ([{"text": "a", "start": 1}], "| .value |= (.[0] | .text)' FILE"),
        (0.5, ""),
        ([0.5, 0.25], ""),
    ],
)
def test_values_of_json(value: object, remedy: str, tmp_path: Path) -> None:
    file = write_json(tmp_path, value)
    for source, target in (("text", "value"), ("value", "text")):
        with pytest.raises(DataError) as error:
            read(file, source, target, lists="join")
        assert "line 1: 'value' holds " in str(error.value)
        after = str(error.value).partition("not text: ")[2]
        assert after
        assert remedy in after


def test_columns_without_any_value_are_empty_texts(tmp_path: Path) -> None:
    """A part of a set in which all labels are missing has no type in Parquet, and reads as null in JSON does."""
    file = write_parquet(tmp_path, pa.array([None] * 3, pa.null()))
    assert (
        read(file, "text", "value")
        == [(text, "") for text in TEXTS]
        == read(write_json(tmp_path, None), "text", "value")
    )
    file = write_parquet(tmp_path, pa.array([[], None, [None]], pa.list_(pa.null())))
    assert read(file, "text", "value", lists="join") == [(text, "") for text in TEXTS]


@pytest.mark.parametrize(
    "column", [pa.array([datetime.date(2020, 1, 1)] * 3), pa.array([b"a"] * 3), pa.array([None] * 3)]
)
def test_columns_without_text_are_not_advised(column: pa.Array, tmp_path: Path) -> None:
    file = write_parquet(tmp_path, column)
    assert 'source = "none", target = "text"' in suggest_corpus_table(file, ["source"], "target")


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "document",
    [
        {"a": ["one", "two", "three"], "b": ["eins", "zwei", "drei"]},
        {"text": ["one", "two", "three"], "label": [0, 1, 1]},
        {"source": ["one two", "three"], "target": ["eins zwei", "drei"]},
        {"tokens": ["one two", "three"], "label": ["x", "y"]},
    ],
)
def test_a_table_by_columns_is_no_row(document: dict[str, list[object]], indent: int | None, tmp_path: Path) -> None:
    """As `DataFrame.to_dict("list")` and `Dataset.to_dict()` write tables: read as a row they were one pair."""
    source, target = document
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document, indent=indent), "utf-8")
    for lists in (None, "join", "references"):
        with pytest.raises(DataError, match="is a table by columns, one array each: write its rows"):
            read(file, source, target, lists=lists)
    with pytest.raises(ExportableFileError, match="is a table by columns"):
        suggest_corpus_table(file, ["source"], "target")


def test_rows_of_words_are_no_table_by_columns(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    row = {"tokens": ["one", "two"], "tags": ["NUM", "NUM"]}
    file.write_text(json.dumps(row), "utf-8")
    assert read(file, "tokens", "tags", lists="join") == [("one two", "NUM NUM")]
    file.write_text(json.dumps({"a": ["one", "two"], "b": ["x", "y"]}), "utf-8")
    assert read(file, "a", "b", lists="words") == [("one two", "x y")]
    file.write_text('{"a": ["one", "two"], "b": ["x", "y"]}\n{"a": ["three"], "b": ["z"]}\n', "utf-8")
    assert read(file, "a", "b", lists="join") == [("one two", "x y"), ("three", "z")]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("num_rows", [1, 2])
@pytest.mark.parametrize(
    ("column", "value", "lists", "expected"),
    [
        ("messages", TURNS, None, ("a", "b")),
        ("the turns", TURNS, None, ("a", "b")),
        ("the lists", [["a"], ["b"]], "join", ("x", "a b")),
        ("the objects", [{"the text": "a"}], None, ("x", "a")),
    ],
)
def test_what_a_message_advises_makes_a_file_that_is_read(
    column: str,
    value: object,
    lists: str | None,
    expected: tuple[str, ...],
    num_rows: int,
    is_array: bool,
    tmp_path: Path,
) -> None:
    """The command that a message advises makes a file that is read, of a single row (taken for the table) too."""
    rows = [{"id": "x", column: value}] * num_rows
    file = tmp_path / "a.json"
    file.write_text(json.dumps(rows) if is_array else "".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    acts: list[Callable[[], object]] = [
        lambda: suggest_corpus_table(file, ["source"], "target"),
        lambda: read(file, "id", column, lists=lists),
    ]
    problems: list[str] = []
    for act in acts:
        try:
            problems.append(str(act()))
        except DataError as error:
            problems.append(str(error))
    command = next(match[0] for text in problems if (match := re.search(r"jq -c '.*' FILE", text)) is not None)
    text = subprocess.run(
        command.replace("FILE", str(file)), shell=True, capture_output=True, text=True, check=True
    ).stdout
    names = ("source", "target") if value is TURNS else ("id", column)
    written = tmp_path / "b.jsonl"
    written.write_text(text, "utf-8")
    assert read(written, *names, lists=lists) == [expected] * num_rows
