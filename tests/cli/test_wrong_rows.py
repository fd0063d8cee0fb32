"""Rows that would change what a test set measures: empty texts are reported, words that shift their tags refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.user import Result, tfm

RECIPE = """
name = "tiny"
[tokenizer]
kind = "word"
{tokenizer}
[data]
batch_tokens = 256
train = {{ {train} }}
valid = {{ {valid} }}
tests = {{ news = {{ {test} }} }}
[model]
{model}
"""
Rows = Sequence[Mapping[str, object]]
GOOD: Rows = [{"source": f"ein Haus {number}", "target": f"a house {number}"} for number in range(8)]
LABELS: Rows = [{"source": f"a text {number}", "target": ("no", "yes")[number % 2]} for number in range(8)]
TAGS: Rows = [{"source": ["a", "house"], "target": ["DET", "N|NOM"]} for _ in range(8)]


def preprocess(
    folder: Path,
    train: Rows,
    test: Rows,
    kind: str = "jsonl",
    *,
    task: str = "translation",
    lists: str | None = None,
    has_source: bool = True,
) -> Result:
    """Write the files and a recipe of them, and make the dataset."""
    given = {}
    for name, rows in (("train", train), ("valid", train), ("test", test)):
        file = folder / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), file)
        elif kind == "csv":
            lines = [f'"{row["source"] or ""}","{row["target"] or ""}"' for row in rows]
            file.write_text("\n".join(["source,target", *lines]) + "\n", "utf-8")
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        given[name] = f'format = "{kind}", path = "{file}"' + (f', lists = "{lists}"' if lists else "")
        given[name] += "" if has_source else ', source = "none"'
    names = {"classification": "label", "tagging": "tags"}.get(task)
    about = {
        "tokenizer": f'target_kind = "{names}"' if names else "vocab_size = 60",
        "model": f'architecture = "encoder_only"\ntask = "{task}"' if names else "",
    }
    if not has_source:
        about["model"] = f'architecture = "decoder_only"\ntask = "{task}"'
    (folder / "r.toml").write_text(RECIPE.format(**given, **about), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = tfm("tokenize", "--recipe", "r.toml")
        assert made.code == 0, made.err
        return tfm("preprocess", "--recipe", "r.toml")


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_several_labels_of_a_text_are_not_one(kind: str, tmp_path: Path) -> None:
    """Joined, they were a class of their own."""
    rows = [{**row, "target": [row["target"]]} for row in LABELS]
    result = preprocess(tmp_path, rows, rows, kind, task="classification", lists="join")
    assert result.code == 0, result.err
    several = [*rows, {"source": "a text", "target": ["no", "yes"]}]
    result = preprocess(tmp_path, rows, several, kind, task="classification", lists="join")
    problem = "column 'target' holds several labels (no, yes), and a text has one: write one name for them, or a row"
    assert (result.code, f"test.{kind}, line 9: {problem}" in " ".join(result.err.split())) == (65, True)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_empty_and_missing_texts_of_a_test_set_are_counted(kind: str, tmp_path: Path) -> None:
    test = [*GOOD[:4], {"source": "ein Hund", "target": None}, {"source": "", "target": " "}]
    result = preprocess(tmp_path, GOOD, test, kind)
    assert result.code == 0, result.err
    said = " ".join(result.err.split())
    assert "the news split has 1 empty source and 2 empty targets among 6 pairs, the first in pair 5 of" in said
    assert f"test.{kind}" in said
    assert "the valid split has" not in said


def test_an_empty_label_of_a_test_set_is_counted(tmp_path: Path) -> None:
    result = preprocess(tmp_path, LABELS, [*LABELS[:2], {"source": "x", "target": ""}], task="classification")
    assert result.code == 0, result.err
    assert "the news split has 1 empty target among 3 pairs" in " ".join(result.err.split())


def test_nothing_is_said_of_texts_that_are_there_nor_of_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "texts").mkdir()
    pairs = preprocess(tmp_path / "pairs", GOOD, GOOD)
    lines = [{"target": "a"}, {"target": ""}, {"target": "b"}]
    texts = preprocess(tmp_path / "texts", GOOD, lines, has_source=False, task="language_model")
    for result in (pairs, texts):
        assert result.code == 0, result.err
        assert "empty target" not in result.err


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("lists", ["join", "words"])
def test_words_that_would_shift_their_tags_are_refused_with_their_line(kind: str, lists: str, tmp_path: Path) -> None:
    shifted = {"source": ["the house", "is", ""], "target": ["DET", "N|NOM", "VERB"]}
    result = preprocess(tmp_path, TAGS, [*TAGS[:2], shifted], kind, task="tagging", lists=lists)
    assert result.code == 65
    assert f"test.{kind}, line 3: column 'source' holds the word 'the house'" in " ".join(result.err.split())
    assert preprocess(tmp_path, TAGS, TAGS, kind, task="tagging", lists=lists).code == 0
