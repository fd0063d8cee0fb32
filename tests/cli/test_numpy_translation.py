"""`tfm translate` of a few lines: by a network in numpy, with the same result, and without waiting for torch."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from tests.cli.user import ROOT, Stages, start, tfm, write_lines
from tests.tiny_artifact import plan_of
from tfm.pipeline.artifacts.artifact import publish
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.inference import numpy_translation
from tfm.pipeline.model_io import numpy_model
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.progress import NullReporter

PROGRAM = """
import json, sys
from tfm.cli.app import app
try:
    app(sys.argv[1:], prog_name="tfm")
finally:
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "pyarrow", "PIL", "numba"})))
"""
LINES = ["eins zwei", "", "drei", "vier fünf sechs", "zwei zwei"]


def loaded_by(*words: str | Path, stdin: str = "") -> tuple[list[str], list[str]]:
    """The lines that a command printed, and which heavy libraries it loaded."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, check=True)
    *lines, modules = done.stdout.splitlines()
    return lines, json.loads(modules)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["text", "file", "pipe"])
def test_a_few_lines_load_no_torch(stages: Stages, tmp_path: Path, how: str) -> None:
    text = "".join(f"{line}\n" for line in LINES)
    file = write_lines(tmp_path / "few.txt", LINES)
    given = {"text": "eins zwei", "file": file, "pipe": "-"}[how]
    lines, loaded = loaded_by("translate", stages.folder, given, stdin=text if how == "pipe" else "")
    assert loaded == []
    assert lines == tfm("translate", stages.folder, given, stdin=text).out.splitlines()
    assert len(lines) == (1 if how == "text" else len(LINES))


@pytest.mark.slow
def test_a_few_lines_of_the_pieces_of_a_shortlist_load_no_torch(stages: Stages, tmp_path: Path) -> None:
    links = tmp_path / "links.txt"
    links.write_text(tfm("align", stages.folder, stages.folder / "dataset").out, "utf-8")
    made = ("--links", links, "--out", tmp_path / "short", "--linked", "1", "--frequent", "1")
    assert tfm("shortlist", stages.folder, *made).code == 0
    held = ("--set", f"decoding.shortlist={tmp_path / 'short'}")
    file = write_lines(tmp_path / "few.txt", LINES)
    lines, loaded = loaded_by("translate", stages.folder, file, *held)
    assert loaded == []
    by_torch = tfm("translate", stages.folder, file, *held, "--out", tmp_path / "out")
    assert by_torch.code == 0, by_torch.err
    assert lines == (tmp_path / "out" / "hypotheses.txt").read_text("utf-8").splitlines()
    assert lines != tfm("translate", stages.folder, file).out.splitlines()
    bad = tfm("translate", stages.folder, file, "--set", f"decoding.shortlist={stages.folder / 'tokenizer'}")
    assert (bad.code, "expected what shortlist makes" in " ".join(bad.err.split())) == (65, True), bad.err


@pytest.mark.slow
def test_many_lines_and_what_numpy_cannot_do_load_torch(stages: Stages, tmp_path: Path) -> None:
    many = write_lines(tmp_path / "many.txt", ["eins zwei"] * (numpy_translation.MAX_NUMPY_LINES + 1))
    assert "torch" in loaded_by("translate", stages.folder, many)[1]
    assert "torch" in loaded_by("translate", stages.folder, "eins zwei", "--prefix", "two")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("--beam", "1"),
        ("--beam", "4", "--n-best", "3", "--length-norm", "wu", "--alpha", "0.7"),
        ("--min-length", "7", "--set", "decoding.max_ratio=3"),
        ("--max-length", "2"),
    ],
    ids=" ".join,
)
def test_they_are_the_translations_of_the_model(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    text = "".join(f"{line}\n" for line in LINES)
    few = tfm("translate", stages.folder, *words, "--jsonl", stdin=text)
    asked: list[Path] = []
    monkeypatch.setattr(numpy_translation, "load_small_model", lambda folder, *_: asked.append(folder))
    model = tfm("translate", stages.folder, *words, "--jsonl", stdin=text)
    assert asked
    assert few.code == model.code == 0, few.err + model.err
    for ours, theirs in zip(few.out.splitlines(), model.out.splitlines(), strict=True):
        found, wanted = json.loads(ours), json.loads(theirs)
        assert found["source"] == wanted["source"]
        for one, other in zip(found["translations"], wanted["translations"], strict=True):
            assert (one["text"], one["num_tokens"]) == (other["text"], other["num_tokens"])
            assert one["score"] == pytest.approx(other["score"], abs=1e-4)
            assert one["log_prob"] == pytest.approx(other["log_prob"], abs=1e-4)


@pytest.mark.slow
def test_lines_that_come_one_by_one_and_then_many_are_all_translated_in_order(stages: Stages) -> None:
    many = [f"{first} {second}" for first in ("eins", "zwei", "drei", "vier") for second in ("fünf", "sechs", "eins")]
    wanted = [tfm("translate", stages.folder, stdin=line + "\n").out for line in ("drei", "vier eins", *many)]
    assert len(set(wanted)) > 1
    process = start("translate", stages.folder, folder=stages.folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for line in ("drei", "vier eins"):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answers.append(process.stdout.readline())
    rest, _ = process.communicate("".join(f"{line}\n" for line in many))
    assert answers + rest.splitlines(keepends=True) == wanted
    assert process.returncode == 0


@pytest.mark.parametrize("num_short", [1, 20])
def test_sources_that_are_cut_are_counted_among_all_lines(
    stages: Stages, tmp_path: Path, num_short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [" ".join(["eins"] * 2000), *["zwei"] * num_short]
    file = write_lines(tmp_path / "long.txt", lines)
    done = tfm("translate", stages.folder, file, "--beam", "1", "--max-length", "3")
    assert done.code == 0
    said = f"1 of {num_short + 1} sources was longer than the 1023 pieces that the model reads, and was cut"
    assert said in " ".join(done.err.split())
    monkeypatch.setattr(numpy_translation, "load_small_model", lambda *_: None)
    assert tfm("translate", stages.folder, file, "--beam", "1", "--max-length", "3").out == done.out


def published(stages: Stages, folder: Path, change: Callable[[Path], object]) -> Path:
    """The model of the stages, published once more with its files changed."""
    with publish(plan_of(folder, "train"), command=["tfm"]) as draft:
        for name in numpy_model.MODEL_FILES:
            if (file := stages.folder / "model" / name).exists():
                (draft.folder / name).write_bytes(file.read_bytes())
        change(draft.folder)
    return folder


def test_a_model_with_more_than_weights_and_tokenizers_is_left_to_torch(stages: Stages, tmp_path: Path) -> None:
    """Such as an adapter, without which the weights are another model's."""
    assert numpy_translation.load_small_model(stages.folder / "model", DecodingConfig()) is not None
    other = published(stages, tmp_path / "model", lambda folder: (folder / "adapter.json").write_text("{}"))
    assert numpy_translation.load_small_model(other, DecodingConfig()) is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_another_type_are_left_to_torch(stages: Stages, tmp_path: Path, dtype: torch.dtype) -> None:
    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        file.write_bytes(save({name: each.to(dtype) for name, each in load_file(file).items()}))

    other = published(stages, tmp_path / "model", change)
    assert numpy_translation.load_small_model(other, DecodingConfig()) is None
    done = tfm("translate", other, "eins zwei")
    assert done.code == 0, done.err


def test_weights_that_are_not_finite_are_an_error_without_warnings(stages: Stages, tmp_path: Path) -> None:
    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        file.write_bytes(save({name: torch.full_like(each, torch.inf) for name, each in load_file(file).items()}))

    done = tfm("translate", published(stages, tmp_path / "model", change), "eins zwei")
    assert (done.code, done.out) == (65, "")
    assert "no finite probabilities" in done.err
    assert "Warning" not in done.err


@pytest.mark.slow
def test_long_lines_are_left_to_torch(stages: Stages, tmp_path: Path) -> None:
    half = " ".join(["eins"] * (numpy_translation.MAX_SOURCE_CHARS // 10))
    few = "eins zwei", "--max-length", "2"
    assert loaded_by("translate", stages.folder, *few)[1] == []
    for lines, heavy in (([half], []), ([half, half, half], ["torch"])):
        file = write_lines(tmp_path / "long.txt", lines)
        assert [each for each in loaded_by("translate", stages.folder, file, *few[1:])[1] if each == "torch"] == heavy


@pytest.mark.slow
@pytest.mark.parametrize("count", [numpy_translation.MAX_NUMPY_LINES + 1, 30])
def test_lines_that_wait_together_are_decoded_together(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Also where nothing follows yet: what was read to see how many there are is no longer waiting."""
    sizes: list[int] = []
    decode = decoding.decode
    monkeypatch.setattr(
        decoding,
        "decode",
        lambda model, rows, *given, **more: (sizes.append(len(rows)), decode(model, rows, *given, **more))[1],
    )
    left = iter(["eins zwei"] * count)
    told = iter([True] * (numpy_translation.MAX_NUMPY_LINES) + [False] * 99)
    found = numpy_translation.translate_stream(
        lambda: numpy_translation.load_small_model(stages.folder / "model", DecodingConfig()),
        lambda: load_model(stages.folder / "model", "cpu"),
        left,
        DecodingConfig(),
        reporter=NullReporter(),
        ready=lambda: next(told),
    )
    assert len(list(found)) == count
    assert sizes[0] >= numpy_translation.MAX_NUMPY_LINES


def test_more_hypotheses_than_the_beam_has_are_refused_as_ever(stages: Stages) -> None:
    done = tfm("translate", stages.folder, "eins zwei", "--beam", "2", "--n-best", "3")
    assert done.code == 2
    assert "cannot exceed beam" in done.err
    assert done.out == ""


def test_what_is_wrong_with_a_model_is_said_before_a_line_comes(tmp_path: Path) -> None:
    process = start("translate", "missing", folder=tmp_path, stdin=subprocess.PIPE)
    try:
        assert process.wait(60) == 65
    finally:
        process.kill()
    assert process.stderr is not None
    assert "missing: there is nothing here" in process.stderr.read()
    process.communicate()


def test_an_empty_text_is_translated_by_an_empty_one(stages: Stages, tmp_path: Path) -> None:
    for given, stdin in ((write_lines(tmp_path / "empty", []), ""), ("-", "")):
        done = tfm("translate", stages.folder, given, stdin=stdin)
        assert (done.code, done.out) == (0, "")
