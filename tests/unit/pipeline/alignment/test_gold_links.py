"""Gold alignments in the forms in which they are published."""

import re
import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.alignment.gold_links import read_gold_links
from tfm.pipeline.alignment.pharaoh import GoldLinks
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.alignment.gold import read_pair_files

SURE, POSSIBLE = frozenset({(0, 0), (2, 1)}), frozenset({(0, 0), (2, 1), (1, 1)})
NO_LINKS: frozenset[tuple[int, int]] = frozenset()
EXPECTED = [
    GoldLinks(SURE, POSSIBLE),
    GoldLinks(NO_LINKS, NO_LINKS),
    GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0)})),
]
FORMS = {
    "naacl": "0001 1 1 S\n0001 3 2 S\n0001 2 2 P\n0003 1 1 S\n0003 0 2 S\n",
    "confidence": "1 1 1 S 0.9\n1 3 2 S 1\n1 2 2 P 0.1\n3 1 1 S 1\n",
    "tabs": "0001\t1\t1\tS\n0001\t3\t2\tS\n0001\t2\t2\tP\n\n0003\t1\t1\tS\n",
    "small": "1 1 1 s\n1 3 2\n1 2 2 p\n3 1 1 s\n",
    "from zero": "0 1 1 S\n0 3 2 S\n0 2 2 P\n2 1 1 S\n",
    "numbered": "1 0-0 2-1 1p1\n3 0-0\n",
    "numbered, tabs": "0\t0-0 2-1 1?1\n2\t0-0\n",
    "pharaoh": "0-0 2-1 1?1\n\n0-0\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_links_are_the_same_in_each_form(form: str, tmp_path: Path) -> None:
    """Files of NAACL 2003 were refused, and lines with the number of their pair had a part that is no link."""
    (tmp_path / "links").write_text(FORMS[form])
    assert list(read_gold_links(tmp_path / "links", 3)) == EXPECTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0001 1 1 S\n0001 2\n", "line 2: has no number of a pair before its links, as the first line has"),
        ("0001 1 1 S\n0004 1 1 S\n", r"line 2: is of pair 4, counted from 1, and there are 3: are the links of these"),
        ("1 0-0\n2 0=0\n", "line 2: has no number"),
        ("1 0-0\n2 0-0 1=1\n", "line 2: '1=1' is no link"),
        ("0001 1 1 S\n0002 9 1 S\n", "pair 2 of those that it numbers links word 8 with word 0, counted from 0, and"),
    ],
)
def test_a_line_that_is_wrong_is_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "links").write_text(text)
    for side in ("source", "target"):
        (tmp_path / side).write_text("a b c\nd\ne f\n")
    with pytest.raises(DataError, match=problem):
        read_pair_files(tmp_path / "source", tmp_path / "target", tmp_path / "links", NullReporter())


@pytest.mark.parametrize(
    "text",
    [
        *(FORMS[form] for form in ("naacl", "confidence", "tabs", "from zero", "pharaoh")),
        "1 0-0 2-1 1p1\n2 0-0\n3 1-1\n",
        "1\t1-1 2-3\n2\t1-1\n4\t1-2\n",
        "0001 1 1\n0001 2 2\n0002 1 1\n",
        "1-1 2p2 3-3\n1-1 2-2\n",
        "0-0:0.5 1-1:0.9\n0-0:0.3\n",
        "0-0 1-1 ||| -3.4\n0-0 ||| -2.2\n",
    ],
)
def test_links_are_no_texts(text: str, tmp_path: Path) -> None:
    """They were advised as texts, as labelled texts or as CSV, and read as a side of a corpus."""
    file = tmp_path / "links"
    file.write_text(text)
    with pytest.raises(DataError, match="holds links of words by their numbers, not texts: give it to tfm align"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    for source in (str(file), None):
        with pytest.raises(DataError, match="holds links of words"):
            list(read_pairs(CorpusConfig(source=source, target=str(file))))


@pytest.mark.parametrize(
    "text",
    [
        "1 2 3\n4 5 6\n7 8 9\n",
        "0 0 0\n0 1 1\n1 0 1\n1 1 2\n",
        "1 dog-1\n2 3-4\n",
        "1 3-0\n2 1-1\n3 2-2\n",
        "3 1-1\n1 2-2\n2 1-1\n",
    ],
)
def test_numbers_may_be_texts(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    corpus = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))
    assert [source for source, _ in read_pairs(corpus)] == text.splitlines()


def test_the_command_of_links_below_their_sentence_writes_those_of_a_pair_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "links"
    file.write_text("SENT: 0\nS 0 0\nS 2 1\nP 1 1\n\nSENT: 1\n\nSENT: 2\nS 0 0\n")
    with pytest.raises(DataError, match=r"holds links of words .* as by awk") as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub("FILE$", str(file), str(error.value).partition("as by ")[2])
    (tmp_path / "pharaoh").write_text(subprocess.run(command, shell=True, capture_output=True, text=True).stdout)
    assert list(read_gold_links(tmp_path / "pharaoh", 3)) == EXPECTED
