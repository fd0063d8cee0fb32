"""The five stages on a tiny corpus: the command of each, and for each a run in which it is the next."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.user import TINY, Result, commands_of, tfm
from tests.faults import names
from tfm.pipeline.artifacts.artifact import open_artifact

TIMES = {"seconds", "tokens_per_second"}
Words = tuple[str | Path, ...]
TRAIN = ("--max-steps", "4", *TINY, "--set", "training.validation.every_steps=2", "--set", "training.keep.last=1")
TRAIN = (*TRAIN, "--set", "training.log_every=1", "--device", "cpu")


@dataclass(frozen=True)
class Stage:
    """A stage: the artifact it makes in the folder of a run; its command given corpora and that folder; what to add
    to the command for another plan."""

    makes: str
    command: Callable[[Path, Path], Words]
    other: Words = ("--seed", "2")

    def to(self, corpora: Path, run: Path, out: Path) -> Words:
        """The command, reading from a run and writing elsewhere."""
        words = self.command(corpora, run)
        place = words.index("--out") + 1
        return (*words[:place], out, *words[place + 1 :])


STAGES = {
    "tokenize": Stage(
        "tokenizer", lambda corpora, run: commands_of(corpora, run)["tokenize"], ("--min-frequency", "3")
    ),
    "preprocess": Stage(
        "dataset", lambda corpora, run: commands_of(corpora, run)["preprocess"], ("--max-length", "99")
    ),
    "train": Stage("model", lambda corpora, run: ("train", "--data", run / "dataset", *TRAIN, "--out", run)),
    "translate": Stage(
        "translations",
        lambda corpora, run: ("translate", run, corpora / "test.de", "--device", "cpu", "--out", run / "translations"),
        ("--beam", "1"),
    ),
    "evaluate": Stage(
        "scores",
        lambda corpora, run: (
            *("evaluate", "--model", run, "--device", "cpu", "--metric", "bleu", "--set", "decoding.beam=1"),
            *("--source", corpora / "test.de", "--reference", corpora / "test.en", "--out", run / "scores"),
        ),
    ),
}


def make_runs(corpora: Path, folder: Path) -> dict[tuple[str, bool], Path]:
    """For each stage a run that holds what it reads and, if asked for by True, an artifact of its own for another
    plan; under ("all", True) a run in which all are done."""
    runs, run = {}, folder / "run"
    run.mkdir(parents=True)
    for name, stage in STAGES.items():
        for old in (False, True):
            runs[name, old] = folder / f"{name}-{old}"
            shutil.copytree(run, runs[name, old], symlinks=True)
        done(tfm(*stage.command(corpora, runs[name, True]), *stage.other))
        done(tfm(*stage.command(corpora, run)))
    return {**runs, ("all", True): run}


def result_of(run: Path, stage: Stage) -> Any:
    """All that may not differ between two ways to an artifact: its fingerprint (and so the bytes of its files), what
    else lies in the run, and the figures and curves of a training."""
    metrics = run / "training" / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    figures = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
    drawn = [file.read_text() for file in run.glob("training/curves.svg")]
    return open_artifact(run / stage.makes).fingerprint, names(run), figures, drawn


def done(result: Result) -> None:
    assert result.code == 0, result.err
