"""Several recipes run in one command, and their runs side by side."""

import json
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from tests.cli.user import tfm
from tests.html_elements import Elements
from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.scoring.evaluation.segments import Segments

QUICK = ("--metric", "exact_match")  # the tests of BLEU take half a second a run
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
    assert done.out.count("main: 12 segments") == 2  # tables go to stdout, all else to stderr
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
    assert "none differs from tiny with p < 0.05 by approximate randomisation (10,000 trials)" in shown.err
    assert "main: this test set was scored 2 times, by 2 models" in shown.err
    assert "warning" not in shown.err
    lines = shown.out.splitlines()
    assert lines[0] == "2 runs"
    for heading in ("run", "parameters", "tokens/s", "updates", "training", "valid loss", "BLEU"):
        assert heading in lines[1]
    assert [line.split()[0] for line in lines[3:5]] == ["tiny", "other"]
    settings = lines.index("what differs from tiny")
    assert lines[settings + 3].split() == ["other", "model.norm", "post", "pre"]
    assert Path("both.svg").read_bytes().startswith(b"<?xml")
    assert "written: both.html" in shown.err
    page = Elements(Path("both.html").read_text("utf-8"))
    for heading in ("Figures", "Is the difference from tiny real?", "Where they differ: main"):
        assert heading in page.texts["h2"]
    for heading in ("What BLEU is made of, in percent", "F1 of words by how often training has them"):
        assert heading in page.texts["h3"]
    last = [cell.strip() for cell in lines[3].split("  ") if cell.strip()][-1]
    assert last in page.texts["td"]  # of the terminal's table

    found = json.loads(tfm("compare", "runs/tiny", "runs/other/model", "--json", *QUICK).out)
    assert [run["name"] for run in found["runs"]] == ["tiny", "other"]
    assert found["runs"][1]["differs"] == {"model.norm": "post"}
    assert all(figure["comparable"] for run in found["runs"] for figure in run["figures"].values())
    assert {"test.bleu", "valid.loss", "parameters", "tokens_per_second"} <= set(found["runs"][0]["figures"])

    best = sorted(found["runs"], key=lambda run: run["figures"]["valid.loss"]["value"])  # type: ignore[no-any-return]
    sorted_by_loss = tfm("compare", "runs/tiny", "runs/other", "--sort", "loss", "--json", *QUICK)
    assert [run["name"] for run in json.loads(sorted_by_loss.out)["runs"]] == [run["name"] for run in best]

    table = tfm("compare", "runs/tiny", "runs/other", "--markdown", *QUICK).out.splitlines()
    assert table[0].startswith("| run | parameters |")
    assert table[1].startswith("| --- | ---: |")
    assert table[4] == ""
    assert table[5].startswith("| run | metric | difference | 95 % interval | p bootstrap | p randomisation |")

    # BLEU of lower-cased text is another BLEU: it is marked, and it is said why.
    changed = tfm("run", recipes[1], "--set", "evaluation.lowercase=true")
    assert changed.code == 0, changed.err
    marked = tfm("compare", "runs/tiny", "runs/other", *QUICK)
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


LINES = [f"der Hund {number} läuft über die Straße" for number in range(119)] + [""]


def spoiled(name: str, every: int, *, seed: int = 1, norm: str = "pre") -> str:
    """A run whose model has lost two words of every so many lines."""
    said = [text if place % every else text[:-11] for place, text in enumerate(LINES)]
    run = make_run(Path(name), seed=seed, model={"norm": norm})
    return str(add_texts(run, {"test": Segments("test", LINES, said, [LINES])}, metrics=["bleu", "exact_match"]))


@pytest.mark.slow
def test_as_json_has_the_tests_of_sacrebleu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [spoiled("base", 2), spoiled("better", 6, norm="post")]
    done = tfm("compare", *runs, "--json", "--metric", "bleu", "--baseline", "better")
    assert done.code == 0, done.err
    found = json.loads(done.out)["runs"][0]["figures"]["test.bleu"]
    systems = [(name, Path(name, "translations/test.txt").read_text("utf-8").split("\n")[:-1]) for name in runs[::-1]]
    tested = {}
    for kind in ("bs", "ar"):
        _, scores = PairedTest(systems, {"bleu": BLEU()}, [LINES], test_type=kind)()
        tested[kind] = scores["BLEU"][1]
    assert (found["value"], found["spread"]) == (tested["bs"].score, tested["bs"].ci)
    versus = found["versus"]
    assert (versus["p_bootstrap"], versus["p_randomisation"]) == (tested["bs"].p_value, tested["ar"].p_value)
    assert versus["difference"] < 0
    assert versus["stands"]


def test_seeds_share_a_row_unless_each_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [
        spoiled(f"{norm}-{seed}", every + seed, seed=seed, norm=norm)
        for norm, every in (("pre", 1), ("post", 9))
        for seed in (1, 2)
    ]
    words = ("compare", *runs, "--metric", "exact_match")
    folded, each = tfm(*words), tfm(*words, "--each")
    assert folded.code == each.code == 0, folded.err + each.err
    assert [line.split("  ")[1] for line in folded.out.splitlines()[3:5]] == ["pre (2 seeds)", "post (2 seeds)"]
    assert "± of several seeds: their standard deviation" in folded.err
    assert "by a t-test over seeds and segments" in folded.err
    assert [line.split()[0] for line in each.out.splitlines()[3:7]] == runs
    assert "*: differs from pre-1 with p < 0.05 by approximate randomisation" in each.err
    both = json.loads(tfm(*words, "--json").out)
    assert [len(both["runs"]), len(both["rows"])] == [4, 2]
    latex = tfm(*words, "--latex")
    assert latex.out.startswith("% \\usepackage{booktabs}\n")
    assert "pre (2 seeds) & " in latex.out


def test_how_it_is_shown_is_asked_for_once_and_by_names_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = spoiled("run", 2)
    for words in (("--json", "--latex"), ("--markdown", "--latex")):
        refused = tfm("compare", run, *words)
        assert refused.code == 2
        assert "give one of --json, --markdown and --latex" in refused.err
    assert tfm("compare", run, "--metric", "ter").err == "--metric ter: these runs have bleu, exact_match\n"
    nowhere = tfm("compare", run, "--baseline", "nowhere")
    assert (nowhere.code, nowhere.err) == (65, "nowhere: there is no such folder\n")


def test_what_cannot_be_compared_is_said(recipe: Path) -> None:
    nowhere = tfm("compare", "runs/nowhere")
    assert nowhere.code == 65
    assert nowhere.err == "runs/nowhere: there is no such folder\n"
    assert tfm("compare", "runs/nowhere", "--json", "--markdown").code == 2
    assert tfm("compare").code == 2
    for option in ("--html", "--plot"):
        no_place = tfm("compare", "runs/nowhere", option, "missing/page.svg")
        assert (no_place.code, "missing" in no_place.err) == (73, True)
