"""Lines a second of `tfm preprocess` beside a bare loop of the tokenizer on the same text.

Usage: python bench/preprocess.py [--pairs 500000] [--sentences 1] [--rounds 2] [--folder DIR]

Writes pairs of the built-in grammar as text files (two lines a pair, some sentences a line), learns a BPE tokenizer
of 8,000 pieces, then runs in turn (A B A B ...): the whole stage through the command line, and a loop that reads the
same files, calls `encode_batch_fast` on 1,000 lines at a time and keeps nothing. Prints medians, their ratio, and the
peak memory.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from data import grammar

BARE = """
import sys
from itertools import islice
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
for name in sys.argv[2:]:
    with open(name, encoding="utf-8", newline="\\n") as file:
        while lines := [line.rstrip("\\n") for line in islice(file, 1000)]:
            tokenizer.encode_batch_fast(lines, add_special_tokens=False)
"""


def write_corpus(folder: Path, pairs: int, sentences: int) -> None:
    """train.en, train.de and a small validation and test set, each line some sentences joined."""
    for split, size in (("train", pairs), ("valid", 1000), ("test", 1000)):
        source, target = (folder / f"{split}.{language}" for language in ("en", "de"))
        with source.open("w", encoding="utf-8") as english, target.open("w", encoding="utf-8") as german:
            stream = grammar.generate(split, size * sentences, 1)
            while line := list(islice(stream, sentences)):
                english.write(" ".join(pair[0] for pair in line) + "\n")
                german.write(" ".join(pair[1] for pair in line) + "\n")


def timed(command: list[str], folder: Path) -> float:
    """Seconds that a command takes."""
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500_000)
    parser.add_argument("--sentences", type=int, default=1, help="of 8 words on average, on each line")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: a temporary folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_corpus(folder, args.pairs, args.sentences)
        tfm = [sys.executable, "-m", "cli.app"]
        timed([*tfm, "tokenize", "train.en", "train.de", "--vocab-size", "8000", "--out", "tokenizer"], folder)
        splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", f"{split}.en", f"{split}.de")]
        bare = [sys.executable, "-c", BARE, "tokenizer/tokenizer.json", "train.en", "train.de"]
        seconds: dict[str, list[float]] = {"bare loop": [], "tfm preprocess": []}
        for turn in range(args.rounds):
            stage = [*tfm, "preprocess", *splits, "--tokenizer", "tokenizer", "--out", f"dataset{turn}"]
            seconds["tfm preprocess"].append(timed(stage, folder))
            if turn == 0:  # the largest child so far is the stage
                peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
            seconds["bare loop"].append(timed(bare, folder))
    rates = {name: 2 * args.pairs / statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        print(f"{name:15} {rates[name]:9,.0f} lines/s   (rounds: {', '.join(f'{each:.1f} s' for each in values)})")
    print(f"ratio of medians {rates['tfm preprocess'] / rates['bare loop']:.2f}; peak memory {peak} MiB")


if __name__ == "__main__":
    main()
