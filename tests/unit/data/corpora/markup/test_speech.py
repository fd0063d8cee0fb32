"""Times and names of recordings, which were words where times are whole numbers, or a file has one line."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.markup.speech import times_problem
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

FORMS = {
    "stm": ("2830 1 spk1 10 15 <o,f0> hello\n2830 1 spk2 15 21 <o> yes\n", "is STM", "hello\nyes\n"),
    "ctm": ("2830 1 10 1 hello\n2830 1 11 1 there\n", "is CTM", None),
    "ctm of a word": ("sw2001 A 0.12 0.30 hello 0.98\n", "is CTM", None),
    "phn": ("0 3050 h#\n3050 4559 sh\n4559 5723 ix\n", "with their times", "h# sh ix \n"),
    "mlf": ('#!MLF!#\n"*/a.lab"\nONE\nTWO\n.\n"*/b.lab"\n0 10 x\n.\n', "HTK", "ONE TWO \nx \n"),
    "festival": ('( a_1 "He said." )\n( a_2 "No." )\n', "Festival", "He said.\nNo.\n"),
}


@pytest.mark.parametrize("name", FORMS)
def test_transcripts_with_times_are_named(name: str, tmp_path: Path) -> None:
    content, problem, made = FORMS[name]
    file = tmp_path / "a.txt"
    file.write_text(content)
    with pytest.raises(DataError, match=problem) as error:
        list(read_pairs(CorpusConfig(source=str(file), target=str(file))))
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig(path=str(file)))
    if made is not None:
        command = str(error.value).partition("as by ")[2].replace("FILE", str(file))
        assert subprocess.run(command, shell=True, capture_output=True, text=True).stdout == made


@pytest.mark.parametrize(
    "lines",
    [
        ["1 2 3", "2 3 4", "4 5 6"],
        ["1 2 apples", "3 4 pears"],
        ["9 10 pears", "3 4 apples", "1 2 plums"],
        ["2 1 pears", "4 3 apples", "6 5 plums"],
        ["a 1 b 9 3 c", "a 1 b 2 1 c"],
        ["a b 1.0 2.0 c"],
        ["class A 1 2 c"],
        ['("a")', '("b")'],
        ["1 2 3 4 5 6 7 8 9"] * 3,
        ["3 1 7 2 5 9", "3 1 8 4 6 7"],
        ["shelf 1 row 2 3 books"] * 3,
    ],
)
def test_numbers_in_texts_are_no_times(lines: list[str]) -> None:
    assert times_problem(lines) is None
