"""Gradients before and after training: the networks of `gradients` after some updates as language models.

The words of a running text are rows of an embedding; each network predicts the next word from its last layer's rows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.claims.claim import Claim, Found
from bench.claims.recurrence.gradients import (
    DEPTHS,
    FARTHEST,
    RECURRENT,
    TRANSFORMERS,
    Network,
    add_norms,
    depth_norms,
    draw,
    gradient_norms,
    make_layers,
    read_recurrent,
)
from bench.claims.recurrence.gradients import figures as shares
from bench.claims.words.meaning import split_words
from tfm.model.layout import Layout
from tfm.model.masks import causal_mask
from tfm.model.recurrent.cells import CELLS
from tfm.model.recurrent.steps import TimeMajorPacking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_LINES, UPDATES, RATE, CLIP_NORM = 4000, 200, 3e-3, 1.0
DIM, LAYERS, DEPTH, DRAWS = 64, 2, 24, 10
TEXTS_A_BATCH, DEPTH_LENGTH, LAST = 8, 32, 20


class Reader(nn.Module):
    """An embedding, layers that read texts of one length from left to right, and the output layer.

    Args:
        layers: of a Transformer, or recurrent cells.
        num_words: of the vocabulary.
        dim: of a row.
        is_recurrent: whether the layers are cells.
    """

    def __init__(self, layers: Sequence[nn.Module], num_words: int, dim: int, is_recurrent: bool) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(num_words, dim), nn.Linear(dim, num_words)
        self.layers, self.is_recurrent = nn.ModuleList(layers), is_recurrent

    def reading(self, texts: int, length: int) -> Network:
        """The function of rows (texts * length, D) to rows."""
        layout = Layout.from_lengths(torch.full((texts,), length))
        if self.is_recurrent:
            steps = TimeMajorPacking(layout)
            read = read_recurrent([*self.layers], steps)
            return lambda rows: steps.unpack(read(steps.pack(rows)))
        mask = causal_mask(layout)

        def run(rows: Tensor) -> Tensor:
            for layer in self.layers:
                rows = layer(rows, layout, mask)
            return rows

        return run


def read_words(num_lines: int) -> tuple[Tensor, int]:
    """The German side of the built-in corpus as one text, numbers of words; and how many words there are."""
    from tfm.data.synthetic.grammar import generate

    words = [word for _, line in generate("train", num_lines, 1) for word in split_words(line)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return torch.tensor([numbers[word] for word in words]), len(numbers)


def train_reader(reader: Reader, words: Tensor, length: int, updates: int) -> float:
    """Train by Adam on windows of the text; return the mean loss of the last updates, in nats a word."""
    optimizer, losses = torch.optim.Adam(reader.parameters(), lr=RATE), []
    run = reader.reading(TEXTS_A_BATCH, length)
    for _ in range(updates):
        begins = torch.randint(len(words) - length - 1, (TEXTS_A_BATCH, 1))
        places = begins + torch.arange(length)
        optimizer.zero_grad()
        logits = reader.output(run(reader.embedding(words[places].flatten())))
        loss: Tensor = F.cross_entropy(logits, words[places + 1].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.parameters(), CLIP_NORM)
        optimizer.step()
        losses.append(float(loss.detach()))
    return sum(losses[-LAST:]) / len(losses[-LAST:])


def make_readers(dim: int, layers: int, num_words: int) -> dict[str, Reader]:
    """A reader of each kind with initial weights."""
    readers = {
        name: Reader([CELLS[cell](dim, dim, compute_dtype=torch.float32) for _ in range(layers)], num_words, dim, True)
        for name, cell in RECURRENT.items()
    }
    return readers | make_transformers(TRANSFORMERS, dim, layers, num_words)


def make_transformers(
    models: Mapping[str, Mapping[str, object]], dim: int, layers: int, num_words: int
) -> dict[str, Reader]:
    """Readers of so many layers of a Transformer."""
    return {
        name: Reader(make_layers({**model, "positions": "none"}, dim, layers), num_words, dim, False)
        for name, model in models.items()
    }


def measure(
    dim: int = DIM,
    length: int = FARTHEST + 28,
    layers: int = LAYERS,
    depth: int = DEPTH,
    draws: int = DRAWS,
    updates: int = UPDATES,
) -> Found:
    """Norms of gradients of one output as in `gradients`, of trained networks on texts that they know the kind of."""
    words, num_words = read_words(NUM_LINES)
    torch.manual_seed(1)
    readers, deep = make_readers(dim, layers, num_words), make_transformers(DEPTHS, dim, depth, num_words)
    by_distance = {name: [0.0] * length for name in readers}
    by_depth = {name: [0.0] * (depth + 1) for name in deep}
    losses: dict[str, dict[str, float]] = {
        "by_distance": {name: train_reader(each, words, length, updates) for name, each in readers.items()},
        "by_depth": {name: train_reader(each, words, DEPTH_LENGTH, updates) for name, each in deep.items()},
    }
    for number in range(draws):
        text = words[number * length : (number + 1) * length]
        for name, reader in readers.items():
            rows = reader.embedding(text).detach()
            add_norms(by_distance[name], gradient_norms(reader.reading(1, length), rows), draws)
        for name, reader in deep.items():
            rows = reader.embedding(text[:DEPTH_LENGTH]).detach()
            add_norms(by_depth[name], depth_norms([*reader.layers], rows), draws)
    return {"dim": dim, "layers": layers, "by_distance": by_distance, "by_depth": by_depth, "losses": losses}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: what is left of a gradient, and the losses."""
    texts = shares(data)
    for kind, losses in data["losses"].items():
        texts |= {f"loss, {kind.replace('_', ' ')}, {name}": f"{loss:.2f}" for name, loss in losses.items()}
    return texts


def draw_trained(data: Found) -> "Figure":
    """Norms over distance and over depth, on log axes."""
    return draw({key: data[key] for key in ("by_distance", "by_depth")})


CLAIM = Claim("gradients after training: recurrent networks still forget", measure, figures, draw_trained)
