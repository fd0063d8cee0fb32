"""JSON as people write it: an object a line, an array, an array in an object; keys at any depth."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

ROWS = [{"source": "ein Haus", "target": "a house"}, {"source": 'ü "x", [y]}', "target": "{z"}]
PAIRS = [("ein Haus", "a house"), ('ü "x", [y]}', "{z")]


def read(file: Path, **keys: Any) -> list[tuple[str, str]]:
    format_ = "parquet" if file.suffix == ".parquet" else "jsonl"
    return list(read_pairs(CorpusConfig.model_validate({"format": format_, "path": str(file), **keys})))


def written(folder: Path, text: str) -> Path:
    (folder / "a.json").write_text(text, "utf-8")
    return folder / "a.json"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document",
    [
        ROWS,
        {"data": ROWS},
        {"rows": ROWS},
        {"version": '1.1 "x"', "size": 2, "more": None, "data": ROWS},
        {"data": ROWS, "version": {"a": [1]}, "names": ["x"]},
    ],
)
def test_an_array_is_read_wherever_it_is(tmp_path: Path, document: object, indent: int | None) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    for end in ("", "\n"):
        assert read(written(tmp_path, text + end)) == PAIRS
    assert read(written(tmp_path, "\ufeff" + text)) == PAIRS


def test_a_row_that_holds_an_array_of_objects_is_a_row(tmp_path: Path) -> None:
    rows = [{"data": [{"a": 1}], **row} for row in ROWS]
    assert read(written(tmp_path, "\n".join(map(json.dumps, rows)))) == PAIRS
    for row in ({**ROWS[0], "data": [{"a": 1}]}, {"id": 1, "data": [{"a": 1}], **ROWS[0]}):
        assert read(written(tmp_path, json.dumps(row))) == PAIRS[:1]
    same = {"source": "x", "data": ROWS}
    assert read(written(tmp_path, json.dumps(same))) == PAIRS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"train": [{"source": "a", "target": "b"}], "test": [{"source": "a"}]}', "'test' is a second array"),
        ('{"data": [{"source": "a", "target": "b"}]', "does not end its object"),
        ('{"data": [{"source": "a", "target": "b"}], "x": }', "does not end its object"),
        ('{"data": [{"source": "a", "target": "b"}', "has no end"),
        ('[{"source": "a", "target": "b"}] []', "more follows"),
        ('{"data": []}', "there is no 'source'; it has data"),
        ('{"source": 3, "target": "b"}', "'source' holds 3, not text"),
        ('{"source": "a", "target": 0.5}', "'target' holds 0.5, not text"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, text))


def test_keys_at_four_levels_in_json_and_in_parquet(tmp_path: Path) -> None:
    rows = [{"a": {"b": {"c": {"d": text, "e": "x"}}}, "translation": {"en": text}} for text in ("one", "two")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for file in (written(tmp_path, json.dumps(rows)), tmp_path / "a.parquet"):
        for keys in ({"source": "a.b.c.d", "target": "en"}, {"source": "translation.en", "target": "a.b.c.d"}):
            assert read(file, **keys) == [("one", "one"), ("two", "two")]
        with pytest.raises(DataError, match=r"there is no (column )?'a\.b\.c\.f'"):
            read(file, source="a.b.c.f")


COLUMNS = {
    "a dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "views": pa.array(["a", "b", None, "a"], pa.string_view()),
    "long strings": pa.array(["a", "b", None, "a"], pa.large_string()),
}
LISTS = {
    "large lists": pa.array([["a"], ["b", "c"], [], None], pa.large_list(pa.string())),
    "lists of a fixed size": pa.array([["a", "x"], ["b", "c"], None, ["d", "e"]], pa.list_(pa.string(), 2)),
    "views of lists": pa.array([["a"], ["b", "c"], [], None], pa.list_view(pa.string())),
    "lists of views": pa.array([["a"], ["b", "c"], [], None], pa.list_(pa.string_view())),
}


@pytest.mark.parametrize("kind", [*COLUMNS, *LISTS])
def test_every_arrow_type_of_texts(tmp_path: Path, kind: str) -> None:
    column = {**COLUMNS, **LISTS}[kind]
    table = pa.table({"source": column, "target": pa.array(["x"] * 4)})
    pq.write_table(table, tmp_path / "a.parquet")
    nested = pa.table({"in": pa.StructArray.from_arrays([column], ["side"]), "target": pa.array(["x"] * 4)})
    pq.write_table(nested, tmp_path / "b.parquet")
    wanted = [" ".join(cell or ()) if kind in LISTS else cell or "" for cell in column.to_pylist()]
    joined = {"lists": "join"} if kind in LISTS else {}
    assert [source for source, _ in read(tmp_path / "a.parquet", **joined)] == wanted
    assert [source for source, _ in read(tmp_path / "b.parquet", source="in.side", **joined)] == wanted


def test_random_tables_as_pandas_reads_them(tmp_path: Path) -> None:
    draw = random.Random(49)
    for number in range(40):
        rows = [
            {side: "".join(draw.choices('ab "\\,[]{}:\tüß語\u2028', k=draw.randrange(9))) for side in ROWS[0]}
            for _ in range(draw.randint(1, 6))
        ]
        if number % 2:
            text, frame = json.dumps(rows), pd.DataFrame(rows)
        else:
            frame = pd.DataFrame(rows)
            text = frame.to_json(orient="records", lines=True, force_ascii=bool(number % 4))
        file = written(tmp_path, text)
        theirs = pd.read_json(file, orient="records", lines=not number % 2, dtype=str)
        assert read(file) == list(frame.itertuples(index=False, name=None))
        assert read(file) == list(theirs.itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "source": "a",\n  "target": "b"\n}\n', "put each on one, as by jq -c . FILE"),
        ('["a", "b"]\n["c", "d"]\n', "line 1 is an array, and a row must be .* as by jq -c '{source"),
        ('["a", "b"]', "item 1 is a text, and a row must be an object with a name for each value"),
        ('[["a", "b"], ["c", "d"]]', r"item 1 is an array, and a row must be .* as by jq -c '\.\[\] \| {source"),
    ],
)
def test_rows_that_are_no_objects_on_a_line_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, text))


def test_classes_that_are_floats_are_refused_with_the_remedy(tmp_path: Path) -> None:
    file = written(tmp_path, '{"source": "a", "target": 1.0}\n')
    with pytest.raises(DataError, match=r"'target' holds 1\.0, not text: classes are integers or texts \(where one is"):
        read(file)
    pq.write_table(pa.table({"source": ["a"], "target": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"'target' holds double, not text: classes are integers or texts"):
        read(tmp_path / "a.parquet")


def test_what_annotators_did_not_accept_is_no_example(tmp_path: Path) -> None:
    """The label that prodigy proposed was learned of texts for which it was rejected."""
    file = tmp_path / "a.jsonl"
    rows = [{"text": "a", "label": "x", "_task_hash": 1, "answer": each} for each in ("accept", "reject")]
    keys = {"format": "jsonl", "path": str(file), "source": "text", "target": "label"}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"line 2: its answer in prodigy is 'reject'.* jq -c 'select"):
        list(read_pairs(CorpusConfig.model_validate(keys)))
    file.write_text('{"text": "a", "label": "x", "answer": "reject"}\n')  # of something else
    assert list(read_pairs(CorpusConfig.model_validate(keys))) == [("a", "x")]


def test_a_comma_at_the_end_of_a_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: not JSON: .*; a comma ends the line: cut those, as by sed"):
        read(written(tmp_path, '{"source": "a", "target": "b"},\n{"source": "c", "target": "d"}\n'), target="target")


def test_pairs_without_a_label_of_annotators_are_remarked(tmp_path: Path) -> None:
    file, keys = tmp_path / "a.jsonl", {"source": ["sentence1", "sentence2"], "target": "gold_label"}
    file.write_text('{"sentence1": "a", "sentence2": "b", "gold_label": "-"}\n')
    (tmp_path / "a.tsv").write_text("gold_label\tsentence1\tsentence2\n-\ta\tb\n")
    for path, format_ in ((file, "jsonl"), (tmp_path / "a.tsv", "tsv")):
        with collect_remarks() as found:
            list(read_pairs(CorpusConfig.model_validate({"format": format_, "path": str(path), **keys})))
        assert any("'gold_label' is - where annotators did not agree" in each for each in found)
