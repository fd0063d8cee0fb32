"""Forward passes by architecture, with the tokens on the axes of each kind of attention."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.config import Architecture
from tfm.model.layout import Layout
from tfm.model.transformer.language_prefix import LanguagePrefixModel
from tfm.pipeline.attention_page.attended import AttendedToken, AttentionAxes, AttentionKind
from tfm.pipeline.errors import escape_unprintable
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import BOS_ID, EOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

SPACE_SYMBOL = "␣"


@dataclass(frozen=True)
class ForwardSpec:
    """The forward pass of networks of one architecture.

    read: runs a network once over source ids and, where it translates, target ids -> the tokens on the axes of each
    kind of attention. kind: of an attention, by the name of its module.
    """

    read: Callable[[LoadedModel, Sequence[int], Sequence[int] | None], dict[AttentionKind, AttentionAxes]]
    kind: Callable[[str], AttentionKind]


def source_tokenizer_of(loaded: LoadedModel) -> Tokenizer:
    """Return the tokenizer of the model's input: a language model learns from the target side of a corpus."""
    reads = TASK_SPECS[loaded.config.task].reads
    return loaded.target_tokenizer if reads == "target" else loaded.source_tokenizer


def _forward_encoder_decoder(
    loaded: LoadedModel, source: Sequence[int], target: Sequence[int] | None
) -> dict[AttentionKind, AttentionAxes]:
    """Read with an encoder-decoder: a row of its decoder reads a token of the target and predicts the next one."""
    assert target is not None
    _run_teacher_forced(loaded, source, target)
    source_tokens, start_ids = _source_tokens(loaded, [*source, EOS_ID]), [BOS_ID]
    if isinstance(loaded.model, LanguagePrefixModel):
        numbers = torch.arange(len(source_tokens))
        split_ids = loaded.model.split_off_language_prefix(
            numbers, Layout.from_lengths(torch.tensor([len(source_tokens)]))
        )
        source_tokens, start_ids = (
            tuple(source_tokens[each] for each in split_ids.source),
            [[*source, EOS_ID][each] for each in split_ids.prefix[0]],
        )
    return {
        "encoder": AttentionAxes(source_tokens, source_tokens, _label_tokens_with_word("", source_tokens)),
        **teacher_forced_axes(loaded, target, source_tokens, start_ids=start_ids),
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
    input_tokens, output_tokens = (
        _target_tokens(loaded, [*start_ids, *target]),
        _target_tokens(loaded, [*start_ids[1:], *target, EOS_ID]),
    )
    return {
        "decoder": AttentionAxes(input_tokens, input_tokens, _label_tokens_with_word("then says", output_tokens)),
        "cross": AttentionAxes(
            output_tokens,
            source_tokens,
            _label_tokens_with_word("said after", input_tokens),
            ("keys",) if is_image else (),
        ),
    }


def _forward_concatenated(
    loaded: LoadedModel, source: Sequence[int], target: Sequence[int] | None
) -> dict[AttentionKind, AttentionAxes]:
    """A decoder-only model: one text, or a source and after it the target."""
    if target is not None:
        _run_teacher_forced(loaded, source, target)
        source_tokens, output_tokens = (
            _source_tokens(loaded, [*source, EOS_ID]),
            _target_tokens(loaded, [*target, EOS_ID]),
        )
        tokens = (*source_tokens, *_target_tokens(loaded, [BOS_ID, *target]))
        return {
            "decoder": AttentionAxes(
                tokens,
                tokens,
                (*_label_tokens_with_word("", source_tokens), *_label_tokens_with_word("then says", output_tokens)),
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
    tokens = tuple(make_token(tokenizer, each, None if each == EOS_ID else place) for place, each in enumerate(ids))
    if canine is None:
        return tokens
    groups = (tokens[first : first + canine.rate] for first in range(0, len(tokens), canine.rate))
    return tuple(
        AttendedToken("".join(each.text for each in group), all(each.separates for each in group)) for group in groups
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
