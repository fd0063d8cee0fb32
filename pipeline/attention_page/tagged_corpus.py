"""The sentences of a corpus, whose words may have tags: text with one sentence per line, or CoNLL-U."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.formats.conllu import read_conllu
from tfm.data.lines import open_lines
from tfm.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Sentence:
    """A text and, in a tagged corpus, the tag of each of its words, between which stand spaces."""

    text: str
    tags: tuple[str, ...] = ()


def is_tagged(file: Path) -> bool:
    """Whether a file is CoNLL-U, by its name."""
    return file.name.removesuffix(".gz").endswith(".conllu")


def read_sentences(files: Sequence[Path]) -> Iterator[Sentence]:
    """The sentences of all files, in order, of CoNLL-U with the universal parts of speech.

    Raises DataError where some files are tagged and some are not.
    """
    tagged = [file for file in files if is_tagged(file)]
    if tagged and len(tagged) < len(files):
        other = next(file for file in files if file not in tagged)
        raise DataError(f"has no tags and {tagged[0]} has: give files of one kind", file=other)
    for file in files:
        if tagged:
            yield from (Sentence(text, tuple(tags.split(" "))) for text, tags in read_conllu(file, ("form", "upos")))
        else:
            yield from map(Sentence, open_lines(file))


def encode_tagged(tokenizer: Tokenizer, sentences: Sequence[Sentence]) -> Iterator[tuple[list[int], list[str] | None]]:
    """The ids of each sentence and, of a tagged one, the tag of the word that each piece is of."""
    words = iter(tokenizer.encode_words([each.text for each in sentences if each.tags]))
    texts = iter(tokenizer.encode_batch([each.text for each in sentences if not each.tags]))
    for sentence in sentences:
        if sentence.tags:
            pieces = list(zip(next(words), sentence.tags, strict=True))
            yield [number for ids, _ in pieces for number in ids], [tag for ids, tag in pieces for _ in ids]
        else:
            yield next(texts), None
