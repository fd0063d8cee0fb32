"""Every argument and option of every command, each in turn given any text, beside others that are right."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tests.cli.user import RECIPE, TINY, tfm, write_corpora
from tfm.cli.app import app

Words = tuple[str, ...]
SEARCH = """
[search]
base = "tiny.toml"
method = "random"
trials = 1

[search.space]
"training.schedule.peak" = { values = [0.1, 0.2] }
"""
TRANSLATION = {"text": "one", "score": -1.0, "log_prob": -2.0, "num_tokens": 2}
USUAL: Mapping[str, Mapping[str, Words]] = {
    "clean": {"corpus": ("train.de", "train.en"), "out": ("out/c",)},
    "tokenize": {"corpora": ("train.de",), "kind": ("word",), "vocab_size": ("40",), "out": ("out/t",)},
    "preprocess": {
        **{split: (f"{split}.de", f"{split}.en") for split in ("train", "valid", "test")},
        "tokenizer": ("runs/tiny/tokenizer",),
        "batch_tokens": ("256",),
        "out": ("out/d",),
    },
    "train": {
        "data": ("runs/tiny/dataset",),
        "max_epochs": ("1",),
        "max_steps": ("1",),
        "out": ("out/m",),
        "sets": TINY[1::2],
    },
    "translate": {"model": ("runs/tiny",), "file": ("few.de",)},
    "evaluate": {"hypotheses": ("test.en",), "reference": ("test.en",)},
    "run": {"recipes": ("tiny.toml",)},
    "search": {"file": ("some.toml",), "report": ()},
    "generate": {"model": ("runs/tiny",), "prompt": ("eins",)},
    "serve": {"models": ("runs/tiny",), "host": ("192.0.2.1",)},  # an address that nobody has: it ends at once
    "synthesize": {
        "models": ("runs/tiny",),
        "source": ("few.de",),
        "out": ("out/s",),
        "sets": ("synthesis.decoding.max_length=5",),
    },
    "rerank": {"file": ("lists.jsonl",), "channel": ("runs/tiny",), "weights": ("weights.json",)},
    "align": {"model": ("runs/tiny",), "source": ("few.de",), "target": ("few.de",)},
    "shortlist": {"dataset": ("runs/tiny",), "links": ("links.txt",), "out": ("out/l",)},
    "attend": {"model": ("runs/tiny",), "sentence": ("eins",)},
    "embed": {"model": ("runs/tiny",), "nearest": ("one",)},
    "compare": {"runs": ("runs/tiny",)},
    "import": {"folder": ("runs/tiny/model",), "out": ("out/i",)},
    "push": {"run": ("runs/tiny",), "to": ("me/mine",)},
    "pull": {"name": ("me/mine",), "out": ("out/pulled",)},
    "export": {"model": ("runs/tiny",), "to": ("huggingface",), "out": ("out/e",)},
    "inspect": {"folder": ("runs/tiny",)},
    "recipe": {"file": ("tiny.toml",)},
    "plan": {"recipe": ("tiny.toml",), "on": ("8 x H100",)},
    "judge make": {"runs": ("runs/tiny",), "segments": ("2",), "out": ("out/j",), "kind": ("likert",)},
    "judge score": {"campaign": ("judging",), "files": ("judging/campaign.json",)},
}
"""By command, arguments with which it works in a folder with `write_texts` and `make_run`, by parameter."""


@dataclass(frozen=True)
class Parameter:
    """An argument or option that takes values. flag: the option's name, empty for an argument."""

    command: str
    name: str
    flag: str
    num_values: int


def parameters() -> Iterator[Parameter]:
    """Each one that takes a value, of each command."""
    for name, command in _commands(typer.main.get_command(app)):
        for each in command.params:
            if not getattr(each, "is_flag", False):
                flag = each.opts[0] if each.param_type_name == "option" else ""
                yield Parameter(name, each.name, flag, max(1, each.nargs))


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} ")
        else:
            yield f"{before}{name}", command


def words_with(parameter: Parameter, value: str) -> list[str]:
    """A command line that is right but for one parameter, which has the value, as often as it takes one."""
    usual = {**USUAL[parameter.command], parameter.name: (value,) * parameter.num_values}
    of_command = dict(_commands(typer.main.get_command(app)))[parameter.command]
    words, behind = parameter.command.split(), []
    for each in of_command.params:
        given = usual.get(each.name, ())
        if each.param_type_name == "argument":
            behind += given
        elif each.name in usual and getattr(each, "is_flag", False):
            words.append(each.opts[0])
        else:
            step = max(1, each.nargs)
            for start in range(0, len(given), step):
                words += [each.opts[0], *given[start : start + step]]
    return [*words, *behind]


def write_texts(folder: Path) -> None:
    """Write corpora, a recipe and a search into the working folder."""
    write_corpora(folder)
    (folder / "few.de").write_text("eins zwei\ndrei\n", "utf-8")
    (folder / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    (folder / "some.toml").write_text(SEARCH, "utf-8")
    (folder / "lists.jsonl").write_text(json.dumps({"source": "eins", "translations": [TRANSLATION]}) + "\n", "utf-8")
    weights = {"direct": 1.0, "channel": 0.5, "language_model": 0.0, "length": 0.0}
    (folder / "links.txt").write_text("0-0\n" * 200, "utf-8")
    (folder / "weights.json").write_text(json.dumps({"weights": weights}), "utf-8")


def make_run() -> None:
    """Make a run of the recipe, and a campaign of it, in the working folder."""
    for words in (
        ("run", "tiny.toml"),
        ("judge", "make", "runs/tiny", "--kind", "likert", "--segments", "2", "--out", "judging"),
    ):
        done = tfm(*words)
        assert done.code == 0, done.err
