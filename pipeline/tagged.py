"""The sentences of a corpus, whose words may have tags: text with a sentence a line, or CoNLL-U."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from data.conllu import read_conllu
from data.errors import DataError
from data.lines import open_lines


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


def tags_of_pieces(sentence: Sentence, ids: Sequence[int], begins_word: Sequence[bool]) -> list[str] | None:
    """The tag of the word of each piece, given which pieces begin words; None where not each word begins with one."""
    first = ids[:1]
    words = list(accumulate((begins_word[number] for number in ids[1:]), initial=0)) if first else []
    if not words or words[-1] + 1 != len(sentence.tags):
        return None
    return [sentence.tags[word] for word in words]
