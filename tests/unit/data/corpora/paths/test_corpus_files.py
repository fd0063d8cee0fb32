"""The files of a corpus, and what is said where it names none."""

from pathlib import Path

import pytest

from tfm.data.corpora.paths.corpus_files import corpus_files
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
