"""Encoder-decoders that read the source and target languages as M2M100 and mBART do.

A source is `target-language source-language text </s>`, and a target is as for other models. Data, scores and
searches thus need not know languages: the model itself moves the tokens to where the network reads them.

    m2m100    encoder: source-language text </s>    decoder: </s> target-language target    (Fan et al. 2021)
    mbart     encoder: text </s> source-language    decoder: target-language target         (Liu et al. 2020)

The tokens that the decoder reads before the target are its prefix; none of them is predicted. A source without a text
has no languages: its end token replaces them.
Legend: N rows · B sentences · T tokens of a prefix · E embedding width · R hypotheses.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from tfm.model.layers.log_probs import LogProbFn
from tfm.model.layout import AnyLayout, Layout
from tfm.model.transformer.decoder_state import TransformerState
from tfm.model.transformer.encoder_decoder import EncoderDecoder


class EncoderInputAndPrefix(NamedTuple):
    """Ids (N,) that the encoder reads, with their layout, and ids (B, T) that the decoder reads before its target."""

    source: Tensor
    layout: Layout
    prefix: Tensor


@dataclass(frozen=True)
class LanguagePrefixState:
    """The state of a decoder that has read its prefix except the last token; languages (B,): that token."""

    inner: TransformerState
    languages: Tensor

    def select(self, rows: Tensor) -> "LanguagePrefixState":
        """The state whose row i is row rows[i] (R',) of this one; rows of a sentence stay adjacent."""
        sentences = torch.unique_consecutive(rows // self.inner.rows_per_sentence)
        return LanguagePrefixState(self.inner.select(rows), self.languages.index_select(0, sentences))

    def replace(self, rows: Tensor, replacement: "LanguagePrefixState") -> "LanguagePrefixState":
        """The state in which the sentences of `replacement`, a new state, take the places of those of `rows` (R',)."""
        sentences = rows.view(-1, self.inner.rows_per_sentence)[:, 0] // self.inner.rows_per_sentence
        return LanguagePrefixState(
            self.inner.replace(rows, replacement.inner), self.languages.index_copy(0, sentences, replacement.languages)
        )


class LanguagePrefixModel(EncoderDecoder, ABC):
    """An encoder-decoder that moves languages from the source to the encoder's text and to a prefix of the decoder."""

    @abstractmethod
    def split_off_language_prefix(self, source: Tensor, layout: AnyLayout) -> EncoderInputAndPrefix:
        """Return the ids that encoder and decoder read of source ids (N,)."""

    def _encode_rows(self, source: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
        return super()._encode_rows(*self.split_off_language_prefix(source, layout)[:2])

    def forward(self, source: Tensor, source_layout: AnyLayout, target: Tensor, target_layout: AnyLayout) -> Tensor:
        """Return the input of the output layer at each target row (teacher forcing); the row of the begin token is
        that of the prefix's last token.

        Args:
            source: ids (N_s,) of the sources, or images.
            source_layout: the layout of the sources.
            target: ids (N,), begin token first.
            target_layout: the layout of the targets.

        Returns:
            (N, E).
        """
        split_inputs = self.split_off_language_prefix(source, source_layout)
        decoder_tokens, layout, indices = prepend_prefix(split_inputs.prefix, target, target_layout)
        memory = super()._encode_rows(split_inputs.source, split_inputs.layout)
        return self.decode(decoder_tokens, layout, *memory).index_select(0, indices)

    def start(self, source: Tensor, layout: Layout) -> LanguagePrefixState:  # type: ignore[override]
        """Read source ids (N,); a state of one row a sentence."""
        prefix, state = self.split_off_language_prefix(source, layout).prefix, super().start(source, layout)
        for tokens in prefix[:, :-1].unbind(1):
            _, state = super().step(tokens, state)
        return LanguagePrefixState(state, prefix[:, -1])

    def step(self, tokens: Tensor, state: LanguagePrefixState) -> tuple[LogProbFn, LanguagePrefixState]:  # type: ignore[override]
        """Read a token as every encoder-decoder does; a row that begins reads its language in place of the begin token
        (R,).
        """
        languages = state.languages[:, None].expand(-1, state.inner.rows_per_sentence).flatten()
        tokens = torch.where(state.inner.row_positions < self.prefix_length, languages, tokens)
        predict, inner = super().step(tokens, state.inner)
        return predict, replace(state, inner=inner)


class M2M100(LanguagePrefixModel):
    """The source's language before the source; the end token and the target's language before the target."""

    prefix_length = 2

    def split_off_language_prefix(self, source: Tensor, layout: AnyLayout) -> EncoderInputAndPrefix:
        """See `LanguagePrefixModel`."""
        firsts, lasts, shorter_layout = _first_last_rows_and_shorter_layout(layout, source.device)
        indices = firsts.index_select(0, shorter_layout.sentence) + shorter_layout.positions + 1
        indices = torch.minimum(indices, lasts.index_select(0, shorter_layout.sentence))
        return EncoderInputAndPrefix(
            source.index_select(0, indices), shorter_layout, torch.stack([source[lasts], source[firsts]], 1)
        )


class MBart(LanguagePrefixModel):
    """The source's language behind the end token; the target's in place of the begin token."""

    prefix_length = 1

    def split_off_language_prefix(self, source: Tensor, layout: AnyLayout) -> EncoderInputAndPrefix:
        """See `LanguagePrefixModel`."""
        firsts, lasts, shorter_layout = _first_last_rows_and_shorter_layout(layout, source.device)
        last_rows = lasts.index_select(0, shorter_layout.sentence)
        indices = firsts.index_select(0, shorter_layout.sentence) + shorter_layout.positions + 2
        indices = torch.where(indices > last_rows, indices - shorter_layout.positions - 1, indices)
        return EncoderInputAndPrefix(
            source.index_select(0, torch.minimum(indices, last_rows)), shorter_layout, source[firsts].unsqueeze(1)
        )


def _first_last_rows_and_shorter_layout(layout: AnyLayout, device: torch.device) -> tuple[Tensor, Tensor, Layout]:
    """The first and the last row of each sentence (B,), and the layout of one row less each, but of at least one."""
    assert isinstance(layout, Layout), "flat batches are refused: their filler has no language"
    lasts = layout.lengths.cumsum(0) - 1
    firsts = (lasts - layout.lengths + 1).to(device, non_blocking=True)
    return firsts, lasts.to(device, non_blocking=True), Layout.from_lengths((layout.lengths - 1).clamp(min=1), device)


def prepend_prefix(prefix: Tensor, target: Tensor, layout: AnyLayout) -> tuple[Tensor, Layout, Tensor]:
    """Put leads in place of the begin tokens of targets.

    Args:
        prefix: leads (B, T).
        target: ids (N,), begin token first.
        layout: the layout of the targets.

    Returns:
        The ids; their layout; the rows (N,) of the last token of each prefix and of the tokens of each target.
    """
    assert isinstance(layout, Layout)
    num_extra = prefix.shape[1] - 1
    indices = torch.arange(layout.num_rows, device=target.device) + num_extra * (layout.sentence + 1)
    decoder_tokens = target.new_empty(layout.num_rows + num_extra * layout.batch).index_copy_(0, indices, target)
    longer = Layout.from_lengths(layout.lengths + num_extra, target.device)
    begin_indices = indices[layout.positions == 0] - num_extra
    for number, tokens in enumerate(prefix.unbind(1)):
        decoder_tokens[begin_indices + number] = tokens
    return decoder_tokens, longer, indices


LANGUAGE_PREFIX_MODELS: dict[str, type[EncoderDecoder]] = {"source": EncoderDecoder, "m2m100": M2M100, "mbart": MBart}
"""By `model.languages`: the encoder-decoder that reads languages in this way."""
