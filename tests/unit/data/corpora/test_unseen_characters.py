"""Characters that nobody sees are remarked in training texts of each format, as in texts that are scored."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.unseen_characters import is_removed_by_cleaning
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.scoring.evaluation.written_pieces import unseen_character_warnings

TEXTS = ["a dog", "a\x00 cat", "a\u200dcow\tand", "a\x85pig\x01", "caf\ufffd", "\ufeffa hen", "no\u00a0one"]
TARGETS = ["ein Hund", "eine Katze", "eine Kuh", "ein Schwein", "Café", "eine Henne", "nie\ufffdmand"]
CONTROL = "2 of 7 {} have control characters (U+0000, the first in {} 2), read as part of the texts: remove them"
MARKS = "1 of 7 {} have byte order marks (U+FEFF, the first in {} 6), read as part of the texts: remove them"
REPLACED = "2 of 7 {} have replacement characters (U+FFFD, the first in {} 5), read as part of the texts: where a wrong"


def remarks_of(**keys: Any) -> list[str]:
    with collect_remarks() as remarks:
        assert all(read_pairs(CorpusConfig.model_validate(keys)))
    return [remark.split(": ", 1)[1] for remark in remarks]


@pytest.mark.parametrize("form", ["text", "tsv", "jsonl"])
def test_characters_that_nobody_sees_are_counted_in_training_texts(form: str, tmp_path: Path) -> None:
    sides = {"source": str(tmp_path / "a.en"), "target": str(tmp_path / "a.de")}
    for file, texts in zip(map(Path, sides.values()), (TEXTS, TARGETS), strict=True):
        file.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    table = tmp_path / "table"
    rows = [*zip((text.replace("\t", " ") for text in TEXTS), TARGETS, strict=True)]
    lines = ["\t".join(row) if form == "tsv" else json.dumps(dict(zip("st", row, strict=True))) for row in rows]
    table.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    columns = {"source": 0, "target": 1} if form == "tsv" else {"source": "s", "target": "t"}
    found = remarks_of(**(sides if form == "text" else {"format": form, "path": str(table), **columns}))
    noun = "line" if form == "text" else "pair"
    wanted = [remark.format(f"{noun}s", noun) for remark in (CONTROL, MARKS, REPLACED)]
    assert [remark[: len(start)] for remark, start in zip(found, wanted, strict=True)] == wanted
    assert [is_removed_by_cleaning(remark) for remark in found] == [True, True, False]


def test_the_line_is_that_of_the_file_where_lines_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    found = remarks_of(source=None, target=str(file), skip=2, size=2)
    assert [remark.split(", read")[0] for remark in found] == [
        "1 of 2 lines have control characters (U+0085, the first in line 4)"
    ]


def test_texts_that_are_scored_are_warned_of_in_the_same_words() -> None:
    found = unseen_character_warnings(TEXTS, "hypotheses")
    assert len(found) == 3
    assert found[0].startswith(
        "2 of 7 hypotheses have control characters (U+0000, the first in line 2), scored with the"
    )
    assert len(unseen_character_warnings(TEXTS, "hypotheses", ["a\ufffd"])) == 2


def test_ordinary_texts_have_no_remark(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("می\u200cخواهم\r\nसत्\u200dय\r\na\tb\r\nsoft\u00adhyphen\r\n👩\u200d👧\r\n".encode())
    assert remarks_of(source=None, target=str(file)) == []
