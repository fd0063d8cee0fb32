"""A state is a bottleneck, and attention removes it: copying by length, with LSTMs and a Transformer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_lines
from bench.claims.positions.extrapolation import draw_strings
from bench.claims.runs import run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/bottleneck.toml"
LENGTHS = tuple(range(3, 11))


def recurrent(dim: int, *sets: str) -> tuple[str, ...]:
    """The settings of an LSTM with one layer a side."""
    stacks = [f"model.{side}.{key}" for side in ("encoder", "decoder") for key in (f"dim={dim}", "layers=1")]
    return ("model.architecture=recurrent", "model.embedding_dim=64", *stacks, *sets)


ATTENTION = ("model.recurrent.attention=bahdanau", "model.decoder.heads=1")
MODELS: Mapping[str, Sequence[str]] = {
    "LSTM, state of 32": recurrent(32),
    "LSTM, state of 128": recurrent(128),
    "the same, source read backwards": recurrent(128, "model.recurrent.reverse_source=true"),
    "LSTM of 32 with attention": recurrent(32, *ATTENTION),
    "LSTM of 128 with attention": recurrent(128, *ATTENTION),
    "Transformer": (),
}


def measure(lengths: Sequence[int] = LENGTHS, number: int = 200) -> Found:
    """Shares of strings copied exactly, by model and length."""
    import tfm

    exact: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for name, sets in MODELS.items():
        short = name.replace(",", "").replace(" ", "-")
        run = run_recipe(RECIPE, short, *sets)
        model, exact[name] = tfm.load(run, device="cpu"), []
        sizes[name] = int(tfm.read_run(run).figures["parameters"].score)
        for length in lengths:
            strings = draw_strings(length, number)
            copies = model.translate(strings, beam=1)
            exact[name].append(100 * sum(a == b for a, b in zip(copies, strings, strict=True)) / number)
    return {"lengths": list(lengths), "exact": exact, "parameters": sizes}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: the shortest and the longest strings."""
    texts = {f"{name}: parameters": f"{size:,}" for name, size in data["parameters"].items()}
    for index, length in ((0, data["lengths"][0]), (-1, data["lengths"][-1])):
        for name, exact in data["exact"].items():
            texts[f"{name}: exact copies of {length} symbols"] = f"{exact[index]:.0f} %"
    return texts


def draw(data: Found) -> "Figure":
    """Exact copies over length."""
    lengths, exact = data["lengths"], data["exact"]
    figure, _ = draw_lines(lengths, exact, xlabel="symbols", title="strings copied exactly, %")
    return figure


CLAIM = Claim("a state is a bottleneck; attention removes it", measure, figures, draw)
