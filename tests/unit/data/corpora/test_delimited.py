"""TSV and CSV as pandas, spreadsheets, databases and people write them."""

import csv
import io
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

HEADED = {"source": "text", "target": "label"}
BY_NUMBER = {"source": 0, "target": 1}


def read(file: Path, content: str | None = None, **keys: Any) -> list[tuple[str, str]]:
    """The pairs of a file, by names of columns unless said otherwise."""
    if content is not None:
        file.write_bytes(content.encode())
    about = {"format": file.suffix[1:], "path": str(file), **(keys if "source" in keys else {**HEADED, **keys})}
    return list(read_pairs(CorpusConfig.model_validate(about)))


def remarks(file: Path, content: str, **keys: Any) -> list[str]:
    with collect_remarks() as found:
        read(file, content, **keys)
    return [each.removeprefix(f"{file}: ") for each in found]


ROWS = [('He said "no" twice.', "neg"), ("plain; text, too", "pos"), ('"whole"', "neg"), ("tab\there", "x|y"),
        ("two\nlines", "\\ and \\n"), ("", "empty")]  # fmt: skip
ONE_LINE = [tuple(cell.replace("\n", " ") for cell in row) for row in ROWS]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_what_pandas_writes(tmp_path: Path, name: str, delimiter: str, quoting: Any) -> None:
    if name == "a.tsv" and delimiter != "\t":
        return
    frame = pd.DataFrame(ROWS, columns=["text", "label"])
    text = frame.to_csv(index=False, sep=delimiter, quoting=quoting)
    assert read(tmp_path / name, text) == ONE_LINE
    text = frame.to_csv(index=False, header=False, sep=delimiter, quoting=quoting)
    assert read(tmp_path / name, text, **BY_NUMBER) == ONE_LINE
    escaped = frame.to_csv(index=False, sep=delimiter, quoting=quoting, doublequote=False, escapechar="\\")
    key = {"quoting": "backslash"} if name == "a.tsv" else {}
    assert read(tmp_path / name, escaped, **key) == ONE_LINE


def test_quotation_marks_of_a_tsv_are_text_where_one_cell_has_them_otherwise(tmp_path: Path) -> None:
    raw = 'text\tlabel\n"Hallo", sagte er.\tx\n"Ja."\ty\n'
    assert read(tmp_path / "a.tsv", raw) == [('"Hallo", sagte er.', "x"), ('"Ja."', "y")]
    assert remarks(tmp_path / "a.tsv", raw) == []
    mixed = 'text\tlabel\n"Ja."\ty\n"Hallo", sagte er.\tx\n'
    assert read(tmp_path / "a.tsv", mixed) == [('"Ja."', "y"), ('"Hallo", sagte er.', "x")]
    (said,) = remarks(tmp_path / "a.tsv", mixed)
    assert "kept as text, since those of line 3 are" in said
    opened = 'text\tlabel\n"A quotation begins\tx\nand ends."\ty\n'  # never one cell of two lines
    assert read(tmp_path / "a.tsv", opened) == [('"A quotation begins', "x"), ('and ends."', "y")]


def test_quotation_marks_of_a_tsv_are_removed_where_all_are_those_of_csv_and_that_is_said(tmp_path: Path) -> None:
    quoted = 'text\tlabel\n"He said ""no""."\tneg\nplain\tpos\n'
    assert read(tmp_path / "a.tsv", quoted) == [('He said "no".', "neg"), ("plain", "pos")]
    (said,) = remarks(tmp_path / "a.tsv", quoted)
    assert "are removed" in said
    assert read(tmp_path / "a.tsv", quoted, quoting="raw")[0] == ('"He said ""no""."', "neg")
    assert remarks(tmp_path / "a.tsv", quoted, quoting="double") == []


@pytest.mark.parametrize(("delimiter", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
def test_the_delimiter_of_a_csv_is_found_and_said_or_given(tmp_path: Path, delimiter: str, name: str) -> None:
    text = f"text{delimiter}label\na, b{delimiter}x\nc{delimiter}y, z\n"
    assert read(tmp_path / "a.csv", text) == [("a, b", "x"), ("c", "y, z")]
    assert remarks(tmp_path / "a.csv", text) == [f"cells are read as separated by {name} (delimiter = {delimiter!r})"]
    assert read(tmp_path / "a.csv", delimiter=delimiter) == [("a, b", "x"), ("c", "y, z")]
    with pytest.raises(DataError, match="there is no column 'text'"):
        read(tmp_path / "a.csv", delimiter=",")


def test_columns_by_number_without_a_header_and_behind_one(tmp_path: Path) -> None:
    text = '"3","Fears, again","Unions"\n"4","E-mail ""scam""","Police"\n'
    wanted = [("Fears, again", "3"), ('E-mail "scam"', "4")]
    assert read(tmp_path / "a.csv", text, source=1, target=0) == wanted
    for name, mark in (("a.csv", ","), ("a.tsv", "\t")):
        headed = f"l{mark}t{mark}t\n" + f"x{mark}one{mark}two\n"
        assert read(tmp_path / name, headed, source=2, target=0, header=True) == [("two", "x")]
        with pytest.raises(DataError, match="column 't' twice"):
            read(tmp_path / name, source="t", target="l")


@pytest.mark.parametrize("mark", [",", ";", "|", "^", "~", ":", "\t"])
def test_the_delimiter_is_found_of_columns_by_number_below_a_header(mark: str, tmp_path: Path) -> None:
    """Beside `header = true` a semicolon was not looked for: numbers are no names in a header."""
    headed = f"l{mark}t{mark}t\n" + f"x{mark}one{mark}two\n" * 2
    assert read(tmp_path / "a.csv", headed, source=2, target=0, header=True) == [("two", "x")] * 2


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    for name, mark in (("a.csv", ","), ("a.tsv", "\t")):
        text = f"\ntext{mark}label\n\n\na{mark}x\n\n"
        assert read(tmp_path / name, text) == [("a", "x")]
        assert remarks(tmp_path / name, text) == ["4 blank lines were skipped"]
        assert remarks(tmp_path / name, f"a{mark}x\n\n", **BY_NUMBER) == ["1 blank line was skipped"]
    lines = {"source": None, "target": "0"}
    assert read(tmp_path / "a.tsv", "a\n\nb\n", **lines) == [("", "a"), ("", ""), ("", "b")]


def test_a_carriage_return_and_a_cell_of_any_length(tmp_path: Path) -> None:
    long = "word " * 60_000
    text = f'text,label\nfoo\rbar,x\n"{long}",y\n"a\r\nb",z\r\nc\r,w\n'
    assert read(tmp_path / "a.csv", text) == [("foo\rbar", "x"), (long, "y"), ("a b", "z"), ("c\r", "w")]


@pytest.mark.parametrize("keys", [HEADED, BY_NUMBER])
def test_lines_that_end_in_cr_alone_are_refused(keys: dict[str, Any], tmp_path: Path) -> None:
    """By number a table of an old Macintosh was read as one row, and other formats were one line."""
    for name, content in (("a.csv", "text,label\ra,b\rc,d\r"), ("a.tsv", "text\tlabel\ra\tb\rc\td\r")):
        with pytest.raises(DataError, match="its lines end in CR alone: convert them to LF"):
            read(tmp_path / name, content, **keys)
    for format_, content in (("conll", "a B-X\rb O\r\rc O\r"), ("labelled", "pos a\rneg b\rpos c\r")):
        with pytest.raises(DataError, match="its lines end in CR alone: convert them to LF"):
            read(tmp_path / "a.txt", content, format=format_, source="source", target="target")


def test_backslashes_are_text_unless_a_file_cannot_be_read_so(tmp_path: Path) -> None:
    text = 'text,label\nC:\\dir\\,x\n"a\\b",y\n'
    assert read(tmp_path / "a.csv", text) == [("C:\\dir\\", "x"), ("a\\b", "y")]
    escaped = 'text,label\n"He said \\"no\\".",x\na\\, b,y\n'
    assert read(tmp_path / "a.csv", escaped) == [('He said "no".', "x"), ("a, b", "y")]
    assert remarks(tmp_path / "a.csv", escaped) == ['backslashes are read as escapes (quoting = "backslash")']


@pytest.mark.parametrize("mark", [";", "|", "\t", ","])
def test_the_first_column_alone_is_no_whole_line(mark: str, tmp_path: Path) -> None:
    """Any delimiter leaves a line a first cell, and so whole lines of a CSV were its first column."""
    first_alone = {"source": None, "target": 0}
    assert read(tmp_path / "a.csv", f"a b{mark}x\nc{mark}y\n", **first_alone) == [("", "a b"), ("", "c")]
    lines = "One, two.\nNone\nA: b\n"
    assert read(tmp_path / "b.csv", lines, **first_alone) == [("", line) for line in lines.splitlines()]


@pytest.mark.parametrize("mark", [";", "|", "\t", "^"])
def test_a_delimiter_that_a_backslash_escapes_is_found_without_a_quotation_mark(mark: str, tmp_path: Path) -> None:
    """Backslashes were tried only if doubled quotation marks gave an error, and not where rows got other widths."""
    rows = [["", "", ""], ["a", f"b{mark}", "c"], [f"{mark}{mark}", "d", ""]]
    stream = io.StringIO()
    how = {"delimiter": mark, "quoting": csv.QUOTE_NONE, "escapechar": "\\", "doublequote": False}
    csv.writer(stream, lineterminator="\n", **how).writerows(rows)  # type: ignore[arg-type]
    expected = [(first, second) for first, second, _ in rows]
    assert (
        read(tmp_path / "a.csv", "one;second;3\n".replace(";", mark) + stream.getvalue(), source="one", target="second")
        == expected
    )
    assert read(tmp_path / "a.csv", stream.getvalue(), **BY_NUMBER) == expected


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"format": "tsv", "delimiter": ";"}, "`delimiter` is for format csv"),
        ({"format": "jsonl", "quoting": "raw"}, "`quoting` is for format tsv and csv"),
        ({"format": "parquet", "header": True}, "`header` is for format tsv and csv"),
        ({"format": "csv", "delimiter": ", "}, "one character"),
        ({"format": "csv", "delimiter": '"'}, "one character"),
        ({"format": "csv", "header": False}, "columns are numbers"),
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CorpusConfig.model_validate({"path": "a", **keys})


def test_random_tables_as_pandas_and_csv_read_them(tmp_path: Path) -> None:
    draw = random.Random(49)
    for _ in range(150):
        rows = [["".join(draw.choices('ab,;|\t"\\ü\u2028\n', k=draw.randint(1, 6))) for _ in range(3)]
                for _ in range(draw.randint(1, 5))]  # fmt: skip
        delimiter = draw.choice(",;\t|")
        written = io.StringIO()
        csv.writer(written, delimiter=delimiter, lineterminator=draw.choice(["\n", "\r\n"])).writerows(rows)
        keys = {"source": 0, "target": 2, "delimiter": delimiter, "quoting": "double"}
        found = read(tmp_path / "a.csv", written.getvalue(), **keys)
        assert found == [(row[0].replace("\n", " "), row[2].replace("\n", " ")) for row in rows]
        theirs = pd.read_csv(
            io.StringIO(written.getvalue()), sep=delimiter, header=None, dtype=str, keep_default_na=False
        )
        assert found == [(a.replace("\n", " "), b.replace("\n", " ")) for a, _, b in theirs.itertuples(index=False)]
        if delimiter == "\t":
            (tmp_path / "a.tsv").write_text(written.getvalue(), "utf-8", newline="")
            assert read(tmp_path / "a.tsv", source=0, target=2, quoting="double") == found


@pytest.mark.parametrize("sign", [";", ",", "\t", "^"])
def test_a_first_line_that_says_the_delimiter_is_no_row(tmp_path: Path, sign: str) -> None:
    """Excel's `sep=;` was a row where columns are numbers, and a header else."""
    text = f"\ufeffsep={sign}\r\ntext{sign}label\r\na{sign}b\r\n"
    assert remarks(tmp_path / "a.csv", text) == [f"cells are read as separated by {sign!r}, as its first line says"]
    for keys in ({}, {"delimiter": sign}):
        assert read(tmp_path / "a.csv", text, **keys) == [("a", "b")]
        assert read(tmp_path / "a.csv", text, **BY_NUMBER, **keys)[0] == ("text", "label")
    assert read(tmp_path / "a.csv", "sep=a,b\nx,y\n", **BY_NUMBER) == [("sep=a", "b"), ("x", "y")]


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", "\t"), ("a.csv", ","), ("a.csv", ";")])
def test_rows_that_r_names(tmp_path: Path, name: str, delimiter: str, quote: str) -> None:
    """R's write.table has no name above the names of rows."""
    lines = [["text", "label"], ["1", "a b", "pos"], ["2", "c", "neg"]]
    text = "".join(delimiter.join(f"{quote}{cell}{quote}" for cell in cells) + "\n" for cells in lines)
    assert read(tmp_path / name, text) == [("a b", "pos"), ("c", "neg")]
    assert "its header has no name for the first column, which has the names of rows, as R writes them" in remarks(
        tmp_path / name, text
    )
    if not quote and delimiter != ";":
        with pytest.raises(DataError, match="line 2: has 3 columns, but the first row has 2"):
            read(tmp_path / name, text.replace("1", "x"))
        with pytest.raises(DataError, match="line 3: has 2 columns, but the first row has 3"):
            read(tmp_path / name, text.replace(f"2{delimiter}", ""))


def test_a_first_row_of_names_that_is_read_as_data_is_remarked(tmp_path: Path) -> None:
    said = "its first row (Text, label) is read as data: if it names columns, header = true"
    for name, mark in (("a.tsv", "\t"), ("a.csv", ",")):
        text = f"\nText{mark}label\na{mark}b\n"
        assert said in remarks(tmp_path / name, text, **BY_NUMBER)
        assert read(tmp_path / name, text, **BY_NUMBER) == [("Text", "label"), ("a", "b")]
        for keys in ({"header": True}, {"header": False}):
            assert said not in remarks(tmp_path / name, text, **BY_NUMBER, **keys)
        assert not any("first row" in each for each in remarks(tmp_path / name, f"a{mark}label\n", **BY_NUMBER))
        said_of_title = "its line 3 (Text, label) is read as data: if it names columns, remove the lines up to 3"
        assert said_of_title in remarks(tmp_path / name, f"Unit 3{mark}\n{mark}\nText{mark}label\n", **BY_NUMBER)


def test_a_first_row_of_languages_that_is_read_as_data_is_remarked(tmp_path: Path) -> None:
    """The header of most tables of translations became a pair without a word; short words look like codes."""
    for mark in "\t,":
        name = "a.tsv" if mark == "\t" else "a.csv"
        for codes in (("en", "de"), ("eng", "deu"), ("en-GB", "zh_Hans")):
            text = f"{mark.join(codes)}\na dog{mark}ein Hund\nno{mark}nein\n"
            said = f"its first row ({', '.join(codes)}) is read as data: if it names columns, header = true"
            assert said in remarks(tmp_path / name, text, **BY_NUMBER)
        words = f"the{mark}der\nof{mark}von\nhouse{mark}Haus\n"
        for lines in (words, f"house{mark}Haus\nof{mark}von\n", f"no{mark}no\nhouse{mark}Haus\n"):
            assert not any("is read as data" in each for each in remarks(tmp_path / name, lines, **BY_NUMBER))


def test_what_r_writes_with_tabs(tmp_path: Path) -> None:
    """write.table(sep = "\t") of R puts a backslash before quotation marks: they were kept as text."""
    file = tmp_path / "a.tsv"
    text = '"text"\t"label"\n"1"\t"He said \\"no\\"."\t"x"\n"2"\t"a \\\\ b"\t"y"\n'
    assert read(file, text) == [('He said "no".', "x"), ("a \\ b", "y")]
    assert 'backslashes are read as escapes (quoting = "backslash")' in remarks(file, text)
    raw = 'text\tlabel\n"a \\"b\\""\tx\n"c\ty\n'
    assert read(file, raw) == [('"a \\"b\\""', "x"), ('"c', "y")]
    assert read(file, 'text\tlabel\n"a\\"\tx\n"b"\ty\n') == [("a\\", "x"), ("b", "y")]


def test_lists_of_python_and_nulls_of_databases_are_remarked(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lists = "text,label\n\"['EU', 'rejects']\",\"[1, 0]\"\n"
    said = "['EU', 'rejects'] is a list as Python writes it, read as text: use JSON Lines"
    assert read(file, lists) == [("['EU', 'rejects']", "[1, 0]")]
    assert remarks(file, lists) == [said]
    assert remarks(file, "text,label\n[1] see there,x\n") == []
    assert remarks(file, "text,label\na,\\N\nb,\\N\n") == [
        r"cells that are \N, as databases write null, are read as text"
    ]
    assert remarks(file, "text,label\na,__NULL__\n") == [
        "cells that are __NULL__, as TED talks mark a missing translation, are read as text"
    ]


def test_spreadsheets_read_the_first_line_in_capitals_too(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "SEP=;\r\ntext;label\r\n3,5;x\r\n") == [("3,5", "x")]


def test_utf_32_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,label\na,b\n".encode("utf-32"))
    with pytest.raises(DataError, match="is UTF-32; convert it to UTF-8"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("keys", [HEADED, BY_NUMBER])
def test_comments_above_a_table_are_left_out_and_counted(keys: dict[str, Any], tmp_path: Path) -> None:
    head = "# made in 2024\n# source: a, b, c\n\n"
    for name, mark in (("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")):
        header = f"text{mark}label\n" if keys is HEADED else ""
        text = f'{head}{header}"one ""dog"""{mark}x\n#two{mark}y\n'
        assert read(tmp_path / name, text, **keys) == [('one "dog"', "x"), ("#two", "y")]
        assert "3 lines above the table are left out as comments (#)" in remarks(tmp_path / name, text, **keys)
        wrong = f"{head}{header}a{mark}b\na{mark}b{mark}c\n"
        with pytest.raises(DataError, match=f"line {5 + bool(header)}: has 3 columns"):
            read(tmp_path / name, wrong, **keys, **({} if name == "a.tsv" else {"delimiter": mark}))


def test_several_comments_with_as_many_cells_as_a_row_are_left_out(tmp_path: Path) -> None:
    """Two of them cannot both be a header (the Ding dictionary); a text may begin so, and then others do."""
    head = "# Version :: 1.9 2020-04-06\n# Copyright (c) :: Frank Richter\n"
    keys = {**BY_NUMBER, "delimiter": " :: "}
    assert read(tmp_path / "a.csv", f"{head}Aal :: eel\n", **keys) == [("Aal", "eel")]
    assert "2 lines above the table are left out as comments (#)" in remarks(
        tmp_path / "a.csv", f"{head}Aal :: eel\n", **keys
    )
    tweets = [("# one", "x"), ("# two", "y"), ("three", "x"), ("# four", "y")]
    assert read(tmp_path / "a.tsv", "".join(f"{text}\t{label}\n" for text, label in tweets), **BY_NUMBER) == tweets
    headed = "# a\tb\n# c\td\n#text\tlabel\none\tx\n"
    assert read(tmp_path / "a.tsv", headed, source="#text", target="label") == [("one", "x")]


def test_rows_that_end_before_the_last_column_are_answered_with_what_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    with pytest.raises(DataError, match=r"line 2: has 2 columns, .* as by cut -f 1,2 FILE$"):
        read(file, "Aal {m}\teel\tnoun\t[zool.]\nAase {pl}\tcarrions\n", **BY_NUMBER)
    with pytest.raises(DataError, match=r"line 2: has 2 columns, .* as by awk -F'\\t' 'NF == 3' FILE$"):
        read(file, "DATE\t2006\ttwo thousand six\n<eos>\t<eos>\n", source=1, target=2)


def test_a_header_or_text_that_begins_with_a_number_sign_is_no_comment(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", "#text\tlabel\na\tx\n", source="#text", target="label") == [("a", "x")]
    assert read(tmp_path / "a.tsv", "#tag\tx\nb\ty\n", **BY_NUMBER) == [("#tag", "x"), ("b", "y")]
    assert read(tmp_path / "a.tsv", "#tag\n#b\nc\n", source=None, target="0") == [("", "#tag"), ("", "#b"), ("", "c")]


@pytest.mark.parametrize("mark", ["^", "~", ":"])
def test_rarer_delimiters_are_found_where_the_columns_are_there(mark: str, tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", f"text{mark}label\na, b; c{mark}x\nd{mark}y\n") == [("a, b; c", "x"), ("d", "y")]
    assert read(tmp_path / "a.csv", f"a b{mark}x\nd{mark}y\n", **BY_NUMBER) == [("a b", "x"), ("d", "y")]


def test_a_delimiter_at_the_end_of_each_row_is_no_column(tmp_path: Path) -> None:
    """Rows that begin with 1 were read as R's, so that all cells were those of the column before."""
    for name, mark in (("a.csv", ","), ("a.csv", "|"), ("a.tsv", "\t")):
        text = f"id{mark}text{mark}label\n1{mark}one{mark}x{mark}\n2{mark}two{mark}y{mark}\n"
        assert read(tmp_path / name, text) == [("one", "x"), ("two", "y")]
        assert any("a delimiter ends each row" in each for each in remarks(tmp_path / name, text))
        wrong = "".join(f"1{mark}one{mark}x{mark}\n" for _ in range(300)) + f"1{mark}one{mark}x{mark}more\n"
        with pytest.raises(DataError, match="line 302: has 4 columns, but the first row has 3"):
            read(tmp_path / name, f"id{mark}text{mark}label\n{wrong}")


def test_a_header_that_comes_again_is_left_out_and_counted(tmp_path: Path) -> None:
    text = "text,label\na,x\ntext,label\nb,y\ntext,label\n"
    assert read(tmp_path / "a.csv", text) == [("a", "x"), ("b", "y")]
    assert remarks(tmp_path / "a.csv", text) == ["2 rows are the header again, and left out: the first in line 3"]
    assert read(tmp_path / "a.csv", "text\na\ntext\n", source=None, target="text") == [("", "a"), ("", "text")]


def test_a_cell_over_lines_may_have_quotation_marks_within(tmp_path: Path) -> None:
    """A doubled quotation mark in the first of its lines was taken for the end of the cell."""
    frame = pd.DataFrame([('He said "no"\nand went.', "x"), ("plain", "y")], columns=["text", "label"])
    frame.to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    assert read(tmp_path / "a.tsv") == [('He said "no" and went.', "x"), ("plain", "y")]


def test_quotation_marks_behind_a_space_are_those_of_csv(tmp_path: Path) -> None:
    """As people type them; they were a part of the label, and a comma within them an error."""
    text = 'text, label\n"a b", "x"\n"c, ""d""", "y, z"\n'
    assert read(tmp_path / "a.csv", text) == [("a b", "x"), ('c, "d"', "y, z")]
    assert any("spaces before cells are left out" in each for each in remarks(tmp_path / "a.csv", text))
    kept = 'text,label\na, "b" c\n'
    assert read(tmp_path / "a.csv", kept) == [("a", ' "b" c')]


def test_a_delimiter_of_several_characters(tmp_path: Path) -> None:
    text = 'A "dog" ||| Ein Hund\nNo | no ||| Nein\n'
    assert read(tmp_path / "a.csv", text, delimiter=" ||| ", **BY_NUMBER) == [
        ('A "dog"', "Ein Hund"),
        ("No | no", "Nein"),
    ]
    with pytest.raises(ValueError, match="has several characters, so that cells are raw"):
        read(tmp_path / "a.csv", delimiter="::", quoting="double")


def test_spans_and_several_labels_of_label_studio_in_cells_are_named(tmp_path: Path) -> None:
    """They were classes, each text of its own."""
    span = '[{""start"":0,""end"":3,""text"":""Ann"",""labels"":[""PER""]}]'
    with pytest.raises(DataError, match=r"line 3: a cell holds spans of entities .*spans_to_conll"):
        read(tmp_path / "a.csv", f'text,label\nNo,\nAnn sleeps,"{span}"\n')
    with pytest.raises(DataError, match="line 2: a cell holds several labels"):
        read(tmp_path / "a.csv", 'text,label\nA,"{""choices"":[""x"",""y""]}"\n')
    assert read(tmp_path / "a.csv", "text,label\nA,[{x\n") == [("A", "[{x")]


@pytest.mark.parametrize("header", ["source,target", '"source","target"'])
def test_the_header_of_a_file_that_was_joined_behind_another_may_have_a_byte_order_mark(
    header: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"\ufeff{header}\na,b\n\ufeff{header}\nc,d\n", "utf-8")
    corpus = CorpusConfig(format="csv", path=str(file), source="source", target="target")
    assert list(read_pairs(corpus)) == [("a", "b"), ("c", "d")]
    file.write_text(f"{header}\n\ufeffa,b\n\ufeffsource,b\n", "utf-8")
    assert list(read_pairs(corpus)) == [("\ufeffa", "b"), ("\ufeffsource", "b")]


@pytest.mark.parametrize("name", [" source", "Source ", "source\u00a0"])
def test_a_column_that_differs_in_case_or_spaces_is_named_as_it_is_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{name},target\na,b\n", "utf-8")
    corpus = CorpusConfig(format="csv", path=str(tmp_path / "a.csv"), source="source", target="target")
    with pytest.raises(DataError) as error:
        list(read_pairs(corpus))
    assert f"write it as there, {name!r}" in str(error.value)


def test_single_quotation_marks_and_marks_for_the_same_word_are_remarked(tmp_path: Path) -> None:
    """`<self>` of text normalization stands for the word, and cells in '...' are two where a comma is in them."""
    file = tmp_path / "a.tsv"
    rows = "PLAIN\tThe\t<self>\nDATE\t2006\ttwo thousand six\n"
    for content, said in (
        (rows, "<self> is read as text: if it stands for the word beside it, write that word, as by awk"),
        ("'a'\t'b'\t'c'\n" * 4, "single quotation marks around its cells are read as text"),
        ("1\tdog\t/dɒɡ/\n2\ta.m.\t/eɪ ɛm/, /am/\n" * 2, "pronunciations stand between slashes, and are read as text"),
    ):
        file.write_text(content, "utf-8")
        with collect_remarks() as remarks:
            list(read_pairs(CorpusConfig(format="tsv", path=str(file), source="1", target="2")))
        assert said in " ".join(map(str, remarks))
    file.write_text("'tis\tb\tit's\n" * 4, "utf-8")
    with collect_remarks() as remarks:
        list(read_pairs(CorpusConfig(format="tsv", path=str(file), source="1", target="2")))
    assert not remarks
