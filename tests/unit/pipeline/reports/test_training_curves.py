"""Curves: every panel is drawn from its own figures, and the same figures give the same bytes."""

import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from tests.tiny_training import run, training, write_dataset
from tfm.pipeline.reports import training_curves
from tfm.pipeline.reports.training_curves import PLOT_STYLE, curves_svg, draw_curves, escape_label, read_metrics

TRAIN = {"event": "train", "epoch": 1, "tokens_per_second": 1e4, "gradient_norm": 1.0, "seconds": 1.0}
VALID = {"event": "valid", "epoch": 1, "accuracy": 0.5, "seconds": 1.0}
METRICS: list[dict[str, object]] = [
    {**TRAIN, "step": 50, "loss": 6.0, "nll": 5.5, "learning_rate": 1e-4},
    {**TRAIN, "step": 100, "loss": 5.0, "nll": 4.5, "learning_rate": 2e-4},
    {**VALID, "step": 100, "loss": 4.0, "perplexity": 54.6, "bleu": 3.0},
    {**TRAIN, "step": 150, "loss": float("nan"), "nll": float("inf"), "learning_rate": 2e-4},
    {**VALID, "step": 150, "loss": 3.0, "perplexity": 20.1, "bleu": None},
]


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_curves, "curves_svg", curves_svg)  # other tests have something quicker in its place


@pytest.mark.slow
def test_a_training_draws_what_its_metrics_say(tmp_path: Path) -> None:
    run(write_dataset(tmp_path / "dataset"), tmp_path / "run", training(max_steps=5, validation={"bleu": False}))
    folder = tmp_path / "run" / "training"
    assert (folder / "curves.svg").read_text("utf-8") == curves_svg(read_metrics(folder / "metrics.jsonl"))
    assert "<path" in (folder / "curves.svg").read_text("utf-8")


def test_the_picture_names_its_panels_and_lines(tmp_path: Path) -> None:
    draw_curves(METRICS, tmp_path / "curves.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["curves.svg"]
    text = "".join(ElementTree.parse(tmp_path / "curves.svg").getroot().itertext())
    for word in ("loss a target token", "learning rate", "perplexity", "BLEU", "train, smoothed", "validation", "step"):
        assert word in text
    assert "no figures yet" not in text


@pytest.mark.slow
def test_the_same_metrics_give_the_same_bytes() -> None:
    assert curves_svg(METRICS) == curves_svg(METRICS)
    assert curves_svg(METRICS) != curves_svg(METRICS[:3])


def test_nothing_yet_is_said_in_every_panel() -> None:
    assert curves_svg([]).count("no figures yet") == 4


@pytest.mark.slow
def test_only_what_validation_finds_has_a_panel() -> None:
    def titles(*missing: str) -> set[str]:
        lines = [{key: value for key, value in line.items() if key not in missing} for line in METRICS]
        text = curves_svg(lines)
        assert "no figures yet" not in text
        return {title for title in ("perplexity", "BLEU", "accuracy") if title in text}

    assert titles() == {"perplexity", "BLEU"}
    assert titles("bleu") == {"perplexity", "accuracy"}
    assert titles("bleu", "perplexity") == {"accuracy"}


def test_a_line_being_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    whole = json.dumps(METRICS[0]) + "\n" + json.dumps(METRICS[1]) + "\n"
    file.write_text(whole + '{"event": "tra')
    assert read_metrics(file) == METRICS[:2]


def test_a_label_is_no_equation_and_fits_into_an_svg() -> None:
    name = "<img src=x onerror=alert(1)> $\\frac$ \x1b[31m\u202e"
    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure()
        figure.subplots().set_xlabel(escape_label(name))
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg")
    root = ElementTree.fromstring(buffer.getvalue())
    assert "<img src=x onerror=alert(1)> $\\frac$ \\x1b[31m\\u202e" in [each.text for each in root.iter()]
