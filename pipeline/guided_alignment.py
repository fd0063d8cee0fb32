"""Settings that do not go together with `training.guided_alignment`, which trains a head to align."""

from tfm.model.config import ModelConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training_config import TrainingConfig


def guided_alignment_problem(training: TrainingConfig, model: ModelConfig) -> str | None:
    """Why no head can be trained to align; None if one can, or is not to be.

    Args:
        training: the [training] part of a recipe.
        model: the [model] part of a recipe.
    """
    guide = training.guided_alignment
    if guide is None:
        return None
    if model.architecture != "transformer" or not TASK_SPECS[model.task].translates:
        return (
            "training.guided_alignment trains a head of a Transformer's cross-attention: it is for "
            f'model.architecture = "transformer" and model.task = "translation", not "{model.architecture}" and '
            f'"{model.task}": remove it'
        )
    if guide.layer is not None and guide.layer > model.decoder.layers:
        return f"training.guided_alignment.layer = {guide.layer}: the decoder has layers 1 to {model.decoder.layers}"
    conflicts = {
        "model.canine": (model.canine is not None, "its encoder has no row for each piece of the source"),
        "model.vision": (model.vision is not None, "an image has no words"),
        "model.languages": (model.languages != "source", "tokens of languages move the pieces"),
        'training.layout = "flat"': (training.layout == "flat", "its kernels keep no attention weights"),
        "training.recompute": (training.recompute, "a layer that is computed again keeps no attention weights"),
        "training.shard": (training.shard != "none", "a gathered layer gives its output alone"),
        "training.bpe_dropout": (training.bpe_dropout is not None, "links are between the pieces of the dataset"),
        "training.unigram_alpha": (training.unigram_alpha is not None, "links are between the pieces of the dataset"),
        "training.lora": (training.lora is not None, "the head itself would not be trained"),
    }
    for key, (is_set, reason) in conflicts.items():
        if is_set:
            return f"training.guided_alignment: {key} does not go with it, because {reason}: remove one of them"
    return None
