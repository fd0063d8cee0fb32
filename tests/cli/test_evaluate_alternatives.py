"""`tfm evaluate --choices` and `--contrast` as a user types them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import Stages, tfm, write_lines

CPU = ("--device", "cpu")


def write_rows(file: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    return write_lines(file, [json.dumps(row, ensure_ascii=False) for row in rows])


@pytest.fixture
def contrast(tmp_path: Path) -> Path:
    rows = [
        {"source": "zwei drei", "right": "two three", "wrong": ["three two", "two"], "category": "order"},
        {"source": "eins", "right": "one", "wrong": "six", "id": "WORD"},
        {"source": "sechs fünf", "right": "two", "wrong": "six five", "category": "order"},
    ]
    return write_rows(tmp_path / "contrast.jsonl", rows)


def found(*words: str | Path) -> dict[str, Any]:
    done = tfm("evaluate", *words, *CPU, "--json")
    assert done.code == 0, done.err
    content: dict[str, Any] = json.loads(done.out)
    return content


def test_a_contrast_set_is_what_the_same_texts_are_as_choices(stages: Stages, contrast: Path, tmp_path: Path) -> None:
    content = found("--model", stages.folder, "--contrast", contrast)
    (of,) = content["sets"]
    assert (content["kind"], of["count"], of["chance"]) == ("contrast", 3, pytest.approx(100 * 4 / 9))
    assert of["categories"]["order"]["count"] == 2
    rows = [json.loads(line) for line in contrast.read_text("utf-8").splitlines()]
    wrong = [[row["wrong"]] if isinstance(row["wrong"], str) else row["wrong"] for row in rows]
    asked = [
        {"context": row["source"], "choices": [*each, row["right"]], "answer": len(each)}
        for row, each in zip(rows, wrong, strict=True)
    ]
    (same,) = found("--model", stages.folder, "--choices", write_rows(tmp_path / "choices.jsonl", asked))["sets"]
    assert same["accuracy"]["sum"]["score"] == of["accuracy"]["sum"]["score"]
    assert [each["line"] for each in same["failures"]] == [each["line"] for each in of["failures"]]
    assert of["failures"], "with so wrong an answer one is missed"
    assert same["missing"] == {"difference": "a translation has no probability without its source"}
    assert list(same["accuracy"]) == ["sum", "mean"]


def test_the_table_is_on_stdout_and_out_publishes(stages: Stages, contrast: Path, tmp_path: Path) -> None:
    command = ("evaluate", "--model", stages.folder, "--contrast", contrast, *CPU, "--out", tmp_path / "scores")
    first = tfm(*command)
    assert first.code == 0, first.err
    assert f"{contrast}: 3 contrasts" in first.out
    assert "sum: order" in first.out
    assert "interval:exact-95" in first.out
    rows = [json.loads(line) for line in (tmp_path / "scores" / "items.jsonl").read_text("utf-8").splitlines()]
    assert [len(row["log_probs"]) for row in rows] == [3, 2, 2]
    assert rows[1]["id"] == "WORD"
    again = tfm(*command)
    assert (again.out, again.code) == (first.out, 0)
    assert "up to date" in again.err
    assert found(*command[1:-4], "--out", tmp_path / "scores") == json.loads(
        (tmp_path / "scores" / "scores.json").read_text("utf-8")
    )
    contrast.write_text(contrast.read_text("utf-8").splitlines(keepends=True)[0], "utf-8")
    assert "input contrast changed" in tfm(*command).err
    # the scores of translations are not replaced by these, nor these by those
    texts = ("--hypotheses", contrast, "--reference", contrast, "--metric", "bleu", "--out", tmp_path / "scores")
    refused = tfm("evaluate", *texts)
    assert (refused.code, "was made by 'contrast'" in refused.err) == (73, True)


def test_the_built_in_set_has_two_splits_and_a_file_of_its_name_is_a_file(
    stages: Stages, contrast: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfm("evaluate", "--model", stages.folder, "--contrast", "it", *CPU)
    assert done.code == 0, done.err
    assert "it test: 1,000 contrasts" in done.out
    assert "it combinations: 1,000 contrasts" in done.out
    assert "a text with pieces that the tokenizer does not know" in " ".join(done.err.split())
    contrast.rename(tmp_path / "it")
    assert [of["count"] for of in found("--model", stages.folder, "--contrast", "it")["sets"]] == [3]


def test_an_ensemble_is_asked_too(stages: Stages, contrast: Path) -> None:
    one = found("--model", stages.folder, "--contrast", contrast)
    both = found("--model", stages.folder, "--ensemble", stages.folder, "--contrast", contrast)
    assert one["sets"][0]["accuracy"] == both["sets"][0]["accuracy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--choices", "x.jsonl"), "give the model"),
        (("--contrast", "x.jsonl", "--choices", "y.jsonl", "--model", "m"), "not allowed with --contrast"),
        (("--choices", "x.jsonl", "--model", "m", "--reference", "x.jsonl"), "not allowed with --choices"),
        (("--choices", "x.jsonl", "--model", "m", "--beam", "2"), "which compares given texts"),
        (("--contrast", "it", "--recipe", "x.jsonl"), "not allowed with --contrast"),
        (("--contrast", "it", "--model", "m", "--metric", "bleu"), "not allowed with --contrast"),
    ],
)
def test_what_has_no_effect_beside_them_is_refused(words: Sequence[str], message: str) -> None:
    refused = tfm("evaluate", *words)
    assert refused.code == 2
    assert message in " ".join(refused.err.replace("│", " ").split())


def test_a_wrong_line_is_named(stages: Stages, contrast: Path) -> None:
    with open(contrast, "a", encoding="utf-8") as file:
        file.write('{"source": "eins", "right": "one"}\n')
    refused = tfm("evaluate", "--model", stages.folder, "--contrast", contrast, *CPU)
    assert refused.code == 65
    assert f'{contrast}, line 4: there is no "wrong"; it has source, right' in refused.err
    missing = tfm("evaluate", "--model", stages.folder, "--choices", contrast.with_name("none"), *CPU)
    assert (missing.code, "no such file" in missing.err) == (65, True)
