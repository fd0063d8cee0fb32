"""Vocabularies of names: labels (a whole text each) and tags (those between the spaces of a text).

A name is one piece in its own spelling: never normalised, cased or cut, and known if training has it once. As with
words, a piece carries a space before it, so that a name may spell a control token.
"""

import json
from typing import Any

import tokenizers
from tokenizers import Regex, normalizers
from tokenizers.normalizers import Normalizer

from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.normalization import SPACE, WHITE_SPACE

# What is outside of names. A tokenizer is known as one of names by it.
NORMALIZERS: dict[LabelKind, Normalizer] = {
    "label": normalizers.Sequence([normalizers.Strip()]),
    "tags": normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(SPACE + "+"), " ")]),
}
_SPACES = str.maketrans(dict.fromkeys(WHITE_SPACE, " "))


def words_of(text: str) -> list[str]:
    """What stands between the spaces of a text: its words as the corpus has them, or its tags."""
    return [word for word in text.translate(_SPACES).split(" ") if word]


def names_in(text: str, kind: LabelKind) -> list[str]:
    """The names in a text: one label at most, or its tags."""
    whole = text.strip(WHITE_SPACE)
    return words_of(text) if kind == "tags" else [whole] if whole else []


def kind_of(whole: tokenizers.Tokenizer) -> LabelKind | None:
    """Which names a tokenizer is of, if it is one of names."""
    document: dict[str, Any] = json.loads(whole.to_str())
    if document["model"]["type"] != "WordLevel":
        return None
    spelled = {kind: json.loads(each.__getstate__()) for kind, each in NORMALIZERS.items()}
    return next((kind for kind, each in spelled.items() if each == document["normalizer"]), None)
