"""Questions with choices as `data.path`: told as that, with what asks a model, whatever their columns are called."""

import csv
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
    "distractor3, distractor1": {"question": "q?", "distractor3": "x", "distractor1": "y z", "correct_answer": "u v"},
    "A, B, C, D": {"question": "q?", "A": "u", "B": "v w", "C": "x", "D": "y", "answer": "C"},
    "options.A, options.B": {"question": "q?", "answer": "a b", "options": {"A": "a b", "B": "c"}, "answer_idx": "A"},
}
MMLU = [[f"Which is number {place}?", "one", "two", "2 + 1", "four, or so", "ABCD"[place % 4]] for place in range(8)]
IN_TEXT = [[f"{place}", f"What is it? (A) a b (B) c (C) {place}", "ABC"[place % 3], "Mercury"] for place in range(8)]
TABLES: dict[str, list[list[str]]] = {
    "columns 1 to 4": MMLU,
    "columns 2 to 5": [[str(place), *row] for place, row in enumerate(MMLU)],
    "columns 1 to 3": [[*row[:4], "ABC"[place % 3]] for place, row in enumerate(MMLU)],
    "A, B, C, D": [
        ["", "Question", "A", "B", "C", "D", "Answer"],
        *([str(place), *row] for place, row in enumerate(MMLU)),
    ],
    "question": [["questionID", "question", "AnswerKey", "examName"], *IN_TEXT],
    "endings": [["ind", "endings", "label"], *([str(place), "['a b' 'c d']", "1"] for place in range(8))],
}
PAIRS: tuple[dict[str, Any], ...] = (
    {"sentence1": "A man", "sentence2": "A woman", "label": 1},
    {"question1": "A man?", "question2": "A woman?", "is_duplicate": 1},
    {"question": "Who?", "answer": ["x", "y z"]},
    {"text": "A dog", "options": [], "answer": "accept"},
    {"tokens": ["a", "dog"], "label": 1},
    {"A": "a dog", "B": "ein Hund", "C": "un chien"},
    {"question": "Who?", "answers": ["x", "y z", "u"], "length": 300},
    {"text": "(A) first, and (B) second", "source": "The Times"},
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


@pytest.mark.parametrize("columns", TABLES)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_tables_of_questions_with_choices_are_told_with_and_without_a_header(
    columns: str, name: str, tmp_path: Path
) -> None:
    """MMLU's were advised as a question with its choice A as the translation."""
    with open(tmp_path / name, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="," if name == "a.csv" else "\t").writerows(TABLES[columns])
    with pytest.raises(ExportableFileError) as refused:
        suggest_corpus_table(tmp_path / name, ["source"], "target")
    assert f"questions with choices ({columns})" in str(refused.value)


def test_answers_of_which_a_number_says_the_right_one_are_choices(tmp_path: Path) -> None:
    rows = [
        {"context": "a b", "question": "q?", "answers": ["w x", "y", "z"], "label": place % 3} for place in range(6)
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(ExportableFileError, match=r"questions with choices \(answers\)"):
        suggest_corpus_table(tmp_path / "a.json", ["source"], "target")


def test_right_and_wrong_sentences_are_told_with_what_compares_them(tmp_path: Path) -> None:
    row = {"sentence_good": "A dog barks.", "sentence_bad": "A dog bark.", "field": "syntax"}
    with pytest.raises(ExportableFileError, match=r"\(sentence_good, sentence_bad\): `tfm evaluate --contrast FILE`"):
        suggest_corpus_table(written(row, tmp_path / "a.jsonl"), ["source"], "target")


def test_letters_as_classes_of_sentences_are_no_choices(tmp_path: Path) -> None:
    rows = [f"This is sentence {place}.\tAnd another {place}.\t{'AB'[place % 2]}\n" for place in range(8)]
    (tmp_path / "a.tsv").write_text("".join(rows), encoding="utf-8")
    assert suggest_corpus_table(tmp_path / "a.tsv", ["source"], "target").startswith("{ format = ")


def test_names_that_only_the_first_row_has_are_not_advised(tmp_path: Path) -> None:
    """Objects whose names are texts, such as answers with 1 or 0."""
    rows = [{"question": f"Who is {place}?", "targets": {f"It is {place}": 1, f"not {place}": 0}} for place in range(6)]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    assert "It is 0" not in suggest_corpus_table(tmp_path / "a.json", ["source"], "target")


def test_semicolons_within_the_cells_below_a_header_make_no_title_of_it(tmp_path: Path) -> None:
    """TruthfulQA was to lose its header."""
    rows = [["Category", "Question", "Correct Answers"]]
    rows += [["Science", f"Why, {place}?", f"because {place}; as; since"] for place in range(8)]
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    assert 'source = "Question", target = ' in suggest_corpus_table(tmp_path / "a.csv", ["source"], "target")
