"""A table of inflections, lemma, form and features, from text to scores, its source two of the three columns."""

import json
from pathlib import Path

import pytest

from tests.cli.user import TINY, tfm, write_lines

STEMS = "walk talk jump play call cook look help open push".split()
ENDINGS = {"V;PST": "ed", "V;PRS;3;SG": "s", "V;V.PTCP;PRS": "ing"}
RECIPE = """
name = "verbs"
tokenizer = { kind = "char", vocab_size = 80, min_frequency = 1 }
evaluation = { metrics = ["wer", "exact_match"], words = "line" }
training = { max_steps = 10, precision = "fp32" }

[data]
batch_tokens = 256
train = { format = "tsv", path = "verbs.trn", source = [0, 2], target = 1 }
valid = { format = "tsv", path = "verbs.dev", source = [0, 2], target = 1 }
tests.main = { format = "tsv", path = "verbs.tst", source = [0, 2], target = 1 }
"""


def test_the_five_stages_read_a_lemma_and_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(stem, stem + ending, features) for stem in STEMS for features, ending in ENDINGS.items()]
    for name, some in (("trn", rows[:24]), ("dev", rows[24:27]), ("tst", rows[27:])):
        write_lines(Path(f"verbs.{name}"), ["\t".join(row) for row in some])
    write_lines(Path("verbs.toml"), [RECIPE])
    done = tfm("run", "verbs.toml", "--device", "cpu", *TINY)
    assert done.code == 0, done.err
    assert "[5/5] evaluate" in done.err
    run = Path("runs/verbs")
    sources = (run / "translations" / "main.source.txt").read_text("utf-8").splitlines()
    assert sources == [f"push {features}" for features in ENDINGS]
    assert (run / "translations" / "main.reference.txt").read_text("utf-8").split() == ["pushed", "pushs", "pushing"]
    assert "exact_match" in json.loads((run / "scores" / "scores.json").read_text("utf-8"))["metrics"]
    again = tfm("run", "verbs.toml", "--device", "cpu", *TINY)
    assert "dataset: up to date" in again.err
    other = tfm("run", "verbs.toml", "--device", "cpu", *TINY, "--set", "data.train.source=[2, 0]")
    assert other.code == 0, other.err
    assert "dataset: up to date" not in other.err
    assert "model: input dataset changed" in other.err
    line = tfm("translate", "runs/verbs", "--device", "cpu", stdin="push V;PST\n")
    assert (line.code, line.out.count("\n")) == (0, 1), line.err
