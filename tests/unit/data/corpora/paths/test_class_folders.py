"""Folders with a folder of texts a class, which no format reads, are named with what makes a table of them."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.paths.class_folders import class_folders_hint
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

TEXTS = {"neg/0_2.txt": 'Bad.\n\n\t"No"', "neg/1_1.txt": "Dull\r\n", "pos/0_9.txt": '"Good"', "pos/1_8.txt": "Fine."}


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8", newline="")


@pytest.mark.parametrize("inner", ["", "train", "20news-bydate-train"])
def test_the_command_makes_a_table_that_the_line_reads(inner: str, tmp_path: Path) -> None:
    folder = tmp_path / "my texts"
    write(folder / inner, TEXTS)
    write(folder / inner, {"unsup/0_0.txt": "x", "unsup/1_0.txt": "y"})
    write(folder / "test", {"neg/0_1.txt": "no", "neg/1_1.txt": "no", "pos/0_1.txt": "no", "pos/1_1.txt": "no"})
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig.model_validate({"path": str(folder), "source": "text", "target": "label"}))
    command, _, line = str(error.value).partition("as by ")[2].partition(", and set data.train = ")
    assert line == '{ format = "tsv", path = "train.tsv", quoting = "raw", source = 0, target = 1 }'
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    keys = {"format": "tsv", "path": str(tmp_path / "train.tsv"), "quoting": "raw", "source": "0", "target": "1"}
    assert list(read_pairs(CorpusConfig.model_validate(keys))) == [
        ('Bad. "No"', "neg"),
        ("Dull ", "neg"),
        ('"Good"', "pos"),
        ("Fine.", "pos"),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        {"train/a.txt": "a", "train/b.txt": "b", "test/a.txt": "a", "test/b.txt": "b"},
        {"en/train.txt": "a", "en/dev.txt": "b", "de/train.txt": "a", "de/dev.txt": "b"},
        {"a/1.jpg": "", "a/2.jpg": "", "b/1.jpg": "", "b/2.jpg": ""},
        {"a/1.txt": "", "b/1.txt": ""},
        {"a/1.txt": "", "a/2.txt": ""},
    ],
)
def test_other_folders_are_none_of_classes(texts: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, texts)
    assert class_folders_hint(tmp_path) == ""


def test_endings_that_name_splits_are_no_languages(tmp_path: Path) -> None:
    """`source = "dev", target = "trn"` was advised, pairs of lines that have nothing to do with each other."""
    for name in ("eng.trn", "eng.dev", "eng.tst"):
        (tmp_path / name).write_text("go\twent\tV;PST\nbe\twas\tV;PST\n")
    for source in ("en", ["0", "2"]):
        with pytest.raises(DataError, match=r"for eng\.trn set data\.train = { format = \"tsv\", .* \[0, 2\]"):
            resolve_splits(DataConfig.model_validate({"path": str(tmp_path), "source": source, "target": "1"}))


def test_the_ending_dst_is_that_of_targets(tmp_path: Path) -> None:
    for side in ("src", "dst"):
        (tmp_path / f"wiki.train.{side}").write_text("a\n")
    with pytest.raises(DataError, match=r'set data\.source = "src", data\.target = "dst"'):
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path)}))
