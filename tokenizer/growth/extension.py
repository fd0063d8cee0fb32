"""A tokenizer that extends another: old pieces keep their ids, and new pieces get the ids after them.

The pieces of a text without a new piece stay the same: merges of byte-pair encoding come after all old ones, WordPiece
looks for the longest piece, and the most probable pieces of a unigram model are still those if no path through a new
piece is more probable.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers
from tokenizers.models import WordPiece

from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.foreign.renumbered import MODELS_WITHOUT_MERGES, document_pieces
from tfm.tokenizer.special import CONTINUATION_PREFIX, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

TokenizerJson = dict[str, Any]
"""The content of tokenizer.json."""


def append_pieces(
    document: TokenizerJson, pieces: Mapping[str, float], merges: Sequence[tuple[str, str]] = ()
) -> TokenizerJson:
    """Return tokenizer.json with new pieces after all others, and new merges after all others.

    pieces: with their log probabilities, which only a unigram model has a use for; none is below its lowest one, from
    which follows what an unknown letter costs.
    """
    model, names = dict(document["model"]), document_pieces(document)
    piece_names = [names[number] for number in range(len(names))]
    if isinstance(model["vocab"], list):
        old_vocab = model["vocab"]
        low = min(score for _, score in old_vocab)
        # control tokens, which keep their ids if named here
        added = [[name, low] for name in piece_names[len(old_vocab) :]]
        model["vocab"] = [*old_vocab, *added, *([name, max(score, low)] for name, score in pieces.items())]
    else:
        model["vocab"] = {name: number for number, name in enumerate([*piece_names, *pieces])}
    if merges:
        model["merges"] = [*model["merges"], *map(list, merges)]
    return {**document, "model": model}


def control_token_spellable_in_text(document: TokenizerJson) -> str | None:
    """A control token that texts could spell once it is named among the pieces of the model; None: there is none such.

    Byte-pair encoding makes pieces by merges alone; other models look for whole pieces in what a text is split into.
    """
    model, backend = document["model"], tokenizers.Tokenizer.from_str(json.dumps(document))
    if model["type"] not in MODELS_WITHOUT_MERGES and not model.get("ignore_merges"):
        return None
    can_match_inside = model["type"] in ("Unigram", "WordPiece")
    for token in document["added_tokens"]:
        name = token["content"]
        split = (
            [name] if backend.pre_tokenizer is None else [w for w, _ in backend.pre_tokenizer.pre_tokenize_str(name)]
        )
        if token["id"] >= len(model["vocab"]) and any(
            name in word if can_match_inside else name == word for word in split
        ):
            return str(name)
    return None


def is_extension(new: Tokenizer, old: Tokenizer) -> bool:
    """Whether a tokenizer is the old one with more pieces after its own, and only new pieces have new merges."""
    if isinstance(old, CodePoints) or isinstance(new, CodePoints) or new.vocab_size <= old.vocab_size:
        return False
    new_document, old_document = new.document, old.document
    names = document_pieces(old_document)
    if any(new.piece(number) != names[number] for number in range(old.vocab_size)):
        return False
    (new_settings, new_control), (old_settings, old_control) = (
        _split_settings_and_control_tokens(each) for each in (new_document, old_document)
    )
    new_vocab, old_vocab = new_document["model"]["vocab"], old_document["model"]["vocab"]
    has_scores = isinstance(old_vocab, list)
    new_merges, old_merges = new_document["model"].get("merges", []), old_document["model"].get("merges", [])
    merged_pieces = {left + right for left, right in new_merges[len(old_merges) :]}
    return (
        new_settings == old_settings
        and old_control.items() <= new_control.items()
        and new_merges[: len(old_merges)] == old_merges
        and merged_pieces.isdisjoint(names.values())
        and (not has_scores or new_vocab[: len(old_vocab)] == old_vocab)
    )


def _split_settings_and_control_tokens(document: TokenizerJson) -> tuple[TokenizerJson, dict[str, str]]:
    """A tokenizer.json without its pieces and merges, and its control tokens, each spelled out."""
    model = {key: value for key, value in document["model"].items() if key not in ("vocab", "merges")}
    tokens = {each["content"]: json.dumps(each, sort_keys=True) for each in document["added_tokens"]}
    return {**document, "model": model, "added_tokens": []}, tokens


def segment_new_pieces_by_old(new: Tokenizer, old: Tokenizer) -> list[list[int]]:
    """By new piece, in the order of their ids, the ids of the pieces that the old tokenizer has in its place."""
    document = old.document
    backend = tokenizers.Tokenizer.from_str(json.dumps(document))
    control = {each["content"] for each in new.document["added_tokens"]}
    segmentations = []
    for number in range(old.vocab_size, new.vocab_size):
        piece = new.piece(number)
        if piece in control:  # a language: the others; or what it is to the old tokenizer, a text
            segmentations.append(([] if piece in new.tags else [*old.languages.values()]) or old.encode(piece))
        elif isinstance(backend.model, WordPiece):
            segmentations.append(_segment_longest_match(piece, document["model"]["vocab"]))
        else:  # beneath what is done to texts, for a piece need not begin one
            segmentations.append([token.id for token in backend.model.tokenize(piece)])
    return [ids or [UNK_ID] for ids in segmentations]


def _segment_longest_match(piece: str, vocab: Mapping[str, int]) -> list[int]:
    """The longest pieces, from the left, that spell a piece of WordPiece, which may continue a word; none, if a letter
    of it is unknown."""
    mark = CONTINUATION_PREFIX if piece.startswith(CONTINUATION_PREFIX) else ""
    rest, ids = piece.removeprefix(mark), []
    while rest:
        size = next((size for size in range(len(rest), 0, -1) if mark + rest[:size] in vocab), None)
        if size is None:
            return []
        ids.append(vocab[mark + rest[:size]])
        rest, mark = rest[size:], CONTINUATION_PREFIX
    return ids
