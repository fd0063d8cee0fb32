"""The attention of a trained model that reads a sentence: its tokens, and the weights of every attention.

Legend: H heads · T queries · S keys.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.pipeline.attention_page.attended import ATTENTION_KIND_TITLES, AttentionKind, AttentionTrace, LayerAttention
from tfm.pipeline.attention_page.forward_passes import FORWARD_SPECS, device_of, source_tokenizer_of
from tfm.pipeline.attention_page.recorder import attention_modules, record_attentions
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.model_io.shortlist_folder import load_shortlist
from tfm.pipeline.tasks.abilities import TASK_SPECS

CHARACTER_MODULE_PREFIXES = ("source_embedding.", "embedding.", "head.")
"""Beginnings of the names of modules that attend among characters (model.canine); the rows they become are shown."""


def trace_text(
    loaded: LoadedModel,
    source: str,
    target: str | None,
    config: DecodingConfig,
    shortlist: Shortlist | None = None,
) -> AttentionTrace:
    """Record the attention of a model that reads `source` and is made to say `target`, or says its own translation.

    Args:
        loaded: the model, with its tokenizers.
        source: the text.
        target: the text that it is made to say; None: its own translation, of a model that translates.
        config: settings of its own translation.
        shortlist: of its own translation, if it was read before; None: the one that the settings name is read.

    Raises:
        RecipeError: the model has no attention, or a target is given to a model that reads one text.
        DataError: a text has no pieces, or more than the model reads.
    """
    check_has_attention(loaded)
    loaded.check_reads_text("give an image file")
    ids = encode_source(loaded, source)
    if not generates_target(loaded):
        if target is not None:
            raise RecipeError(f"--target: this model ({loaded.config.task}) reads one text: remove it")
        return trace_attention(loaded, source, ids, None)
    if target is None:
        (hypothesis,) = decode_hypotheses(loaded, [ids], config, shortlist)
        return trace_attention(loaded, source, ids, hypothesis)
    return trace_attention(
        loaded,
        source,
        ids,
        check_source_length(loaded, encode_without_unknown(loaded.target_tokenizer, [target], "the target")[0], target),
    )


def check_has_attention(loaded: LoadedModel) -> None:
    """Raise RecipeError for a model without attention, or one whose texts have gaps."""
    task = loaded.config.task
    if TASK_SPECS[task].hides_spans:
        raise RecipeError(f"{loaded.folder}: was trained for {task}: `tfm attend` shows the models that start from it")
    if not attention_modules(loaded.model):
        kind = loaded.config.architecture
        raise RecipeError(f"{loaded.folder}: this model has no attention (architecture {kind}): nothing to show")


def generates_target(loaded: LoadedModel) -> bool:
    """Whether a model reads a source and writes a target."""
    return TASK_SPECS[loaded.config.task].translates


def encode_source(loaded: LoadedModel, text: str) -> list[int]:
    """Return the ids of the model's input. Raises DataError if there are none, or more than it reads."""
    ids = check_source_length(loaded, source_tokenizer_of(loaded).encode(text), text)
    if not ids:
        raise DataError(f"the sentence {text[:40]!r} has no pieces: there is nothing to attend to")
    return ids


def check_source_length(loaded: LoadedModel, ids: list[int], text: str) -> list[int]:
    """Return the ids of a text if the model reads so many.

    Args:
        loaded: the model.
        ids: of the text.
        text: for the message.

    Raises:
        DataError: there are more than the model reads.
    """
    limit = loaded.model.max_length - 1
    if len(ids) > limit:
        raise DataError(f"a text has {len(ids)} pieces and the model reads at most {limit}: {text[:40]!r}...")
    return ids


def decode_hypotheses(
    loaded: LoadedModel,
    sources: Sequence[Sequence[int]] | RowImages,
    config: DecodingConfig,
    shortlist: Shortlist | None = None,
) -> list[list[int]]:
    """Find the best hypothesis of a model that translates, for each source.

    Args:
        loaded: the model.
        sources: ids of texts, or images.
        config: settings of decoding.
        shortlist: of the pieces that may come, if it was read before; None: the one that the settings name is read.

    Returns:
        The ids of each hypothesis.
    """
    allowed_pieces = shortlist or load_shortlist(loaded, config)
    n_best_lists = decode(loaded.model, sources, config, device=device_of(loaded), shortlist=allowed_pieces)
    return [list(n_best[0].ids) for n_best in n_best_lists]


def trace_attention(
    loaded: LoadedModel, text: str, source: Sequence[int], target: Sequence[int] | None
) -> AttentionTrace:
    """Run the network once over ids, and record the weights of its attentions.

    Args:
        loaded: the model.
        text: of the source, to show.
        source: ids of the text.
        target: ids that the model is made to say; None: of a model that reads one text.
    """
    spec = FORWARD_SPECS[loaded.config.architecture]
    with torch.inference_mode(), record_attentions(loaded.model) as recorder:
        axes = spec.read(loaded, source, target)
        attentions = order_by_kind_and_layer(recorder.pop_weights(), spec.kind)
    axes_by_kind = {each.kind: axes[each.kind] for each in attentions}
    target_text = None if target is None else loaded.target_tokenizer.decode(target)
    return AttentionTrace(text, target_text, axes_by_kind, attentions)


def order_by_kind_and_layer(
    weights_by_module: Mapping[str, Tensor], kind_of: Callable[[str], AttentionKind]
) -> tuple[LayerAttention, ...]:
    """The attentions of one sentence, from weights (1, H, T, S) by name of module, kind by kind and layer by layer."""
    attentions: list[LayerAttention] = []
    for name, weights in weights_by_module.items():
        if name.startswith(CHARACTER_MODULE_PREFIXES):
            continue
        kind = kind_of(name)
        layer = 1 + sum(each.kind == kind for each in attentions)
        attentions.append(LayerAttention(name, kind, layer, weights[0].float().cpu().numpy()))
        check_not_nan(attentions[-1].weights)
    attentions.sort(key=lambda each: list(ATTENTION_KIND_TITLES).index(each.kind))
    return tuple(attentions)
