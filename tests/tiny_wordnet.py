"""A WordNet of a few words, as a folder of database files."""

import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader

LICENCE = "  1 This is no WordNet of Princeton's.  \n  2 WordNet 3.0 Copyright nobody.  \n"
SYNSETS: Mapping[str, Sequence[str]] = {
    "noun": ["car auto automobile motor_car", "car railcar", "dog domestic_dog", "man adult_male", "Paris", "box"],
    "verb": ["walk stroll", "run", "box package"],
    "adj": ["big large", "galore(ip)", "quick fast"],
    "adv": ["fast quickly"],
}
"""Of each part of speech the synsets, each as its words."""
IRREGULAR: Mapping[str, Sequence[str]] = {"noun": ["men man"], "verb": ["ran run"], "adj": [], "adv": []}
OF_A_LINE = '{:08d} 00 {} {:02x} {} 000 | a gloss; "an example"  \n'


def write_wordnet(folder: Path, synsets: Mapping[str, Sequence[str]] = SYNSETS) -> Path:
    """Writes what METEOR reads of a WordNet; the folder."""
    folder.mkdir(parents=True)
    for part, texts in synsets.items():
        data, places = LICENCE, defaultdict[str, list[int]](list)
        for text in texts:
            words = text.split()
            for word in words:
                places[word.partition("(")[0].lower()].append(len(data))
            sense = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}[part]
            data += OF_A_LINE.format(len(data), sense, len(words), " ".join(f"{word} 0" for word in words))
        lines = [
            f"{word} {sense} {len(found)} 1 @ {len(found)} 0 {' '.join(f'{place:08d}' for place in found)}  \n"
            for word, found in sorted(places.items())
        ]
        (folder / f"data.{part}").write_text(data, encoding="utf-8", newline="\n")
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines), encoding="utf-8", newline="\n")
        (folder / f"{part}.exc").write_text("".join(f"{line}\n" for line in IRREGULAR[part]), newline="\n")
    return folder


@contextmanager
def nltk_reader(root: Path, folder: Path) -> Iterator[WordNetCorpusReader]:
    """nltk's own reader of the WordNet in a folder.

    It reads what lies below its data folder, here `root`, and opens further files, which Debian's package lacks.
    """
    copied = root / "corpora" / "wordnet"
    shutil.copytree(folder, copied)
    further = {"lexnames": "".join(f"{number:02d}\tof.{number}\t3\n" for number in range(45))}
    for name, content in {**further, "index.sense": "", "cntlist.rev": ""}.items():
        if not (copied / name).exists():
            (copied / name).write_text(content)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(nltk.data, "path", [str(root)])
        warnings.simplefilter("ignore")  # of languages other than English
        reader = WordNetCorpusReader(str(copied), None)
        yield reader
        for file in reader._data_file_map.values():  # which it leaves open
            file.close()
