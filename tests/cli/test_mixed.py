"""What does not belong together is refused before any work: another tokenizer, another format, another stage's."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Result, tfm, write_corpora
from tests.damage import listing
from tests.tiny_artifact import rewritten, signed
from tfm.pipeline.training.checkpoints.checkpoint import document_sha256
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints

pytestmark = pytest.mark.promise("mixed")
READERS = {
    "tokenizer": ["preprocess"],
    "dataset": ["train", "translate", "evaluate"],
    "model": ["translate", "evaluate"],
    "translations": ["evaluate"],
    "scores": [],
}
TWO_FINGERPRINTS = re.compile(r"\b[0-9a-f]{12}\b.*\b[0-9a-f]{12}\b", re.DOTALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a recipe and all that it gives; and `other`, a run with another tokenizer."""
    base = tmp_path_factory.mktemp("base")
    write_corpora(base)
    text = RECIPE.format(folder=base).replace("max_steps = 10", "max_steps = 4")
    (base / "tiny.toml").write_text(text, encoding="utf-8")
    (base / "other.toml").write_text(text.replace('kind = "word"', 'kind = "char"').replace("tiny", "other"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        for words in (
            ("run", "tiny.toml"),
            ("tokenize", "--recipe", "other.toml"),
            ("preprocess", "--recipe", "other.toml"),
        ):
            done = tfm(*words)
            assert done.code == 0, done.err
    return base


@pytest.fixture
def base(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that, which is the working folder."""
    copy = shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(copy)
    return copy


def refused(base: Path, *words: str | Path, code: int = 65) -> str:
    """What a command says that is refused: one or two lines; nothing is written."""
    before = listing(base)
    result: Result = tfm(*words)
    assert result.code == code, result
    assert result.out == ""
    assert 1 <= len(result.err.splitlines()) <= 2, result.err
    assert listing(base) == before
    return result.err


def take(base: Path, artifact: str) -> None:
    """Put an artifact of the other run in the place of ours."""
    place = base / "runs" / "tiny" / artifact
    shutil.rmtree(place)
    place.symlink_to((base / "runs" / "other" / artifact).resolve())


def test_a_model_is_not_trained_further_on_the_dataset_of_another_tokenizer(base: Path) -> None:
    runs = base / "runs"
    words = ("train", "--data", runs / "other" / "dataset", "--max-steps", "2", "--out", base / "new")
    said = refused(base, *words, "--init-from", runs / "tiny")
    assert TWO_FINGERPRINTS.search(said)
    assert "tfm preprocess" in said
    assert not (base / "new").exists()


def test_a_model_does_not_translate_the_dataset_of_another_tokenizer(base: Path) -> None:
    take(base, "dataset")
    said = refused(base, "translate", "--recipe", "tiny.toml")
    assert TWO_FINGERPRINTS.search(said)
    assert "tfm train" in said


@pytest.mark.parametrize("changed", ["model", "dataset"])
def test_translations_of_another_model_or_dataset_are_not_scored(base: Path, changed: str) -> None:
    rewritten((base / "runs" / "tiny" / changed).resolve(), seed=2)
    said = refused(base, "evaluate", "--recipe", "tiny.toml")
    assert f"another {changed}" in said
    assert TWO_FINGERPRINTS.search(said)
    assert "tfm translate" in said


@pytest.mark.parametrize("artifact", READERS)
def test_another_format_is_refused_by_every_reader(
    base: Path, artifact: str, record_property: Callable[[str, object], None]
) -> None:
    folder = base / "runs" / "tiny" / artifact
    rewritten(folder.resolve(), tfm_format=2)
    commands: list[tuple[str | Path, ...]] = [(stage, "--recipe", "tiny.toml") for stage in READERS[artifact]]
    for words in (*commands, ("inspect", folder)):
        said = refused(base, *words)
        assert "has format 2, and this version of tfm reads format 1" in said
        assert f"{artifact}/manifest.json" in said
    record_property("artifacts", 1)


def test_a_checkpoint_of_another_format_is_refused(base: Path) -> None:
    run = base / "runs" / "tiny"
    checkpoints = Checkpoints(run / "training" / "checkpoints")
    for step in checkpoints.steps():
        file = checkpoints.checkpoint_folder(step) / "state.json"
        document = json.loads(file.read_text("utf-8")) | {"format": 2}
        document.pop("sha256")
        file.write_text(json.dumps(document | {"sha256": document_sha256(document)}), "utf-8")
    shutil.rmtree(run / "model")
    before = listing(run / "training")
    result = tfm("train", "--recipe", "tiny.toml")
    assert result.code == 65
    assert "has format 2; this tfm reads format 1" in " ".join(result.err.split())
    assert listing(run / "training") == before


def test_weights_of_another_size_than_the_vocabulary_are_refused(base: Path) -> None:
    model = base / "runs" / "tiny" / "model"
    shutil.copyfile(base / "runs" / "other" / "tokenizer" / "tokenizer.json", model / "tokenizer.json")
    signed(model.resolve())
    for words in (
        ("translate", base / "runs" / "tiny", base / "test.de"),
        ("evaluate", "--model", model, "--source", base / "test.de", "--reference", base / "test.en"),
    ):
        said = refused(base, *words)
        assert "weights do not match the model" in said
        assert str(model) in said


@pytest.mark.parametrize(
    ("key", "value"),
    [("encoder.layers", 2), ("decoder.dim", 32), ("encoder.feed_forward_dim", 7), ("tie", "none"), ("norm", "post")],
)
def test_weights_of_another_shape_than_the_configuration_are_refused(base: Path, key: str, value: object) -> None:
    model = base / "runs" / "tiny" / "model"
    config = json.loads((model / "config.json").read_text("utf-8"))
    part, _, name = key.rpartition(".")
    (config[part] if part else config)[name] = value
    (model / "config.json").write_text(json.dumps(config), "utf-8")
    signed(model.resolve())
    said = refused(base, "translate", model, base / "test.de")
    assert str(model) in said


@pytest.mark.parametrize("wrong", ["tokenizer", "dataset", "model", "translations", "scores"])
def test_the_artifact_of_another_stage_is_refused(base: Path, wrong: str) -> None:
    folder, out = base / "runs" / "tiny" / wrong, base / "new"
    texts = ("--train", base / "train.de", base / "train.en")
    test = ("--source", base / "test.de", "--reference", base / "test.en")
    data = ("--data", base / "runs" / "tiny" / "dataset")
    commands: dict[str, list[tuple[str | Path, ...]]] = {
        "tokenizer": [("preprocess", *texts, "--tokenizer", folder, "--out", out)],
        "dataset": [("train", "--data", folder, "--max-steps", "2", "--out", out)],
        "model": [
            ("translate", folder, base / "test.de"),
            ("translate", folder, base / "test.de", "--out", out),
            ("evaluate", "--model", folder, *test),
            ("evaluate", "--model", folder, *test, "--out", out),
            ("train", *data, "--max-steps", "2", "--init-from", folder, "--out", out),
        ],
    }
    if wrong == "model":  # whose tokenizer is one too
        del commands["tokenizer"]
    for right, each in commands.items():
        for words in each if right != wrong else []:
            said = refused(base, *words)
            assert str(folder) in said
            assert "was made by" in said
    assert not out.exists()
