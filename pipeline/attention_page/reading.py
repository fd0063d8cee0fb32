"""The attention of a trained model that reads a sentence: its tokens, and the weights of every attention.

Legend: H heads · T queries · S keys.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm.data.batching.batches import pair_batch_from_ids
from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.model.config import Architecture
from tfm.model.layout import Layout
from tfm.model.transformer.language_prefix import LanguagePrefixModel
from tfm.pipeline.attention_page.attended import (
    ATTENTION_KIND_TITLES,
    AttendedToken,
    AttentionAxes,
    AttentionKind,
    AttentionTrace,
    LayerAttention,
)
from tfm.pipeline.attention_page.recorder import attention_modules, record_attentions
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import RecipeError, escape_unprintable
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import BOS_ID, EOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

CHARACTER_MODULE_PREFIXES = ("source_embedding.", "embedding.", "head.")
"""Beginnings of the names of modules that attend among characters (model.canine); the rows they become are shown."""
SPACE_SYMBOL = "␣"


@dataclass(frozen=True)
class ForwardSpec:
    """The forward pass of networks of one architecture.

    read: runs a network once over source ids and, where it translates, target ids -> the tokens on the axes of each
    kind of attention. kind: of an attention, by the name of its module.
    """

    read: Callable[[LoadedModel, Sequence[int], Sequence[int] | None], dict[AttentionKind, AttentionAxes]]
    kind: Callable[[str], AttentionKind]


def trace_text(loaded: LoadedModel, source: str, target: str | None, config: DecodingConfig) -> AttentionTrace:
    """Record the attention of a model that reads `source` and is made to say `target`, or says its own translation.

    Args:
        loaded: the model, with its tokenizers.
        source: the text.
        target: the text that it is made to say; None: its own translation, of a model that translates.
        config: settings of its own translation.

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
        (found,) = decode_hypotheses(loaded, [ids], config)
        return trace_attention(loaded, source, ids, found)
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


def source_tokenizer_of(loaded: LoadedModel) -> Tokenizer:
    """Return the tokenizer of the model's input: a language model learns from the target side of a corpus."""
    reads = TASK_SPECS[loaded.config.task].reads
    return loaded.target_tokenizer if reads == "target" else loaded.source_tokenizer


def encode_source(loaded: LoadedModel, text: str) -> list[int]:
    """Return the ids of the model's input. Raises DataError where there are none, or more than it reads."""
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
    loaded: LoadedModel, sources: Sequence[Sequence[int]] | RowImages, config: DecodingConfig
) -> list[list[int]]:
    """Find the best hypothesis of a model that translates, for each source.

    Args:
        loaded: the model.
        sources: ids of texts, or images.
        config: settings of decoding.

    Returns:
        The ids of each hypothesis.
    """
    found = decode(loaded.model, sources, config, device=device_of(loaded))
    return [list(n_best[0].ids) for n_best in found]


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
    how = FORWARD_SPECS[loaded.config.architecture]
    with torch.inference_mode(), record_attentions(loaded.model) as recorder:
        axes = how.read(loaded, source, target)
        found = order_by_kind_and_layer(recorder.pop_weights(), how.kind)
    there = {each.kind: axes[each.kind] for each in found}
    said = None if target is None else loaded.target_tokenizer.decode(target)
    return AttentionTrace(text, said, there, found)


def order_by_kind_and_layer(
    weights_by_module: Mapping[str, Tensor], kind_of: Callable[[str], AttentionKind]
) -> tuple[LayerAttention, ...]:
    """The attentions of one sentence, from weights (1, H, T, S) by name of module, kind by kind and layer by layer."""
    found: list[LayerAttention] = []
    for name, weights in weights_by_module.items():
        if name.startswith(CHARACTER_MODULE_PREFIXES):
            continue
        kind = kind_of(name)
        layer = 1 + sum(each.kind == kind for each in found)
        found.append(LayerAttention(name, kind, layer, weights[0].float().cpu().numpy()))
    found.sort(key=lambda each: list(ATTENTION_KIND_TITLES).index(each.kind))
    return tuple(found)


def _forward_encoder_decoder(
    loaded: LoadedModel, source: Sequence[int], target: Sequence[int] | None
) -> dict[AttentionKind, AttentionAxes]:
    """Read with an encoder-decoder: a row of its decoder reads a token of the target and predicts the next one."""
    assert target is not None
    _run_teacher_forced(loaded, source, target)
    read, lead = _source_tokens(loaded, [*source, EOS_ID]), [BOS_ID]
    if isinstance(loaded.model, LanguagePrefixModel):
        numbers = torch.arange(len(read))
        told = loaded.model.split_off_language_prefix(numbers, Layout.from_lengths(torch.tensor([len(read)])))
        read, lead = tuple(read[each] for each in told.source), [[*source, EOS_ID][each] for each in told.prefix[0]]
    return {
        "encoder": AttentionAxes(read, read, _label_tokens_with_word("", read)),
        **teacher_forced_axes(loaded, target, read, start_ids=lead),
    }


def teacher_forced_axes(
    loaded: LoadedModel,
    target: Sequence[int],
    source_tokens: tuple[AttendedToken, ...],
    *,
    start_ids: Sequence[int] = (BOS_ID,),
    is_image: bool = False,
) -> dict[AttentionKind, AttentionAxes]:
    """Return the axes of a decoder that is made to say a target.

    Args:
        loaded: the model.
        target: ids of the target.
        source_tokens: the tokens of the source.
        start_ids: ids that the decoder reads before the target.
        is_image: whether the source is an image.
    """
    heard, said = (
        _target_tokens(loaded, [*start_ids, *target]),
        _target_tokens(loaded, [*start_ids[1:], *target, EOS_ID]),
    )
    return {
        "decoder": AttentionAxes(heard, heard, _label_tokens_with_word("then says", said)),
        "cross": AttentionAxes(
            said, source_tokens, _label_tokens_with_word("said after", heard), ("keys",) if is_image else ()
        ),
    }


def _forward_concatenated(
    loaded: LoadedModel, source: Sequence[int], target: Sequence[int] | None
) -> dict[AttentionKind, AttentionAxes]:
    """A decoder-only model: one text, or a source and after it the target."""
    if target is not None:
        _run_teacher_forced(loaded, source, target)
        read, said = _source_tokens(loaded, [*source, EOS_ID]), _target_tokens(loaded, [*target, EOS_ID])
        tokens = (*read, *_target_tokens(loaded, [BOS_ID, *target]))
        return {
            "decoder": AttentionAxes(
                tokens, tokens, (*_label_tokens_with_word("", read), *_label_tokens_with_word("then says", said))
            )
        }
    ids = torch.tensor([BOS_ID, *source], device=device_of(loaded))
    loaded.model.hidden_states(ids, Layout.from_lengths(torch.tensor([len(ids)]), ids.device))
    tokens = (*_target_tokens(loaded, [BOS_ID]), *_source_tokens(loaded, source))
    return {"decoder": AttentionAxes(tokens, tokens, _label_tokens_with_word("", tokens))}


def _forward_single_sequence(
    loaded: LoadedModel, source: Sequence[int], target: Sequence[int] | None
) -> dict[AttentionKind, AttentionAxes]:
    """An encoder-only model."""
    ids = torch.tensor([*source, EOS_ID], device=device_of(loaded))
    loaded.model.encode(ids, Layout.from_lengths(torch.tensor([len(ids)]), ids.device))
    begin = (make_token(source_tokenizer_of(loaded), BOS_ID),) if loaded.config.begin_token else ()
    tokens = (*begin, *_source_tokens(loaded, [*source, EOS_ID]))
    return {"encoder": AttentionAxes(tokens, tokens, _label_tokens_with_word("", tokens))}


def _run_teacher_forced(loaded: LoadedModel, source: Sequence[int], target: Sequence[int]) -> None:
    """Run the network on the target by teacher forcing."""
    batch = pair_batch_from_ids([source], [target]).to(device_of(loaded))
    layouts = [Layout.from_lengths(each, batch.source.device) for each in (batch.source_lengths, batch.target_lengths)]
    loaded.model(batch.source, layouts[0], batch.target_in, layouts[1])


def device_of(loaded: LoadedModel) -> torch.device:
    """The device that a model is on."""
    device: torch.device = next(loaded.model.parameters()).device
    return device


def _source_tokens(loaded: LoadedModel, ids: Sequence[int]) -> tuple[AttendedToken, ...]:
    """Pieces of the source, numbered, maybe with its end token; of characters all of a row, without a number."""
    tokenizer, canine = source_tokenizer_of(loaded), loaded.config.canine
    read = tuple(make_token(tokenizer, each, None if each == EOS_ID else place) for place, each in enumerate(ids))
    if canine is None:
        return read
    together = (read[first : first + canine.rate] for first in range(0, len(read), canine.rate))
    return tuple(
        AttendedToken("".join(each.text for each in some), all(each.separates for each in some)) for some in together
    )


def _target_tokens(loaded: LoadedModel, ids: Sequence[int]) -> tuple[AttendedToken, ...]:
    return tuple(make_token(loaded.target_tokenizer, each) for each in ids)


def make_token(tokenizer: Tokenizer, token_id: int, position: int | None = None) -> AttendedToken:
    """Return a piece with its spaces made visible, and all else that does not show spelled out.

    Args:
        tokenizer: of the piece.
        token_id: the id of the piece.
        position: the place of the token, if it has one.
    """
    if token_id < len(SPECIAL_TOKENS):
        return AttendedToken(tokenizer.piece(token_id), token_id in (BOS_ID, EOS_ID), position)
    text = tokenizer.surface(token_id)
    if not text or "\N{REPLACEMENT CHARACTER}" in text:  # bytes that are no character by themselves
        text = tokenizer.piece(token_id)
    bare = text.strip()
    separates = bool(bare) and all(unicodedata.category(each)[0] == "P" for each in bare)
    return AttendedToken(escape_unprintable(text.replace(" ", SPACE_SYMBOL)), separates, position)


def _label_tokens_with_word(word: str, tokens: Sequence[AttendedToken]) -> tuple[str, ...]:
    return tuple(f"{word} {each.text}" if word else "" for each in tokens)


FORWARD_SPECS: dict[Architecture, ForwardSpec] = {
    "transformer": ForwardSpec(
        _forward_encoder_decoder,
        lambda name: "cross" if "cross" in name else "encoder" if name.startswith("encoder") else "decoder",
    ),
    "recurrent": ForwardSpec(
        _forward_encoder_decoder, lambda name: "encoder" if name.startswith("encoder") else "cross"
    ),
    "decoder_only": ForwardSpec(_forward_concatenated, lambda name: "decoder"),
    "encoder_only": ForwardSpec(_forward_single_sequence, lambda name: "encoder"),
}
"""The forward pass of networks of each architecture."""
