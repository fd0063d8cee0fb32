"""The values of config.json and of a tokenizer's settings, checked one by one before any of them is computed with."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError

JsonObject = Mapping[str, Any]
ValueCheck = Callable[[object], str | None]
"""Check of a value: the kind that it should have and has not; None if it is right."""
MAX_DIMENSION_SIZE = 2**20
MAX_TEXT_TOKENS = 2**17
"""The longest text of a model, as `model.max_length` has it, and a few positions more that are no text's."""


def whole_number_check(low: int, high: int) -> ValueCheck:
    """Return the check of a whole number from `low` to `high`."""
    return lambda value: None if _is_integer(value) and low <= value <= high else f"a whole number from {low} to {high}"  # type: ignore[operator]


def number_check(low: float, high: float) -> ValueCheck:
    """Return the check of a finite number from `low` to `high`."""

    def check(value: object) -> str | None:
        is_number = (_is_integer(value) or isinstance(value, float)) and low <= value <= high  # type: ignore[operator]
        return None if is_number else f"a number from {low:g} to {high:g}"

    return check


def type_check(expected_type: type, type_description: str) -> ValueCheck:
    """Return the check of a value of one class."""
    return lambda value: None if isinstance(value, expected_type) else type_description


def optional_check(check: ValueCheck) -> ValueCheck:
    """Return the check of a value that may be null."""
    return lambda value: None if value is None else check(value)


def _token_problem(value: object) -> str | None:
    spelling = value.get("content") if isinstance(value, Mapping) else value
    return None if isinstance(spelling, str) and spelling else "a token: text, or an object with its content"


def _name_mapping_problem(value: object) -> str | None:
    is_named = isinstance(value, Mapping) and all(isinstance(name, str) or _is_integer(name) for name in value.values())
    return None if is_named else "an object of numbers and names"


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checks_by_key(keys: Iterable[str], check: ValueCheck) -> dict[str, ValueCheck]:
    return dict.fromkeys(keys, check)


TEXT_CHECK, BOOLEAN_CHECK, OBJECT_CHECK = (
    type_check(str, "text"),
    type_check(bool, "true or false"),
    type_check(dict, "an object"),
)
SIZE_CHECK, RATE_CHECK = whole_number_check(1, MAX_DIMENSION_SIZE), number_check(0, 1)
CONFIG_CHECKS: dict[str, ValueCheck] = {
    **_checks_by_key(("d_model", "hidden_size", "n_embd"), SIZE_CHECK),
    **_checks_by_key(("encoder_ffn_dim", "decoder_ffn_dim", "intermediate_size"), SIZE_CHECK),
    **_checks_by_key(
        ("encoder_attention_heads", "decoder_attention_heads", "num_attention_heads", "n_head"), SIZE_CHECK
    ),
    **_checks_by_key(("encoder_layers", "decoder_layers", "num_hidden_layers", "n_layer"), whole_number_check(1, 1000)),
    **_checks_by_key(("n_inner", "num_key_value_heads", "head_dim"), optional_check(SIZE_CHECK)),
    **_checks_by_key(
        ("max_position_embeddings", "n_positions"), whole_number_check(1, MAX_TEXT_TOKENS + MAX_DIMENSION_SIZE)
    ),
    **_checks_by_key(("vocab_size", "decoder_vocab_size"), optional_check(whole_number_check(1, 2**31))),
    **_checks_by_key(("dropout", "activation_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"), RATE_CHECK),
    **_checks_by_key(("hidden_dropout_prob", "attention_probs_dropout_prob"), RATE_CHECK),
    "attention_dropout": optional_check(RATE_CHECK),
    **_checks_by_key(("layer_norm_epsilon", "rms_norm_eps", "layer_norm_eps"), number_check(0, 1)),
    "rope_theta": optional_check(number_check(1, 1e30)),
    **_checks_by_key(("activation_function", "hidden_act", "model_type"), TEXT_CHECK),
    **_checks_by_key(("scale_embedding", "is_encoder_decoder", "share_encoder_decoder_embeddings"), BOOLEAN_CHECK),
    **_checks_by_key(("attention_bias", "mlp_bias"), optional_check(BOOLEAN_CHECK)),
    **_checks_by_key(("rope_parameters", "rope_scaling"), optional_check(OBJECT_CHECK)),
    "id2label": optional_check(_name_mapping_problem),
    "tfm": OBJECT_CHECK,
}
ROTARY_CHECKS: dict[str, ValueCheck] = {
    "rope_theta": number_check(1, 1e30),
    "factor": number_check(1, 1e6),
    **_checks_by_key(("low_freq_factor", "high_freq_factor"), number_check(0, 1e6)),
    "original_max_position_embeddings": whole_number_check(1, 2**31),
    **_checks_by_key(("rope_type", "type"), TEXT_CHECK),
}
TFM_CHECKS: dict[str, ValueCheck] = {
    "task": TEXT_CHECK,
    "block": optional_check(whole_number_check(1, 2**31)),
    **_checks_by_key(("begin_in_position", "hidden"), whole_number_check(0, 2**31)),
}
"""The object `tfm` in config.json, which `tfm export` writes."""
TOKENIZER_CHECKS: dict[str, ValueCheck] = {
    **_checks_by_key(
        ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token"), optional_check(_token_problem)
    ),
    **_checks_by_key(("tokenizer_class", "language_codes"), optional_check(TEXT_CHECK)),
    **_checks_by_key(
        ("legacy_behaviour", "do_basic_tokenize", "tokenize_chinese_chars"), optional_check(BOOLEAN_CHECK)
    ),
    **_checks_by_key(("strip_accents", "do_lower_case", "add_prefix_space"), optional_check(BOOLEAN_CHECK)),
}


def check_values(settings: JsonObject, checks: Mapping[str, ValueCheck], file: Path, key_prefix: str = "") -> None:
    """Raise DataError for the first value that is none of its key's; keys without a check are not read.

    Args:
        settings: the object.
        checks: by key what its value has to be.
        file: where the object stands.
        key_prefix: what a message puts before a key: the keys above it.
    """
    for key, check in checks.items():
        if key in settings and (problem := check(settings[key])) is not None:
            raise DataError(f"{key_prefix}{key} = {_format_value(settings[key])} is not {problem}", file=file)


def check_config(settings: JsonObject, file: Path) -> None:
    """Raise DataError, which names key and value, for a value of config.json that cannot be one of a model."""
    check_values(settings, CONFIG_CHECKS, file)
    check_values(settings.get("tfm", {}), TFM_CHECKS, file, "tfm.")
    for key in ("rope_parameters", "rope_scaling"):
        check_values(settings.get(key) or {}, ROTARY_CHECKS, file, f"{key}.")


def check_token_ids(settings: JsonObject, size: int, file: Path) -> None:
    """Check the ids of tokens; null is none.

    Args:
        settings: of the file.
        size: the number of pieces of the vocabulary.
        file: to name in the message.

    Raises:
        DataError: an id is not that of a piece.
    """
    for key, value in settings.items():
        if not key.endswith("_token_id") or value is None:
            continue
        ids = value if isinstance(value, list) and value and key in ("eos_token_id", "forced_eos_token_id") else [value]
        if not all(_is_integer(each) and 0 <= each < size for each in ids):
            problem = f"{key:.80} = {_format_value(value)} is not the id of a piece: these are 0 to {size - 1}"
            raise DataError(problem, file=file)


def _format_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value and math.log10(abs(value)) > 40:
        return f"a number of {int(math.log10(abs(value))) + 1} digits"
    return f"{json.dumps(value, ensure_ascii=False):.60}"
