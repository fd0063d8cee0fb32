"""Files and streams of texts that a person names: another form than a text a line is told."""

import gzip
from pathlib import Path

import pytest

from tests.recording_reporter import Listening
from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.sources import read_rows
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.pipeline.scoring.aligned_files import read_given_files
from tfm.pipeline.text_files import check_text_file, show_remarks, warn_of_remarks, watch_lines

JSON_LINES = '{"en": "a dog", "de": "ein Hund"}\n' * 4
FORMS = {
    JSON_LINES: "objects of JSON",
    "a dog\tein Hund\n" * 4: "have tabs",
    "en,de\n" + "a dog,ein Hund\n" * 3: "cells between ,",
    "- en: a dog\n  de: ein Hund\n" * 2: "is YAML",
    "<html>\n<p>a dog</p>\n": "is XML or HTML",
    'He said: {"a": 1}\n{"b": 2}\na dog\n': None,
    "a dog\n" * 40: None,
}


@pytest.mark.parametrize(("text", "form"), FORMS.items())
def test_a_file_of_another_form_is_warned_of(text: str, form: str | None, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(text.encode()))
    reporter = Listening()
    check_text_file(tmp_path / "a", reporter)
    assert len(reporter.warnings) == (form is not None)
    assert all(f"{tmp_path / 'a'}: " in said and form is not None and form in said for said in reporter.warnings)


@pytest.mark.parametrize(("text", "form"), FORMS.items())
@pytest.mark.parametrize("repeats", [1, 30])
def test_a_stream_of_another_form_passes_and_is_warned_of_once(text: str, form: str | None, repeats: int) -> None:
    lines, reporter = text.splitlines() * repeats, Listening()
    assert list(watch_lines(lines, "stdin", reporter)) == lines
    if form is None or "tabs" in form or "JSON" in form:
        assert [form is not None and form in said for said in reporter.warnings] == [True] * (form is not None)


def test_the_warning_comes_as_soon_as_it_can_be_made() -> None:
    reporter = Listening()
    lines = watch_lines(["a dog\tein Hund"] * 40, "stdin", reporter)
    assert [len(reporter.warnings) for _ in zip(range(21), lines, strict=False)] == [0] * 19 + [1] * 2


def test_what_a_reader_remarks_is_warned_of_before_work(tmp_path: Path) -> None:
    """The text that a model is to translate was read without a word."""
    (tmp_path / "a").write_text(JSON_LINES)
    reporter = Listening()
    warn_of_remarks(lambda: read_rows(CorpusConfig(source=None, target=str(tmp_path / "a"))), reporter)
    assert [f"{tmp_path / 'a'}: its lines are objects of JSON" in said for said in reporter.warnings] == [True]


@pytest.mark.parametrize("name", ["source", "hypotheses", "reference_1", "prefixes"])
def test_texts_that_are_scored_beside_json_are_refused_and_other_json_is_warned_of(name: str, tmp_path: Path) -> None:
    files = {key: tmp_path / key for key in ("source", "prefixes", "hypotheses", "reference_1")}
    for key, file in files.items():
        file.write_text(JSON_LINES if key == name else "a dog\n" * 4)
    reporter = Listening()
    if name in ("source", "prefixes"):
        assert read_given_files(files, reporter)[name] == JSON_LINES.splitlines()
        assert [str(files[name]) in said for said in reporter.warnings] == [True]
        return
    with pytest.raises(DataError, match=f"{name}: has an object of JSON a line, and other files have texts"):
        read_given_files(files, reporter)


def test_json_may_be_scored_beside_json(tmp_path: Path) -> None:
    """As of a model that writes it: the source is a text, and the warning comes once."""
    files = {key: tmp_path / key for key in ("source", "hypotheses", "reference_1")}
    for key, file in files.items():
        file.write_text("a dog\n" * 4 if key == "source" else JSON_LINES)
    reporter = Listening()
    assert read_given_files(files, reporter)["hypotheses"] == JSON_LINES.splitlines()
    assert len(reporter.warnings) == 1


@pytest.mark.parametrize("name", ["hypotheses", "reference_1"])
def test_blank_lines_at_the_end_are_named(name: str, tmp_path: Path) -> None:
    files = {key: tmp_path / key for key in ("hypotheses", "reference_1")}
    for key, file in files.items():
        file.write_text("\ufeffa dog\r\na cat\r\n" + "\r\n" * (key == name))
    with pytest.raises(DataError, match=f"; the lines at the end of {files[name]} are blank: remove them"):
        read_given_files(files, Listening())


def test_remarks_are_shown_before_the_error_of_which_they_may_be_the_cause() -> None:
    shown: list[str] = []

    def fail() -> None:
        with show_remarks(shown.append, {"b: seen"}):
            add_remark("a", "is a table")
            add_remark("b", "seen")
            raise DataError("nothing is left")

    with pytest.raises(DataError, match="nothing is left"):
        fail()
    assert shown == ["a: is a table"]
