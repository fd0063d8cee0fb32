"""A run of all stages, through the command line, on a corpus of ours; and what each stage wrote and said."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.user import Result, tfm

LIMITS = {"max_length": 60, "max_ratio": 4.0}
SCHEDULE = {"name": "cosine", "peak": 0.01, "warmup_steps": 20, "final": 0.001}
RECIPE = """
name = "{name}"

[tokenizer]
kind = "{kind}"
vocab_size = 150
min_frequency = 1

[data]
batch_tokens = 600
train = {{ source = "{folder}/train.src", target = "{folder}/train.tgt" }}
valid = {{ source = "{folder}/valid.src", target = "{folder}/valid.tgt" }}

[data.tests.test]
source = "{folder}/test.src"
target = "{folder}/test.tgt"

[data.tests.again]
source = "{folder}/valid.src"
target = "{folder}/valid.tgt"

[data.limits]
max_length = 60
max_ratio = 4.0

[model]
encoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 64 }}
decoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 64 }}
dropout = {{ residual = 0.0, embedding = 0.0 }}
max_length = 128

[training]
max_epochs = 30
precision = "fp32"
device = "cpu"
threads = 1
log_every = 1
label_smoothing = 0.0
schedule = {{ name = "cosine", peak = 0.01, warmup_steps = 20, final = 0.001 }}
validation = {{ every_epochs = 10 }}

[decoding]
beam = 1
"""


@dataclass(frozen=True)
class Run:
    """The folder of a run, and what its stages said."""

    folder: Path
    said: Result

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))

    def metrics(self, event: str) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl of training ("train") or of validations ("valid")."""
        text = (self.folder / "training" / "metrics.jsonl").read_text("utf-8")
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]

    def lines(self, name: str) -> list[str]:
        """The lines of a file of the run, which end with a line feed and nothing else."""
        return (self.folder / name).read_text("utf-8").removesuffix("\n").split("\n")

    @property
    def scores(self) -> dict[str, Any]:
        """scores.json by test set: what there is at its top, and under "others"."""
        found = self.json("scores/scores.json")
        return {found["split"]: found, **found["others"]}


def settings(changes: Mapping[str, Any]) -> list[str]:
    """Options of the command line; words go in as JSON, which TOML reads."""
    return [word for key, value in changes.items() for word in ("--set", f"{key}={_toml(value)}")]


def _toml(value: Any) -> str:
    return str(value) if isinstance(value, Path) else json.dumps(value, ensure_ascii=False)


def write_recipe(file: Path, corpora: Path, kind: str) -> Path:
    file.write_text(RECIPE.format(name=file.stem, kind=kind, folder=corpora.resolve()), encoding="utf-8")
    return file


def run(recipe: Path, changes: Mapping[str, Any] | None = None) -> Run:
    """All stages, which must end well; runs/ is in the working folder."""
    said = tfm("run", recipe, *settings(changes or {}))
    assert said.code == 0, said.err
    return Run(Path("runs", recipe.stem), said)


def printed(said: str, title: str) -> list[list[str]]:
    """The rows of a table that was printed, by the beginning of its title; cells stand apart by two spaces."""
    lines = said.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.startswith(title))
    found = []
    for line in lines[begin + 1 :]:
        if not line.startswith("  "):
            break
        found.append(re.split(r"\s{2,}", line.strip()))
    return [row for row in found if not set("".join(row)) <= {"-", " "}][1:]


def number(text: str) -> float:
    """What a table says: thousands apart by commas, per cent."""
    return float(text.replace(",", "").removesuffix("%"))
