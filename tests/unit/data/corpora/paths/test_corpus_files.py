"""The files of a corpus, and what is said where it names none."""

from pathlib import Path

import pytest

from tfm.data.corpora.paths.corpus_files import corpus_files
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"target": "text.txt"}, "source: no such file: the corpus does not name its source; add source = FILE, or "),
        ({"source": "text.txt"}, "target: no such file: the corpus does not name its target; add target = FILE"),
    ],
)
def test_a_side_that_is_not_named_is_asked_for(
    given: dict[str, str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("one\n", "utf-8")
    with pytest.raises(DataError) as error:
        corpus_files(CorpusConfig.model_validate(given))
    assert str(error.value).startswith(problem)


def test_files_of_the_usual_names_need_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("source", "target"):
        Path(name).write_text("one\n", "utf-8")
    assert corpus_files(CorpusConfig()) == [Path("source"), Path("target")]


def test_texts_alone_in_several_files_are_named_by_a_pattern(tmp_path: Path) -> None:
    """Shards of the 1-billion-word benchmark, or a book a file: `*` was the name of a file that is not there."""
    for number in (2, 1):
        (tmp_path / f"news-{number}-of-2").write_text(f"text {number}\n\n", "utf-8")
    corpus = CorpusConfig(source=None, target=str(tmp_path / "news-*"))
    assert [target for _, target in read_pairs(corpus)] == ["text 1", "", "text 2", ""]
    assert [Path(label).name for label, *_ in content_fingerprints(corpus)] == ["news-1-of-2", "news-2-of-2"]
    (tmp_path / "news-*").write_text("a name of this kind\n", "utf-8")
    assert [target for _, target in read_pairs(corpus)] == ["a name of this kind"]


def test_a_side_of_pairs_is_one_file(tmp_path: Path) -> None:
    """Two patterns may name files in another order, so that line i of one were no translation of line i."""
    (tmp_path / "a.en").write_text("one\n", "utf-8")
    with pytest.raises(DataError, match="no such file"):
        list(read_pairs(CorpusConfig(source=str(tmp_path / "*.en"), target=str(tmp_path / "a.en"))))


def test_a_folder_of_texts_alone_is_answered_with_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("one\n", "utf-8")
    with pytest.raises(DataError) as error:
        list(read_pairs(CorpusConfig(source=None, target=str(tmp_path))))
    assert str(error.value).endswith(f': is a folder: name the files in it, as target = "{tmp_path}/*.txt"')
    pattern = str(error.value).rpartition(" = ")[2].strip('"')
    assert list(read_pairs(CorpusConfig(source=None, target=pattern))) == [("", "one")]
