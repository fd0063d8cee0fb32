"""`tfm translate` of a text that is typed, and by a checkpoint of a training."""

import shlex
import shutil
from pathlib import Path

import pytest
import torch

from tests.cli.user import TINY, Stages, tfm, write_lines
from tests.damage import listing
from tests.tiny_model import publish_model
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.artifacts.folder_lock import lock_folder
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.unfinished_model import load_checkpoint

SEARCH = ("--beam", "1", "--device", "cpu")


@pytest.mark.few(3)
@pytest.mark.parametrize("text", ["eins zwei drei", "Hallo!", "fünf", "你好世界", "eins 3.50 zwei", " ", "eins\nzwei"])
def test_a_text_that_is_typed_is_translated(stages: Stages, tmp_path: Path, text: str) -> None:
    typed = tfm("translate", stages.folder, text, *SEARCH)
    assert typed.code == 0, typed.err
    assert typed.out == tfm("translate", stages.folder, "-", *SEARCH, stdin=text + "\n").out
    assert typed.out.count("\n") == text.count("\n") + 1
    kept = tfm("translate", stages.folder, text, *SEARCH, "--out", tmp_path / "out")
    assert kept.code == 0, kept.err
    assert (tmp_path / "out" / "hypotheses.txt").read_text("utf-8") == typed.out
    assert (tmp_path / "out" / "source.txt").read_text("utf-8") == text + "\n"


@pytest.mark.parametrize("name", ["test.de", "absent", "corpora/test", "my text.de", "a b/c d", "../x", "test-2017"])
def test_a_file_that_is_missing_is_called_missing_and_how_a_text_is_given(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)  # beside which there is no folder x
    missing = tfm("translate", stages.folder, name, *SEARCH)
    assert missing.code == 65
    assert missing.out == ""
    said = " ".join(missing.err.split())
    command = shlex.join(["tfm", "translate", str(stages.folder)])
    assert f"{name}: no such file; to translate a text: echo TEXT | {command}" in said


@pytest.mark.parametrize(("model", "why"), [("absent", "there is nothing here"), (".", "is not an artifact of tfm")])
def test_a_model_that_is_missing_is_what_is_wrong_with_an_image(tmp_path: Path, model: str, why: str) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = tfm("translate", tmp_path / model, tmp_path / "picture.png")
    assert (done.code, done.out) == (65, "")
    assert done.err.replace("\n", "") == f"{tmp_path / model}: {why}" + " (it has no manifest.json)" * (model == ".")


def test_a_file_with_a_name_like_a_text_is_a_file(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("eins zwei").write_text("drei\nvier\n", "utf-8")
    assert tfm("translate", stages.folder, "eins zwei", *SEARCH).out.count("\n") == 2


@pytest.mark.parametrize("out", [(), ("--out", "out")])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '<srcset setid="newstest2014" srclang="any">\n<doc>\n<seg id="1">eins</seg>\n',
            "is a test set as WMT had it, in SGML",
        ),
        ("1\n00:00:01,000 --> 00:00:02,000\neins zwei\n", "is subtitles with their times"),
        ("0 ||| eins zwei ||| -1.5\n0 ||| eins ||| -1.7\n", "is a list of n best"),
    ],
)
def test_a_file_of_tags_or_times_is_not_translated_as_words(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str, out: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.de").write_text(text, "utf-8")
    done = tfm("translate", stages.folder, "text.de", *SEARCH, *out)
    assert (done.code, done.out) == (65, "")
    assert f"text.de: {why}" in " ".join(done.err.split())
    assert not Path("out").exists()
    piped = tfm("translate", stages.folder, "-", *SEARCH, stdin=text)
    assert piped.code == 0
    assert piped.out.count("\n") == text.count("\n")


def test_every_checkpoint_translates_as_what_is_published_of_it(stages: Stages, corpora: Path) -> None:
    words = (corpora / "test.de", *SEARCH)
    published = open_artifact(stages.folder / "model").figures["steps"]
    steps = Checkpoints(stages.folder / "training" / "checkpoints").steps()
    found = {step: tfm("translate", stages.folder, *words, "--step", str(step)) for step in steps}
    assert all(each.code == 0 for each in found.values()), found
    assert found[published[0]].out == tfm("translate", stages.folder, *words).out
    before = listing(stages.folder)
    with lock_folder(stages.folder / "training"):  # a training goes on
        assert tfm("translate", stages.folder, *words, "--step", "last").out == found[steps[-1]].out
    assert listing(stages.folder) == before
    absent = tfm("translate", stages.folder, *words, "--step", "7")
    assert absent.code == 65
    assert f"no checkpoint of step 7, only of {', '.join(map(str, steps))}" in " ".join(absent.err.split())


@pytest.mark.parametrize(
    "words",
    [("--step", "0.5"), ("--step", "5", "--out", "x"), ("--step", "5", "--ensemble", "x"), ("--step", "")],
    ids=" ".join,
)
def test_what_does_not_go_with_a_step_is_refused(stages: Stages, words: tuple[str, ...]) -> None:
    assert tfm("translate", stages.folder, "eins zwei", *words).code == 2


@pytest.mark.slow
def test_a_checkpoint_with_a_moving_average_gives_that_and_needs_no_dataset(
    stages: Stages, corpora: Path, tmp_path: Path
) -> None:
    words = ("train", "--data", stages.folder / "dataset", *TINY, "--max-steps", "12", "--device", "cpu")
    words = (*words, "--set", "training.ema=0.5", "--set", "training.keep.last=9", "--out", tmp_path / "run")
    assert tfm(*words).code == 0
    texts = (corpora / "test.de", *SEARCH)
    step = str(open_artifact(tmp_path / "run" / "model").figures["steps"][0])
    averaged = tfm("translate", tmp_path / "run", *texts, "--step", step)
    assert averaged.out == tfm("translate", tmp_path / "run", *texts).out
    found, published = load_checkpoint(tmp_path / "run", int(step)), load_model(tmp_path / "run" / "model")
    for key, weight in published.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[key], weight), key
    trained = Checkpoints(tmp_path / "run" / "training" / "checkpoints").read(int(step)).tensors("model")
    name, weight = next(iter(trained.items()))
    assert not torch.equal(found.model.state_dict()[name], weight)
    (tmp_path / "run" / "model").rename(tmp_path / "model-good")
    assert tfm("translate", tmp_path / "run", *texts, "--step", step).out == averaged.out


def test_a_training_of_an_earlier_tfm_has_the_dataset_s_tokenizer(
    stages: Stages, corpora: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(stages.folder, run)
    words = (corpora / "test.de", *SEARCH, "--step", "last")
    before = tfm("translate", run, *words)
    shutil.rmtree(run / "training" / "tokenizer")
    assert tfm("translate", run, *words).out == before.out
    (run / "dataset" / "tokenizer" / "tokenizer.json").write_text("{}")
    assert tfm("translate", run, *words).code == 65


def test_a_damaged_checkpoint_is_refused_by_name(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(stages.folder, run)
    checkpoints = Checkpoints(run / "training" / "checkpoints")
    file = checkpoints.checkpoint_folder(checkpoints.steps()[-1]) / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    refused = tfm("translate", run, corpora / "test.de", *SEARCH, "--step", "last")
    assert refused.code == 65
    assert "checkpoint is damaged" in " ".join(refused.err.split())
    none = tfm("translate", run / "model", corpora / "test.de", "--step", "last")
    assert none.code == 65
    assert "holds no checkpoint yet" in none.err


def test_a_model_without_languages_cannot_be_asked_for_one(stages: Stages) -> None:
    asked = tfm("translate", stages.folder, "eins zwei", "--to", "deu", *SEARCH)
    assert asked.code == 65
    assert "was not trained with languages, so it cannot translate into deu: remove --to" in " ".join(asked.err.split())


def test_a_line_without_a_mask_is_named(tmp_path: Path) -> None:
    """A masked language model, which predicts what the masks of a text hide."""
    model = publish_model(tmp_path / "masked", architecture="encoder_only", task="masked_language_model")
    lines = ["a [MASK] runs", "", "snow"]
    file = write_lines(tmp_path / "texts", lines)
    from_file = tfm("translate", model, file, "--device", "cpu")
    piped = tfm("translate", model, "--device", "cpu", stdin="".join(f"{line}\n" for line in lines))
    for done, name in ((from_file, str(file)), (piped, "stdin")):
        assert done.code == 65, done.err
        assert f'{name}, line 2: the text "" has no [MASK]: write' in " ".join(done.err.split())
        assert {row.split("\t")[0] for row in done.out.splitlines()} == {"1"}
