"""A dataset's training split as files that any toolkit reads: ids as words, p17, one sentence a line."""

from collections.abc import Sequence
from pathlib import Path

from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.tokenizer.special import SPECIAL_TOKENS

SOURCE, TARGET, VOCABULARY = "train.source", "train.target", "vocabulary.tsv"


def make_word(number: int) -> str:
    """The word of an id."""
    return f"p{number}"


def write_pieces(split: Split, vocab_size: int, folder: Path) -> None:
    """Write both sides, and the words of all ids but those of control tokens: every toolkit has its own of these."""
    folder.mkdir(parents=True, exist_ok=True)
    for column, name in ((split.source, SOURCE), (split.target, TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in _lines(column)), encoding="utf-8")
    words = map(make_word, range(len(SPECIAL_TOKENS), vocab_size))
    (folder / VOCABULARY).write_text("".join(f"{each}\t1\n" for each in words), encoding="utf-8")


def _lines(column: TokenIdColumn) -> Sequence[str]:
    return [" ".join(map(make_word, ids)) for ids in column.to_lists()]
