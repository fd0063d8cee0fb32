"""Text without a vocabulary, from text to scores: sources of any script as characters, targets as pieces."""

import json
import random
from pathlib import Path

import pytest

from tests.cli.user import Result, tfm

WORDS = {
    "एक": "one",
    "दो": "two",
    "قط": "cat",
    "\U0001f469\u200d\U0001f52c": "scientist",
    "Große": "great",
    "猫": "Cat",
}
RECIPE = """
name = "spelled"

[tokenizer]
kind = "codepoint"
shared = false
target_kind = "word"
vocab_size = 40
min_frequency = 1

[data]
batch_tokens = 512
limits.max_ratio = 20
train = { source = "train.src", target = "train.tgt" }
valid = { source = "test.src", target = "test.tgt" }
tests = { main = { source = "test.src", target = "test.tgt" } }

[model]
encoder = { layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }
decoder = { layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }
dropout = { residual = 0.0, embedding = 0.0 }
tie = "output"
max_length = 300
canine = { hashes = 4, buckets = 64, window = 4, rate = 2 }

[training]
max_steps = 150
precision = "fp32"
label_smoothing = 0.0
schedule = { name = "cosine", peak = 0.01, warmup_steps = 10 }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    for name, size in (("train", 300), ("test", 20)):
        pairs = [draw.choices([*WORDS.items()], k=draw.randint(1, 3)) for _ in range(size)]
        for side, place in (("src", 0), ("tgt", 1)):
            lines = [" ".join(pair[place] for pair in line) + "\n" for line in pairs]
            Path(f"{name}.{side}").write_text("".join(lines), encoding="utf-8")
    Path("spelled.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_all_stages_take_characters_and_keep_no_table_of_them() -> None:
    made = tfm("run", "spelled.toml", "--device", "cpu", "--set", "training.max_steps=3")
    assert made.code == 0, made.err
    about = json.loads(Path("runs/spelled/tokenizer/manifest.json").read_text())["figures"]
    assert about["source"]["vocabulary_size"] == 1114116
    assert about["source"]["unknown_rate"] == 0
    assert Path("runs/spelled/tokenizer/source.json").stat().st_size < 3000
    assert Path("runs/spelled/model/model.safetensors").stat().st_size < 200_000
    strange = tfm("translate", "runs/spelled", "--device", "cpu", stdin="</s> <pad> \ue000\u202e \U0010ffff\n\n")
    assert (strange.code, len(strange.out.splitlines())) == (0, 2)
    shown = tfm("attend", "runs/spelled", "قط एक", "--json", "--device", "cpu")
    keys = json.loads(shown.out)["tokens"]["cross"]["keys"]
    assert "".join(keys) == "قط␣एक</s>"
    assert len(keys) == 3
    assert tfm("inspect", "runs/spelled/model").code == 0


@pytest.mark.slow
def test_a_translation_from_characters_is_learned() -> None:
    made = tfm("run", "spelled.toml", "--device", "cpu")
    assert made.code == 0, made.err
    said = tfm("translate", "runs/spelled", "--device", "cpu", stdin="\U0001f469\u200d\U0001f52c Große\n\nقط एक\n")
    assert said.out.splitlines() == ["scientist great", "", "cat one"], said.err
    scores = json.loads(Path("runs/spelled/scores/scores.json").read_text())["metrics"]
    assert scores["exact_match"]["score"] > 90


def refused(*sets: str) -> Result:
    return tfm("run", "spelled.toml", *(word for each in sets for word in ("--set", each)))


def test_what_cannot_be_done_is_said_before_any_work() -> None:
    for sets, reason in (
        (["model.canine=none"], "it is for models with [model.canine]"),
        (["model.architecture=decoder_only", "model.encoder={}"], "does not read characters"),
        (["training.layout=flat"], 'training.layout = "flat"'),
    ):
        found = refused(*sets)
        assert found.code == 2
        assert reason in found.err
        assert len(found.err.splitlines()) <= 2
    assert not Path("runs").exists()


def test_a_dataset_of_characters_is_for_a_model_that_reads_them() -> None:
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "spelled.toml").code == 0
    found = tfm(
        "train", "--data", "runs/spelled/dataset", "--max-steps", "1", "--set", "model.tie=output", "--out", "x"
    )
    assert found.code == 2
    assert "the source of the dataset is encoded by code point: it is for models with [model.canine]" in found.err
