"""Text files of the built-in grammar, written by a separate process: `python -m bench.corpora.corpus < JSON`.

So its memory is not part of later measurements.
"""

import json
import sys
from itertools import islice
from pathlib import Path

from tfm.data.synthetic import grammar

SPLITS = ("train", "valid", "test")
LANGUAGES = ("en", "de")
NUM_VALID_PAIRS = 1000


def write_corpus(folder: Path, pairs: int, sentences: int) -> None:
    """train.en, train.de and a small validation and test set, each line some sentences joined."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in (("train", pairs), ("valid", NUM_VALID_PAIRS), ("test", NUM_VALID_PAIRS)):
        source, target = (folder / f"{split}.{language}" for language in LANGUAGES)
        with source.open("w", encoding="utf-8") as english, target.open("w", encoding="utf-8") as german:
            stream = grammar.generate(split, size * sentences, 1)
            while line := list(islice(stream, sentences)):
                english.write(" ".join(pair[0] for pair in line) + "\n")
                german.write(" ".join(pair[1] for pair in line) + "\n")


if __name__ == "__main__":
    options = json.load(sys.stdin)
    write_corpus(Path(options["folder"]), options["pairs"], options["sentences"])
