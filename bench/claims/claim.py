"""A claim of a lecture: its sentence, what measures it, its figures and its picture, and how these are kept."""

import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.processes import ROOT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMS_FOLDER = ROOT / "docs" / "images" / "claims"
NUM_DIGITS = 6  # that are kept of a measured number

Found = Mapping[str, Any]
"""The data of a claim, as JSON: numbers, texts, lists and objects of them."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a lecture that can be measured.

    Args:
        sentence: the claim, as a lecture says it.
        measure: () -> the data.
        figures: the data -> the figures that a text quotes, as text, by what they are.
        draw: the data -> the picture.
    """

    sentence: str
    measure: Callable[[], Found]
    figures: Callable[[Found], dict[str, str]]
    draw: Callable[[Found], "Figure"]


def measure_claim(name: str, claim: Claim) -> dict[str, Any]:
    """The document of a claim: its figures and data, how long they took, on which machine."""
    import torch

    from tfm.pipeline.artifacts.provenance import describe_hardware, package_versions

    start = time.perf_counter()
    data = round_numbers(claim.measure())
    seconds = round(time.perf_counter() - start, 1)
    machine = {"cpu": describe_hardware()["cpu"], "threads": torch.get_num_threads(), "versions": package_versions()}
    head = {"claim": name, "sentence": claim.sentence, "figures": claim.figures(data)}
    return {**head, "found": data, "seconds": seconds, **machine}


def save_claim(document: Mapping[str, Any], claim: Claim, folder: Path) -> tuple[Path, Path]:
    """Write NAME.json and NAME.svg; return both files."""
    from tfm.pipeline.artifacts.files import write_text_atomically

    folder.mkdir(parents=True, exist_ok=True)
    data, picture = (folder / f"{document['claim']}.{suffix}" for suffix in ("json", "svg"))
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items()]
    write_text_atomically(data, "{\n" + ",\n".join(lines) + "\n}\n")
    write_text_atomically(picture, render_svg(claim, document["found"]))
    return data, picture


def render_svg(claim: Claim, data: Found) -> str:
    """The picture of a claim; the same data give the same bytes."""
    import matplotlib

    from tfm.pipeline.reports.training_curves import PLOT_STYLE

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure, buffer = claim.draw(data), io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def round_numbers(value: Any) -> Any:
    """The same data with numbers of NUM_DIGITS digits, and keys that JSON can have."""
    if isinstance(value, Mapping):
        return {str(key): round_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(each) for each in value]
    return float(f"{value:.{NUM_DIGITS}g}") if isinstance(value, float) else value
