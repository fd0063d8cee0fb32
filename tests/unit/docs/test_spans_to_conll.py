"""docs/external/spans_to_conll.py: spans of entities become words with tags that `format = "conll"` reads."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig

SCRIPT = Path(__file__).parents[3] / "docs" / "external" / "spans_to_conll.py"
TEXT, WORDS, TAGS = "Ann Lee (EU) says:", "Ann Lee ( EU ) says :", "B-PER I-PER O B-ORG O O O"


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, encoding="utf-8", check=False)


def read_spans(file: Path, content: str) -> list[tuple[str, str]]:
    file.write_text(content, "utf-8")
    done = run(str(file))
    assert done.returncode == 0, done.stderr
    (file.parent / "train.conll").write_text(done.stdout, "utf-8")
    return list(read_pairs(CorpusConfig(format="conll", path=str(file.parent / "train.conll"))))


SPANS = [(0, 7, "PER"), (9, 11, "ORG")]
NAMED = [{"start": begin, "end": end, "labels": [label]} for begin, end, label in SPANS]
RASA = [{"start": begin, "end": end, "value": TEXT[begin:end], "entity": label} for begin, end, label in SPANS]
CLUENER = {label: {TEXT[begin:end]: [[begin, end - 1]]} for begin, end, label in SPANS}
SNIPS = [{"text": "Ann Lee", "entity": "PER"}, {"text": " ("}, {"text": "EU", "entity": "ORG"}, {"text": ") says:"}]
OFFSETS = [{"id": 1, "start_offset": begin, "end_offset": end, "label": label} for begin, end, label in SPANS]
SPACY: list[Any] = [[TEXT, {"entities": SPANS}], ["No.", {"entities": []}]]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(SPACY),
        "".join(f"{json.dumps(row)}\n" for row in SPACY),
        f'{json.dumps({"text": TEXT, "entities": SPANS})}\n{{"text": "No.", "entities": []}}\n',
        f'{json.dumps({"text": TEXT, "label": SPANS})}\n{{"text": "No.", "label": []}}\n',
        f'{json.dumps({"text": TEXT, "entities": OFFSETS, "relations": []})}\n{{"text": "No.", "entities": []}}\n',
        f'{json.dumps({"text": TEXT, "spans": NAMED})}\n{{"answer": "reject"}}\n{{"text": "No.", "spans": []}}',
        json.dumps([{"text": TEXT, "label": NAMED}, {"text": "No.", "label": []}]),
        json.dumps(
            [
                {"data": {"text": TEXT}, "annotations": [{"result": [{"value": each} for each in NAMED]}]},
                {"data": {"text": "No."}, "annotations": [{"result": []}]},
            ]
        ),
        json.dumps(
            {"rasa_nlu_data": {"common_examples": [{"text": TEXT, "entities": RASA}, {"text": "No.", "entities": []}]}}
        ),
        f'{json.dumps({"text": TEXT, "label": CLUENER})}\n{{"text": "No.", "label": {{}}}}\n',
        json.dumps({"Speak": [{"data": SNIPS}, {"data": [{"text": "No."}]}]}, indent=1),
    ],
)
def test_exports_of_programs_and_published_sets(content: str, tmp_path: Path) -> None:
    assert read_spans(tmp_path / "a", content) == [(WORDS, TAGS), ("No .", "O O")]


def test_lines_of_brat_with_the_text_beside_them(tmp_path: Path) -> None:
    """Characters are counted over the whole text, line ends included."""
    (tmp_path / "a.txt").write_text(f"No.\r\n{TEXT}\nBob B Lee\n", "utf-8", newline="")
    lines = ["T1\tPER 5 12\tAnn Lee", "R1\tIn Arg1:T1", "T2\tORG 14 16\tEU", "T3\tPER 24 27;30 33\tBob Lee", "#1\tn"]
    expected = [("No .", "O O"), (WORDS, TAGS), ("Bob B Lee", "B-PER I-PER I-PER")]
    assert read_spans(tmp_path / "a.ann", "".join(f"{line}\n" for line in lines)) == expected
    (tmp_path / "a.ann").write_text("T1\tPER 0 8\tNo. Ann\n", "utf-8")
    assert "is no span of 'No.'" in run(str(tmp_path / "a.ann")).stderr


def test_partial_and_overlapping_spans_are_counted(tmp_path: Path) -> None:
    rows = [{"text": "हिन्दी में, Berlin-Mitte", "spans": [[0, 4, "X"], [12, 18, "LOC"], [12, 24, "CITY PART"]]}]
    expected = [("हिन्दी में , Berlin - Mitte", "B-X O O B-CITY_PART I-CITY_PART I-CITY_PART")]
    assert read_spans(tmp_path / "a", json.dumps(rows)) == expected
    assert run(str(tmp_path / "a")).stderr == (
        "spans that begin or end within a word, whose words are whole: 1\n"
        "spans that overlap a longer one and are left out: 1\n"
    )


def test_new_texts_are_divided_likewise_and_what_is_no_span_is_named(tmp_path: Path) -> None:
    assert run("--words", stdin=f"{TEXT}\n\n").stdout == f"{WORDS}\n\n"
    for row, problem in {
        '{"text": "a", "spans": [[0, 5, "X"]]}': "(0, 5, 'X') is no span of 'a', which has 1 characters",
        '{"text": "a", "spans": [[0, 1]]}': "[0, 1] is no span",
        '{"text": "a"}': "a row has no `text` or no spans (entities, spans, ",
    }.items():
        (tmp_path / "a").write_text(row)
        done = run(str(tmp_path / "a"))
        assert done.returncode == 1
        assert done.stderr.startswith(problem)
