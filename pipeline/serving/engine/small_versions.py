"""Versions of small models, and of their shortlists, read without torch."""

from tfm.pipeline.artifacts.manifest import Input
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.numpy_labels import NumpyLabeller
from tfm.pipeline.inference.numpy_translation import NumpyModel, load_small_model
from tfm.pipeline.serving.dispatch.messages import ModelVersion


def load_small_version(version: ModelVersion, config: DecodingConfig) -> NumpyModel | NumpyLabeller | None:
    """Load a version of a model with its shortlist.

    Args:
        version: of the model.
        config: settings of decoding.

    Returns:
        The model; None if torch is needed for it.

    Raises:
        DataError: there is no such model, or another version of it or of its shortlist is published there now.
    """
    shortlist, shortlist_input = version.shortlist, None
    if shortlist is not None:
        config = config.model_copy(update={"shortlist": str(shortlist.folder)})
        shortlist_input = Input.from_value(shortlist.fingerprint)
    model_input = Input.from_value(version.fingerprint)
    return load_small_model(version.folder, config, must_match=model_input, shortlist_must_match=shortlist_input)
