"""A larger model needs more data to be worth its size: BLEU by width and number of pairs, after as many updates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_lines, mark_log_axis
from bench.claims.runs import map_runs
from bench.claims.training.data import SIZES, TRANSFORMER, read_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = (32, 64, 128)
SEED, RECIPE_WIDTH = 1, 64


def width_settings(width: int) -> list[str]:
    """The settings of a Transformer of a width, four times as wide in its feed-forward layers."""
    if width == RECIPE_WIDTH:
        return []
    keys = f"dim={width}", f"feed_forward_dim={4 * width}"
    return [f"model.{side}.{key}" for side in ("encoder", "decoder") for key in keys]


def model_name(width: int) -> str:
    """The name of the model of a width; that of the claim `data` is not trained again."""
    return TRANSFORMER if width == RECIPE_WIDTH else f"{TRANSFORMER}-{width}"


def measure(widths: Sequence[int] = WIDTHS, sizes: Sequence[int] = SIZES) -> Found:
    """BLEU of the test set and the lowest validation loss, by width and number of pairs."""
    points = [(width, size) for width in widths for size in sizes]
    trained = map_runs(lambda width, size: read_pairs(model_name(width), width_settings(width), size, SEED), points)
    scores = {str(width): [trained[width, size] for size in sizes] for width in widths}
    return {"sizes": list(sizes), "scores": scores}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    return {
        f"{key} of width {width}, {size:,} pairs": f"{scores[key]:.{digits}f}"
        for width, of_sizes in data["scores"].items()
        for size, scores in zip(data["sizes"], of_sizes, strict=True)
        for key, digits in (("bleu", 1), ("loss", 2))
    }


def draw(data: Found) -> "Figure":
    """BLEU over the number of pairs, a line for each width."""
    lines = {f"width {width}": [each["bleu"] for each in row] for width, row in data["scores"].items()}
    figure, axes = draw_lines(data["sizes"], lines, xlabel="pairs", title="test BLEU after as many updates")
    mark_log_axis(axes, data["sizes"])
    return figure


CLAIM = Claim("a larger model needs more data", measure, figures, draw)
