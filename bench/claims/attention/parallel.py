"""Attention is parallel over positions in training, and goes one by one in decoding.

Legend: n tokens · K width of a head.
"""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bench.claims.claim import Claim, Found
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_only import DecoderOnly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (16, 32, 64, 128, 256, 512)
NUM_PIECES = 1000
LOOP, MATRIX = "attention, a loop over queries", "attention, one product of matrices"
TRAIN, DECODE = "a training step on n tokens", "decoding n tokens one by one"


def measure(lengths: Sequence[int] = LENGTHS, dim: int = 128, layers: int = 2, budget: float = 0.3) -> Found:
    """Milliseconds of processor time by n, the fastest of several runs, with one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        network = make_network(dim, layers, max(lengths))
        milliseconds: dict[str, list[float]] = {name: [] for name in (LOOP, MATRIX, TRAIN, DECODE)}
        for length in lengths:
            query, key, value = torch.randn(3, length, dim, generator=torch.Generator().manual_seed(length))
            tokens = torch.arange(length) % NUM_PIECES
            runs: dict[str, Callable[[], object]] = {
                LOOP: partial(attend_by_loop, query, key, value),
                MATRIX: partial(attend_at_once, query, key, value),
                TRAIN: partial(take_gradients, network, tokens),
                DECODE: partial(decode_steps, network, tokens),
            }
            for name, run in runs.items():
                milliseconds[name].append(1000 * fastest_seconds(run, budget))
    finally:
        torch.set_num_threads(threads)
    return {"lengths": list(lengths), "dim": dim, "layers": layers, "milliseconds": milliseconds}


def attend_by_loop(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(q_t . K / sqrt(K)) V of each query in turn: (n, K), (n, K), (n, K) -> (n, K)."""
    scale = math.sqrt(query.shape[1])
    return torch.stack([torch.softmax(key @ each / scale, 0) @ value for each in query])


def attend_at_once(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(K)) V: (n, K), (n, K), (n, K) -> (n, K)."""
    return torch.softmax(query @ key.t() / math.sqrt(query.shape[1]), -1) @ value


def make_network(dim: int, layers: int, length: int) -> DecoderOnly:
    """A language model with initial weights."""
    stack = {"layers": layers, "dim": dim, "heads": 4, "feed_forward_dim": 4 * dim}
    config = {"architecture": "decoder_only", "task": "language_model", "decoder": stack, "max_length": length}
    config["dropout"] = {"residual": 0.0, "embedding": 0.0}
    network = build(ModelConfig.model_validate(config), source_vocab=NUM_PIECES, target_vocab=NUM_PIECES, seed=1)
    assert isinstance(network, DecoderOnly)
    return network.eval()


def take_gradients(network: DecoderOnly, tokens: Tensor) -> Tensor:
    """Loss of a text (n,) by teacher forcing, all positions at once, and the gradients of all weights."""
    hidden = network.hidden_states(tokens, Layout.from_lengths(torch.tensor([len(tokens)])))
    loss = torch.nn.functional.cross_entropy(network.output(hidden), tokens)
    torch.autograd.grad(loss, list(network.parameters()))
    return hidden.detach()


@torch.no_grad()
def decode_steps(network: DecoderOnly, tokens: Tensor) -> Tensor:
    """Read a text (n,) token by token with a cache; return log-probabilities (n, V) of the next pieces."""
    state, log_probs = network.empty_state(1), []
    for token in tokens:
        predict, state = network.step(token.view(1), state)
        log_probs.append(predict(torch.tensor([0]))[0])
    return torch.stack(log_probs)


def fastest_seconds(run: Callable[[], object], budget: float) -> float:
    """The least seconds of processor time of a run, of five or as many as fit into the budget."""
    run()
    durations: list[float] = []
    while len(durations) < 5 or sum(durations) < budget:
        start = time.process_time()
        run()
        durations.append(time.process_time() - start)
    return min(durations)


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: ratios at the shortest and the longest."""
    lengths, milliseconds = data["lengths"], data["milliseconds"]
    texts = {}
    for index, length in ((0, lengths[0]), (-1, lengths[-1])):
        texts[f"loop over matrix, n = {length}"] = f"{milliseconds[LOOP][index] / milliseconds[MATRIX][index]:.1f}"
        texts[f"decoding over training step, n = {length}"] = (
            f"{milliseconds[DECODE][index] / milliseconds[TRAIN][index]:.1f}"
        )
    texts[f"ms of a training step, n = {lengths[-1]}"] = f"{milliseconds[TRAIN][-1]:.0f}"
    texts[f"ms of decoding, n = {lengths[-1]}"] = f"{milliseconds[DECODE][-1]:.0f}"
    return texts


def draw(data: Found) -> "Figure":
    """Milliseconds over n, on log axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, names in zip(figure.subplots(1, 2), ((LOOP, MATRIX), (DECODE, TRAIN)), strict=True):
        for name in names:
            axes.plot(data["lengths"], data["milliseconds"][name], marker=".", label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(data["lengths"], [str(each) for each in data["lengths"]])
        axes.set_xlabel("n")
        axes.set_title("milliseconds of processor time, one thread", loc="left")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


CLAIM = Claim("parallel over positions in training, one by one in decoding", measure, figures, draw)
