"""Files with a word a line that have no labels."""

import re
import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpora.text_remarks import table_remark
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

UNLABELLED = {
    "alone.txt": "EU\nlehnt\nab\n.\n\nPeter\nlacht\nnun\n\n",
    "alone.conll": "-DOCSTART-\n\nEU\nlehnt\nab\n.\n\nPeter\nlacht\nnun",
    "tab_behind.tsv": "EU\t\nlehnt\t\nab\t\n.\t\n\nPeter\t\nlacht\t\nnun\t\n",
    "germeval.tsv": "#\thttp://a [2010]\n1\tEU\n2\tlehnt\n3\tab\n4\t.\n\n#\thttp://b\n1\tPeter\n2\tlacht\n3\tnun\n\n",
    "tabs.tsv": "# http://a\n1\tEU\t\t\n2\tlehnt\t\t\n3\tab\t\t\n4\t.\t\t\n\n1\tPeter\t\t\n2\tlacht\t\t\n3\tnun\t\t\n\n",
    "multiconer.conll": "# id 1\nEU _ _ _\nlehnt _ _ _\nab _ _ _\n. _ _ _\n\n\nPeter _ _ _\nlacht _ _ _\nnun _ _ _\n",
    "question.txt": "EU ?\nlehnt ?\nab ?\n. ?\n\nPeter ?\nlacht ?\nnun ?\n\n",
}


@pytest.mark.parametrize("name", UNLABELLED)
def test_words_without_labels_are_named_with_what_makes_sentences_of_them(name: str, tmp_path: Path) -> None:
    """Test sets were advised as texts, or with the words as their own labels."""
    file = tmp_path / name
    file.write_text(UNLABELLED[name])
    with pytest.raises(
        DataError, match=r"has .*no labels: write those of a sentence in a line.*labels, as by"
    ) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub("FILE$", str(file), str(error.value).partition("as by ")[2])
    command = command.replace("awk '", "awk '/^-DOC/ {next} ") if "DOC" in UNLABELLED[name] else command
    assert (
        subprocess.run(command, shell=True, capture_output=True, text=True).stdout == "EU lehnt ab .\nPeter lacht nun\n"
    )
    with pytest.raises(DataError, match="no labels: write those of a sentence in a line"):
        list(read_pairs(CorpusConfig(format="conll", path=str(file))))


@pytest.mark.parametrize("sign", ["_", "-", "?"])
@pytest.mark.parametrize("columns", ["nws", "nwss", "nnws", "sws", "wss", "snw"])
def test_words_beside_numbers_and_signs_have_no_labels(columns: str, sign: str, tmp_path: Path) -> None:
    """A file with both was advised with its signs as labels: `-` was learned as the tag of every word."""
    file = tmp_path / "a.conll"
    sentences = ["EU lehnt ab .".split(), "Peter lacht nun".split()]
    rows = [
        [{"n": str(number), "w": word, "s": sign}[column] for column in columns]
        for words in sentences
        for number, word in enumerate(words, 1)
    ]
    rows.insert(len(sentences[0]), [])
    file.write_text("".join("\t".join(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"has words \(column \d\) and no labels") as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub("FILE$", str(file), str(error.value).partition("as by ")[2])
    written = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
    assert written == "".join(" ".join(words) + "\n" for words in sentences)
    with pytest.raises(DataError, match="no labels"):
        list(read_pairs(CorpusConfig(format="conll", path=str(file))))


def test_words_without_labels_that_are_read_as_texts_are_remarked() -> None:
    remark = table_remark(UNLABELLED["alone.txt"].split("\n"))
    assert str(remark).startswith("has a word a line and blank lines between sentences, and are read")
    for text in ("dog\ncat\n\ntree\ncar\n", "a\n.\nb\n.\n", "3\n4\n.\n\n5\n6\n", "A dog\n.\n\nNo\n.\n"):
        assert "word a line" not in str(table_remark(text.split("\n")))
