"""Several recipes run in one command, and their runs side by side."""

import json
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.html_elements import Elements

OTHER = 'extends = "tiny.toml"\n\n[model]\nnorm = "post"\n'


@pytest.fixture
def recipes(recipe: Path) -> list[Path]:
    other = recipe.with_name("other.toml")
    other.write_text(OTHER, encoding="utf-8")
    return [recipe, other]


def test_runs_share_what_is_the_same_and_are_compared(recipes: list[Path]) -> None:
    words = ("run", *recipes, "--set", "training.log_every=5")
    done = tfm(*words)
    assert done.code == 0, done.err
    assert done.out == ""
    heads = [line for line in done.err.splitlines() if line.startswith("==")]
    assert heads == ["== tiny (1 of 2)", "== other (2 of 2)"]
    rest = done.err[done.err.index(heads[1]) :]
    for artifact in ("tokenizer", "dataset"):
        assert f"{artifact}: copied from runs/tiny/{artifact}" in rest
        assert f"{artifact}: up to date" in rest
    again = tfm(*words)
    assert again.err.count("nothing to do") == 10
    assert "copied" not in again.err

    shown = tfm("compare", "runs/tiny", "runs/other", "--plot", "both.svg", "--html", "both.html")
    assert shown.code == 0, shown.err
    assert "none differs from tiny: p < 0.05 by approximate randomisation (10,000 trials)" in shown.err
    assert "main: this test set was looked at 2 times, by 2 models" in shown.err
    assert "warning" not in shown.err
    lines = shown.out.splitlines()
    assert lines[0] == "2 runs"
    for heading in ("run", "parameters", "tokens/s", "updates", "training", "valid loss", "BLEU", "differs"):
        assert heading in lines[1]
    assert lines[3].split()[:2] == ["tiny", "transformer"]
    assert lines[4].endswith("model.norm = post")
    assert Path("both.svg").read_bytes().startswith(b"<?xml")
    assert "written: both.html" in shown.err
    page = Elements(Path("both.html").read_text("utf-8"))
    for heading in ("Figures", "Is the difference from tiny real?", "Where they differ: main"):
        assert heading in page.texts["h2"]
    for heading in ("What BLEU is made of, in percent", "F1 of words by how often training has them"):
        assert heading in page.texts["h3"]
    assert lines[3].split()[-1] in page.texts["td"]  # of the terminal's table

    found = json.loads(tfm("compare", "runs/tiny", "runs/other/model", "--json").out)
    assert [run["name"] for run in found["runs"]] == ["tiny", "other"]
    assert found["runs"][1]["differs"] == {"model.norm": "post"}
    assert all(figure["comparable"] for run in found["runs"] for figure in run["figures"].values())
    assert {"test.bleu", "valid.loss", "parameters", "tokens_per_second"} <= set(found["runs"][0]["figures"])

    best = sorted(found["runs"], key=lambda run: run["figures"]["valid.loss"]["value"])  # type: ignore[no-any-return]
    sorted_by_loss = tfm("compare", "runs/tiny", "runs/other", "--sort", "loss", "--json")
    assert [run["name"] for run in json.loads(sorted_by_loss.out)["runs"]] == [run["name"] for run in best]

    table = tfm("compare", "runs/tiny", "runs/other", "--markdown").out.splitlines()
    assert table[0].startswith("| run | architecture | parameters |")
    assert table[1].startswith("| --- | --- | ---: |")
    assert table[4] == ""
    assert table[5].startswith("| run | metric | difference | 95 % interval | p bootstrap | p randomisation |")

    # BLEU of lower-cased text is another BLEU: it is marked, and it is said why.
    changed = tfm("run", recipes[1], "--set", "evaluation.lowercase=true")
    assert changed.code == 0, changed.err
    marked = tfm("compare", "runs/tiny", "runs/other")
    assert "†" in marked.out.splitlines()[4]
    assert "†: not comparable with tiny" in marked.err
    assert "case:lc instead of case:mixed" in marked.err


def test_all_recipes_are_read_before_the_first_is_run(recipes: list[Path]) -> None:
    recipes[1].write_text(OTHER.replace("post", "sideways"), encoding="utf-8")
    done = tfm("run", *recipes)
    assert done.code == 2
    assert "model.norm" in done.err
    assert not Path("runs").exists()
    recipes[1].write_text('name = "tiny"\n' + OTHER, encoding="utf-8")
    done = tfm("run", *recipes)
    assert done.code == 2
    assert 'have the same name, "tiny"' in done.err
    assert not Path("runs").exists()


def test_keep_going_runs_the_rest_and_ends_with_the_error(recipes: list[Path]) -> None:
    recipes[1].write_text(OTHER + '\n[data.valid]\nsource = "nowhere.de"\n', encoding="utf-8")
    for words in ((), ("--keep-going",)):
        done = tfm("run", recipes[1], recipes[0], *words)
        assert done.code == 65
        assert "nowhere.de" in done.err
        assert Path("runs/tiny/scores").exists() == bool(words)
    assert "other failed: nowhere.de" in done.err
    assert done.err.splitlines()[-1] == "1 of 2 recipes failed: other"


def test_what_cannot_be_compared_is_said(recipe: Path) -> None:
    nowhere = tfm("compare", "runs/nowhere")
    assert nowhere.code == 65
    assert nowhere.err == "runs/nowhere: there is no such folder\n"
    assert tfm("compare", "runs/nowhere", "--json", "--markdown").code == 2
    assert tfm("compare").code == 2
    for option in ("--html", "--plot"):
        no_place = tfm("compare", "runs/nowhere", option, "missing/page.svg")
        assert (no_place.code, "missing" in no_place.err) == (73, True)
