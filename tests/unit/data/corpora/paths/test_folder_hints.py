"""Folders with a folder of texts a class, test sets in SGML and recordings, which no format reads, are named."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.paths.folder_hints import class_folders_hint
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits, unused_settings_message
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


def test_tagged_test_sets_beside_training_text_are_said(tmp_path: Path) -> None:
    """They were left out without a word, and a test set was cut from the training data."""
    for side in ("en", "de"):
        (tmp_path / f"train.{side}").write_text("".join(f"{side} {number}\n" for number in range(50)))
    (tmp_path / "newstest-src.en.sgm").write_text('<srcset setid="n">\n<seg id="1">A</seg>\n</srcset>\n')
    (tmp_path / "wmttest.en-de.all.xml").write_text('<?xml version="1.0"?>\n<dataset id="w">\n<doc id="a">\n')
    (tmp_path / "settings.xml").write_text("<settings/>\n")
    config = DataConfig.model_validate({"path": str(tmp_path), "source": "en", "target": "de"})
    said = unused_settings_message(config, resolve_splits(config))
    assert said is not None
    assert "newstest-src.en.sgm (the text of its <seg>, one a line, would be), wmttest.en-de.all.xml" in said
    assert "settings" not in said


def test_transcripts_of_recordings_are_named_with_the_command_that_writes_their_texts(tmp_path: Path) -> None:
    for chapter in ("a", "b"):
        folder = tmp_path / "dev" / "84" / chapter
        folder.mkdir(parents=True)
        (folder / f"84-{chapter}.trans.txt").write_text(f"84-{chapter}-0 GO {chapter}\n84-{chapter}-1 DO\n")
        (folder / f"84-{chapter}-0.flac").touch()
    with pytest.raises(DataError, match=r"transcripts of recordings \(84-a\.trans\.txt\)") as error:
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / "dev"), "source": "en", "target": "de"}))
    command = str(error.value).partition("written by ")[2].partition(" > ")[0]
    assert subprocess.run(command, shell=True, capture_output=True, text=True).stdout == "GO a\nDO\nGO b\nDO\n"


def test_transcripts_of_kaldi_are_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a_1-x GO\na_1-y DO\na_1-z\n")
    (tmp_path / "wav.scp").write_text("a_1-x x.wav\n")
    with pytest.raises(DataError, match=r"its file text has names of utterances .*\(a_1-x\).* cut them, as by sed"):
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path), "source": "en", "target": "de"}))
