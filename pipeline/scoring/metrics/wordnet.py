"""Synonyms and more general words from a folder with WordNet's database files (Miller 1995; the format is wndb(5WN)).

nltk's own reader also wants `lexnames` and `index.sense`, which Debian's package lacks, and a folder among nltk's data.
The reader here reads the files that METEOR needs, and has the two methods that nltk's METEOR calls: `synsets` and
`lemmas`; and it follows hypernyms, which METEOR does not.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tfm.data.errors import DataError
from tfm.pipeline.config import EvaluationConfig

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
FILE_NAME_PATTERNS = ("index.{}", "data.{}", "{}.exc")
WORDNET_FILES = tuple(kind.format(part) for part in PARTS_OF_SPEECH for kind in FILE_NAME_PATTERNS)
"""The files that are read: for each part of speech the words, their synsets, and irregular forms."""

DETACHMENT_RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "verb": (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e")),
        *(("ed", ""), ("ing", "e"), ("ing", "")),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
"""Endings of inflected forms and their replacements, as in morphy(7WN) and nltk."""


HYPERNYM_POINTERS = ("@", "@i")
"""The pointers to what is more general: of kinds, and of instances (Paris is one of a city)."""


@dataclass(frozen=True)
class Lemma:
    """A word of a synset, with `_` between the words of a compound."""

    text: str

    def name(self) -> str:
        return self.text


@dataclass(frozen=True)
class Synset:
    """Words that mean the same.

    Args:
        words: the words.
        part: their part of speech.
        gloss: their meaning in words, and examples.
        hypernyms: the places in data.PART of the synsets that are more general, in bytes.
    """

    words: tuple[Lemma, ...]
    part: str = "noun"
    gloss: str = ""
    hypernyms: tuple[int, ...] = ()

    def lemmas(self) -> tuple[Lemma, ...]:
        return self.words


class WordNet:
    """The WordNet in a folder.

    name: its version, if the files have one, and 8 hex digits of the sha256 of its files. Raises DataError if a file
    is missing or is no file of WordNet.
    """

    def __init__(self, folder: Path) -> None:
        check_wordnet_folder(folder)
        contents = _read_contents(folder)
        self._folder = folder
        self._data = {part: contents[f"data.{part}"] for part in PARTS_OF_SPEECH}
        self._index = {part: dict(_index_entries(folder, f"index.{part}", contents)) for part in PARTS_OF_SPEECH}
        self._irregular = {
            part: {form: rest.split() for form, rest in _index_entries(folder, f"{part}.exc", contents)}
            for part in PARTS_OF_SPEECH
        }
        version = re.search(rb"Word[nN]et (\d[\d.]*\+?) Copyright", self._data["adj"])
        digest = _contents_sha256(contents)[:8]
        self.name = f"{version[1].decode()}-{digest}" if version else digest

    def synsets(self, word: str) -> list[Synset]:
        """The synsets of a word in lower case, of each part of speech and base form that it may be."""
        return [
            self._read_synset(part, offset)
            for part in PARTS_OF_SPEECH
            for form in self._base_forms(word, part)
            for offset in self._lemma_offsets(part, form)
        ]

    def hypernyms(self, synset: Synset) -> list[Synset]:
        """The synsets that are more general than one, the next ones above it."""
        return [self._read_synset(synset.part, offset) for offset in synset.hypernyms]

    def hypernym_path(self, synset: Synset) -> list[Synset]:
        """The synsets above one, each the first hypernym of the one before, to the most general."""
        path: list[Synset] = []
        while (hypernyms := self.hypernyms(path[-1] if path else synset)) and hypernyms[0] not in path:
            path.append(hypernyms[0])
        return path

    def _base_forms(self, word: str, part: str) -> list[str]:
        """The word itself and its base forms, each where WordNet has it."""
        base_forms = self._irregular[part].get(word)
        if base_forms is None:
            base_forms = [word.removesuffix(old) + new for old, new in DETACHMENT_RULES[part] if word.endswith(old)]
        return [form for form in dict.fromkeys((word, *base_forms)) if form in self._index[part]]

    def _lemma_offsets(self, part: str, lemma: str) -> list[int]:
        """The offsets of the synsets of a lemma in data.PART, in bytes.

        A line of an index: lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset...
        """
        fields = self._index[part][lemma].split()
        try:
            count, num_pointers = int(fields[1]), int(fields[2])
            offsets = [int(field) for field in fields[5 + num_pointers :]]
        except (IndexError, ValueError) as error:
            raise _format_error(self._folder / f"index.{part}", f"the entry of {lemma!r}") from error
        if not 0 < count == len(offsets):
            raise _format_error(self._folder / f"index.{part}", f"the entry of {lemma!r}")
        return offsets

    def _read_synset(self, part: str, offset: int) -> Synset:
        """The synset that begins at a byte of data.PART.

        A line of it: synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt [symbol offset pos
        source/target...] ... | gloss, where w_cnt is hexadecimal. An adjective may end in its place in a sentence, as
        in "galore(ip)".
        """
        data = self._data[part]
        try:
            line, _, gloss = data[offset : data.index(b"\n", offset)].decode().partition(" | ")
            fields = line.split()
            if int(fields[0]) != offset:
                raise ValueError("another synset")
            end = 4 + 2 * int(fields[3], 16)
            words, num_pointers = fields[4:end:2], int(fields[end])
            pointers = fields[end + 1 : end + 1 + 4 * num_pointers]
            hypernyms = tuple(
                int(pointer_offset)
                for symbol, pointer_offset in zip(pointers[::4], pointers[1::4], strict=True)
                if symbol in HYPERNYM_POINTERS
            )
        except (IndexError, ValueError) as error:
            raise _format_error(self._folder / f"data.{part}", f"the synset at byte {offset}") from error
        lemmas = tuple(Lemma(re.sub(r"\([^()]*\)$", "", word)) for word in words)
        return Synset(lemmas, part, gloss.strip(), hypernyms)


def open_wordnet(folder: Path) -> WordNet:
    """The WordNet in a folder, parsed again only where its files have changed."""
    return _parse_wordnet(folder, wordnet_fingerprint(folder))


@lru_cache(maxsize=1)
def _parse_wordnet(folder: Path, contents: str) -> WordNet:
    return WordNet(folder)


def wordnet_folder(config: EvaluationConfig) -> Path | None:
    """The folder that METEOR reads; None if none is named or no METEOR is asked for."""
    return None if config.wordnet is None or "meteor" not in config.metrics else Path(config.wordnet)


def check_wordnet_folder(folder: Path) -> None:
    """Raise DataError, of two lines, where a folder lacks a file of WordNet."""
    missing = [name for name in WORDNET_FILES if not (folder / name).is_file()]
    if missing:
        rest = f" and lacks {len(missing) - 1} more" if missing[1:] else ""
        problem = f"has no {missing[0]}{rest}: it is no folder" if folder.is_dir() else "is no folder, and none"
        raise DataError(
            f"{problem} of WordNet's database files\n"
            "name one that is (Debian's package wordnet-base: /usr/share/wordnet), or leave wordnet out",
            file=folder,
        )


def wordnet_fingerprint(folder: Path) -> str:
    """sha256 in hex of all that is read from the folder. Raises DataError if a file is missing."""
    check_wordnet_folder(folder)
    return _contents_sha256(_read_contents(folder))


def _read_contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in WORDNET_FILES}


def _index_entries(folder: Path, name: str, contents: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """The first word of each line, and the rest; a line that begins with a space belongs to the license."""
    try:
        lines: Sequence[str] = contents[name].decode().split("\n")
    except UnicodeDecodeError as error:
        raise _format_error(folder / name, f"byte {error.start}") from error
    for line in lines:
        if line and not line.startswith(" "):
            first, _, rest = line.partition(" ")
            yield first, rest


def _format_error(file: Path, description: str) -> DataError:
    return DataError(f"{description} is not as WordNet has it (wndb(5WN)): install WordNet's files again", file=file)


def _contents_sha256(contents: dict[str, bytes]) -> str:
    parts = "".join(f"{name} {hashlib.sha256(contents[name]).hexdigest()}\n" for name in WORDNET_FILES)
    return hashlib.sha256(parts.encode()).hexdigest()
