"""What is read is what stands there: every cell as its text, by whichever way a table is read.

Each table is written by a plain writer, read back by a reader that is not ours, and then by ours: the file by its
format, and the folder that holds it.
"""

import csv
import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import datasets
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfm.data.corpora.sources import read_pairs, read_rows
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.images.imagefolder import read_imagefolder

Pairs = list[tuple[str, str]]
NASTY = (
    "NA", "null", "None", "nan", "NaN", "N/A", "n/a", "#N/A", "", "-", "007", "1e5", "+1", "1_000", "0x10", "True",
    "false", "2024-02-29", "2024-02-29T10:00:00Z", "12:30", "1,5", "1.50", "$5", "inf", "-0", '"', '""', "'", '"a"',
    'say "x", "y"', "a\tb", "a,b", ",", ";", " a", "a ", " ", "\u00a0", "\u3000a", "a\u2028b", "a\x85b", "\ufeffa",
    "a\nb", "a\r\nb", "a\rb", "\n", "\\N", "\\n", "#", "# a", "=1+1", "{}", "[1]", "<s>", "é", "e\u0301", "🙂",
)  # fmt: skip
CELLS = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
TABLES = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6)
HEADER = ("source", "target")


def on_one_line(table: Pairs) -> Pairs:
    """The cells as a corpus has them: a line break within one is a space."""
    return [(re.sub(r"\r*\n", " ", source), re.sub(r"\r*\n", " ", target)) for source, target in table]


def write_csv(file: Path, table: Pairs) -> Pairs:
    with open(file, "w", encoding="utf-8-sig" if len(table) % 2 else "utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\r\n" if len(table) % 3 else "\n", quoting=csv.QUOTE_ALL).writerows(
            [HEADER, *table]
        )
    with open(file, encoding="utf-8-sig", newline="") as stream:
        found = [(row["source"], row["target"]) for row in csv.DictReader(stream)]
    frame = pandas.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig", skip_blank_lines=False)
    assert on_one_line(list(zip(frame["source"], frame["target"], strict=True))) == on_one_line(found)
    return found


def write_tsv(file: Path, table: Pairs) -> Pairs:
    # doubled marks may be those of CSV: see below
    plain = [tuple(re.sub(r"[\t\r\n]", " ", re.sub('""+', '"', cell)) for cell in row) for row in table]
    file.write_text("".join("\t".join(row) + "\n" for row in (HEADER, *plain)), "utf-8", newline="\n")
    with open(file, encoding="utf-8", newline="") as stream:
        found = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(source, target) for source, target in found[1:]]


def write_jsonl(file: Path, table: Pairs) -> Pairs:
    lines = [json.dumps(dict(zip(HEADER, row, strict=True)), ensure_ascii=len(table) % 2 == 0) for row in table]
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    found = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    return [(row["source"], row["target"]) for row in found]


def write_json(file: Path, table: Pairs) -> Pairs:
    file.write_text(json.dumps([dict(zip(HEADER, row, strict=True)) for row in table], indent=1), "utf-8")
    return [(row["source"], row["target"]) for row in json.loads(file.read_bytes())]


def write_parquet(file: Path, table: Pairs) -> Pairs:
    columns = {name: [row[place] for row in table] for place, name in enumerate(HEADER)}
    pq.write_table(pa.table(columns), file)
    found = pq.read_table(file)
    return list(zip(found["source"].to_pylist(), found["target"].to_pylist(), strict=True))


WRITERS: dict[str, Callable[[Path, Pairs], Pairs]] = {
    "csv": write_csv,
    "tsv": write_tsv,
    "jsonl": write_jsonl,
    "json": write_json,
    "parquet": write_parquet,
}


def of_format(file: Path) -> Pairs:
    kind = file.suffix.removeprefix(".")
    corpus = CorpusConfig.model_validate({"format": {"json": "jsonl"}.get(kind, kind), "path": str(file)})
    return list(read_pairs(corpus))


def of_folder(folder: Path) -> Pairs:
    return list(read_pairs(CorpusConfig(format="huggingface", path=str(folder), split="train")))


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_a_folder_and_another_reader_have_the_same_cells(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(kind)

    @settings(max_examples=25)
    @given(TABLES)
    @example([(cell, cell) for cell in NASTY])
    def check(table: Pairs) -> None:
        file = folder / f"train.{kind}"
        expected = on_one_line(WRITERS[kind](file, table))
        assert of_format(file) == expected
        assert of_folder(folder) == expected

    check()


def test_a_saved_dataset_has_the_same_cells(tmp_path: Path) -> None:
    columns = {"source": list(NASTY), "target": list(NASTY[::-1])}
    datasets.DatasetDict(train=datasets.Dataset.from_dict(columns)).save_to_disk(str(tmp_path / "set"))
    assert of_folder(tmp_path / "set") == on_one_line(list(zip(*columns.values(), strict=True)))


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_late_row_does_not_change_how_others_are_read(kind: str, tmp_path: Path) -> None:
    table = [("7", "2024-01-31")] * 10_050 + [("007", "NA")] + [("x", "None")]
    file = tmp_path / f"train.{kind}"
    assert WRITERS[kind](file, table) == table == of_format(file) == of_folder(tmp_path)


UNEVEN = {
    "csv": ["hello,Hallo", 'hello, "Hallo, du"', "hello,Hallo,du", "hello", "hello,Hallo,"],
    "tsv": ["hello\tHallo", "hello\t\tHallo", "a\thello\tHallo", "hello", "hello\tHallo\t"],
}


@pytest.mark.parametrize("kind", UNEVEN)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_row_of_more_or_fewer_cells_than_the_header_is_refused(kind: str, is_packed: bool, tmp_path: Path) -> None:
    mark = {"csv": ",", "tsv": "\t"}[kind]
    file = tmp_path / f"train.{kind}{'.gz' if is_packed else ''}"
    good, *bad = UNEVEN[kind]
    for row in bad:
        content = "".join(line + "\n" for line in (mark.join(HEADER), good, row)).encode()
        file.write_bytes(gzip.compress(content) if is_packed else content)
        for corpus in (
            {"format": kind, "path": str(file)},
            {"format": "huggingface", "path": str(tmp_path)},
            {"format": kind, "path": str(file), "source": None},
        ):
            with pytest.raises(DataError) as error:
                list(read_pairs(CorpusConfig.model_validate(corpus)))
            has = len(row.split(mark))
            assert str(error.value).startswith(
                f"{file}, line 3: has {has} column{'s' * (has != 1)}, but the first row has 2: "
            )


def test_a_stray_tab_of_a_table_without_a_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nc\td\te\n", "utf-8")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: has 3 columns, but the first row has 2"):
        list(read_pairs(CorpusConfig(format="tsv", path=str(tmp_path / "a.tsv"), source="0", target="1")))


def test_quotation_marks_of_tsv_are_those_of_csv_or_text_as_the_file_shows(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    table = [('He said "no" twice.', "neg"), ("a\tb", "pos"), ("plain", "pos")]
    with open(file, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", lineterminator="\n").writerows([HEADER, *table])
    assert of_format(file) == of_folder(tmp_path) == table
    assert list(read_pairs(CorpusConfig(format="csv", path=str(file)))) == table
    with pytest.raises(DataError, match=r"train\.tsv, line 3: has 3 columns"):
        list(read_pairs(CorpusConfig(format="tsv", path=str(file), quoting="raw")))
    text = ['"Hello," she said', '"a ""b"" c"', '"all of it"', '""']  # an earlier cell shows that it is text
    file.write_text("source\ttarget\n" + "".join(f"{each}\tx\n" for each in text), "utf-8")
    assert of_format(file) == of_folder(tmp_path) == [(each, "x") for each in text]


def test_a_blank_line_is_no_row_of_several_columns(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    for content in ("source\ttarget\n\na\tb\n\n\r\nc\td\n\n", "\na\tb\n\nc\td\n"):
        file.write_text(content, "utf-8", newline="")
        is_headed = content.startswith("source")
        about = {} if is_headed else {"source": "0", "target": "1"}
        assert list(read_pairs(CorpusConfig(format="tsv", path=str(file), **about))) == [("a", "b"), ("c", "d")]
    file.write_text("target\na\n\nb\n", "utf-8")
    texts = CorpusConfig(format="tsv", path=str(file), source=None)
    assert [text for _, text in read_pairs(texts)] == ["a", "", "b"]


def test_a_carriage_return_in_a_cell_is_text(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_bytes(b'source,target\r\nfoo\rbar,x\r\n"a\rb",y\r\n')
    assert of_format(file) == of_folder(tmp_path) == [("foo\rbar", "x"), ("a\rb", "y")]


def test_a_shifted_caption_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,text\na.png,a cat, or a dog\n", "utf-8")
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"metadata\.csv, line 2: has 3 columns"):
        read_imagefolder(tmp_path, ["text"], read_rows)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_table_of_a_header_has_no_rows(kind: str, tmp_path: Path) -> None:
    for end in ("", "\n", "\r\n"):
        file = tmp_path / f"train.{kind}"
        file.write_bytes(b"\xef\xbb\xbf" + {"csv": ",", "tsv": "\t"}[kind].join(HEADER).encode() + end.encode())
        assert of_format(file) == of_folder(tmp_path) == []


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_a_column_that_is_there_twice_is_refused(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"train.{kind}"
    if kind in ("csv", "tsv"):
        mark = {"csv": ",", "tsv": "\t"}[kind]
        file.write_text("".join(mark.join(row) + "\n" for row in (("source", "target", "target"), "abc")), "utf-8")
    else:
        table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array(["c"])], [*HEADER, "target"])
        with open(file, "wb") as stream:
            if kind == "parquet":
                pq.write_table(table, stream)
            else:
                with pa.ipc.new_file(stream, table.schema) as arrow:
                    arrow.write_table(table)
    with pytest.raises(DataError, match=r"target.*twice"):
        of_folder(tmp_path)


def dotted(file: Path, row: dict[str, object]) -> None:
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([row]), file)
    else:
        file.write_text(json.dumps(row) + "\n", "utf-8")


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_a_dot_in_a_name_is_that_of_the_column_before_that_of_a_field(kind: str, tmp_path: Path) -> None:
    corpus = {"format": "huggingface", "path": str(tmp_path), "source": "a.b", "target": "c"}
    for row, expected in (
        ({"a.b": "top", "c": "x"}, "top"),
        ({"a": {"b": "inner"}, "c": "x"}, "inner"),
        ({"a": {"b": "inner"}, "a.b": "top", "c": "x"}, "top"),
    ):
        dotted(tmp_path / f"train.{kind}", row)
        assert list(read_pairs(CorpusConfig.model_validate(corpus))) == [(expected, "x")]


def test_what_follows_an_array_is_not_lost(tmp_path: Path) -> None:
    row = '{"source": "a", "target": "b"}'
    for content in (f"[{row}]\n[{row}]", f"[{row}]\n{row}\n", f"[{row}] x", f"[{row}]" + " " * (1 << 20) + "x"):
        (tmp_path / "train.json").write_text(content, "utf-8")
        with pytest.raises(DataError, match=r"train\.json: the array has an end, and more follows"):
            of_folder(tmp_path)
    (tmp_path / "train.json").write_text(f"[{row}]\n \n", "utf-8")
    assert of_folder(tmp_path) == [("a", "b")]


WRONG_WORDS: Sequence[str] = ("B PER", "", " ", "a\u00a0b", "a\u3000b", " a", "b\n", "\u2028")


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("side", HEADER)
def test_a_word_with_a_space_would_shift_its_tags_and_is_refused(kind: str, side: str, tmp_path: Path) -> None:
    file, good = tmp_path / f"train.{kind}", {"source": ["a", "b"], "target": ["X", "Y"]}
    corpus = CorpusConfig(format="huggingface", path=str(tmp_path), lists="words")
    for word in WRONG_WORDS:
        table = [good, {**good, side: ["a", word]}]
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(table), file)
        else:
            file.write_text(json.dumps(table) if kind == "json" else "\n".join(map(json.dumps, table)), "utf-8")
        with pytest.raises(DataError) as error:
            list(read_pairs(corpus))
        assert str(tmp_path) in str(error.value)
        assert f"line 2: column {side!r} holds " in str(error.value)
        assert len(list(read_pairs(corpus.model_copy(update={"lists": "join"})))) == 2
