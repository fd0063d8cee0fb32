"""The sentences of a corpus: text with one sentence per line, or CoNLL-U, whose words have tags and governors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.data.compression.files import strip_compression_ending
from tfm.data.errors import DataError
from tfm.data.formats.conllu import read_conllu
from tfm.data.lines import open_lines
from tfm.data.synthetic import registry
from tfm.tokenizer.labels import SPACE_WITHIN_WORD
from tfm.tokenizer.tokenizer import Tokenizer

UNSPECIFIED_HEAD = "_"  # a cell of CoNLL-U that says nothing
ROOT_HEAD = "0"


@dataclass(frozen=True)
class TaggedSentence:
    """A text and, in a tagged corpus, the syntax of its words, which are separated by spaces.

    Args:
        text: the text.
        tags: parts of speech.
        governors: the word, from 0, on which each depends; None for the root and where the corpus has no syntax.
        relations: the kind of each dependency.
    """

    text: str
    tags: tuple[str, ...] = ()
    governors: tuple[int | None, ...] = ()
    relations: tuple[str, ...] = ()


def is_conllu_file(file: Path) -> bool:
    """Whether a file is CoNLL-U, by its name."""
    return strip_compression_ending(file.name).endswith(".conllu")


def is_built_in_treebank(file: Path) -> bool:
    """Whether a path is the name of a built-in corpus that comes parsed; where a file has that name, it is the file."""
    return str(file) in registry.GENERATORS_WITH_CONTRASTS and not file.exists()


def read_sentences(files: Sequence[Path]) -> Iterator[TaggedSentence]:
    """The sentences of all files, in order, of CoNLL-U with the universal parts of speech and the dependencies.

    `it` is the test sentences of that built-in corpus, in which "it" depends on the noun that it stands for.
    Raises DataError if some files are tagged and some are not, or a governor is no word of its sentence.
    """
    tagged = [file for file in files if is_conllu_file(file) or is_built_in_treebank(file)]
    if tagged and len(tagged) < len(files):
        untagged = next(file for file in files if file not in tagged)
        raise DataError(f"has no tags and {tagged[0]} has: give files of one kind", file=untagged)
    for file in files:
        if is_built_in_treebank(file):
            for words in registry.parsed_sentences(str(file)):
                texts, word_tags, word_governors, word_relations = zip(*words, strict=True)
                yield TaggedSentence(" ".join(texts), word_tags, word_governors, word_relations)
        elif tagged:
            for columns in read_conllu(file, ("form", "upos", "id", "head", "deprel"), SPACE_WITHIN_WORD):
                text, tags, ids, heads, relations = (column.split(" ") for column in columns)
                governors = _parse_governors(ids, heads, columns[0], file)
                yield TaggedSentence(" ".join(text), tuple(tags), governors, tuple(relations))
        else:
            yield from map(TaggedSentence, open_lines(file))


def _parse_governors(ids: Sequence[str], heads: Sequence[str], text: str, file: Path) -> tuple[int | None, ...]:
    """The governor of each word as its place in the sentence, given as its number there."""
    places: dict[str, int | None] = {number: place for place, number in enumerate(ids)}
    places |= {ROOT_HEAD: None, UNSPECIFIED_HEAD: None}
    for number, head in zip(ids, heads, strict=True):
        if head not in places:
            problem = f"the HEAD of word {number} is {head:.20}, which is no word of the sentence {text[:40]!r}"
            raise DataError(problem, file=file)
    return tuple(places[head] for head in heads)


def encode_with_word_indices(
    tokenizer: Tokenizer, sentences: Sequence[TaggedSentence]
) -> Iterator[tuple[list[int], list[int] | None]]:
    """The ids of each sentence and, of a tagged one, the word, from 0, that each piece is of.

    Raises DataError if sentences are tagged, and begin with languages, which are no words.
    """
    if tokenizer.has_language_prefix and any(each.tags for each in sentences):
        raise DataError(
            "has tags of words, and the sources of a model of several languages begin with tokens that are no words: "
            "give the sentences as a text file, without tags"
        )
    words = iter(tokenizer.encode_words([each.text for each in sentences if each.tags]))
    texts = iter(tokenizer.encode_batch([each.text for each in sentences if not each.tags]))
    for sentence in sentences:
        if sentence.tags:
            pieces = next(words)
            assert len(pieces) == len(sentence.tags)
            yield [each for ids in pieces for each in ids], [word for word, ids in enumerate(pieces) for _ in ids]
        else:
            yield next(texts), None
