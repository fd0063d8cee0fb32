"""The stages of each task, one command after the other, as `python -m bench memory` measures them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.memory.recipes import RECIPES
from bench.processes import TFM, AnonymousMemory, run

PIECES = "4"
"""Maximum length of the texts that a model writes: memory by line does not depend on how long the search took."""


@dataclass(frozen=True)
class Stage:
    """A command of a task.

    Args:
        name: of the command.
        words: the command line after `tfm`.
        stdin: the file that it reads; what it prints is then thrown away.
    """

    name: str
    words: Sequence[str]
    stdin: str | None = None

    def command(self) -> list[str | Path]:
        """The command line as a process has it."""
        line: list[str | Path] = [*TFM, *self.words]
        return line if self.stdin is None else ["sh", "-c", 'exec "$@" <"$0" >/dev/null', self.stdin, *line]


def stages_of(task: str) -> list[Stage]:
    """The stages of a task, each of which reads what those before it wrote."""
    model = f"runs/{task}"
    labels = [Stage("translate", ("translate", model, "train.source", "--out", f"{task}-out"))]
    stages = [Stage(name, (name, "--recipe", f"{task}.toml")) for name in ("tokenize", "preprocess", "train")]
    if task == "translation":
        clean = Stage("clean", ("clean", "train.source", "train.target", "--out", "clean"))
        near = ("--set", "clean.duplicates=none", "--set", "clean.near_duplicates={}", "--out", "clean-near")
        clean_near = Stage("clean-near", ("clean", "train.source", "train.target", *near))
        search = ("--beam", "1", "--max-length", PIECES, "--out", "translations")
        scores = ("--metric", "bleu", "--metric", "chrf", "--out", "scores")
        files = ("--hypotheses", "train.source", "--reference", "train.target")
        translate = Stage("translate", ("translate", model, "train.source", *search))
        return [clean, clean_near, *stages, translate, Stage("evaluate", ("evaluate", *files, *scores))]
    if task == "language_model":
        text = ("--model", model, "--reference", "train.target", "--out", f"{task}-scores")
        generate = Stage("generate", ("generate", model, "--max-tokens", PIECES), stdin="train.prompts")
        return [*stages, Stage("evaluate", ("evaluate", *text)), generate]
    return stages + (labels if task in ("classification", "tagging") else [])


def write_recipes(folder: Path, updates: int) -> None:
    """Write the recipes of all tasks."""
    for task, recipe in RECIPES.items():
        (folder / f"{task}.toml").write_text(recipe.render(task, updates), encoding="utf-8")


def measure_stage(stage: Stage, folder: Path) -> dict[str, float]:
    """Run a stage, and return its seconds, its peak memory in bytes, and how much of that was no mapped file.

    The peak is that of the largest process; the other is of the one that was started.
    """
    memories: list[AnonymousMemory] = []

    def watch(process: int) -> None:
        memories.append(AnonymousMemory(process))
        memories[0].start()

    result = run(stage.command(), folder=folder, on_start=watch)
    return {"seconds": result.seconds, "peak": result.peak, "anonymous": memories[0].peak}
