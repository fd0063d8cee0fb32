"""A user at the command line: types commands, has a small corpus and a small recipe."""

import functools
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typer import testing
from typer.main import get_command

from tfm.cli.app import app

testing._get_command = functools.cache(get_command)  # the runner makes all commands anew for each that is typed

ROOT = Path(__file__).parents[2]
WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six"}
TINY = tuple(
    word
    for setting in (
        "model.encoder.layers=1",
        "model.encoder.dim=16",
        "model.encoder.heads=2",
        "model.encoder.feed_forward_dim=16",
        "model.decoder.layers=1",
        "model.decoder.dim=16",
        "model.decoder.heads=2",
        "model.decoder.feed_forward_dim=16",
        "training.validation.every_steps=10",
        "training.schedule.warmup_steps=10",
        "training.precision=fp32",
        "decoding.beam=2",
        "decoding.max_length=12",
    )
    for word in ("--set", setting)
)
RECIPE = """
name = "tiny"

[tokenizer]
kind = "word"
vocab_size = 40

[data]
batch_tokens = 256
train = {{ source = "{folder}/train.de", target = "{folder}/train.en" }}
valid = {{ source = "{folder}/valid.de", target = "{folder}/valid.en" }}

[data.tests.main]
source = "{folder}/test.de"
target = "{folder}/test.en"

[model]
encoder = {{ layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }}
decoder = {{ layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }}

[training]
max_steps = 10
precision = "fp32"

[decoding]
beam = 2
max_length = 12
"""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str


def tfm(*words: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run a `tfm` command in this process."""
    done = testing.CliRunner().invoke(app, [str(word) for word in words], input=stdin, prog_name="tfm")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


def start(*words: str | Path, folder: Path, **options: object) -> subprocess.Popen[str]:
    """Start a `tfm` command as a process of its own, in `folder`."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    command = [sys.executable, "-m", "tfm.cli.app", *(str(word) for word in words)]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)  # type: ignore[call-overload,no-any-return]


def write_lines(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return file


def write_corpora(folder: Path) -> None:
    """train, valid and test of a toy language, .de and .en, one sentence a line."""
    draw = random.Random(1)
    for split, size in (("train", 200), ("valid", 20), ("test", 12)):
        sources = [draw.choices(list(WORDS), k=draw.randint(2, 6)) for _ in range(size)]
        write_lines(folder / f"{split}.de", [" ".join(words) for words in sources])
        write_lines(folder / f"{split}.en", [" ".join(WORDS[word] for word in words) for words in sources])


@dataclass(frozen=True)
class Stages:
    """A run by flags alone: its folder, and what each stage said."""

    folder: Path
    said: dict[str, Result]


def commands_of(corpora: Path, run: Path) -> dict[str, tuple[str | Path, ...]]:
    """The first three stages as a user types them."""
    pairs = {split: (corpora / f"{split}.de", corpora / f"{split}.en") for split in ("train", "valid", "test")}
    texts = pairs["train"]
    return {
        "tokenize": ("tokenize", *texts, "--kind", "word", "--vocab-size", "40", "--out", run / "tokenizer"),
        "preprocess": (
            "preprocess",
            *("--train", *pairs["train"], "--valid", *pairs["valid"], "--test", *pairs["test"]),
            *("--tokenizer", run / "tokenizer", "--batch-tokens", "256", "--out", run / "dataset"),
        ),
        "train": ("train", "--data", run / "dataset", "--max-steps", "20", *TINY, "--device", "cpu", "--out", run),
    }
