"""Vocabularies of names: labels (a whole text each) and tags (those between the spaces of a text).

A name is one piece in its exact spelling: never normalized, lower-cased or split, and known if training has it once. As
with words, a piece includes a space before it, so that a name may be spelled like a control token.
"""

import json
import re
from collections.abc import Collection
from typing import Any

import tokenizers
from tokenizers import Regex, normalizers
from tokenizers.normalizers import Normalizer

from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.normalization import SPACE_PATTERN, WHITE_SPACE

# What is outside of names. A tokenizer is known as one of names by it.
NORMALIZERS: dict[LabelKind, Normalizer] = {
    "label": normalizers.Sequence([normalizers.Strip()]),
    "tags": normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(SPACE_PATTERN + "+"), " ")]),
}
LABEL_SEPARATORS = (re.compile(r"[,;|]"), re.compile(r"\s+"))
_SPACE_TRANSLATION = str.maketrans(dict.fromkeys(WHITE_SPACE, " "))


SPACE_WITHIN_WORD = "\u2423"
"""Stands for a space within a word, where spaces separate words that have a tag each; the word's pieces are those of
the word with the space."""


def split_words(text: str) -> list[str]:
    """The parts of a text between spaces: its words as in the corpus, or its tags."""
    return [word for word in text.translate(_SPACE_TRANSLATION).split(" ") if word]


def split_label_names(text: str, kind: LabelKind) -> list[str]:
    """The names in a text: one label at most, or its tags."""
    label = text.strip(WHITE_SPACE)
    return split_words(text) if kind == "tags" else [label] if label else []


def joined_labels(names: Collection[str]) -> list[str]:
    """The labels that are others with a mark or spaces between them, such as "4,27" beside "4" and "27"."""
    known = {*names}
    return [
        name
        for name in names
        for parts in ({part.strip(WHITE_SPACE) for part in mark.split(name)} for mark in LABEL_SEPARATORS)
        if len(parts) > 1 and known.issuperset(parts)
    ]


def find_label_kind(backend: tokenizers.Tokenizer) -> LabelKind | None:
    """The kind of names of a tokenizer, if it is one for names."""
    document: dict[str, Any] = json.loads(backend.to_str())
    if document["model"]["type"] != "WordLevel":
        return None
    normalizer_jsons = {kind: json.loads(each.__getstate__()) for kind, each in NORMALIZERS.items()}
    return next((kind for kind, each in normalizer_jsons.items() if each == document["normalizer"]), None)
