"""Examples to tensors: the sentence pairs of a batch, one row for each token, without padding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tfm.data.arrays import Ints
from tfm.data.batching.token_stream import TokenStream
from tfm.data.dataset.split import Ids, Split, TokenIdColumn
from tfm.data.images.decoding import Pixels
from tfm.data.images.preparation import ImageTransform
from tfm.tokenizer.special import BOS_ID, EOS_ID


@dataclass(frozen=True)
class PairBatch:
    """B sentence pairs, their tokens joined end to end; all tensors int64, the lengths always on the CPU.

    Filler may follow the tokens of a side; no length counts it.

    Args:
        source: (N_s,) each source and its end token; of images their pixels (B, height, width, channels) uint8, which
            `to` turns into the network's input (B, channels, height, width).
        source_lengths: (B,) rows of each source, including the end token; 1 for each image.
        target_in: (N_t,) start token, then the target.
        target_out: (N_t,) the target, then the end token: the prediction that is wanted at each row of target_in.
        target_lengths: (B,) rows of each target, including the start token.
        rows: (B,) the row number of each pair in its split.
        word_starts: (W,) the rows of `source` at which words begin; None if words are not needed.
        preparation: turns images into the network's input; None if sources are texts.
        repeats: (B,) in training, the number of earlier occurrences of each row in its update; None: 0.
    """

    source: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor
    target_lengths: Tensor
    rows: Ints
    word_starts: Tensor | None = None
    preparation: ImageTransform | None = None
    repeats: Ints | None = None

    @property
    def num_target_tokens(self) -> int:
        """N_t: the number of rows over which the loss is summed, end tokens included."""
        return int(self.target_lengths.sum())

    def to(self, device: torch.device | str) -> "PairBatch":
        """Return the batch on `device`."""
        source = self.source.to(device, non_blocking=True)
        return PairBatch(
            source=source if self.preparation is None else self.preparation(source),
            source_lengths=self.source_lengths,
            target_in=self.target_in.to(device, non_blocking=True),
            target_out=self.target_out.to(device, non_blocking=True),
            target_lengths=self.target_lengths,
            rows=self.rows,
            word_starts=None if self.word_starts is None else self.word_starts.to(device, non_blocking=True),
            repeats=self.repeats,
        )

    def pad_to(self, num_rows: int) -> "PairBatch":
        """Return the batch with filler on both sides, up to a number of rows."""
        sides = (self.source, self.target_in, self.target_out)
        source, target_in, target_out = (F.pad(ids, (0, num_rows - len(ids)), value=EOS_ID) for ids in sides)
        return replace(self, source=source, target_in=target_in, target_out=target_out)


@dataclass(frozen=True)
class TextBatch:
    """B texts, their tokens joined end to end; all tensors int64, the lengths always on the CPU.

    Args:
        tokens_in: (N,) start token, then the text but its last token.
        tokens_out: (N,) the text: the prediction that is wanted at each row of tokens_in.
        lengths: (B,) rows of each text.
        rows: (B,) the row number of each text.
        repeats: (B,) in training, the number of earlier occurrences of each row in its update; None: 0.
    """

    tokens_in: Tensor
    tokens_out: Tensor
    lengths: Tensor
    rows: Ints
    repeats: Ints | None = None

    @property
    def num_tokens(self) -> int:
        """N: the number of rows over which the loss is summed."""
        return int(self.lengths.sum())

    def to(self, device: torch.device | str) -> "TextBatch":
        """Return the batch on `device`."""
        tokens_in, tokens_out = (each.to(device, non_blocking=True) for each in (self.tokens_in, self.tokens_out))
        return replace(self, tokens_in=tokens_in, tokens_out=tokens_out)

    def pad_to(self, num_rows: int) -> "TextBatch":
        """Return the batch with filler, up to a number of rows."""
        sides = (self.tokens_in, self.tokens_out)
        tokens_in, tokens_out = (F.pad(ids, (0, num_rows - len(ids)), value=EOS_ID) for ids in sides)
        return replace(self, tokens_in=tokens_in, tokens_out=tokens_out)


def make_text_batch(column: TokenIdColumn, rows: Ints) -> TextBatch:
    """The texts of `rows` of a column, in that order, each with its end token."""
    ids, lengths = column.take(rows)
    tokens_in = _add_control_token(BOS_ID, ids, lengths, at_start=True)
    tokens_out = _add_control_token(EOS_ID, ids, lengths, at_start=False)
    return TextBatch(tokens_in, tokens_out, torch.from_numpy(lengths + 1), rows)


def make_window_batch(text: Ids | TokenStream, starts: Ints, length: int | Ints) -> TextBatch:
    """Return the windows of a running text, each shorter where the text ends.

    Args:
        text: ids of the text.
        starts: (W,) the index at which each window begins.
        length: tokens of each window, or (W,) of each its own.
    """
    lengths = np.minimum(len(text) - starts, length)
    begins = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
    tokens_out = text[places].astype(np.int64)
    tokens_in = np.concatenate([[BOS_ID], tokens_out[:-1]])
    tokens_in[begins] = BOS_ID
    return TextBatch(torch.from_numpy(tokens_in), torch.from_numpy(tokens_out), torch.from_numpy(lengths), starts)


def make_pair_batch(split: Split, rows: Ints) -> PairBatch:
    """The batch of `rows` of a split, in that order."""
    batch = _batch_from_columns(split.source, split.target, rows, split.words)
    return batch if split.images is None else _attach_images(batch, split.images.take(rows), split.images.preparation)


def pair_batch_from_images(pixels: Pixels, targets: Sequence[Sequence[int]], preparation: ImageTransform) -> PairBatch:
    """Return a batch of images and targets.

    Args:
        pixels: (B, height, width, channels).
        targets: ids without start and end token.
        preparation: turns pixels into the network's input.
    """
    return _attach_images(pair_batch_from_ids([[]] * len(pixels), targets), pixels, preparation)


def _attach_images(batch: PairBatch, pixels: Pixels, preparation: ImageTransform) -> PairBatch:
    """The batch with images as sources."""
    lengths = torch.ones(len(pixels), dtype=torch.long)
    return replace(batch, source=torch.from_numpy(pixels), source_lengths=lengths, preparation=preparation)


def pair_batch_from_ids(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    words: Sequence[Sequence[int]] | None = None,
) -> PairBatch:
    """Return a batch of pairs.

    Args:
        sources: ids without start and end token.
        targets: ids without start and end token, as many.
        words: the number of pieces of each word of each source; None if sources have no words.

    Raises:
        ValueError: the numbers of sources and targets differ.
    """
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources but {len(targets)} targets")
    sizes = None if words is None else TokenIdColumn.from_lists(words)
    return _batch_from_columns(
        TokenIdColumn.from_lists(sources), TokenIdColumn.from_lists(targets), np.arange(len(sources)), sizes
    )


def _batch_from_columns(
    source: TokenIdColumn, target: TokenIdColumn, rows: Ints, words: TokenIdColumn | None
) -> PairBatch:
    source_ids, source_lengths = source.take(rows)
    target_ids, target_lengths = target.take(rows)
    return PairBatch(
        source=_add_control_token(EOS_ID, source_ids, source_lengths, at_start=False),
        source_lengths=torch.from_numpy(source_lengths + 1),
        target_in=_add_control_token(BOS_ID, target_ids, target_lengths, at_start=True),
        target_out=_add_control_token(EOS_ID, target_ids, target_lengths, at_start=False),
        target_lengths=torch.from_numpy(target_lengths + 1),
        rows=rows,
        word_starts=None if words is None else _word_start_indices(*words.take(rows)),
    )


def _word_start_indices(sizes: Ids, counts: Ints) -> Tensor:
    """The index at which each word begins in concatenated sentences, each with its end token (W,).

    sizes: (W,) pieces of each word. counts: (B,) words of each sentence.
    """
    sizes = sizes.astype(np.int64)
    return torch.from_numpy(np.cumsum(sizes) - sizes + np.repeat(np.arange(len(counts)), counts))


def _add_control_token(control: int, ids: Ids, lengths: NDArray[np.int64], *, at_start: bool) -> Tensor:
    """Flat ids with one control token before or after each sentence."""
    out = np.full(len(ids) + len(lengths), control, np.int64)
    # Token i of sentence b moves on by the control tokens that now precede it.
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    out[np.arange(len(ids)) + sentence + at_start] = ids
    return torch.from_numpy(out)
