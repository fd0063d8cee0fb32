"""Incompatible values of [model], each with the reason.

A check is a function of the config that returns an error message for the author of the recipe, or None.
`CONFIG_CHECKS` lists them in order; a new one is a function in a file of this folder and a row here.
"""

from collections.abc import Callable

from tfm.model.config_checks import architectures, attention, convolution, embeddings, positions, sources
from tfm.model.config_fields import ModelFields

ConfigCheck = Callable[[ModelFields], str | None]

CONFIG_CHECKS: tuple[ConfigCheck, ...] = (
    architectures.task_problem,
    architectures.block_task_problem,
    architectures.block_length_problem,
    architectures.begin_token_problem,
    architectures.head_transform_problem,
    sources.vision_task_problem,
    sources.vision_tie_problem,
    sources.image_source_vectors_problem,
    sources.image_reversal_problem,
    sources.vision_pooling_problem,
    sources.num_layers_problem,
    sources.canine_task_problem,
    sources.canine_vision_problem,
    sources.canine_table_problem,
    sources.canine_hashes_problem,
    sources.canine_order_problem,
    sources.canine_with_other_mixing_problem,
    architectures.languages_problem,
    architectures.stack_mixing_problem,
    architectures.recurrent_norm_problem,
    architectures.recurrent_stack_problem,
    architectures.recurrent_directions_problem,
    architectures.recurrent_positions_problem,
    architectures.residual_depth_problem,
    attention.projections_width_problem,
    attention.values_projections_problem,
    attention.values_width_problem,
    attention.output_width_problem,
    attention.mask_mixing_problem,
    architectures.word_vectors_adaptive_problem,
    embeddings.pretrained_vectors_problem,
    embeddings.shared_vectors_problem,
    embeddings.vectors_width_problem,
    embeddings.frozen_vectors_problem,
    embeddings.frozen_output_problem,
    positions.positions_score_problem,
    positions.rotary_dim_problem,
    positions.rotary_table_problem,
    positions.joined_positions_problem,
    positions.positions_in_attention_problem,
    positions.sinusoidal_dim_problem,
    positions.fairseq_dim_problem,
    positions.attention_positions_problem,
    positions.window_problem,
    convolution.convolution_table_problem,
    convolution.convolution_width_problem,
    convolution.convolution_dilation_problem,
    embeddings.heads_dim_problem,
    embeddings.tied_width_problem,
    embeddings.adaptive_task_problem,
    embeddings.adaptive_tie_problem,
    embeddings.adaptive_bias_problem,
    embeddings.adaptive_width_problem,
)
"""All checks in order; the first problem is the one that is reported."""


def first_config_problem(config: ModelFields) -> str | None:
    """Return the message of the first check that finds a problem; None if all values go together."""
    return next((problem for check in CONFIG_CHECKS if (problem := check(config)) is not None), None)
