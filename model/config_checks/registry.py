"""Incompatible values of [model], each with the reason.

A check is a function of the config that returns an error message for the author of the recipe, or None. `CHECKS` lists
them in order; a new one is a function in a file of this folder and a row here.
"""

from collections.abc import Callable

from tfm.model.config_checks import architectures, embeddings, positions, sources
from tfm.model.config_fields import ModelFields

Check = Callable[[ModelFields], str | None]

CHECKS: tuple[Check, ...] = (
    architectures.task_of_architecture,
    architectures.block_of_language_models,
    architectures.block_within_max_length,
    architectures.begin_token_of_texts,
    architectures.head_transform_of_masked_models,
    sources.vision_of_a_task,
    sources.vision_without_shared_embeddings,
    sources.vision_without_source_vectors,
    sources.vision_reads_at_once,
    sources.vision_pooling,
    sources.layers_of_a_stack,
    sources.canine_of_a_task,
    sources.canine_without_vision,
    sources.canine_has_no_table,
    sources.canine_hashes_divide_the_width,
    sources.check_canine_not_recurrent,
    sources.canine_attends,
    architectures.languages_of_a_translation,
    architectures.recurrent_table,
    architectures.recurrent_directions,
    architectures.recurrent_positions,
    architectures.word_vectors_table,
    architectures.word_vectors_without_clusters,
    architectures.span_corruption_table,
    embeddings.check_vectors_have_embedding,
    embeddings.vectors_of_one_embedding,
    embeddings.vectors_of_one_width,
    embeddings.frozen_vectors_are_given,
    embeddings.frozen_vectors_not_of_the_output,
    positions.score_of_positions,
    positions.rotary_pairs,
    positions.rotary_table,
    positions.concatenated_positions,
    positions.check_dim_at_least_2,
    positions.frequencies_of_fairseq,
    positions.positions_of_self_attention,
    positions.window_of_mixing,
    embeddings.heads_divide_dim,
    embeddings.tied_embeddings_of_one_width,
    embeddings.adaptive_task,
    embeddings.adaptive_tie,
    embeddings.adaptive_bias,
    embeddings.adaptive_widths,
)
"""In this order: where several find something, the first one is told."""


def first_problem(config: ModelFields) -> str | None:
    """Return the message of the first check that finds a problem; None where all values go together."""
    return next((problem for check in CHECKS if (problem := check(config)) is not None), None)
