"""Pieces of a SentencePiece model that its vocabulary does not number: a text is cut by them, and each reads as <unk>.

The vocabulary of a Marian (vocab.json) has the pieces that its training text had, and source.spm often more of them.
transformers cuts a text by the whole model and then looks up each piece. So tokenizer.json keeps all pieces: those
without a number of their own stand behind the control token `<unnumbered>`, and their ids are no ids of the model.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tokenizers

from tfm.tokenizer.foreign.renumbered import FILLER_PREFIX
from tfm.tokenizer.special import UNK_ID

UNNUMBERED_PREFIX = FILLER_PREFIX + "<unnumbered>"


def append_pieces_read_as_unk(
    document: Mapping[str, Any], scores: Mapping[str, float], merges: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """tokenizer.json with more pieces that cut texts and read as <unk>.

    Args:
        document: tokenizer.json, whose model names every id.
        scores: by piece its score in the SentencePiece model.
        merges: all ways to make pieces, new ones too; empty unless the model is one of byte pairs.
    """
    model = dict(document["model"])
    size = len(model["vocab"])
    if isinstance(model["vocab"], list):
        low = min(score for _, score in model["vocab"])
        model["vocab"] = [*model["vocab"], [UNNUMBERED_PREFIX, low], *map(list, scores.items())]
    else:
        model["vocab"] = {
            **model["vocab"],
            **{name: size + index for index, name in enumerate((UNNUMBERED_PREFIX, *scores))},
        }
        model["merges"] = [list(merge) for merge in merges]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    token = {"id": size, "content": UNNUMBERED_PREFIX, **plain}
    return {**document, "model": model, "added_tokens": [*document["added_tokens"], token]}


def num_ids(backend: tokenizers.Tokenizer) -> int:
    """How many pieces have an id of the model: all of them, or those before `<unnumbered>`."""
    added_tokens = backend.get_added_tokens_decoder().items()
    marks = [number for number, token in added_tokens if token.special and token.content == UNNUMBERED_PREFIX]
    return min(marks, default=backend.get_vocab_size())


def has_unnumbered_pieces(document: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has pieces without a number."""
    return any(each["content"] == UNNUMBERED_PREFIX and each["special"] for each in document["added_tokens"])


def replace_unnumbered_ids_by_unk(ids: Collection[int], size: int) -> list[int]:
    """The ids with <unk> in place of each that is no id of a model with `size` pieces."""
    return [number if number < size else UNK_ID for number in ids]
