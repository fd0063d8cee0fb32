"""Check of the tokenizers that go with a model that reads characters, and of the models that go with a tokenizer of
characters.
"""

from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig


def check_character_settings(model: ModelConfig, tokenizer: TokenizerConfig, training: TrainingConfig) -> None:
    """Raise ValueError if the source of a recipe is characters by one of its settings alone.

    A tokenizer brought by `tokenizer.file` or `source_from` is checked when training begins.

    Args:
        model: the [model] part of a recipe.
        tokenizer: the [tokenizer] part.
        training: the [training] part.
    """
    if not tokenizer.shared and tokenizer.target_config.kind == "codepoint":
        raise ValueError(
            'kind = "codepoint" is for the source alone, as no model writes one of all characters of the world: set '
            'tokenizer.target_kind ("bpe", "byte", "char", ...)'
        )
    is_learned = tokenizer.file is None and tokenizer.source_from is None
    if model.canine is None:
        if is_learned and tokenizer.kind == "codepoint":
            raise ValueError(
                'tokenizer.kind = "codepoint" has no table of characters to look up a piece in: it is for models with '
                "[model.canine]"
            )
        return
    if tokenizer.shared:
        raise ValueError("model.canine reads characters and writes something else: tokenizer.shared = false")
    if is_learned and tokenizer.kind != "codepoint":
        raise ValueError(f'model.canine reads characters: tokenizer.kind = "codepoint", not "{tokenizer.kind}"')
    if training.layout == "flat":
        raise ValueError('training.layout = "flat": the shorter sequences of model.canine have no one length')
