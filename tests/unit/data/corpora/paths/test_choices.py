"""Questions with choices as `data.path`: told as that, with what asks a model, whatever their columns are called."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfm.data.corpora.paths.single_files import suggest_corpus_table
from tfm.data.errors import ExportableFileError

QUESTIONS: dict[str, dict[str, Any]] = {
    "choice1, choice2": {"premise": "A cloud came.", "choice1": "It rained.", "choice2": "He sang.", "label": 0},
    "endings": {"ctx": "A man writes then", "label": 3, "endings": ["a b", "c d", "e f", "g h"]},
    "sol1, sol2": {"goal": "When boiling butter", "sol1": "pour it", "sol2": "do not"},
    "options": {"article": "Last week.", "answer": "A", "question": "q?", "options": ["a b", "b c", "c", "d"]},
    "question.choices": {"question": {"stem": "x y", "choices": [{"text": "a"}, {"text": "b"}]}, "answerKey": "A"},
    "choices.text": {"question_stem": "The sun", "choices": {"text": ["a", "b"], "label": ["A", "B"]}},
    "option1, option2": {"sentence": "Ian ate the _", "option1": "Ian", "option2": "Dennis", "answer": "2"},
    "opa, opb, opc": {"question": "x", "opa": "q", "opb": "x y", "opc": "y", "cop": 1},
    "answerA, answerB": {"context": "c", "question": "q", "answerA": "x y", "answerB": "y"},
}
PAIRS: tuple[dict[str, Any], ...] = (
    {"sentence1": "A man", "sentence2": "A woman", "label": 1},
    {"question1": "A man?", "question2": "A woman?", "is_duplicate": 1},
    {"question": "Who?", "answer": ["x", "y z"]},
    {"text": "A dog", "options": [], "answer": "accept"},
    {"tokens": ["a", "dog"], "label": 1},
)


def written(row: dict[str, Any], file: Path) -> Path:
    """Rows as JSON, or as a table with a header."""
    if file.suffix == ".jsonl":
        lines = [json.dumps(row)] * 9
    else:
        lines = ["\t".join(row), *["\t".join(map(str, row.values()))] * 9]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("columns", QUESTIONS)
def test_questions_with_choices_are_no_texts_with_a_label(columns: str, tmp_path: Path) -> None:
    row = QUESTIONS[columns]
    is_flat = not any(isinstance(value, list | dict) for value in row.values())
    for name in ("a.jsonl", "a.tsv") if is_flat else ("a.jsonl",):
        with pytest.raises(ExportableFileError) as refused:
            suggest_corpus_table(written(row, tmp_path / name), ["source"], "target")
        assert f"questions with choices ({columns})" in str(refused.value)
        assert "`tfm evaluate --choices FILE`" in str(refused.value)


def test_an_article_with_several_questions_is_told_too(tmp_path: Path) -> None:
    """As RACE has it: an object a file."""
    file = tmp_path / "1.txt"
    row = {"answers": ["C"], "options": [["a b", "b c", "c"]], "questions": ["What is _?"], "article": "Last week."}
    file.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(ExportableFileError, match="questions with choices"):
        suggest_corpus_table(file, ["source"], "target")


@pytest.mark.parametrize("row", PAIRS)
def test_pairs_and_lists_of_other_kinds_are_none(row: dict[str, Any], tmp_path: Path) -> None:
    assert suggest_corpus_table(written(row, tmp_path / "a.jsonl"), ["source"], "target").startswith("{ format = ")
