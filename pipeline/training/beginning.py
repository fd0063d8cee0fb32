"""What a training begins with beside weights that are drawn: what its task has to know, and vectors made before."""

from typing import Any

import torch
from torch import nn

from data.errors import DataError
from data.store import Dataset
from model.word_vectors import table_of
from pipeline.models import untied
from pipeline.progress import Reporter
from pipeline.tasks.task import About
from pipeline.training.state import TrainState
from pipeline.vectors import find_vectors, places_of
from tokenizer.special import SPECIALS
from tokenizer.tokenizer import Tokenizer


def begin(state: TrainState, task: Any, about: About, data: Dataset, reporter: Reporter) -> None:
    """Give a training that begins what it begins with. Raises DataError where vectors do not fit."""
    task.begin(state.model, data)
    for side, place in places_of(about.model).items():
        tokenizer = about.source if side == "source" else about.target
        table = table_of(state.model, side)
        assert isinstance(table, nn.Embedding)  # adaptive inputs are refused when the recipe is read
        num_found = start_embedding(table, tokenizer, find_vectors(place, side, table.embedding_dim, words(tokenizer)))
        if not num_found:
            raise DataError(f"has a vector for no piece of the {side}: is it of another language or case?", file=place)
        kept = ", and are not trained" if side in about.model.frozen_sides else ""
        num_pieces = tokenizer.vocab_size - len(SPECIALS)
        reporter.line(f"training: {num_found:,} of {num_pieces:,} {side} pieces start from {place}{kept}")
    if state.ema is not None:
        state.ema.load(untied(state.model.state_dict()))


def words(tokenizer: Tokenizer) -> set[str]:
    """What the pieces of a vocabulary spell, without the space before a word."""
    return {tokenizer.surface(number).strip() for number in range(len(SPECIALS), tokenizer.vocab_size)}


@torch.no_grad()
def start_embedding(table: nn.Embedding, tokenizer: Tokenizer, vectors: Any) -> int:
    """Set the rows of pieces that spell a word which has a vector; how many there are."""
    num_found = 0
    for number in range(len(SPECIALS), tokenizer.vocab_size):
        vector = vectors.get(tokenizer.surface(number).strip())
        if vector is not None:
            table.weight[number] = torch.from_numpy(vector)
            num_found += 1
    return num_found
