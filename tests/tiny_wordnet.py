"""A WordNet of a few words, as a folder of database files."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def write_nltk_wordnet(root: Path, synsets: Mapping[str, Sequence[str]] = SYNSETS) -> Path:
    """The same where nltk looks for it below its data folder `root`, with the further files that its reader opens."""
    folder = write_wordnet(root / "corpora" / "wordnet", synsets)
    (folder / "lexnames").write_text("00\tadj.all\t3\n")
    for name in ("index.sense", "cntlist.rev"):
        (folder / name).write_text("")
    return folder
