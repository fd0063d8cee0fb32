"""`tfm run --folds` and `[search] folds`: each fold is a run up to its model; nothing of a fold is trained on."""

import json
import math
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.corpora.portions import fold_number_of
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.tokenizer.special import UNK_ID

QUICK = tuple(
    word
    for setting in ("training.max_steps=2", "training.validation.bleu=false", "training.schedule.warmup_steps=1")
    for word in ("--set", setting)
)


@pytest.fixture
def rare(recipe: Path, corpora: Path) -> Path:
    """The recipe with words that occur in one fold alone, and each of their sentences twice, in two spellings."""
    lines = {side: (corpora / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en")}
    for number in range(30):
        lines["de"] += [f"nur{number} eins zwei", f"nur{number}   eins\u00a0zwei"]
        lines["en"] += [f"only{number} one two"] * 2
    for side, texts in lines.items():
        Path(f"rare.{side}").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    content = recipe.read_text(encoding="utf-8").replace(f"{corpora}/train.", "rare.")
    recipe.write_text(content.replace("vocab_size = 40", "vocab_size = 400\nmin_frequency = 1"), encoding="utf-8")
    return recipe


def test_each_fold_is_a_run_without_its_own_examples_and_the_mean_is_of_all(rare: Path) -> None:
    done = tfm("run", rare, "--folds", "3", *QUICK, "--json")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)
    runs = [Path("runs", f"tiny-fold-{number}") for number in (1, 2, 3)]
    assert [fold["run"] for fold in found["folds"]] == [run.name for run in runs]
    rows = []
    for number, run in enumerate(runs, 1):
        data = load_dataset(run / "dataset")
        assert not (run / "translations").exists()
        assert not (run / "scores").exists()
        # the fold is what its sentences' hashes say, and its own words are unknown to its tokenizer
        texts = data.valid.texts()[0]
        assert {fold_number_of(text, 3, 1) for text in texts} == {number}
        pieces = load_tokenizer_pair(run / "tokenizer")[0]
        words = {text.split()[0] for text in texts if text.startswith("nur")}
        assert 4 < len(words) < 16
        assert all(pieces.encode(word) == [UNK_ID] for word in words)
        assert sum(UNK_ID not in pieces.encode(f"nur{each}") for each in range(30)) == 30 - len(words)
        report = json.loads((run / "dataset" / "report.json").read_text(encoding="utf-8"))
        assert report["overlap"]["valid"]["sources"] == 0  # counted by pieces, not by texts
        rows.append((len(data.train), len(data.valid)))
        made = open_artifact(run / "model").figures
        figures = {key: each for key, each in made["validation"].items() if isinstance(each, float)}  # type: ignore[union-attr]
        assert found["folds"][number - 1]["figures"] == figures
        assert found["folds"][number - 1]["examples"] == len(data.valid)
    assert sum(valid for _, valid in rows) == 260
    assert {sum(each) for each in rows} == {260}
    losses = [fold["figures"]["loss"] for fold in found["folds"]]
    mean = sum(losses) / 3
    assert found["loss"]["mean"] == pytest.approx(mean, rel=1e-12)
    spread = math.sqrt(sum((loss - mean) ** 2 for loss in losses) / 2)
    assert found["loss"]["deviation"] == pytest.approx(spread, rel=1e-9)

    again = tfm("run", rare, "--folds", "3", *QUICK)
    assert again.err.count("nothing to do") == 9
    assert "tiny: validation of 3 folds" in again.out
    assert f"{mean:.4f} ± {spread:.4f}" in again.out


def test_seeds_share_folds_and_a_fold_that_fails_leaves_no_mean(recipe: Path) -> None:
    words = ("run", recipe, "--seeds", "3,4", "--folds", "2", *QUICK)
    done = tfm(*words)
    assert done.code == 0, done.err
    assert done.err.count("dataset: copied from runs/tiny-3-fold-") == 2
    assert [f"tiny-{seed}: validation of 2 folds" in done.out for seed in (3, 4)] == [True, True]
    rows = [open_artifact(Path(f"runs/tiny-{seed}-fold-2/dataset")).fingerprint for seed in (3, 4)]
    assert rows[0] == rows[1]
    broken = Path("runs/tiny-3-fold-2/dataset")
    broken.rename(Path("away"))
    broken.write_text("no folder")
    failed = tfm(*words, "--keep-going")
    assert failed.code != 0
    assert "1 of 4 recipes failed: tiny-3-fold-2" in failed.err
    assert "tiny-3: validation" not in failed.out
    assert "tiny-4: validation" in failed.out


def test_what_folds_cannot_do_is_told_before_anything_runs(recipe: Path) -> None:
    for words, problem in (
        (("--json",), "it prints the figures of --folds"),
        (("--folds", "1"), "greater than or equal to 2"),
        (("--set", "data.fold.number=3", "--set", "data.fold.of=2"), "there is no fold 3 of 2"),
    ):
        done = tfm("run", recipe, *words)
        assert done.code == 2
        assert problem in " ".join(done.err.replace("│", " ").split())
    assert not Path("runs").exists()


SEARCH = """
[search]
base = "tiny.toml"
method = "grid"
metric = "loss"
folds = 2
{more}

[search.space]
"training.schedule.peak" = {{ values = [0.0001, 0.02] }}
"""


@pytest.mark.slow
def test_a_search_chooses_by_the_mean_over_folds_and_its_final_is_trained_on_all(recipe: Path) -> None:
    Path("s.toml").write_text(SEARCH.format(more=""), encoding="utf-8")
    done = tfm("search", "s.toml", *QUICK, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    for trial in found["trials"]:
        runs = [Path("runs/s/trials", f"{trial['number']:04}-fold-{fold}") for fold in (1, 2)]
        losses = [open_artifact(run / "model").figures["validation"]["loss"] for run in runs]  # type: ignore[index,call-overload]
        assert trial["values"] == losses
        assert trial["value"] == pytest.approx(sum(losses) / 2, rel=1e-12)
        assert trial["updates"] == 4
        assert trial["validations"] == losses[:1]
    logs = [Path(f"runs/s/trials/{number:04}/log.txt").read_text(encoding="utf-8") for number in (0, 1)]
    assert [log.count("dataset: copied from") for log in logs] == [0, 2]
    page = Path("runs/s/search/report.html").read_text(encoding="utf-8")
    assert "by the mean loss of 2-fold cross-validation on the training data" in page
    assert "Nadeau and Bengio 2003" in page
    done = tfm("search", "s.toml", *QUICK, "--final")
    assert done.code == 0, done.err
    data = load_dataset(Path("runs/s-final/dataset"))
    assert (len(data.train), len(data.valid)) == (200, 20)
    assert Path("runs/s-final/scores/scores.json").exists()


@pytest.mark.slow
def test_folds_and_seeds_together_and_folds_of_the_command_line(recipe: Path) -> None:
    Path("s.toml").write_text(SEARCH.format(more="repeats = 2"), encoding="utf-8")
    done = tfm("search", "s.toml", *QUICK, "--folds", "3", "--json")
    assert done.code == 0, done.err
    for trial in json.loads(done.out)["trials"]:
        names = [f"{trial['number']:04}-fold-{fold}-{seed}" for fold in (1, 2, 3) for seed in (1, 2)]
        made = [open_artifact(Path("runs/s/trials", name, "model")) for name in names]
        assert [each.seed for each in made] == [1, 2] * 3
        assert trial["values"] == [each.figures["validation"]["loss"] for each in made]  # type: ignore[index,call-overload]
    assert tfm("search", "s.toml", *QUICK).code == 65  # two folds are another search


def test_what_folds_make_incomparable_is_refused(recipe: Path) -> None:
    for key, problem in (
        ("data.split_seed", "cannot be varied: figures of different texts do not compare"),
        ("data.fold.number", "cannot be varied: search.folds cross-validates"),
        ("data.train.0.size", "cannot be varied with search.folds: the folds are of these texts"),
    ):
        space = f'[search.space]\n"{key}" = {{ values = [1, 2] }}\n'
        Path("s.toml").write_text(SEARCH.format(more="").partition("[search.space]")[0] + space, encoding="utf-8")
        done = tfm("search", "s.toml")
        assert done.code == 2
        assert problem in " ".join(done.err.split())
    Path("s.toml").write_text(SEARCH.format(more=""), encoding="utf-8")
    done = tfm("search", "s.toml", "--set", "data.fold.number=1", "--set", "data.fold.of=4")
    assert done.code == 2
    assert "search.folds = 2 sets data.fold, which tiny.toml has too" in " ".join(done.err.split())
    assert not Path("runs").exists()


@pytest.mark.parametrize("command", ["run", "search"])
def test_more_folds_than_the_corpus_has_texts_are_refused_before_the_first_training(command: str, recipe: Path) -> None:
    file = recipe
    if command == "search":
        file = Path("some.toml")
        space = '"training.schedule.peak" = { values = [0.1] }'
        file.write_text(f'[search]\nbase = "tiny.toml"\nmethod = "grid"\n[search.space]\n{space}\n', "utf-8")
    refused = tfm(command, file, "--folds", "300")
    assert refused.code == 65
    assert refused.err.startswith("300 folds are too many for ")
    assert "would be empty; give fewer folds" in refused.err
    assert not Path("runs").exists()


def test_a_search_by_bleu_whose_folds_have_several_tokenizers_is_refused(recipe: Path) -> None:
    """Before the first training."""
    words, signs = ["eine Zeile mit Worten", "das ist lang"], ["我们今天去看电影", "他们很高兴"]
    seed, sources = load_recipe(recipe).data.split_seed, [f"line {number}" for number in range(40)]
    folds = [fold_number_of(source, 2, seed) for source in sources]
    for split in ("train", "valid"):
        Path(f"{split}.a").write_text("".join(f"{source}\n" for source in sources), encoding="utf-8")
        targets = [(words if fold == 1 else signs)[number % 2] for number, fold in enumerate(folds)]
        Path(f"{split}.b").write_text("".join(f"{target}\n" for target in targets), encoding="utf-8")
    corpora = "".join(f'[[data.{split}]]\nsource = "{split}.a"\ntarget = "{split}.b"\n' for split in ("train", "valid"))
    base = f'name = "mixed"\n[training]\nmax_steps = 2\n[training.validation]\nbleu = true\n{corpora}'
    Path("mixed.toml").write_text(base, encoding="utf-8")
    Path("s.toml").write_text(
        SEARCH.format(more="").replace("tiny.toml", "mixed.toml").replace('"loss"', '"bleu"'), encoding="utf-8"
    )
    refused = tfm("search", "s.toml")
    assert refused.code == 65, refused.err
    assert (
        "bleu has no mean, as it is tok:13a in fold 1 and tok:zh in fold 2; set evaluation.bleu_tokenize" in refused.err
    )
    assert not Path("runs").exists()
