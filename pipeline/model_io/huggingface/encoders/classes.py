"""The classes of transformers for encoder-only models: each family with each head."""

from functools import partial
from typing import Any

from tfm.pipeline.model_io.huggingface.classes import HUGGINGFACE_ACTIVATIONS, HuggingFaceClass
from tfm.pipeline.model_io.huggingface.encoders import bert
from tfm.pipeline.model_io.huggingface.encoders.families import (
    BERT,
    MEGATRON,
    ROBERTA,
    ROBERTA_PRE_NORM,
    EncoderFamily,
    HeadWeightNames,
)
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, STANDARD_HEADS_STACK_KEYS, SupportedConfig
from tfm.pipeline.tasks.abilities import select_tasks

(MASKED_TASKS,) = select_tasks(lambda each: each.hides_pieces)
(LABEL_TASKS,) = select_tasks(lambda each: each.labels == "label")
(TAG_TASKS,) = select_tasks(lambda each: each.labels == "tags")
NO_HEAD_WARNING = (
    "this checkpoint has no MLM head: masked tokens are predicted from its embeddings alone. Use it with --init-from "
    "or `tfm attend`"
)


def _encoder_class(
    family: EncoderFamily, suffix: str, pipeline: str, task: str, head: HeadWeightNames, **supported_values: Any
) -> HuggingFaceClass:
    """Make one class. supported_values: by key of [model], the values for which it differs from its family."""
    keys = {
        "architecture": ("encoder_only",),
        "task": (task,),
        "norm": (family.norm,),
        "embedding_norm": (family.embedding_norm,),
        "positions": ("none", "sinusoidal", "learned"),
        "activation": tuple(HUGGINGFACE_ACTIVATIONS),
        **dict.fromkeys(("norm_eps", "begin_token", "output_bias", "tie", "scale_embedding"), ANY_VALUE),
        **dict.fromkeys(("embedding_dim", "decoder", "pooling"), ANY_VALUE),
    }
    masked = task == MASKED_TASKS
    return HuggingFaceClass(
        name=family.name + suffix,
        model_type=family.model_type,
        pipeline=pipeline,
        supports=SupportedConfig(keys | supported_values, STANDARD_HEADS_STACK_KEYS, ("encoder",)),
        settings=partial(bert.export_settings, family),
        weights=partial(bert.list_weights, family, head),
        finalize_export=partial(bert.finish_export, family, head),
        standardize_state_dict=partial(bert.standardize_state_dict, family, head, not masked),
        read=partial(bert.read_config, family, head, task),
        tables=tuple(dict.fromkeys((family.word_embeddings, head.classes))) if masked else (family.word_embeddings,),
        bias=head.bias if masked else None,
        note=NO_HEAD_WARNING if masked and head.bias is None else "",
    )


def list_family_classes(family: EncoderFamily) -> tuple[HuggingFaceClass, ...]:
    """The classes of a family that have a head."""
    head_activations = tuple(HUGGINGFACE_ACTIVATIONS) if family.head_activation is None else (family.head_activation,)
    transform: Any = {"head_transform": (True,), "activation": head_activations}
    first: Any = {"pooling": ("first",)}
    return (
        _encoder_class(family, "ForMaskedLM", "fill-mask", MASKED_TASKS, family.masked, **transform),
        _encoder_class(family, "ForSequenceClassification", "text-classification", LABEL_TASKS, family.labels, **first),
        _encoder_class(family, "ForTokenClassification", "token-classification", TAG_TASKS, family.tags),
    )


ENCODER_CLASSES = tuple(each for family in (BERT, ROBERTA_PRE_NORM, MEGATRON) for each in list_family_classes(family))
"""The classes that hold an encoder-only model of tfm. RoBERTa's classes hold none that BERT's do not."""
IMPORT_ONLY_CLASSES = (
    *list_family_classes(ROBERTA),
    *(
        _encoder_class(family, "Model", "feature-extraction", MASKED_TASKS, family.base_model_head)
        for family in (BERT, ROBERTA, ROBERTA_PRE_NORM, MEGATRON)
    ),
)
"""The classes that are imported, and never exported."""
