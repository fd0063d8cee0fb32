"""Tables and documents that are read as a text a line: remarked, and read all the same."""

import json
from pathlib import Path

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.text_remarks import table_remark
from tfm.data.corpus_config import CorpusConfig

ROWS = [{"en": f"a dog {number}", "de": "ein Hund, ja"} for number in range(5)]
QUOTED = '"a dog","ein Hund"\n"a ""big"" dog, too","ein Hund"\n'


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("ham\ta text\nspam\tb\n\nham\tc\nham\td\n", "tabs, as a table has, and are read as texts: format"),
        ('{"a": "b"}\n' * 4, 'objects of JSON, and are read as texts: format = "jsonl"'),
        ("a\tb\nc\td\te\nf\ng\n", None),
        ("{a}\n" * 4, None),
        ("the|the|DT dog|dog|NN\n" * 4, r"has a part behind |, such as a tag, which is read as part of it: cut by sed"),
        ("The/DT dog/NN\n" * 4, "has a part behind /"),
        ("\tThe/at dog/nn\n\n" * 4, "has a part behind /"),
        ("the￨C dog￨l\n" * 4, "has a part behind ￨"),
        ("and/or either/or\nno\n" * 4, None),
        ("| |\n" * 4, None),
        ("a/b\n" * 4, None),
        ("a\tb\n", None),
        ('{"a": "b"}\n\n{"a": {"b": 1}}\n', "are objects of JSON"),
        ('{"a": "b"}\n', None),
        ('{"a": "b"}\nand a text\n', None),
        ("{'a': 'b'}\n" * 2, "objects of Python, and are read as texts: write them by json.dumps"),
        ('["a", "b"]\n' * 2, "are arrays of JSON, and are read as texts: jq -r @tsv FILE"),
        ("['a', 'b']\n['c']\n[]\n['a', \"it's\"]\n", "are lists of Python, and are read"),
        ("[1]\n[2]\n[3]\n[4]\n", None),
        ("[]\n" * 4, None),
        ('"a dog"\n' * 4, "are strings in quotation marks, and are read as texts with these: jq -r . FILE"),
        ('"A dog," he says.\n' * 4, None),
        (json.dumps(ROWS, indent=1) + "\n", 'are parts of a JSON document, and are read as texts: format = "jsonl"'),
        (json.dumps({"data": ROWS}, indent=1) + "\n", "are parts of a JSON document"),
        ("[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n", "are parts of a JSON document"),
        ("[" + ",\n".join(map(json.dumps, ROWS)) + "]\n", "are parts of a JSON document"),
        (json.dumps(ROWS) + "\n", "is rows of JSON in one line, read as one text"),
        (json.dumps({"data": ROWS}) + "\n", "is rows of JSON in one line"),
        ("[a dog]\n[a cat]\n[a cow]\n[a pig]\n", None),
        ("{\n  int a;\n}\nint b;\n", None),
        (QUOTED * 2, 'are cells between , as in CSV, and are read as texts: format = "csv" reads columns'),
        (QUOTED.replace(",", ";") * 2, "are cells between ; as in CSV"),
        ("en;de\n" + "a dog;ein Hund\n" * 3, "are cells between ; as in CSV"),
        (",text,label\n0,a,b\n1,c,d\n2,e,f\n", "are cells between , as in CSV"),
        ("a dog, a cat\n" * 4, None),
        ("id, a cat\na dog, a cat\na dog\na cat\n", None),
        ("a dog ||| ein Hund\n" * 4, 'columns behind |||, and are read as texts: format = "csv", delimiter = " ||| "'),
        ("a ||| b\nc\nd\ne\n", None),
        ("__label__a a dog\n" * 4, "begin with labels, as of fastText"),
        ("| a | b |\n|---|---|\n| c | d |\n| e | f |\n", "is a table of Markdown: make TSV of it"),
    ],
)
@pytest.mark.parametrize("source", [True, False])
def test_tables_that_are_read_as_texts_are_remarked(
    text: str, remark: str | None, source: bool, tmp_path: Path
) -> None:
    """They were texts without a word."""
    (tmp_path / "a").write_text(text)
    keys = {"source": str(tmp_path / "a") if source else None, "target": str(tmp_path / "a")}
    with collect_remarks() as remarks:
        assert [target for _, target in read_pairs(CorpusConfig.model_validate(keys))] == text.split("\n")[:-1]
    assert len(remarks) == (remark is not None)
    assert all(remark is not None and remark in said for said in remarks)


def test_words_and_cells_of_long_lines_are_not_looked_at() -> None:
    """So that no file takes long; a long JSON document is one all the same."""
    for line in ("a " * 10**6, "a," * 10**6, '"' * 10**6, '{"a": ' * 10**6, "{'" * 10**6):
        assert (table_remark([line] * 4), table_remark([line])) == (None, None)
    assert table_remark([json.dumps(ROWS * 10**4)]) is not None


def test_lines_that_stand_for_verses_of_the_line_before_are_counted(tmp_path: Path) -> None:
    """As of eBible's corpus: the mark is learned as text, and its pairs are none, wherever in a file it stands."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("In the beginning\n" * 300 + "<range>\nAnd God said <range>\n<range>\n", encoding="utf-8")
    target.write_text("Am Anfang\n" * 303, encoding="utf-8")
    for keys in ({"source": str(source), "target": str(target)}, {"source": None, "target": str(source)}):
        corpus = CorpusConfig.model_validate(keys)
        with collect_remarks() as remarks:
            assert len(list(read_pairs(corpus))) == 303
        (remark,) = [str(each) for each in remarks]
        assert "2 lines are <range>, a verse that stands in the line before (eBible)" in remark
        assert str(source) in remark


@pytest.mark.parametrize("texts", [["a\nb", "c"], ["a\n", "\nb\r\n"]])
@pytest.mark.parametrize("source", [None, "id"])
@pytest.mark.parametrize("format_", ["jsonl", "csv", "tsv", "parquet", "huggingface"])
def test_lines_of_texts_alone_that_are_joined_are_remarked(
    format_: str, source: str | None, texts: list[str], tmp_path: Path
) -> None:
    """A language model of poems or code in JSON saw no line break, without a word."""
    file = tmp_path / f"a.{format_}"
    columns = {"id": ["1", "2"], "text": texts}
    if format_ == "jsonl":
        rows = ({"id": key, "text": text} for key, text in zip(*columns.values(), strict=True))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif format_ == "parquet":
        pq.write_table(pa.table(columns), file)
    elif format_ == "huggingface":
        datasets.Dataset.from_dict(columns).save_to_disk(file)
    else:
        file.write_bytes(pd.DataFrame(columns).to_csv(index=False, sep="\t" if format_ == "tsv" else ",").encode())
    config = {"format": format_, "path": str(file), "source": source, "target": "text"}
    corpus = CorpusConfig.model_validate(config | ({"quoting": "double"} if format_ == "tsv" else {}))
    with collect_remarks() as remarks:
        pairs = list(read_pairs(corpus))
    assert [target for _, target in pairs] == [text.replace("\r", "").replace("\n", " ") for text in texts]
    found = [remark for remark in remarks if "line breaks within its texts are read as spaces" in remark]
    assert len(found) == (source is None and texts[1] == "c")
