"""Every check of [model] is in the list, and refuses an example that no other check refuses before it."""

import inspect
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import ValidationError

from tfm.model.config import ModelConfig
from tfm.model.config_checks import architectures, attention, convolution, embeddings, positions, sources
from tfm.model.config_checks.registry import CONFIG_CHECKS, ConfigCheck, first_config_problem
from tfm.model.config_fields import ModelFields

VECTORS = {"source_vectors": "vectors.txt"}
NARROW = {"dim": 1, "heads": 1}
SEES = {"vision": {}, "tie": "output"}
SPELLS = {"canine": {}, "tie": "output"}
TAILS = {"cutoffs": (100, 1000)}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "task_problem": ({"task": "tagging"}, 'is for "translation" or "span_corruption", not "tagging"'),
    "block_task_problem": ({"block": 9}, 'block is for task = "language_model"'),
    "languages_problem": (
        {**SPELLS, "languages": "mbart"},
        'languages = "mbart" is of an encoder and a decoder that translate text, not of model.canine',
    ),
    "block_length_problem": (
        {"architecture": "decoder_only", "task": "language_model", "block": 9, "max_length": 8},
        "block (9) exceeds max_length (8)",
    ),
    "begin_token_problem": ({"begin_token": True}, 'is for architecture = "encoder_only", not "transformer"'),
    "head_transform_problem": (
        {"head_transform": True},
        'is for task = "masked_language_model", not "translation"',
    ),
    "vision_task_problem": (
        {"architecture": "decoder_only", "vision": {}},
        'architecture = "decoder_only" with task = "translation" does not read images',
    ),
    "vision_tie_problem": ({"vision": {}}, 'tie = "all" shares the embeddings of the source'),
    "image_source_vectors_problem": ({**SEES, **VECTORS}, "source_vectors are of pieces of text"),
    "image_reversal_problem": (
        {"architecture": "recurrent", **SEES, "recurrent": {"reverse_source": True}},
        "recurrent.reverse_source is of an encoder that reads text",
    ),
    "vision_pooling_problem": (
        {"architecture": "encoder_only", "task": "classification", **SEES, "pooling": "first"},
        "would take the upper left corner",
    ),
    "num_layers_problem": ({**SEES, "encoder": {"layers": 0}}, "encoder.layers must be 1 or more, but with"),
    "canine_task_problem": (
        {"architecture": "decoder_only", **SPELLS},
        'architecture = "decoder_only" with task = "translation" does not read characters',
    ),
    "canine_vision_problem": ({**SEES, **SPELLS}, "not both"),
    "canine_table_problem": ({"canine": {}}, 'tie = "all" shares the table of source pieces'),
    "canine_hashes_problem": (
        {**SPELLS, "canine": {"hashes": 7}},
        "canine.hashes (7) must divide the width of embeddings (512)",
    ),
    "canine_order_problem": (
        {"architecture": "recurrent", **SPELLS, "recurrent": {"bidirectional": True}},
        "recurrent.bidirectional is of an encoder that reads step by step",
    ),
    "canine_with_other_mixing_problem": (
        {**SPELLS, "mixing": "convolution"},
        'mixing = "attention", not "convolution"',
    ),
    "stack_mixing_problem": (
        {"architecture": "decoder_only", "decoder": {"mixing": "recurrent"}},
        'model.decoder.mixing is for architecture = "transformer"; with "decoder_only" set model.mixing',
    ),
    "recurrent_directions_problem": (
        {"architecture": "recurrent", "recurrent": {"bidirectional": True}, "encoder": {"dim": 7}},
        "halves encoder.dim, and 7 is odd",
    ),
    "recurrent_positions_problem": (
        {"architecture": "recurrent", **SPELLS, "positions": "learned"},
        "it reads in order",
    ),
    "residual_depth_problem": (
        {"residual": "none", "dropout": {"depth": 0.1}},
        "leaves nothing of a row where dropout.depth = 0.1",
    ),
    "projections_width_problem": (
        {"attention_projections": False, "encoder": {"key_dim": 4}},
        "keeps the width of rows: remove encoder.key_dim = 4",
    ),
    "values_projections_problem": (
        {"attention_projections": False, "values": "keys"},
        'values = "keys" has no effect with attention_projections = false',
    ),
    "values_width_problem": (
        {"values": "keys", "decoder": {"value_dim": 3}},
        "of the decoder, keys are 64 wide, and values 3",
    ),
    "output_width_problem": (
        {"output_projection": False, "decoder": {"value_dim": 3}},
        "decoder.heads * decoder.value_dim is 24, and decoder.dim 512",
    ),
    "mask_mixing_problem": (
        {"mask": "strict", "mixing": "convolution"},
        'mask = "strict" is for self-attention, which mixing = "convolution" replaces',
    ),
    "recurrent_norm_problem": (
        {
            "architecture": "recurrent",
            "recurrent": {"normalization": "batch"},
            "encoder": {"layers": 1},
            "decoder": {"layers": 1},
        },
        "is of what layers after the first read: set decoder.layers to 2 or more",
    ),
    "recurrent_stack_problem": (
        {"architecture": "recurrent", "task": "classification", "pooling": "first"},
        "would use a row that has read only the first piece",
    ),
    "positions_in_attention_problem": (
        {"positions_join": "attention", "encoder": {"key_value_heads": 1}},
        "cuts vectors as wide as rows into the heads",
    ),
    "convolution_table_problem": ({"convolution": {"width": 2}}, 'model.convolution is for mixing = "convolution"'),
    "convolution_width_problem": (
        {"mixing": "convolution", "convolution": {"width": 2}, "window": 3},
        "convolution.width = 2 replaces window = 3",
    ),
    "convolution_dilation_problem": (
        {"mixing": "convolution", "convolution": {"width": 3, "dilation": 5}},
        "layer 6 of the encoder reads rows 3,125 before its own",
    ),
    "word_vectors_adaptive_problem": (
        {"architecture": "cbow", "task": "word_vectors", "adaptive": TAILS},
        "has no adaptive softmax",
    ),
    "pretrained_vectors_problem": ({"architecture": "decoder_only", **VECTORS}, "no separate source embedding"),
    "shared_vectors_problem": ({**VECTORS, "target_vectors": "others.txt"}, "shares one embedding"),
    "vectors_width_problem": ({**VECTORS, "adaptive": TAILS}, "makes rare ones narrower"),
    "frozen_vectors_problem": ({"freeze_vectors": True}, "freeze_vectors needs embeddings that start"),
    "frozen_output_problem": ({**VECTORS, "freeze_vectors": True}, "would freeze the output layer too"),
    "positions_score_problem": ({"positions": "shaw", "score": "dot"}, 'it needs score = "scaled_dot", not "dot"'),
    "rotary_dim_problem": ({"positions": "rotary", "decoder": {"key_dim": 3}}, "heads of the decoder are 3 wide"),
    "rotary_table_problem": ({"rotary": {"base": 500.0}}, 'model.rotary is for positions = "rotary", not "sinusoidal"'),
    "joined_positions_problem": (
        {"positions": "alibi", "positions_join": "concatenate"},
        "needs a vector for each position",
    ),
    "fairseq_dim_problem": (
        {"positions": "fairseq", "decoder": {"dim": 3, "heads": 1}, "tie": "none"},
        "divides by the number of its frequencies less 1: decoder.dim = 4 or more",
    ),
    "sinusoidal_dim_problem": (
        {"mixing": "recurrent", "encoder": NARROW, "decoder": NARROW},
        "splits rows into two halves",
    ),
    "attention_positions_problem": ({"mixing": "convolution", "positions": "alibi"}, "is part of self-attention"),
    "window_problem": ({"mixing": "recurrent", "window": 3}, "has no window (3)"),
    "heads_dim_problem": ({"encoder": {"dim": 12}}, "encoder: heads (8) must divide dim (12)"),
    "tied_width_problem": ({"encoder": {"dim": 64}}, "of different dim needs embedding_dim"),
    "adaptive_task_problem": (
        {"architecture": "encoder_only", "task": "tagging", "adaptive": TAILS},
        "no softmax over many pieces",
    ),
    "adaptive_tie_problem": ({"adaptive": {**TAILS, "inputs": False}}, "needs embeddings of the same clusters"),
    "adaptive_bias_problem": ({"tie": "embeddings", "output_bias": True, "adaptive": TAILS}, "no bias of each piece"),
    "adaptive_width_problem": ({"embedding_dim": 15, "adaptive": TAILS}, "embeddings 15 wide have no width left"),
}


def test_every_check_is_in_the_list_and_has_an_example() -> None:
    written = {
        name
        for module in (architectures, attention, convolution, embeddings, positions, sources)
        for name, each in inspect.getmembers(module, inspect.isfunction)
        if each.__module__ == module.__name__ and not name.startswith("_")
    }
    assert written == {check.__name__ for check in CONFIG_CHECKS} == set(REFUSED)
    assert len(CONFIG_CHECKS) == len(REFUSED)


@pytest.mark.parametrize("check", CONFIG_CHECKS, ids=lambda check: check.__name__)
def test_each_check_refuses_its_example_with_the_reason(check: ConfigCheck) -> None:
    given, reason = REFUSED[check.__name__]
    alone = ModelFields.model_validate(given)
    problem = check(alone)
    assert problem is not None
    assert reason in problem
    assert first_config_problem(alone) == problem
    with pytest.raises(ValidationError) as refused:
        ModelConfig.model_validate(given)
    (error,) = refused.value.errors()
    assert error["msg"] == f"Value error, {problem}"


def test_what_goes_together_is_accepted() -> None:
    assert first_config_problem(ModelConfig()) is None


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_stack_says_no_mixing_that_both_have(side: str) -> None:
    """It would change the recipe and nothing else."""
    both = {"mixing": "convolution", "positions": "none", side: {"mixing": "convolution"}}
    with pytest.raises(ValidationError, match=rf'model\.{side}\.mixing = "convolution" repeats model\.mixing'):
        ModelConfig.model_validate(both)


@pytest.mark.parametrize(("bidirectional", "refused"), [(False, True), (True, False)])
def test_a_first_row_that_read_no_more_than_itself_makes_no_label(bidirectional: bool, refused: bool) -> None:
    given = {"architecture": "recurrent", "task": "classification", "recurrent": {"bidirectional": bidirectional}}
    ModelConfig.model_validate({**given, "pooling": "max"})
    with pytest.raises(ValidationError, match="read only the first piece") if refused else nullcontext():
        ModelConfig.model_validate({**given, "pooling": "first"})
