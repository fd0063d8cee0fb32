"""Which pieces of a tokenizer from elsewhere begin and end texts, pad them, and stand for what is unknown."""

from collections.abc import Mapping
from typing import Any

from tfm.tokenizer.foreign.renumbered import document_pieces
from tfm.tokenizer.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

KEYS_BY_ROLE = {
    PAD: ("pad_token",),
    UNK: ("unk_token",),
    BOS: ("bos_token", "cls_token"),
    EOS: ("eos_token", "sep_token"),
}
"""By our control token its keys in special_tokens_map.json and tokenizer_config.json, the first one first."""
NAMES_BY_ROLE = {
    PAD: ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>", "<PAD>", "<|padding|>", "<｜▁pad▁｜>"),
    UNK: ("<unk>", "[UNK]", "<|unk|>", "<UNK>"),
    BOS: (
        "<s>", "[CLS]", "<bos>", "[BOS]", "<|startoftext|>", "<|begin_of_text|>", "<cls>", "<BOS_TOKEN>",
        "<｜begin▁of▁sentence｜>",
    ),
    EOS: (
        "</s>", "[SEP]", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>", "<sep>", "<EOS_TOKEN>",
        "<｜end▁of▁sentence｜>",
    ),
}  # fmt: skip
"""Their names in published tokenizers."""


def find_role_ids(
    document: Mapping[str, Any], settings: Mapping[str, str], configured_tokens: Mapping[str, str]
) -> dict[str, int]:
    """The ids there by our control token; a role that no piece has is left out.

    Args:
        document: tokenizer.json, whose model has a type.
        settings: what files beside it say, by their keys; a token that the tokenizer lacks counts as none.
        configured_tokens: by our control token what somebody says, which counts before all else.

    Raises:
        ValueError: a given token is no piece.
    """
    numbers = {piece: number for number, piece in document_pieces(document).items()}
    for role, token in configured_tokens.items():
        if token not in numbers:
            raise ValueError(f"it has no piece {token!r:.80}, which tokenizer.{KEYS_BY_ROLE[role][0]} names")
    prefix_ids, suffix_ids = template_prefix_and_suffix_ids(document)
    ends = {BOS: prefix_ids[-1:], EOS: suffix_ids[:1]}
    role_ids: dict[str, int] = {}
    for role in SPECIAL_TOKENS:
        tokens = [
            configured_tokens.get(role),
            *(_model_unk_tokens(document) if role == UNK else ()),
            *(settings.get(key) for key in KEYS_BY_ROLE[role]),
            *NAMES_BY_ROLE[role],
        ]
        candidates = [numbers[token] for token in tokens if token in numbers] + ends.get(role, [])
        if candidates:
            role_ids[role] = candidates[0]
    return role_ids


def _model_unk_tokens(document: Mapping[str, Any]) -> list[str]:
    """The piece that the model itself gives in place of what it does not know."""
    model = document["model"]
    if isinstance(model["vocab"], list):
        number = model.get("unk_id")
        return [model["vocab"][number][0]] if isinstance(number, int) and 0 <= number < len(model["vocab"]) else []
    return [model["unk_token"]] if isinstance(model.get("unk_token"), str) else []


def template_prefix_and_suffix_ids(document: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """The ids of the tokens that a tokenizer.json puts before and after each text."""
    step = document.get("post_processor") or {}
    steps = step["processors"] if step.get("type") == "Sequence" else [step]
    prefix_ids: list[Any] = []
    suffix_ids: list[Any] = []
    for processor in steps:
        if processor.get("type") in ("BertProcessing", "RobertaProcessing"):
            prefix_ids, suffix_ids = [processor["cls"][1]], [processor["sep"][1]]
        elif processor.get("type") == "TemplateProcessing":
            token_names = [
                part["SpecialToken"]["id"] if "SpecialToken" in part else None for part in processor["single"]
            ]
            ids = [processor["special_tokens"][name]["ids"] if name is not None else [None] for name in token_names]
            flat = [number for group in ids for number in group]
            prefix_ids, suffix_ids = flat[: flat.index(None)], flat[flat.index(None) + 1 :]
    return prefix_ids, suffix_ids
