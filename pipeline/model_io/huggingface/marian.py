"""Post-norm encoder-decoders as `MarianMTModel`.

Marian begins a target with a vector of zeros (so CTranslate2 reads it): a piece more, the last, has that vector and is
never predicted, and the vector of our begin token is added to the position where only it can stand, the first one of
the decoder.
"""

from functools import partial

import torch

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import (
    HuggingFaceClass,
    JsonObject,
    StateDict,
    tfm_import_settings,
)
from tfm.pipeline.model_io.huggingface.encoder_decoders import (
    EMBEDDING_WEIGHTS,
    FINAL_LOGITS_BIAS,
    SHARED_EMBEDDING,
    add_position_weights,
    export_settings,
    list_weights,
    read_config,
    supported_encoder_decoder,
    untie_embeddings,
)
from tfm.tokenizer.special import BOS_ID, PAD_ID

NEVER_PREDICTED_LOGIT = -1e4
"""A logit whose probability is 0 in every precision."""
BEGIN_PIECE_KEY = "begin_in_position"
"""The key in config.json for the piece whose vector is part of the decoder's first position."""


def finish_marian_export(config: ModelConfig, state_dict: StateDict) -> StateDict:
    """Convert the weights that the table gives to Marian, with the piece that a target begins with."""
    state_dict = add_position_weights(config, state_dict)
    target_table = next(name for name in ("model.decoder.embed_tokens.weight", SHARED_EMBEDDING) if name in state_dict)
    scale = config.encoder.dim**0.5 if config.scale_embedding else 1.0
    state_dict["model.decoder.embed_positions.weight"][0] += state_dict[target_table][BOS_ID] * scale
    for name in {*EMBEDDING_WEIGHTS} & {*state_dict}:
        state_dict[name] = torch.cat([state_dict[name], torch.zeros(1, config.encoder.dim)])
    bias = state_dict.get(FINAL_LOGITS_BIAS, torch.zeros(1, len(state_dict[SHARED_EMBEDDING]) - 1))
    return state_dict | {FINAL_LOGITS_BIAS: torch.cat([bias, torch.full((1, 1), NEVER_PREDICTED_LOGIT)], dim=1)}


def add_never_predicted_piece(settings: JsonObject, state_dict: StateDict) -> tuple[JsonObject, StateDict]:
    """config.json and the weights with one more piece, which is never predicted, behind all that a tokenizer names:
    CTranslate2's converter takes the last row of a Marian away, as no piece of its vocabulary is that one."""
    tables = {
        name: torch.nn.functional.pad(state_dict[name], (0, 0, 0, 1))
        for name in EMBEDDING_WEIGHTS
        if name in state_dict
    }
    bias = torch.nn.functional.pad(state_dict[FINAL_LOGITS_BIAS], (0, 1), value=NEVER_PREDICTED_LOGIT)
    sizes = {key: settings[key] + 1 for key in ("vocab_size", "decoder_vocab_size")}
    return settings | sizes, state_dict | tables | {FINAL_LOGITS_BIAS: bias}


def strip_begin_piece(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Prepare the weights of an import, each table of pieces by itself. A Marian that tfm wrote begins with a piece
    that has a vector of zeros and no name: it is taken away, and the begin token's vector from the first position."""
    state_dict = untie_embeddings(state_dict)
    begin = settings.get("tfm", {}).get(BEGIN_PIECE_KEY)
    if begin is None:
        return state_dict
    name = "model.decoder.embed_positions.weight"
    scale = settings["d_model"] ** 0.5 if settings["scale_embedding"] else 1.0
    state_dict[name] = state_dict[name].clone()
    state_dict[name][0] -= state_dict["model.decoder.embed_tokens.weight"][begin] * scale
    num_names = (
        len(state_dict[EMBEDDING_WEIGHTS[-1]]) - 1
    )  # the begin piece comes after them, with at most one more piece
    num_names = min(num_names, max(num_names - 1, settings["decoder_start_token_id"]))
    return (
        state_dict
        | {each: state_dict[each][:num_names] for each in EMBEDDING_WEIGHTS}
        | {FINAL_LOGITS_BIAS: state_dict[FINAL_LOGITS_BIAS][:, :num_names]}
    )


MARIAN = HuggingFaceClass(
    name="MarianMTModel",
    model_type="marian",
    pipeline="translation",
    supports=supported_encoder_decoder("post"),
    settings=lambda config, size: (
        export_settings(config, size + 1)
        | {
            "decoder_vocab_size": size + 1,
            "share_encoder_decoder_embeddings": True,
            "pad_token_id": PAD_ID,
            "decoder_start_token_id": size,
            "tfm": {**tfm_import_settings(config)["tfm"], BEGIN_PIECE_KEY: BOS_ID},
        }
    ),
    weights=list_weights,
    finalize_export=finish_marian_export,
    read=partial(read_config, norm_placement="post"),
    standardize_state_dict=strip_begin_piece,
    tables=EMBEDDING_WEIGHTS,
    bias=FINAL_LOGITS_BIAS,
)
