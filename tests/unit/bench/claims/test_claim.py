"""How claims are listed, measured and kept."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.claims.claim import Claim, Found, measure_claim, round_numbers, save_claim
from bench.claims.registry import CLAIMS


def draw(found: Found):  # type: ignore[no-untyped-def]
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot(found["values"], label=found["name"])
    figure.legend()
    return figure


CLAIM = Claim(
    "thirds are long", lambda: {"values": [1 / 3, 2], "name": "thirds"}, lambda found: {"first": "0.33"}, draw
)


def test_alone_the_command_lists_every_claim_with_its_sentence() -> None:
    done = CliRunner().invoke(app, ["claim"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert all(name in said for name in CLAIMS)
    assert CLAIMS["sinusoids"].sentence in said


def test_a_claim_that_there_is_not_is_refused() -> None:
    done = CliRunner().invoke(app, ["claim", "perpetuum"])
    assert done.exit_code == 2
    assert "there is no claim 'perpetuum'" in " ".join(done.output.replace("│", " ").split())


def test_data_and_picture_are_kept_and_the_same_each_time(tmp_path: Path) -> None:
    document = measure_claim("thirds", CLAIM)
    data, picture = save_claim(document, CLAIM, tmp_path / "new")
    kept = json.loads(data.read_text("utf-8"))
    assert kept["found"] == {"values": [0.333333, 2], "name": "thirds"}
    assert kept["figures"] == {"first": "0.33"}
    first = picture.read_bytes()
    save_claim(kept, CLAIM, tmp_path / "new")
    assert picture.read_bytes() == first
    assert b"thirds" in first


@pytest.mark.parametrize(
    ("value", "rounded"), [(1 / 3, 0.333333), ({4: (1, 2 / 3)}, {"4": [1, 0.666667]}), ("0.1234567", "0.1234567")]
)
def test_numbers_keep_six_digits(value: object, rounded: object) -> None:
    assert round_numbers(value) == rounded


def test_a_claim_is_written_where_the_command_says(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["claim", "sinusoids", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {each.name for each in tmp_path.iterdir()} == {"sinusoids.json", "sinusoids.svg"}
    assert "longest wavelength" in done.stdout
