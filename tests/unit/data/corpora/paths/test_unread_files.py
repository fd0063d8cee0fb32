"""Test sets in SGML and XML beside texts, and folders of recordings."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.splits import resolve_splits, unused_settings_message
from tfm.data.errors import DataError


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
