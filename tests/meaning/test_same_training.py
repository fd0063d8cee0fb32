"""What may not change a training or its scores: where it lies, what it is called, how often it is run; and what does
change it is said: another end of a schedule that comes down."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm
from tests.meaning import campaign, scripts
from tests.meaning.scripts import SCRIPTS

pytestmark = [pytest.mark.slow, pytest.mark.meaning("relations")]
SHORT = {"training.max_epochs": 3, "training.validation.every_epochs": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recipe_of(name: str, script: str = "Han") -> Path:
    """A recipe on a corpus that lies in the working folder."""
    corpora = Path(f"corpora-{script}")
    if not corpora.exists():
        scripts.write(corpora, SCRIPTS[script])
    return campaign.write_recipe(Path(f"{name}.toml"), corpora, SCRIPTS[script].kind)


def figures(run: campaign.Run) -> dict[str, Any]:
    """All scores of a run, and the rates, losses and accuracies of its training."""
    of_training = [
        {key: value for key, value in line.items() if "second" not in key}
        for event in ("train", "valid")
        for line in run.metrics(event)
    ]
    return {"scores": run.scores, "training": of_training}


def files_of(folder: Path) -> dict[str, bytes]:
    """All that lies in a run and is the same whenever and wherever it is made."""
    endings = (".json", ".safetensors", ".txt", ".arrow")
    files = [file for file in folder.rglob("*") if file.name.endswith(endings) and "training" not in file.parts]
    kept = [file for file in files if file.name not in ("manifest.json", "state.json")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in kept}


def test_a_run_by_another_name(record_property: Any) -> None:
    one, other = (campaign.run(recipe_of(name), SHORT) for name in ("one", "other"))
    assert figures(one) == figures(other)
    assert files_of(one.folder) == files_of(other.folder)
    shown = tfm("compare", one.folder, other.folder, "--json")
    runs = json.loads(shown.out)["runs"]
    assert all(figure["comparable"] for run in runs for figure in run["figures"].values())
    record_property("runs", 2)


@pytest.mark.parametrize("way", ["moved", "copied", "renamed"])
def test_a_run_that_was_moved_or_copied_is_fresh_and_scores_the_same(way: str, record_property: Any) -> None:
    done = campaign.run(recipe_of("first"), SHORT)
    before, files = done.scores, files_of(done.folder)
    name = "second" if way == "renamed" else "first"
    elsewhere = Path("runs" if way == "renamed" else "elsewhere/runs", name)
    elsewhere.parent.mkdir(parents=True, exist_ok=True)
    if way == "copied":
        shutil.copytree(done.folder, elsewhere, symlinks=True)
        shutil.rmtree(done.folder)
    else:
        done.folder.rename(elsewhere)
    assert files_of(elsewhere) == files
    scored = tfm("evaluate", "--model", elsewhere, "--source", "corpora-Han/test.src", "--reference",
                 "corpora-Han/test.tgt", "--set", "decoding.beam=1", "--json")  # fmt: skip
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["metrics"] == before["test"]["metrics"]
    words = ["--set", f"name={name}", *campaign.settings(SHORT)]
    if way != "renamed":
        shutil.move(elsewhere, done.folder)
    again = tfm("run", "first.toml", *words)
    assert again.code == 0, again.err
    assert again.err.count("nothing to do") == 5, again.err
    record_property("runs", 1)


def test_a_model_that_was_put_aside_stays_what_it_was(record_property: Any) -> None:
    """`mv runs/x/model runs/x/model-good`, and another training: the one put aside translates as before."""
    done = campaign.run(recipe_of("aside"), SHORT)
    model, good, copy = (done.folder / name for name in ("model", "model-good", "model-copy"))
    shutil.copytree(model, copy, symlinks=True)
    before = tfm("translate", model, "corpora-Han/test.src", "--beam", "1").out
    model.rename(good)
    campaign.run(recipe_of("aside"), SHORT | {"training.schedule.peak": 0.02, "training.schedule.name": "constant",
                                              "training.schedule.final": 0.0})  # fmt: skip
    assert tfm("translate", model, "corpora-Han/test.src", "--beam", "1").out != before
    for kept in (good, copy):
        said = tfm("translate", kept, "corpora-Han/test.src", "--beam", "1")
        assert said.code == 0, said.err
        assert said.out == before
    record_property("models", 2)


def test_seeds_share_what_comes_before_training_and_compare(record_property: Any) -> None:
    runs = [campaign.run(recipe_of(f"seed{seed}"), SHORT | {"seed": seed}) for seed in (1, 2)]
    for stage in ("tokenizer", "dataset"):
        assert len({run.json(f"{stage}/manifest.json")["fingerprint"] for run in runs}) == 1
    assert runs[0].metrics("valid")[-1]["loss"] != runs[1].metrics("valid")[-1]["loss"]
    found = json.loads(tfm("compare", *(run.folder for run in runs), "--json").out)["runs"]
    unlike = {name for run in found for name, each in run["figures"].items() if not each["comparable"]}
    assert not {name for name in unlike if name.startswith(("test.", "valid."))}
    record_property("runs", 2)


def test_twice_the_corpus_in_half_the_epochs_has_the_same_updates(record_property: Any) -> None:
    """Where cuts are the same: each sentence fills a batch of its own, and updates of 4 batches divide the epoch."""
    script, found = SCRIPTS["Hangul"], []
    pairs = script.pairs(40, 1, 8, 8)
    for name, times, epochs in (("once", 1, 8), ("twice", 2, 4)):
        corpora = scripts.write_pairs(Path(name), {"train": pairs * times, "valid": pairs[:4], "test": pairs[:4]})
        recipe = campaign.write_recipe(Path(f"{name}.toml"), corpora.folder, "char")
        length = max(len(text) + 1 for pair in pairs for text in pair)
        assert all(2 * (max(map(len, pair)) + 1) > length for pair in pairs)
        changes = {"data.batch_tokens": length, "training.max_epochs": epochs, "training.accumulate": 4}
        run = campaign.run(recipe, changes | {"training.validation.bleu": False})
        found.append([line["learning_rate"] for line in run.metrics("train")])
        assert run.json("model/manifest.json")["figures"]["updates"] == len(found[-1])
    assert len(found[0]) == 40 // 4 * 8
    assert found[0] == found[1]
    record_property("updates", len(found[0]) * 2)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "warmup_stable_decay"])
def test_another_end_of_a_schedule_that_comes_down(schedule: str, record_property: Any) -> None:
    """Longer is refused with the choices, or told wherever its figures are; it never passes for a fresh one."""
    changes = {"training.schedule.name": schedule, "training.max_steps": 12, "training.validation.every_epochs": 1}
    if schedule == "warmup_stable_decay":
        changes["training.schedule.decay_steps"] = 5
    run = campaign.run(recipe_of("longer"), changes)
    words = campaign.settings(changes | {"training.max_steps": 24})
    said = tfm("run", "longer.toml", *words)
    if said.code == 0:
        assert "longer" in tfm("compare", run.folder).err
    else:
        assert said.code == 2
        assert schedule in said.err
        assert "init_from" in said.err or "--init-from" in said.err
        assert len(run.metrics("train")) == 12
    record_property("trainings", 1)


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "noam"])
def test_a_training_that_goes_on_is_one_that_never_stopped(schedule: str, record_property: Any) -> None:
    """A schedule without an end: 12 updates and then 24 are 24 at once, to the byte."""
    changes: dict[str, Any] = {"training.schedule.name": schedule, "training.validation.every_epochs": 1}
    changes["training.schedule.final"] = 0.0
    for name, steps in (("parts", 12), ("parts", 24), ("whole", 24)):
        run = campaign.run(recipe_of(name), changes | {"training.max_steps": steps})
    weights = [Path("runs", name, "model", "model.safetensors").read_bytes() for name in ("parts", "whole")]
    assert weights[0] == weights[1]
    assert len(run.metrics("train")) == 24
    record_property("trainings", 3)


@pytest.mark.parametrize(
    ("script", "evaluation"),
    [
        ("Han", {"evaluation.bleu_tokenize": "zh"}),
        ("kana", {"evaluation.bleu_tokenize": "char"}),
        ("Thai", {}),
        ("Greek", {"evaluation.lowercase": True}),
        ("Latin", {"evaluation.bleu_tokenize": "none"}),
    ],
)
def test_the_best_checkpoint_by_bleu_is_the_best_by_evaluations_bleu(
    script: str, evaluation: dict[str, Any], record_property: Any
) -> None:
    """Early stopping by BLEU: validation and evaluation have one config, one signature, one figure; the checkpoint that
    is published has the best of all validations."""
    wanted = {"training.early_stopping.metric": "bleu", "training.max_epochs": 20, "training.keep.best": 1}
    run = campaign.run(recipe_of("best", script), wanted | evaluation | {"training.validation.every_epochs": 4})
    found = [line["bleu"] for line in run.metrics("valid")]
    published = run.json("model/manifest.json")["figures"]
    assert max(found) == published["validation"]["bleu"] > 1
    assert published["steps"] == [run.metrics("valid")[found.index(max(found))]["step"]]
    tested = run.scores["again"]["metrics"]["bleu"]
    assert tested["signature"] == published["validation"]["bleu_signature"]
    assert tested["score"] == pytest.approx(published["validation"]["bleu"], abs=1e-9)
    record_property("validations", len(found))
