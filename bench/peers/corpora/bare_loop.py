"""Encode files line by line and keep nothing: `python bare_loop.py TOKENIZER.json FILES...` (needs: tokenizers)."""

import sys
from itertools import islice

from tokenizers import Tokenizer

LINES_PER_BATCH = 1000


def main(tokenizer_file: str, *files: str) -> None:
    tokenizer = Tokenizer.from_file(tokenizer_file)
    for name in files:
        with open(name, encoding="utf-8", newline="\n") as file:
            while lines := [line.rstrip("\n") for line in islice(file, LINES_PER_BATCH)]:
                tokenizer.encode_batch_fast(lines, add_special_tokens=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
