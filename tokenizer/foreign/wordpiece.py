"""BERT's vocab.txt, a piece a line, as tokenizer.json: `##` continues a word."""

from collections.abc import Mapping, Sequence
from typing import Any

CONTROL_KEYS = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
BERT_CONTROL_TOKENS = dict(zip(CONTROL_KEYS, ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"), strict=True))
"""Default names of control tokens."""


def build_wordpiece_json(lines: Sequence[str], tokenizer_config: Mapping[str, Any]) -> dict[str, Any]:
    """tokenizer.json of the lines of a vocab.txt. tokenizer_config: of `bert_components`, names of control tokens."""
    vocab = {piece: number for number, piece in enumerate(lines)}
    unknown = tokenizer_config.get("unk_token", BERT_CONTROL_TOKENS["unk_token"])
    model = {"type": "WordPiece", "unk_token": unknown, "vocab": vocab}
    model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return wrap_in_tokenizer_json(model, BERT_CONTROL_TOKENS | dict(tokenizer_config)) | bert_components(
        tokenizer_config
    )


def wrap_in_tokenizer_json(model: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> dict[str, Any]:
    """tokenizer.json of a model and its control tokens, those of `CONTROL_KEYS` that it has."""
    vocab = model["vocab"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    control = dict.fromkeys(
        tokenizer_config[key] for key in (*CONTROL_KEYS, "bos_token", "eos_token") if tokenizer_config.get(key) in vocab
    )
    added_tokens = [{"id": vocab[piece], "content": piece, **plain} for piece in control]
    absent_parts: dict[str, Any] = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor"))
    return {**absent_parts, "version": "1.0", "model": model, "added_tokens": added_tokens}


def bert_components(tokenizer_config: Mapping[str, Any]) -> dict[str, Any]:
    """The steps of BERT before a text is split, and after pieces are joined, by its settings in tokenizer_config.json.

    Raises ValueError if it would do neither.
    """
    if not tokenizer_config.get("do_basic_tokenize", True):
        raise ValueError("do_basic_tokenize = false is not supported")
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": tokenizer_config.get("tokenize_chinese_chars", True),
            "strip_accents": tokenizer_config.get("strip_accents"),
            "lowercase": tokenizer_config.get("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def has_upper_case(pieces: Sequence[str]) -> bool:
    """Whether pieces of text have letters in upper case, so that texts are not to be lower-cased."""
    return any(piece != piece.lower() for piece in pieces if (piece[:1], piece[-1:]) not in (("[", "]"), ("<", ">")))
