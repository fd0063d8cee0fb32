"""Values of keys that a config.json leaves out: those of the class there, by which transformers completes it too.

Sizes have none: without them the weights and a default would hardly fit, and the message would name the wrong thing.
"""

from collections.abc import Mapping
from typing import Any

_ENCODER_DECODER: Mapping[str, Any] = {
    "is_encoder_decoder": True,
    "activation_function": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "scale_embedding": False,
    "tie_word_embeddings": True,
}
_ENCODER: Mapping[str, Any] = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "tie_word_embeddings": True,
}
_ROBERTA = {**_ENCODER, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
DEFAULT_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "marian": {**_ENCODER_DECODER, "eos_token_id": 0, "pad_token_id": 58100, "decoder_start_token_id": 58100},
    "pegasus": {**_ENCODER_DECODER, "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0},
    "m2m_100": {
        **_ENCODER_DECODER,
        "activation_function": "relu",
        "attention_dropout": 0.1,
        "scale_embedding": True,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 1,
        "decoder_start_token_id": 2,
    },
    "mbart": {**_ENCODER_DECODER, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1},
    "gpt2": {
        "activation_function": "gelu_new",
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    },
    "llama": {
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "attention_dropout": 0.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "bert": _ENCODER,
    "megatron-bert": _ENCODER,
    "roberta": _ROBERTA,
    "roberta-prelayernorm": _ROBERTA,
}
"""By model_type the keys that are read here and their defaults."""


def complete_settings(settings: Mapping[str, Any], model_type: str) -> dict[str, Any]:
    """Return config.json with the defaults of its class in place of missing keys, but for ids of no piece.

    Args:
        settings: of config.json.
        model_type: of the class.
    """
    num_pieces = settings.get("vocab_size")
    defaults = {
        key: value
        for key, value in DEFAULT_SETTINGS[model_type].items()
        if not (key.endswith("_token_id") and isinstance(num_pieces, int) and value >= num_pieces)
    }
    return defaults | dict(settings)
