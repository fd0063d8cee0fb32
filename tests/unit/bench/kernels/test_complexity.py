"""What a layer costs as sentences grow: the fit, the table, and the memory that theory says, measured exactly."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.kernels.complexity import doubling_lengths, draw_figures, fit_exponent, make_layers, make_tables
from bench.kernels.layers import make_passes, measure_layer, measure_peak
from tfm.model.config import ModelConfig

LENGTHS = [64, 128, 256, 512]
STACK = {"layers": 1, "dim": 32, "heads": 2, "feed_forward_dim": 32}
NAMES = list(make_layers(8, 1))
FULL, WRITTEN_OUT, WINDOW, RECURRENT, CONVOLUTION = NAMES
FOUND = {
    name: {"seconds": [1e-9 * n**power for n in LENGTHS], "peak": [100.0 * n for n in LENGTHS]}
    for name, power in zip(NAMES, (2, 2, 1, 1, 1), strict=True)
}


def config(name: str) -> ModelConfig:
    return ModelConfig.model_validate({**make_layers(8, 1)[name].model, "encoder": STACK, "decoder": STACK})


def test_lengths_double() -> None:
    assert doubling_lengths(64, 4096) == [64, 128, 256, 512, 1024, 2048, 4096]
    assert doubling_lengths(64, 500) == [64, 128, 256]
    assert doubling_lengths(64, 10) == [64]


def test_the_exponent_of_a_power_is_found_at_the_end() -> None:
    assert fit_exponent(LENGTHS, [9e9, *(7.0 * n**1.5 for n in LENGTHS[1:])]) == pytest.approx(1.5)


@pytest.mark.parametrize("name", NAMES)
def test_every_layer_has_its_figures(name: str) -> None:
    found = measure_layer(config(name).model_dump(), 32, 0.0)
    assert found["seconds"] > 0
    assert found["peak"] > 32 * 32 * 4  # the gradient of its rows at the least


@pytest.mark.slow
def test_memory_grows_as_theory_says() -> None:
    peaks = {name: [measure_peak(make_passes(config(name), length)) for length in (512, 1024)] for name in NAMES}
    assert peaks[WRITTEN_OUT] == [measure_peak(make_passes(config(WRITTEN_OUT), length)) for length in (512, 1024)]
    assert peaks[WRITTEN_OUT][1] > 3.5 * peaks[WRITTEN_OUT][0]
    for name in (FULL, WINDOW, RECURRENT, CONVOLUTION):
        assert peaks[name][1] < 3 * peaks[name][0], name
    heads, floats = 2, 4
    assert peaks[WRITTEN_OUT][1] >= 2 * floats * heads * 1024**2  # the weights and their gradients


def test_the_tables_show_theory_beside_what_was_found() -> None:
    (_, columns, theory), (_, lengths, times), (_, _, memory) = make_tables(FOUND, LENGTHS, 8, 1)
    assert columns[0] == "layer"
    assert theory[0] == [FULL, "O(n^2 d)", "O(1)", "O(1)", "n^2.00", "n^1.00"]
    assert theory[3] == [RECURRENT, "O(n d^2)", "O(n)", "O(n)", "n^1.00", "n^1.00"]
    assert lengths == ["n", "64", "128", "256", "512"]
    assert times[2][0] == WINDOW
    assert times[0][-1] == "0.26"
    assert memory[0][-1] == "0.05"


@pytest.mark.slow
def test_the_plot_has_every_layer_with_its_exponent_and_is_the_same_each_time(tmp_path: Path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        draw_figures(FOUND, LENGTHS, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    text = "".join(ElementTree.parse(files[0]).getroot().itertext())
    assert f"{FULL}: n^2.00" in text
    assert all(name in text for name in NAMES)


@pytest.mark.parametrize(
    ("words", "said"), [(["--longest", "128"], "an exponent needs"), (["--plot", "x.pdf"], ".svg or a .png")]
)
def test_what_cannot_be_is_refused(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["complexity", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())


@pytest.mark.slow
def test_the_bench_runs_and_keeps_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    words = ["--shortest", "16", "--longest", "64", "--dim", "16", "--seconds", "0.001", "--rounds", "1"]
    done = CliRunner().invoke(app, ["complexity", *words, "--json", str(file)])
    assert done.exit_code == 0, done.output
    content = json.loads(file.read_text())
    assert content["options"]["lengths"] == [16, 32, 64]
    assert all(len(each["peak"]) == 3 for each in content["found"].values())
