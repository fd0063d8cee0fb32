"""Positions beyond those of training: strings four times as long to copy, windows of text eight times as long."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bench.claims.claim import Claim, Found
from bench.claims.runs import run_recipe
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_only import DecoderOnly
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/extrapolation.toml"
TEXT_RECIPE = "recipes/claims/longer-text.toml"
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "transformer_xl")
LENGTHS = (5, 10, 12, 15, 20, 30, 40)
MAX_TRAINED_LENGTH = 10
WINDOWS = (16, 32, 64, 128, 256)
WINDOW_TRAINED, END, STRIDE = 32, 16, 64


def measure(schemes: Sequence[str] = SCHEMES, lengths: Sequence[int] = LENGTHS, number: int = 100) -> Found:
    """Shares of strings copied exactly, by scheme and length; perplexity at the end of windows likewise."""
    import tfm

    exact: dict[str, list[float]] = {}
    perplexities: dict[str, list[float]] = {}
    for scheme in schemes:
        model = tfm.load(run_recipe(RECIPE, scheme, f"model.positions={scheme}"), device="cpu")
        exact[scheme] = []
        for length in lengths:
            strings = draw_strings(length, number)
            copies = model.translate(strings, beam=1, max_length=2 * length)
            exact[scheme].append(100 * sum(a == b for a, b in zip(copies, strings, strict=True)) / number)
        loaded = load_model(run_recipe(TEXT_RECIPE, scheme, f"model.positions={scheme}") / "model", "cpu")
        assert isinstance(loaded.model, DecoderOnly)
        ids = read_running_text(loaded.target_tokenizer, number * max(WINDOWS) // 4)
        perplexities[scheme] = [end_perplexity(loaded.model, ids, window) for window in WINDOWS]
    return {"lengths": list(lengths), "exact": exact, "windows": list(WINDOWS), "perplexities": perplexities}


def read_running_text(tokenizer: Tokenizer, number: int) -> Tensor:
    """So many ids of the lines of the test corpus one after another, each with its end."""
    from tfm.data.synthetic.grammar import generate

    ids: list[int] = []
    for _, german in generate("test", number // 4, 1):
        ids += [*tokenizer.encode(german), EOS_ID]
    return torch.tensor(ids[:number])


@torch.no_grad()
def end_perplexity(network: DecoderOnly, ids: Tensor, window: int) -> float:
    """Perplexity of the last END tokens of windows of running text, each read after a begin token.

    Windows of all lengths end at the same places, so that the same tokens are predicted.
    """
    losses = []
    for end in range(max(WINDOWS), len(ids) + 1, STRIDE):
        text = ids[end - window : end]
        read = torch.cat([torch.tensor([BOS_ID]), text[:-1]])
        log_probs = network.log_probs(network.hidden_states(read, Layout.from_lengths(torch.tensor([window]))))
        losses.append(-log_probs.gather(1, text[:, None])[-END:])
    return float(torch.cat(losses).mean().exp())


def draw_strings(length: int, number: int) -> list[str]:
    """Strings of the copy task, all of one length."""
    from tfm.data.synthetic.string_tasks import SYMBOLS

    draw = random.Random(length)
    return [" ".join(draw.choices(SYMBOLS, k=length)) for _ in range(number)]


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: exact copies and perplexities at the longest of training, and beyond."""
    lengths, windows = data["lengths"], data["windows"]
    texts = {
        f"{scheme}: exact copies of {length} symbols": f"{share:.0f} %"
        for scheme, exact in data["exact"].items()
        for length, share in zip(lengths, exact, strict=True)
        if length >= MAX_TRAINED_LENGTH
    }
    return texts | {
        f"{scheme}: perplexity, windows of {window}": f"{perplexity:.1f}"
        for scheme, perplexities in data["perplexities"].items()
        for window, perplexity in zip(windows, perplexities, strict=True)
        if window >= WINDOW_TRAINED
    }


def draw(data: Found) -> "Figure":
    """Both over length, the end of training as a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for scheme, values in data["exact"].items():
        left.plot(data["lengths"], values, marker=".", label=scheme)
        right.plot(data["windows"], data["perplexities"][scheme], marker=".", label=scheme)
    left.axvline(MAX_TRAINED_LENGTH, color="#999999", linewidth=0.8, linestyle="--")
    left.set_xlabel("symbols; the dashed line: the longest of training")
    left.set_title("strings copied exactly, %", loc="left")
    right.axvline(WINDOW_TRAINED, color="#999999", linewidth=0.8, linestyle="--")
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.set_xticks(data["windows"], [str(each) for each in data["windows"]])
    right.set_xlabel("words in a window; the dashed line: in training")
    right.set_title(f"perplexity of its last {END} words", loc="left")
    right.legend(frameon=False, title="positions")
    for axes in (left, right):
        axes.grid(alpha=0.25)
    return figure


CLAIM = Claim(
    "sinusoids do not reach beyond the lengths of training; ALiBi and relative positions do", measure, figures, draw
)
