"""The model that a training starts from: checks that it fits the dataset, and the settings that a recipe takes from
it.

Two models are the same network, and all weights of one are of use to the other, where they learned the same task or
have the same architecture, unless that has a head for each task (encoder_only). In all other cases the encoder alone
is of use: that of a model with an encoder alone, or of an encoder-decoder Transformer.
"""

from pathlib import Path

from pydantic import ValidationError

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import TOKENIZER_FOLDER
from tfm.data.errors import validation_problem
from tfm.data.image_config import IMAGES_FILE, ImagesConfig
from tfm.data.json_documents import read_json
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.artifacts.canonical_json import flatten_keys
from tfm.pipeline.artifacts.compatibility import (
    both_have_images,
    check_image_shape,
    check_image_size,
    check_same_source_tokenizer,
    check_same_tokenizer,
)
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.training_config import LoraConfig
from tfm.tokenizer.growth.extension import is_extension

KEYS_NOT_INHERITED = ("task", "dropout", "source_vectors", "target_vectors", "freeze_vectors")
"""Keys of [model] that are no shape: they are the recipe's, or have their default."""
TASK_SPECIFIC_KEYS = ("block", "pooling", "head_transform", "word_vectors", "span_corruption")
"""Keys of which a model of another task tells nothing."""


def loads_all_weights(pretrained: ModelConfig, model: ModelConfig) -> bool:
    """Return whether all weights of a given model are of use; of others the encoder is, without the head."""
    if pretrained.task == model.task:
        return True
    return pretrained.architecture == model.architecture and pretrained.only_stack == model.only_stack != "encoder"


def encoder_config(pretrained: ModelConfig) -> ModelConfig:
    """The config of an encoder-decoder Transformer's encoder, as that of a model with an encoder alone."""
    default_values = {name: ModelConfig.model_fields[name].default for name in ("tie", "languages")}
    return pretrained.model_copy(update={"architecture": "encoder_only", "decoder": StackConfig(), **default_values})


def config_from_pretrained(pretrained: Manifest, model: ModelConfig) -> ModelConfig:
    """The config of a model that starts from another, which was verified: keys that the recipe names, else its.

    Raises RecipeError if the recipe names another shape, or no task where the other model learned another.
    """
    pretrained_model = read_model_config(pretrained)
    if pretrained_model.task != model.task and "task" not in model.model_fields_set:
        raise RecipeError(
            f"{pretrained.path} learned {pretrained_model.task}: set model.task, to that or to what it is to learn now"
        )
    own_keys = {*KEYS_NOT_INHERITED, *(TASK_SPECIFIC_KEYS if pretrained_model.task != model.task else ())}
    if (pretrained_model.architecture, model.architecture) == ("transformer", "encoder_only"):
        pretrained_model, own_keys = encoder_config(pretrained_model), {*own_keys, "decoder", "tie"}
    may_differ = {*own_keys, *TASK_SPECIFIC_KEYS, *(() if pretrained_model.positions == "learned" else ("max_length",))}
    pretrained_keys = dict(flatten_keys(pretrained_model.model_dump()))
    for key, value in flatten_keys(model.model_dump(exclude_unset=True)):
        if key.partition(".")[0] not in may_differ and (key not in pretrained_keys or pretrained_keys[key] != value):
            raise RecipeError(
                f"model.{key} = {value!r} is not that of {pretrained.path}, from which training starts "
                f"({pretrained_keys.get(key, 'it has none')!r}): remove it, and the value of that model is used"
            )
    own_keys |= may_differ & model.model_fields_set
    values = {
        **pretrained_model.model_dump(),
        **{key: value for key, value in model.model_dump().items() if key in own_keys},
    }
    try:
        return ModelConfig.model_validate(values)
    except ValidationError as error:
        raise RecipeError(f"with the shape of {pretrained.path}: {error.errors()[0]['msg']}") from error


def check_starting_model(init_from: str, model: ModelConfig, images: ImagesConfig | None) -> None:
    """Check of a model to start from what can be known without a dataset.

    Args:
        init_from: its folder, or that of its run.
        model: the [model] part of a recipe.
        images: the [data.images] part; None for texts.

    Raises:
        DataError: there is no such model, or it reads images of another shape.
        RecipeError: the recipe's model has another shape.
    """
    first = open_artifact(resolve_model_folder(Path(init_from)), "train")
    config_from_pretrained(first, model)
    if images is not None and IMAGES_FILE in first.files:
        from tfm.data.images.decoding import ImageSize  # here, as it needs Pillow

        shape = ImageSize(images.height, images.width, 3 if images.colour else 1)
        check_image_size(first, shape, "those of the recipe", "set")


def check_pretrained_fits(
    pretrained: Manifest, model: ModelConfig, dataset: Manifest, lora: LoraConfig | None = None
) -> None:
    """Check that a model to start from reads by the dataset's tokenizer, or that the dataset's is the model's own with
    more pieces.

    Images may have other means and deviations, which `training.image_statistics` is about, but no other shape.

    Args:
        pretrained: the manifest of the model to start from, verified.
        model: the [model] part of a recipe.
        dataset: the manifest of the dataset, verified.
        lora: the [training.lora] part of a recipe; None for none.

    Raises:
        DataError: the tokenizers differ.
        RecipeError: the tokenizer has more pieces, and the model cannot have more.
    """
    pretrained_model = read_model_config(pretrained)
    all_weights = loads_all_weights(pretrained_model, model)
    check_image_shape(pretrained, dataset)
    if not all_weights and model.vision is not None:
        return
    try:
        if all_weights:
            check_same_tokenizer(pretrained, dataset)
        else:
            check_same_source_tokenizer(pretrained, dataset)
    except DataError:
        if not has_extended_vocab(pretrained, dataset, both_sides=all_weights):
            raise
        if pretrained_model.has_adaptive_tails:
            raise RecipeError(
                f"{pretrained.path} has an adaptive softmax, with clusters in the order of its pieces: it cannot "
                "get new pieces (tokenizer.grow)"
            ) from None
        if lora is not None:
            raise RecipeError(
                "training.lora leaves embeddings as they are, so that those of new pieces (tokenizer.grow) would never "
                "be learned: train all weights"
            ) from None


def keeps_image_statistics(pretrained: Manifest, dataset: Manifest, setting: str) -> bool:
    """Return whether images are normalized by the means and deviations of the model to start from.

    Args:
        pretrained: the manifest of the model to start from.
        dataset: the manifest of the dataset.
        setting: training.image_statistics.

    Raises:
        RecipeError: the setting is not the default, and there are no images.
    """
    has_images = both_have_images(pretrained, dataset)
    if setting != "model" and not has_images:
        raise RecipeError(
            f'training.image_statistics = "{setting}" is for models of images, and {pretrained.path} reads none, '
            "or the dataset has none: remove it"
        )
    return has_images and setting == "model"


def has_extended_vocab(pretrained: Manifest, dataset: Manifest, *, both_sides: bool) -> bool:
    """Return whether a dataset's tokenizers are those of a model, at least one of them with more pieces.

    Args:
        pretrained: the manifest of the model.
        dataset: the manifest of the dataset.
        both_sides: whether both sides count; else the source alone.
    """
    old_tokenizers, new_tokenizers = (
        load_tokenizer_pair(pretrained.folder),
        load_tokenizer_pair(dataset.folder / TOKENIZER_FOLDER),
    )
    if both_sides and len({*old_tokenizers}) != len({*new_tokenizers}):
        return False
    sides = [*zip(old_tokenizers, new_tokenizers, strict=True)][: 2 if both_sides else 1]
    return all(is_extension(new, old) or new.document == old.document for old, new in sides)


def check_adapter_fits(pretrained: Manifest, model: ModelConfig, lora: LoraConfig | None) -> None:
    """Raise RecipeError if adapters alone would be trained, and a head beside them would stay random.

    Args:
        pretrained: the manifest of the model to start from.
        model: the [model] part of a recipe.
        lora: the [training.lora] part of a recipe; None for none.
    """
    if lora is not None and not loads_all_weights(read_model_config(pretrained), model):
        raise RecipeError(
            f"training.lora trains adapters alone, and {pretrained.path} lacks weights of a model for {model.task}: "
            "train all weights for it first"
        )


def read_model_config(pretrained: Manifest) -> ModelConfig:
    """The config of a model that was verified. Raises DataError if it is none."""
    path = pretrained.path / "config.json"
    try:
        return ModelConfig.model_validate(read_json(pretrained.folder / "config.json", displayed_path=path))
    except ValidationError as error:
        raise DataError(f"not a model: {validation_problem(error)}", file=path) from error
