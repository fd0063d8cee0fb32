"""Word order is lost without positions, whatever comes after: heads, feed-forward, more layers.

f(P X) = P f(X) for every permutation P of the rows X
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bench.claims.claim import Claim, Found
from bench.claims.runs import read_score, run_recipe
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_only import EncoderOnly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = ("john", "loves", "mary")
MIRROR = (2, 1, 0)  # mary loves john
POSITIONS = ("none", "sinusoidal", "rotary", "alibi")
STACKS: Mapping[str, Mapping[str, Any]] = {
    "1 head": {"layers": 1, "heads": 1, "feed_forward": "none"},
    "8 heads": {"layers": 1, "heads": 8, "feed_forward": "none"},
    "8 heads, FFN": {"layers": 1, "heads": 8},
    "6 layers of that": {"layers": 6, "heads": 8},
}
COPY_RECIPE = "recipes/claims/order.toml"


def measure(dim: int = 64) -> Found:
    """Measure how far outputs move beside their words, for every stack and scheme; and a copy task with and without."""
    changes = {name: {stack: measure_moved(name, stack, dim) for stack in STACKS} for name in POSITIONS}
    copies = {
        name: read_score(run_recipe(COPY_RECIPE, name, f"model.positions={name}"), "test.exact_match")
        for name in ("none", "sinusoidal")
    }
    return {"words": WORDS, "moved": changes, "copied": copies}


def measure_moved(positions: str, stack: str, dim: int) -> dict[str, float]:
    """The largest change of a word's output by another order, as a share of the outputs' size (root mean square).

    any: the largest of all orders; mirror: that of the words in reverse.
    """
    network = make_network(positions, STACKS[stack], dim)
    outputs = encode(network, range(len(WORDS)))
    size = outputs.square().mean().sqrt()
    orders = list(itertools.permutations(range(len(WORDS))))
    changes = [float((encode(network, order) - outputs[list(order)]).abs().max() / size) for order in orders]
    return {"any": max(changes), "mirror": changes[orders.index(MIRROR)]}


def make_network(positions: str, stack: Mapping[str, Any], dim: int) -> EncoderOnly:
    """An encoder with initial weights, for three words."""
    options = dict(stack)
    feed_forward = options.pop("feed_forward", "position_wise")
    config = {"architecture": "encoder_only", "task": "tagging", "positions": positions, "feed_forward": feed_forward}
    config["encoder"] = {"dim": dim, "feed_forward_dim": 4 * dim, **options}
    network = build(ModelConfig.model_validate(config), source_vocab=len(WORDS), target_vocab=2, seed=1)
    assert isinstance(network, EncoderOnly)
    return network.double().eval()


@torch.no_grad()
def encode(network: EncoderOnly, words: Sequence[int]) -> Tensor:
    """The outputs (3, D) of words by number, in double precision."""
    return network.encode(torch.tensor(list(words)), Layout.from_lengths(torch.tensor([len(words)])))


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    changes, deepest = data["moved"], [*STACKS][-1]
    largest = max(changes["none"][stack]["any"] for stack in STACKS)
    return {
        "largest change without positions, of four stacks": f"{largest:.0e}",
        "smallest change with sinusoids": f"{min(each['any'] for each in changes['sinusoidal'].values()):.2f}",
        "change by mirroring, ALiBi": f"{changes['alibi'][deepest]['mirror']:.0e}",
        "change by mirroring, rotary": f"{changes['rotary'][deepest]['mirror']:.2f}",
        "exact copies without positions": f"{data['copied']['none']:.1f} %",
        "exact copies with sinusoids": f"{data['copied']['sinusoidal']:.1f} %",
    }


def draw(data: Found) -> "Figure":
    """Bars of the change by scheme and stack, on a log axis, and of the copies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1))
    for offset, name in enumerate(data["moved"]):
        heights = [each["any"] for each in data["moved"][name].values()]
        left.bar([place + 0.2 * offset for place in range(len(heights))], heights, width=0.18, label=name)
    left.set_yscale("log")
    left.set_ylim(top=1e6)  # room for the legend
    left.set_xticks([place + 0.3 for place in range(len(STACKS))], [*STACKS])
    left.set_title("largest change of an output by another order of “john loves mary”", loc="left")
    left.legend(frameon=False, title="positions", ncols=4, loc="upper left")
    copy_scores = data["copied"]
    right.bar([*copy_scores], [*copy_scores.values()], color=["#e6550d", "#3182bd"])
    right.set_title("exact copies, %", loc="left")
    right.set_xlabel("positions")
    return figure


CLAIM = Claim("word order is lost without positions, whatever comes after", measure, figures, draw)
