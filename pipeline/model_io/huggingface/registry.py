"""The classes of transformers that models are exported as and imported from, and which of them holds a model."""

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import HuggingFaceClass
from tfm.pipeline.model_io.huggingface.encoder_decoders import PEGASUS
from tfm.pipeline.model_io.huggingface.encoders.classes import ENCODER_CLASSES, IMPORT_ONLY_CLASSES
from tfm.pipeline.model_io.huggingface.gpt2 import GPT2
from tfm.pipeline.model_io.huggingface.llama import LLAMA
from tfm.pipeline.model_io.huggingface.marian import MARIAN
from tfm.pipeline.model_io.huggingface.multilingual import MULTILINGUAL_CLASSES

EXPORT_CLASSES: tuple[HuggingFaceClass, ...] = (PEGASUS, MARIAN, GPT2, LLAMA, *ENCODER_CLASSES)
"""The classes that hold models of tfm; the first that holds a model is taken."""
IMPORT_CLASSES = (*EXPORT_CLASSES, *IMPORT_ONLY_CLASSES, *MULTILINGUAL_CLASSES)


def find_export_class(config: ModelConfig) -> HuggingFaceClass | None:
    """Return the class that holds a model; None if none does, for a reason that `unsupported_reason` gives."""
    return next((each for each in EXPORT_CLASSES if each.supports.unsupported_part(config) is None), None)


def unsupported_reason(config: ModelConfig) -> str:
    """The part of a model that no class holds: of each class of its architecture, and of its task if there is one, the
    first part that it lacks."""
    candidates = [each for each in EXPORT_CLASSES if config.architecture in each.supports.keys["architecture"]]
    task_candidates = [each for each in candidates if config.task in each.supports.keys.get("task", ())]
    reasons = {each.name: each.supports.unsupported_part(config) for each in task_candidates or candidates}
    if not reasons:
        return f'model.architecture = "{config.architecture}"'
    return ", ".join(f"{reason} (so it is no {name})" for name, reason in reasons.items())
