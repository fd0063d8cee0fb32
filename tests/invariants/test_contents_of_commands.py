"""Contents, not clocks, for what a command names: questions, tokenizers, a model to begin from, the recipe of a search.

Each is replaced by another of the same size and time, as `test_contents.py` does with corpora.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, TINY, Stages, commands_of, tfm, write_corpora
from tests.invariants.test_contents import age, replace
from tests.tiny_artifact import signed
from tfm.pipeline.external_metric import ExternalMetric
from tfm.pipeline.scoring.metrics.external import scores as external

CPU = ("--device", "cpu")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    return folder


@pytest.fixture(scope="module")
def stages(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    run = tmp_path_factory.mktemp("run")
    said = {name: tfm(*words) for name, words in commands_of(corpora, run).items()}
    assert [each.code for each in said.values()] == [0, 0, 0]
    return Stages(run, said)


def check(command: tuple[str | Path, ...], place: Path, other: Path) -> None:
    """A command is up to date, and no longer once what it reads has other contents of one size and time."""
    assert tfm(*command).code == 0
    again = tfm(*command)
    assert "up to date" in again.out + again.err
    replace(place, other)
    changed = tfm(*command)
    assert changed.code == 0, changed.err
    assert "up to date" not in changed.out + changed.err


def two_folders(tmp_path: Path, name: str, texts: tuple[str, str]) -> tuple[Path, Path]:
    """Folders with a file of one name and length, and of one time, long ago."""
    folders = tmp_path / "place", tmp_path / "other"
    for folder, text in zip(folders, texts, strict=True):
        folder.mkdir()
        (folder / name).write_text(text, "utf-8")
        age(folder)
    return folders


def exchanged(text: str) -> str:
    """A text with two of its words exchanged, which have one length."""
    return text.replace("one", "\0").replace("two", "one").replace("\0", "two")


@pytest.mark.parametrize("kind", ["choices", "contrast"])
def test_questions(kind: str, stages: Stages, tmp_path: Path) -> None:
    row: dict[str, object] = {"source": "eins", "right": "one", "wrong": "six"}
    if kind == "choices":
        row = {"context": "eins", "choices": ["one", "six"], "answer": 0}
    text = json.dumps(row) + "\n"
    place, other = two_folders(tmp_path, "asked.jsonl", (text, exchanged(text)))
    command = ("evaluate", "--model", stages.folder, f"--{kind}", place / "asked.jsonl", *CPU)
    check((*command, "--out", tmp_path / "scores"), place, other)


def test_a_tokenizer_of_another_program_and_the_text_it_is_measured_on(stages: Stages, tmp_path: Path) -> None:
    file = next(iter(sorted((stages.folder / "tokenizer").glob("*.json"))))
    text = (stages.folder / "tokenizer" / "tokenizer.json").read_text("utf-8") if file.name == "manifest.json" else ""
    text = text or file.read_text("utf-8")
    assert exchanged(text) != text
    place, other = two_folders(tmp_path, "tokenizer.json", (text, exchanged(text)))
    for folder, words in ((place, "one two one\n"), (other, "two two one\n")):
        (folder / "corpus.txt").write_text(words, "utf-8")
    command = ("tokenize", place / "corpus.txt", "--from", place / "tokenizer.json", "--out", tmp_path / "made")
    for name in ("tokenizer.json", "corpus.txt"):
        twin = tmp_path / f"twin of {name}"
        twin.mkdir()
        shutil.copy2(other / name, twin / name)
        check(command, place, twin)


def test_a_model_to_begin_from(stages: Stages, tmp_path: Path) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    for folder in (place, other):
        shutil.copytree(stages.folder / "model", folder / "model")
    weights = max((other / "model").rglob("*.safetensors"), key=lambda file: file.stat().st_size)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    signed(other / "model")
    for folder in (place, other):
        age(folder)
    settings = ("--init-from", place / "model", "--max-steps", "2", *TINY, *CPU)
    check(("train", "--data", stages.folder / "dataset", *settings, "--out", tmp_path / "run"), place, other)


SEARCH = """
[search]
base = "place/base.toml"
method = "grid"
metric = "loss"
trials = {trials}

[search.space]
"training.schedule.peak" = {{ values = [0.0001, 0.02] }}
"""


def test_the_base_recipe_of_a_search(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = RECIPE.format(folder=corpora).replace("max_steps = 10", "max_steps = 2")
    place, other = two_folders(tmp_path, "base.toml", (text, text.replace("max_steps = 2", "max_steps = 3")))
    words = ("--set", "training.validation.bleu=false", "--set", "training.schedule.warmup_steps=1")
    Path("s.toml").write_text(SEARCH.format(trials=1), "utf-8")
    begun = tfm("search", "s.toml", *words)
    assert begun.code == 0, begun.err
    replace(place, other)
    Path("s.toml").write_text(SEARCH.format(trials=2), "utf-8")
    refused = tfm("search", "s.toml", *words)
    assert refused.code == 65
    assert "another search, which differs in recipe.training.max_steps" in refused.err


def test_the_base_recipe_of_a_search_that_runs(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial reads it again: after the first one it is another."""
    from tfm.pipeline.tuning import worker

    monkeypatch.chdir(tmp_path)
    text = RECIPE.format(folder=corpora).replace("max_steps = 10", "max_steps = 2")
    place, other = two_folders(tmp_path, "base.toml", (text, text.replace("max_steps = 2", "max_steps = 3")))
    words = ("--set", "training.validation.bleu=false", "--set", "training.schedule.warmup_steps=1")
    Path("s.toml").write_text(SEARCH.format(trials=2), "utf-8")
    run_trial = worker.run_trial

    def then_replaced(*given: object, **named: object) -> object:
        outcome = run_trial(*given, **named)  # type: ignore[arg-type]
        replace(place, other)
        return outcome

    monkeypatch.setattr(worker, "run_trial", then_replaced)
    refused = tfm("search", "s.toml", *words)
    assert refused.code == 65
    assert "the base recipe place/base.toml was changed since this search began" in refused.err


def test_files_in_the_words_of_a_command_and_in_its_folders(tmp_path: Path) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    for folder, word in ((place, "one"), (other, "two")):
        for name in ("word", "option", "folder/below/file", "model/file"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(word, "utf-8")
        age(folder)
    os.mkfifo(place / "folder" / "pipe")
    command = (sys.executable, str(place / "word"), f"--file={place}/option", str(place / "folder"), f"m={place}/model")
    metric = ExternalMetric(name="mine", command=(*command, "--none=", "=", "a\udcff=b", "no/such"))
    found = [external.external_metric_inputs([metric])]
    signatures = {external.external_signature(metric, [["a"]])}
    for name in ("word", "option", "folder/below/file", "model/file"):
        twin = tmp_path / f"twin {len(found)}"
        (twin / name).parent.mkdir(parents=True)
        shutil.copy2(other / name, twin / name)
        replace(place, twin)
        found.append(external.external_metric_inputs([metric]))
        signatures.add(external.external_signature(metric, [["a"]]))
        (changed,) = [key for key in found[-1] if found[-1][key].fingerprint != found[-2][key].fingerprint]
        assert changed == f"external mine: {place / name}"
    assert len(signatures) == 5


def test_a_folder_of_too_many_files_is_none_of_the_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "MAX_FILES", 3)
    metric = ExternalMetric(name="mine", command=("cat", str(tmp_path)))
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("a", "utf-8")
        assert len(external.external_metric_inputs([metric])) == (number + 1 if number < 3 else 0)
