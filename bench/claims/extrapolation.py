"""Positions beyond those of training: a copy task trained on up to 10 symbols, tested on up to 40."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/extrapolation.toml"
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "transformer_xl")
LENGTHS = (5, 10, 12, 15, 20, 30, 40)
LONGEST_TRAINED = 10


def measure(schemes: Sequence[str] = SCHEMES, lengths: Sequence[int] = LENGTHS, number: int = 100) -> Found:
    """Shares of strings copied exactly, and of symbols that stand where they should, by scheme and length."""
    import tfm

    exact: dict[str, list[float]] = {}
    right: dict[str, list[float]] = {}
    for scheme in schemes:
        model = tfm.load(run_recipe(RECIPE, scheme, f"model.positions={scheme}"), device="cpu")
        exact[scheme], right[scheme] = [], []
        for length in lengths:
            strings = draw_strings(length, number)
            copies = model.translate(strings, beam=1, max_length=2 * length)
            exact[scheme].append(100 * sum(a == b for a, b in zip(copies, strings, strict=True)) / number)
            right[scheme].append(100 * share_in_place(copies, strings))
    return {"lengths": list(lengths), "exact": exact, "right": right}


def draw_strings(length: int, number: int) -> list[str]:
    """Strings of the copy task, all of one length."""
    from tfm.data.synthetic.string_tasks import SYMBOLS

    draw = random.Random(length)
    return [" ".join(draw.choices(SYMBOLS, k=length)) for _ in range(number)]


def share_in_place(copies: Sequence[str], strings: Sequence[str]) -> float:
    """The share of symbols of the strings that the copies have at the same place."""
    pairs = [(copy.split(), string.split()) for copy, string in zip(copies, strings, strict=True)]
    right = sum(a == b for copy, string in pairs for a, b in zip(copy, string, strict=False))
    return right / sum(len(string) for _, string in pairs)


def figures(found: Found) -> dict[str, str]:
    """The figures that the text quotes: exact copies at the longest of training, and beyond."""
    lengths = found["lengths"]
    return {
        f"{scheme}: exact copies of {lengths[place]} symbols": f"{exact[place]:.0f} %"
        for scheme, exact in found["exact"].items()
        for place in (lengths.index(LONGEST_TRAINED), *range(lengths.index(LONGEST_TRAINED) + 1, len(lengths)))
    }


def draw(found: Found) -> "Figure":
    """Both shares over length, the end of training as a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (key, title) in zip(
        figure.subplots(1, 2, sharey=True),
        (("exact", "strings copied exactly, %"), ("right", "symbols in their place, %")),
        strict=True,
    ):
        for scheme, values in found[key].items():
            axes.plot(found["lengths"], values, marker=".", label=scheme)
        axes.axvline(LONGEST_TRAINED, color="#999999", linewidth=0.8, linestyle="--")
        axes.set_xlabel("symbols; the dashed line: the longest of training")
        axes.set_title(title, loc="left")
        axes.grid(alpha=0.25)
    axes.legend(frameon=False, title="positions")
    return figure


CLAIM = Claim(
    "sinusoids do not reach beyond the lengths of training; ALiBi and relative positions do", measure, figures, draw
)
