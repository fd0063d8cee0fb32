"""Lines that are sentences with labels, or spans, and no words in columns."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.data.corpora.paths.test_single_files import advised
from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError


def test_webanno_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(
        "#FORMAT=WebAnno TSV 3.2\n\n\n#Text=Anna lacht\n1-1\t0-4\tAnna\tPER[1]\t\n1-2\t5-10\tlacht\t_\t\n\n"
    )
    with pytest.raises(DataError, match="is TSV of WebAnno or INCEpTION: export it as CoNLL 2002"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    with pytest.raises(DataError, match="is TSV of WebAnno or INCEpTION"):
        list(read_pairs(CorpusConfig(format="conll", path=str(file))))


@pytest.mark.parametrize(
    "text",
    [
        "<PER>Anna</PER> lives in <LOC>Rome</LOC> .\nEva sings .\n<PER>Eva</PER> sings .\n",
        "<START:person> Anna <END> lives in Rome .\n",
        '<ENAMEX TYPE="PERSON">Anna</ENAMEX> lives .\n',
        "[PER Anna] lives in [LOC Rome] .\n",
    ],
)
def test_tags_around_entities_are_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=r"sentences with tags around entities \(.*\): write a word and its tag a line"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    file.write_text("<b>bold</b> text\n<i>x</i>\n[see Rome]\n")
    assert "OTHER" in advised(file)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("The/at 1\\/2/cd dog/nn ./.\nNo/uh ,/, no/uh\n", ["The at", "1\\/2 cd", "dog nn", ". ."]),
        ("The|DT|O Rome|NNP|B-LOC .|.|O\nAnna|NNP|B-PER ran|VB|O\nIt|PR|O is|VB|O so|RB|O .|.|O\n", ["The DT O"]),
        ("a_b_DT dog_NN ran_VB\nNo_UH no_UH no_UH\n", ["a_b DT", "dog NN", "ran VB"]),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.conll"])
def test_the_command_of_words_with_labels_behind_a_mark_writes_columns(
    name: str, text: str, columns: list[str], tmp_path: Path
) -> None:
    """They were advised as texts, or as columns, which they are not."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(
        DataError, match=r"sentences of words with their labels .*: write a word and its label a"
    ) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = str(error.value).partition("as by ")[2].partition(", and set")[0].replace("FILE", str(file))
    (tmp_path / "b.conll").write_text(subprocess.run(command, shell=True, capture_output=True, text=True).stdout)
    lines = (tmp_path / "b.conll").read_text().splitlines()
    assert [line.replace("\t", " ") for line in lines[: len(columns)]] == columns
    assert len(list(read_pairs(CorpusConfig(format="conll", path=str(tmp_path / "b.conll"))))) == text.count("\n")
