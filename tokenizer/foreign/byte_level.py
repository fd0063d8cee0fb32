"""GPT-2's vocab.json and merges.txt as tokenizer.json: byte-pair encoding of the bytes of a text."""

from collections.abc import Mapping, Sequence
from typing import Any

from tfm.tokenizer.foreign.wordpiece import CONTROL_KEYS, wrap_in_tokenizer_json

ROBERTA_CONTROL_TOKENS = dict(zip(CONTROL_KEYS, ("<unk>", "</s>", "<pad>", "<s>", "<mask>"), strict=True))
"""Default names of control tokens."""
END_OF_TEXT = "<|endoftext|>"


def build_byte_level_json(
    vocab: Mapping[str, int], lines: Sequence[str], tokenizer_config: Mapping[str, Any], control: Mapping[str, Any]
) -> dict[str, Any]:
    """tokenizer.json of a vocabulary and its merges.

    Args:
        vocab: what vocab.json has.
        lines: those of merges.txt.
        tokenizer_config: see `byte_level_components`.
        control: names of control tokens, by the keys of `CONTROL_KEYS`.
    """
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    model: dict[str, Any] = {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": None, "dropout": None}
    model |= {"continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False}
    return wrap_in_tokenizer_json(model, control) | byte_level_components(tokenizer_config)


def byte_level_components(tokenizer_config: Mapping[str, Any]) -> dict[str, Any]:
    """The steps before a text is split, and after pieces are joined: its bytes, and its words with the space before."""
    step = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": None,
        "pre_tokenizer": {**step, "add_prefix_space": bool(tokenizer_config.get("add_prefix_space", False))},
        "decoder": {**step, "add_prefix_space": True},
    }


def byte_level_alphabet() -> list[str]:
    """The letter that stands for each byte in a piece (Radford et al. 2019): printable ones for themselves, the others
    for those from U+0100 on, in their order."""
    plain = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    substitutes = iter(range(256, 512))
    return [chr(byte if byte in plain else next(substitutes)) for byte in range(256)]
