"""A file that was changed, cut, removed, added or replaced is refused by whoever would read it, and made anew by
whoever makes it: every file of a tiny run, in every way."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Result, tfm, write_corpora
from tests.damage import DAMAGES, damaged, files_of, listing
from tfm.pipeline.artifacts.artifact import Plan, open_artifact, stale_reason
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints

pytestmark = pytest.mark.promise("damaged")
READERS = {
    "clean": ["tokenize", "preprocess"],
    "tokenizer": ["preprocess"],
    "dataset": ["train", "translate", "evaluate"],
    "model": ["translate", "evaluate"],
    "translations": ["evaluate"],
    "scores": [],
}
MAKERS = {
    "clean": "clean",
    "tokenizer": "tokenize",
    "dataset": "preprocess",
    "model": "train",
    "translations": "translate",
    "scores": "evaluate",
}
# Reading without making an artifact.
ALSO: dict[str, list[Callable[[Path], tuple[str | Path, ...]]]] = {
    "model": [
        lambda base: ("translate", base / "runs" / "tiny", base / "test.de"),
        lambda base: ("evaluate", "--model", base / "runs" / "tiny", "--source", base / "test.de", "--reference",
                      base / "test.en"),
    ]
}  # fmt: skip


class Warnings(NullReporter):
    def __init__(self) -> None:
        self.found: list[str] = []

    def warn(self, text: str) -> None:
        self.found.append(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a recipe and all that it gives, two checkpoints among it."""
    base = tmp_path_factory.mktemp("base")
    write_corpora(base)
    text = RECIPE.format(folder=base).replace("max_steps = 10", "max_steps = 10\nkeep = { last = 2 }\nsave_every = 4")
    (base / "tiny.toml").write_text(text + "\n[clean]\nlength = { max = 5 }\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    return base


@pytest.fixture(autouse=True)
def run(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the run; the working folder is that of the recipe."""
    monkeypatch.chdir(made)
    return made / "runs" / "tiny"


def refused(result: Result, artifact: str, name: str) -> None:
    """An error of ours: one or two lines that name artifact and file."""
    assert result.code == 65, (artifact, name, result)
    assert result.out == ""
    lines = [line for line in result.err.splitlines() if not line.startswith("warning")]
    assert 1 <= len(lines) <= 2, result.err
    assert artifact in result.err
    assert name in result.err


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "artifact", [pytest.param(each, marks=pytest.mark.slow if each == "dataset" else ()) for each in READERS]
)
def test_every_file_in_every_way_is_refused_by_every_reader(
    made: Path, run: Path, artifact: str, record_property: Callable[[str, object], None]
) -> None:
    commands: list[tuple[str | Path, ...]] = [(stage, "--recipe", "tiny.toml") for stage in READERS[artifact]]
    commands += [("inspect", run / artifact), *(command(made) for command in ALSO.get(artifact, []))]
    names = files_of(run / artifact)
    whole = open_artifact(run / artifact)
    todo = Plan(whole.stage, run / artifact, whole.config, whole.inputs, whole.seed)
    assert stale_reason(todo) is None
    for name in names:
        for damage in DAMAGES.values():
            with damaged((run / artifact).resolve() / name, damage):
                before = listing(made)
                for command in commands:
                    refused(tfm(*command), artifact, name)
                reason = stale_reason(todo)
                assert reason is not None
                assert reason.startswith("damaged: ")
                assert name in reason
                assert listing(made) == before
    assert stale_reason(todo) is None
    record_property("files", len(names))
    record_property("damages", len(names) * len(DAMAGES))


@pytest.mark.parametrize("artifact", READERS)
def test_a_file_more_is_refused(made: Path, run: Path, artifact: str) -> None:
    folders = {(run / artifact).resolve() / name for name in files_of(run / artifact)}
    for folder in {file.parent for file in folders}:
        extra = folder / "one more"
        extra.write_bytes(b"")
        for stage in READERS[artifact]:
            refused(tfm(stage, "--recipe", "tiny.toml"), artifact, "one more")
        refused(tfm("inspect", run / artifact), artifact, "one more")
        extra.unlink()


@pytest.mark.few(2)
@pytest.mark.parametrize("artifact", READERS)
def test_a_damaged_artifact_is_made_anew_by_its_stage(
    made: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, artifact: str
) -> None:
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    copy = tmp_path / "copy" / "runs" / "tiny" / artifact
    name = next(name for name in files_of(copy) if name != "manifest.json")
    before = {each: (copy / each).read_bytes() for each in files_of(copy)}
    DAMAGES["bit flipped"](copy.resolve() / name)
    again = tfm(MAKERS[artifact], "--recipe", "tiny.toml")
    assert again.code == 0, again.err
    assert f"{artifact}: damaged: " in again.err
    assert name in again.err.replace("\n", "")
    assert set(files_of(copy)) == set(before)
    for each in set(before) - {"manifest.json", "report.html"}:
        if not each.endswith(".jsonl"):
            assert (copy / each).read_bytes() == before[each], each
    assert tfm("inspect", copy).code == 0


def test_a_damaged_checkpoint_costs_its_steps_and_is_named(
    run: Path, record_property: Callable[[str, object], None]
) -> None:
    checkpoints = Checkpoints(run / "training" / "checkpoints")
    *_, older, newest = checkpoints.steps()
    names = files_of(checkpoints.checkpoint_folder(newest))
    for name in names:
        for damage in DAMAGES.values():
            with damaged(checkpoints.checkpoint_folder(newest) / name, damage):
                reporter = Warnings()
                found = checkpoints.newest_verified(reporter)
                assert found is not None
                assert found.step == older
                (warning,) = reporter.found
                assert checkpoints.checkpoint_folder(newest).name in warning
                assert name in warning
    found = checkpoints.newest_verified(NullReporter())
    assert found is not None
    assert found.step == newest
    record_property("files", len(names))
    record_property("damages", len(names) * len(DAMAGES))


def test_training_goes_on_from_the_newest_checkpoint_that_is_whole(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    copy = tmp_path / "copy" / "runs" / "tiny"
    checkpoints = Checkpoints(copy / "training" / "checkpoints")
    *_, older, newest = checkpoints.steps()
    weights = (copy / "model" / "model.safetensors").read_bytes()
    shutil.rmtree(copy / "model")
    DAMAGES["bit flipped"](checkpoints.checkpoint_folder(newest) / "optimizer.safetensors")
    result = tfm("train", "--recipe", "tiny.toml")
    assert result.code == 0, result.err
    said = " ".join(result.err.split())
    assert f"{checkpoints.checkpoint_folder(newest).name}/optimizer.safetensors" in said.replace("/ ", "/")
    assert f"resuming after step {older}" in said
    assert (copy / "model" / "model.safetensors").read_bytes() == weights


def test_where_no_checkpoint_is_whole_training_stops_rather_than_starting_over(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    copy = tmp_path / "copy" / "runs" / "tiny"
    checkpoints = Checkpoints(copy / "training" / "checkpoints")
    shutil.rmtree(copy / "model")
    for step in checkpoints.steps():
        DAMAGES["truncated"](checkpoints.checkpoint_folder(step) / "state.json")
    before = listing(copy / "training")
    result = tfm("train", "--recipe", "tiny.toml")
    assert result.code == 65
    assert "move the folder away to start over" in " ".join(result.err.split())
    assert str(checkpoints.steps()[-1]) in result.err
    assert listing(copy / "training") == before
    assert not (copy / "model").exists()
    with pytest.raises(DataError, match="can be read"):
        checkpoints.newest_verified(NullReporter())
