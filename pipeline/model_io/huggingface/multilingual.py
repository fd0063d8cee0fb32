"""Encoder-decoders of many languages: `M2M100ForConditionalGeneration` (also NLLB), `MBartForConditionalGeneration`.

Both are pre-norm. mBART norms its embeddings as well, and its position table begins with two rows that are not used;
M2M100 has fairseq's sinusoids. The tokenizer decides the tokens around a source, and before a target: that of mBART has
the language behind a source, those of mBART-50, M2M100 and NLLB before it (`model.languages`).
"""

from dataclasses import replace

import torch

from tfm.model.transformer.language_prefix import LANGUAGE_PREFIX_MODELS
from tfm.pipeline.model_io.huggingface.classes import JsonObject, StateDict, require_settings
from tfm.pipeline.model_io.huggingface.encoder_decoders import (
    PEGASUS,
    STACK_PREFIX_BY_EMBEDDING,
    read_common_config,
    untie_embeddings,
)
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot
from tfm.pipeline.model_io.huggingface.supported import SupportedConfig
from tfm.tokenizer.languages import is_language_token

POSITION_OFFSET = 2
"""mBART's position 0 stands in row 2."""
LANGUAGE_MARKING_KEY = "languages"
"""The key in the settings for the way in which the model is told languages, which only its tokenizer knows."""
LANGUAGE_POSITION_BY_TOKENIZER = {
    "M2M100Tokenizer": "before",
    "NllbTokenizer": "before",
    "MBart50Tokenizer": "before",
    "MBartTokenizer": "behind",
}
"""The place of a source's language, whatever the files say: those of NLLB are older."""
NO_SUPPORTED_CONFIG = SupportedConfig({"architecture": ()}, {}, ())


def detect_language_position(folder: Snapshot, settings: JsonObject) -> JsonObject:
    """Detect how the model in a folder is told languages, and the token that begins a target.

    A target here begins with its language, and there with a token that begins no text. Raises ValueError if the
    model is told languages in another way.
    """
    end, begin = settings["eos_token_id"], settings.get("decoder_start_token_id")
    position = _source_language_position(folder)
    if position == "before" and begin in (None, end):
        marking = "m2m100"
    elif position == "behind" and begin != end:
        marking = "mbart"
    else:
        raise ValueError(
            f"its tokenizer has the language {position} a source, and decoder_start_token_id = {begin}: there are "
            "models with it before and targets that begin with </s>, and models with it after and targets that begin "
            "with their language"
        )
    return {LANGUAGE_MARKING_KEY: marking, "decoder_start_token_id": settings.get("bos_token_id", 0)}


def _source_language_position(folder: Snapshot) -> str:
    """The place of a source's language, by the tokenizer's class or else its file.

    Raises ValueError if the tokenizer puts no language around a source.
    """
    tokenizer_config = folder.read_document("tokenizer_config.json")
    name = str(tokenizer_config.get("tokenizer_class")).removesuffix("Fast")
    if name in LANGUAGE_POSITION_BY_TOKENIZER:
        return "behind" if tokenizer_config.get("legacy_behaviour") else LANGUAGE_POSITION_BY_TOKENIZER[name]
    step = folder.read_document("tokenizer.json").get("post_processor") or {}
    parts = [part["SpecialToken"]["id"] if "SpecialToken" in part else "" for part in step.get("single", [])]
    if len(parts) == 3 and parts[1] == "" and is_language_token(parts[0]):
        return "before"
    if len(parts) == 3 and parts[0] == "" and is_language_token(parts[2]):
        return "behind"
    raise ValueError("its tokenizer puts no language, such as deu_Latn, before or behind a source")


def read_m2m100_config(settings: JsonObject, state_dict: StateDict) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights."""
    require_settings(settings, pad_token_id=1, is_encoder_decoder=True)
    length = settings["max_position_embeddings"]
    specific_keys = {"positions": "fairseq", "max_length": length, LANGUAGE_MARKING_KEY: settings[LANGUAGE_MARKING_KEY]}
    return {**read_common_config(settings, state_dict), "norm": "pre", **specific_keys}


def read_mbart_config(settings: JsonObject, state_dict: StateDict) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights of mBART."""
    require_settings(
        settings, is_encoder_decoder=True, normalize_before=True, normalize_embedding=True, add_final_layer_norm=True
    )
    length = _max_target_length(settings)
    specific_keys = {
        "positions": "learned",
        "max_length": length,
        LANGUAGE_MARKING_KEY: settings[LANGUAGE_MARKING_KEY],
        "embedding_norm": True,
    }
    return {**read_common_config(settings, state_dict), "norm": "pre", **specific_keys}


def _max_target_length(settings: JsonObject) -> int:
    """The longest target with its begin token; further tokens that the decoder reads before it have positions too."""
    return (
        int(settings["max_position_embeddings"])
        - LANGUAGE_PREFIX_MODELS[settings[LANGUAGE_MARKING_KEY]].prefix_length
        + 1
    )


def standardize_m2m100_weights(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Prepare the weights of M2M100, each table by itself; sinusoids follow from config.json."""
    state_dict = untie_embeddings(state_dict)
    return {name: each for name, each in state_dict.items() if not name.endswith("embed_positions.weights")}


def standardize_mbart_weights(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Prepare the weights of mBART, each table by itself, and of the position tables the rows that are used."""
    state_dict, longest = untie_embeddings(state_dict), settings["max_position_embeddings"]
    rows = dict(zip(STACK_PREFIX_BY_EMBEDDING.values(), (_max_target_length(settings), longest), strict=True))
    for prefix, count in rows.items():
        name = f"{prefix}.embed_positions.weight"
        if len(state_dict[name]) != longest + POSITION_OFFSET:
            raise ValueError(f"{name} has {len(state_dict[name])} rows, not {longest + POSITION_OFFSET}")
        state_dict[name] = torch.clone(state_dict[name][POSITION_OFFSET : POSITION_OFFSET + count])
    return state_dict


def _refuse_export(*arguments: object) -> JsonObject:
    raise AssertionError("no model of ours is exported as one of these")


M2M100 = replace(
    PEGASUS,
    name="M2M100ForConditionalGeneration",
    model_type="m2m_100",
    supports=NO_SUPPORTED_CONFIG,
    settings=_refuse_export,
    finalize_export=_refuse_export,
    tokenizer_overrides=detect_language_position,
    standardize_state_dict=standardize_m2m100_weights,
    read=read_m2m100_config,
)
MBART = replace(
    M2M100,
    name="MBartForConditionalGeneration",
    model_type="mbart",
    standardize_state_dict=standardize_mbart_weights,
    read=read_mbart_config,
)
MULTILINGUAL_CLASSES = (M2M100, MBART)
"""The classes that are imported, and never exported."""
