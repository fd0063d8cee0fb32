"""`tfm attend` at the command line: a page, a picture, weights for scripts, a report; errors in a line or two."""

import json
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm, write_lines
from tests.tiny_model import publish_model

TAGGED = "1\teins\t_\tNUM" + "\t_" * 6 + "\n2\tzwei\t_\tNUM" + "\t_" * 6 + "\n\n"


def test_a_sentence_becomes_a_page(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfm("attend", stages.folder, "eins zwei drei")
    assert made.code == 0, made.err
    assert made.out == ""
    assert "attention.html" in made.err
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert "<!doctype html>" in page
    assert "eins zwei drei" in page
    assert [file.name for file in tmp_path.iterdir()] == ["attention.html"]
    again = tfm("attend", stages.folder / "model", "eins", "--target", "one", "--out", "other.html")
    assert again.code == 0, again.err
    assert (tmp_path / "other.html").exists()


def test_a_picture_alone(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfm("attend", stages.folder, "eins zwei", "--png", "a.png", "--kind", "encoder", "--head", "2")
    assert made.code == 0, made.err
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "--kind", "cross"),
        ("--json", "--layer", "1"),
        ("--json", "--head", "1"),
        ("--alignments", "a.png", "--kind", "cross"),
        ("--png", "a.pdf"),
        ("--alignments", "a"),
    ],
    ids=" ".join,
)
def test_what_no_output_shows_is_refused(
    words: tuple[str, ...], stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfm("attend", stages.folder, "eins zwei", *words)
    assert (made.code, words[-2] in made.err, made.out) == (2, True, ""), made.err
    assert not [*tmp_path.iterdir()]


def test_a_name_of_a_file_is_a_text_of_which_it_is_warned(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page showed what the model attends to in the name."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "a.txt", "eins zwei")
    for words, said in (
        (("a.txt",), "SENTENCE a.txt is read as a text, not as the file of this name: give a sentence"),
        (("-",), "SENTENCE - is read as a text, not as standard input"),
        (("eins\0" * 300,), None),
        (("b.txt",), None),
    ):
        made = tfm("attend", stages.folder, *words, "--json")
        assert made.code == 0, made.err
        assert ("is read as a text" in made.err) is (said is not None)
        assert (said or "") in made.err
    made = tfm("attend", stages.folder, "eins", "--target", "a.txt", "--json")
    assert "--target a.txt is read as a text, not as the file of this name" in made.err


def test_pictures_are_of_the_kind_of_their_names_and_tell_what_is_drawn_as_boxes(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tfm.pipeline.label_fonts._choose_fonts", lambda characters: (("DejaVu Sans",), characters))
    for option in ("--png", "--alignments"):
        for file, begin, is_warned in (("a.PNG", b"\x89PNG", True), ("a.svg", b"<?xml", False)):
            made = tfm("attend", stages.folder, "eins zwei", "--target", "one two", option, file)
            assert made.code == 0, made.err
            assert (tmp_path / file).read_bytes().startswith(begin)
            assert (f"{file}: no installed font has" in made.err) is is_warned, made.err


def test_weights_for_scripts(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfm("attend", stages.folder, "eins zwei", "--target", "one two", "--json")
    assert made.code == 0, made.err
    found = json.loads(made.out)
    assert (found["source"], found["target"]) == ("eins zwei", "one two")
    names = ["encoder.0.attention", "decoder.0.attention", "decoder.0.cross_attention"]
    assert [each["name"] for each in found["attentions"]] == names
    heads = found["attentions"][2]["weights"]
    assert (len(heads), len(heads[0]), len(heads[0][0])) == (2, 3, 3)
    assert all(abs(sum(row) - 1) < 1e-5 for head in heads for row in head)
    assert not list(tmp_path.iterdir())


def test_a_report_of_heads(corpora: Path, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfm("attend", stages.folder, "--head-report", corpora / "test.de", "--beam", "1")
    assert made.code == 0, made.err
    assert made.out.startswith("What heads do in 12 sentences")
    assert "previous" in made.out
    assert "by tag" not in made.out
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.conllu").write_text(TAGGED, encoding="utf-8")
    words = ("--head-report", "a.conllu", "--json", "--out", "report.html")
    tagged = tfm("attend", stages.folder, "eins", *words)
    assert tagged.code == 0, tagged.err
    found = json.loads(tagged.out)
    assert found["source"] == "eins"
    assert found["head_report"]["sentences"] == 1
    assert set(found["head_report"]["heads"][0]["tags"]) == {"NUM", "</s>"}
    assert "Percent of attention by tag" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "SENTENCE"),
        (("--head-report", "t", "--png", "a.png"), "--png"),
        (("--head-report", "t", "--layer", "1"), "--layer"),
        (("--head-report", "t", "--target", "one"), "--target"),
        (("eins", "--png", "."), "--png"),
        (("eins", "--layer", "2"), "--layer 2"),
        (("eins", "--head", "3"), "--head 3"),
        (("eins", "--kind", "side"), "--kind side"),
        (("eins", "--set", "decoding.beem=1"), "beem"),
        (("eins", "--target", "one", "--beam", "2"), "decoding.beam has no effect: --target is what"),
        (("eins", "--target", "one", "--set", "decoding.max_length=9"), "decoding.max_length has no effect"),
    ],
    ids=lambda words: " ".join(words),
)
def test_usage_errors(words: tuple[str, ...], said: str, stages: Stages, tmp_path: Path) -> None:
    result = tfm("attend", stages.folder, *words, *(("--out", tmp_path / "a.html") if words else ()))
    assert result.code == 2, result.err
    assert said in result.err
    assert result.out == ""
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize("words", [("--beam", "2"), ("--set", "decoding.max_length=9")])
def test_a_model_that_reads_one_text_searches_for_none(words: tuple[str, ...], tmp_path: Path) -> None:
    model = publish_model(tmp_path / "lines", architecture="decoder_only", task="language_model")
    for more in ((), ("--head-report", write_lines(tmp_path / "texts", ["a dog", "snow"]))):
        result = tfm("attend", model, "a dog", *words, *more, "--out", tmp_path / "a.html")
        assert result.code == 2, result.err
        assert "has no effect: this model (language_model) reads one text, without a search" in result.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("  ",), 65, "has no pieces"),
        (("eins " * 1024,), 65, "reads at most 1023"),
        (("eins", "--head-report", "nowhere.txt"), 65, "nowhere.txt: no such file"),
        (("eins", "--head-report", "empty.txt"), 65, "empty.txt"),
        (("eins", "--head-report", "broken.conllu"), 65, "broken.conllu, line 1"),
        (("eins", "--out", "no/such/a.html"), 73, "no/such/a.html"),
    ],
    ids=["blank", "long", "no file", "empty", "broken", "no folder"],
)
def test_errors_in_two_lines(
    words: tuple[str, ...], code: int, said: str, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "empty.txt", [""])
    write_lines(tmp_path / "broken.conllu", ["1\teins"])
    result = tfm("attend", stages.folder, *words)
    assert result.code == code, result.err
    assert said in result.err
    talk = [line for line in result.err.strip().splitlines() if not line.startswith(("warning:", "reading:"))]
    assert len(talk) <= 2
    assert "Traceback" not in result.err
    assert {file.name for file in tmp_path.iterdir()} == {"empty.txt", "broken.conllu"}


def test_no_model_there(tmp_path: Path) -> None:
    result = tfm("attend", tmp_path / "nothing", "eins", "--out", tmp_path / "a.html")
    assert result.code in (65, 74)
    assert "nothing" in result.err
    assert len(result.err.strip().splitlines()) <= 2
