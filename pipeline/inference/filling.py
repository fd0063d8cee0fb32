"""Masks of a text to the pieces or words that a masked language model (Devlin et al. 2019) finds likely there.

    piece:  p(w | text)                                       of each mask by itself, while all are hidden
    word:   p(w_1 ... w_n | text) = prod_i p(w_i | text with w_1 ... w_{i-1} in their places)     of n masks in a row

Legend: n masks · R readings at a time · V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.model.layers.log_probs import log_softmax
from tfm.model.layout import Layout
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.inference.masked_text import MASK_TOKEN, MaskedText, encode_masked
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import EOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

FillUnit = Literal["piece", "word"]
FILL_UNITS = get_args(FillUnit)
MIN_BEAM = 32
"""The least number of beginnings of a word that are kept after each of its pieces."""


@dataclass(frozen=True)
class Candidate:
    """A piece or word that may stand in place of a mask.

    Args:
        text: the piece with the space that it brings, or the word without.
        probability: by the model.
    """

    text: str
    probability: float


def fill_masks(loaded: LoadedModel, text: str, count: int, unit: FillUnit) -> list[list[Candidate]]:
    """Find the likeliest texts in place of each mask of a text, the likeliest first.

    By word, masks with nothing between them are one word of as many pieces, which has a letter or digit; a beam finds
    its pieces from left to right, while the other words stay hidden. Control tokens are no candidates, and keep their
    share of the probability.

    Args:
        loaded: a masked language model.
        text: the text, with `[MASK]` in place of each piece to find.
        count: the most candidates of each.
        unit: piece or word.

    Returns:
        The candidates of each mask or, by word, of each run of masks, in their order.

    Raises:
        DataError: the text has no mask, or is longer than the model reads; by word, no piece can stand in its place.
    """
    if not TASK_SPECS[loaded.config.task].hides_pieces:
        raise DataError(f"was trained for {loaded.config.task}: it fills no masks", file=loaded.folder)
    tokenizer, limit = loaded.source_tokenizer, loaded.model.max_length - 1
    masked = encode_masked(tokenizer, text)
    if len(masked.ids) > limit:
        raise DataError(f"a text has {len(masked.ids)} pieces and the model reads at most {limit}: {text[:40]!r}...")
    loaded.model.eval()
    with torch.inference_mode():
        if unit == "word":
            return [_words_for_mask_run(loaded, masked, number, count) for number in range(len(masked.runs))]
        positions = [position for run in masked.runs for position in run]
        log_probs = _log_probs_at_positions(loaded, [masked.ids], positions)
    text_piece_mask = _text_piece_mask(tokenizer).to(log_probs.device)
    best = log_probs.masked_fill(~text_piece_mask, -math.inf).topk(min(count, int(text_piece_mask.sum())))
    return [
        [Candidate(_piece_text(tokenizer, piece), math.exp(log_prob)) for piece, log_prob in zip(*row, strict=True)]
        for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _words_for_mask_run(loaded: LoadedModel, masked: MaskedText, run_index: int, count: int) -> list[Candidate]:
    """The likeliest words in place of one run of masks, by a beam."""
    positions, begins, tokenizer = masked.runs[run_index], masked.begins[run_index], loaded.source_tokenizer
    beam: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for index, position in enumerate(positions):
        readings = [_replace_pieces(masked.ids, positions, pieces) for pieces, _ in beam]
        allowed = _word_piece_mask(tokenizer, begins if index == 0 else False)
        if not allowed.any():
            location = "after another" if index else "where a word begins" if begins else "within a word"
            raise DataError(
                f"{MASK_TOKEN} is {location}, where no piece of the vocabulary fits: put a space between masks and "
                "words, or predict by piece"
            )
        log_probs = _log_probs_at_positions(loaded, readings, [position])
        totals = log_probs + log_probs.new_tensor([total for _, total in beam]).unsqueeze(1)
        totals = totals.masked_fill(~allowed.to(totals.device), -math.inf).flatten()
        best = totals.topk(min(max(count, MIN_BEAM), len(beam) * int(allowed.sum())))
        vocab = log_probs.shape[1]
        beam = [
            ((*beam[position // vocab][0], position % vocab), total)
            for position, total in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
    return [Candidate(tokenizer.decode(pieces).strip(), math.exp(total)) for pieces, total in beam[:count]]


def _replace_pieces(ids: Sequence[int], positions: Sequence[int], pieces: Sequence[int]) -> list[int]:
    """The ids with these pieces in the first of these places."""
    replaced = list(ids)
    for position, piece in zip(positions, pieces, strict=False):
        replaced[position] = piece
    return replaced


def _log_probs_at_positions(
    loaded: LoadedModel, filled_texts: Sequence[Sequence[int]], positions: Sequence[int]
) -> Tensor:
    """log p (R * places, V) at these places of some readings of one length, reading after reading."""
    model: Any = loaded.model
    device, length = next(model.parameters()).device, len(filled_texts[0]) + 1
    ids = torch.tensor([[*each, EOS_ID] for each in filled_texts], device=device).flatten()
    rows = torch.tensor(
        [row * length + position for row in range(len(filled_texts)) for position in positions], device=device
    )
    hidden = model(ids, Layout.from_lengths(torch.full((len(filled_texts),), length), device), rows)
    log_probs = log_softmax(model.output(hidden).double())
    check_not_nan(log_probs.cpu().numpy())
    return log_probs


@lru_cache(maxsize=4)
def _text_piece_mask(tokenizer: Tokenizer) -> Tensor:
    """Which ids (V,) are pieces of texts, and no control tokens."""
    control = {*range(len(SPECIAL_TOKENS)), *tokenizer.control_ids}
    return torch.tensor([number not in control for number in range(tokenizer.vocab_size)])


@lru_cache(maxsize=8)
def _word_piece_mask(tokenizer: Tokenizer, after_space: bool) -> Tensor:
    """Which ids (V,) are pieces of words. after_space: with a space before them, or without."""
    has_word_character = torch.tensor(
        [any(map(str.isalnum, tokenizer.surface(n))) for n in range(tokenizer.vocab_size)]
    )
    starts = torch.tensor(tokenizer.word_start_mask())
    return has_word_character & _text_piece_mask(tokenizer) & (starts if after_space else ~starts)


def _piece_text(tokenizer: Tokenizer, token_id: int) -> str:
    """The text of a piece; of bytes that are no character by themselves, their name in the vocabulary."""
    text = tokenizer.surface(token_id)
    return text if text and "\N{REPLACEMENT CHARACTER}" not in text else tokenizer.piece(token_id)
