"""`tfm shortlist`, and translations of the pieces that it has, at the command line."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm, write_lines
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.shortlist_folder import read_shortlist


@pytest.fixture
def folder(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with links of its training pairs, in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(stages.folder, "run", symlinks=True)
    links = tfm("align", "run", "run/dataset")
    assert links.code == 0, links.err
    Path("links.txt").write_text(links.out, "utf-8")
    write_lines(tmp_path / "some.de", ["eins zwei", "drei vier fünf", "", "sechs"])
    return tmp_path


def test_translations_are_of_the_pieces_of_a_shortlist(folder: Path) -> None:
    made = tfm("shortlist", "run", "--links", "links.txt", "--out", "short", "--linked", "2", "--frequent", "1")
    assert made.code == 0, made.err
    assert "of the pieces of the validation split's target may come" in made.err
    again = tfm(
        "shortlist", "run/dataset", "--links", "links.txt", "--out", "short", "--linked", "2", "--frequent", "1"
    )
    assert "up to date" in again.err
    loaded = load_model(folder / "run" / "model", "cpu")
    shortlist = read_shortlist(Path("short"), loaded.source_tokenizer, loaded.target_tokenizer)
    for more in ((), ("--beam", "1", "--set", "decoding.batch_sentences=1"), ("--strategy", "sample")):
        done = tfm("translate", "run", "some.de", "--jsonl", "--set", "decoding.shortlist=short", *more)
        assert done.code == 0, done.err
        for line in map(json.loads, done.out.splitlines()):
            ids = loaded.target_tokenizer.encode(line["translations"][0]["text"])
            assert {*ids} <= {*shortlist.candidates(loaded.source_tokenizer.encode(line["source"])).tolist()}
    (best,) = tfm("translate", "run", "eins zwei", "--set", "decoding.shortlist=short").out.splitlines()
    assert trace_text(loaded, "eins zwei", None, DecodingConfig(shortlist="short")).target == best
    into = ("translate", "run", "some.de", "--set", "decoding.shortlist=short", "--out", "out")
    assert tfm(*into).code == 0
    assert "shortlist" in json.loads(Path("out/manifest.json").read_text("utf-8"))["inputs"]
    assert "up to date" in tfm(*into).err
    tfm("shortlist", "run", "--links", "links.txt", "--out", "short", "--linked", "1", "--frequent", "9")
    assert "input shortlist changed" in tfm(*into).err


def test_links_that_spare_every_first_word_are_asked_whether_they_count_from_one(folder: Path) -> None:
    given = Path("links.txt").read_text("utf-8").splitlines()
    without_first = [" ".join(link for link in line.split() if "0" not in link.split("-")) for line in given]
    assert sum(map(bool, without_first)) >= 10
    write_lines(folder / "shifted.txt", without_first)
    for name, is_asked in (("shifted.txt", True), ("links.txt", False)):
        made = tfm("shortlist", "run", "--links", name, "--out", f"{name}.short")
        assert made.code == 0, made.err
        assert (f"{name}: none of its links is of the first word" in made.err) is is_asked


def test_what_is_no_shortlist_or_does_not_fit_is_said(folder: Path) -> None:
    write_lines(folder / "few.txt", ["0-0"])
    for words, code, said in (
        (("shortlist", "run", "--links", "few.txt", "--out", "short"), 65, "few.txt: has 1 line, but the dataset has"),
        (("shortlist", "run", "--links", "some.de", "--out", "short"), 65, "'eins' is no link"),
        (("shortlist", "run", "--links", "none.txt", "--out", "short"), 65, "none.txt: no such file: `tfm align"),
        (("shortlist", "run/model", "--links", "links.txt", "--out", "short"), 65, "made by 'train'"),
        (("translate", "run", "some.de", "--set", "decoding.shortlist=run/dataset"), 65, "made by 'preprocess'"),
        (("translate", "run", "some.de", "--set", "decoding.shortlist=elsewhere"), 65, "elsewhere"),
        (("translate", "run", "some.de", "--set", "decoding.shortlist="), 65, "manifest.json"),
        (("attend", "run", "eins", "--set", "decoding.shortlist=elsewhere"), 65, "elsewhere"),
    ):
        done = tfm(*words)
        assert (done.code, said in done.err) == (code, True), (words, done.err)
        assert not Path("short").exists()
    tfm("shortlist", "run", "--links", "links.txt", "--out", "short")
    done = tfm("translate", "run", "some.de", "--set", "decoding.shortlist=short", "--prefix", "one")
    assert (done.code, "may lack those of a prefix" in done.err) == (2, True), done.err
