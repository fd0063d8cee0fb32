"""The cost of noise: the four runs of a seed, and what the bench reads of them."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.cleaning.noisy_text import NOISES, add_noise
from tfm.data.synthetic.languages import generate

RECIPE = """
name = "tiny"
[tokenizer]
kind = "char"
[model.encoder]
layers = 1
dim = 16
heads = 2
feed_forward_dim = 16
[model.decoder]
layers = 1
dim = 16
heads = 2
feed_forward_dim = 16
[training]
max_steps = 2
[decoding]
beam = 1
max_length = 8
"""


def test_each_kind_of_noise_is_as_often_as_the_others() -> None:
    pairs, kinds = add_noise([(f"a b c d e f {row}", f"A B C D E F {row}") for row in range(100)], ["x"] * 100, 0.5, 1)
    assert len(pairs) == len(kinds) == 150
    assert {kind: kinds.count(kind) for kind in NOISES} == dict.fromkeys(NOISES, 10)
    assert kinds.count("clean") == 100
    for (source, target), kind in zip(pairs, kinds, strict=True):
        assert (kind == "untranslated") == (source == target)


@pytest.mark.slow
def test_a_seed_has_four_runs_and_bleu_is_that_of_their_scores(tmp_path: Path) -> None:
    pytest.importorskip("py3langid", reason="the extra `clean` is not installed")
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, split, size in (("train", "train", 60), ("val", "valid", 4), ("test_2016_flickr", "test", 4)):
        pairs = [*generate(split, size, 1, source="eng", target="deu")]
        sides = {
            "en": [each[0] for each in pairs],
            "de": [each[1] for each in pairs],
            "fr": ["Voici une phrase"] * size,
        }
        for language, lines in sides.items():
            (texts / f"{name}.{language}.gz").write_bytes(
                gzip.compress("".join(f"{each}\n" for each in lines).encode())
            )
    (tmp_path / "tiny.toml").write_text(RECIPE)
    words = ["noisy", str(texts), "--recipe", str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out")]
    words += ["--seeds", "1", "--pairs", "60", "--min-length", "1", "--json", str(tmp_path / "found.json")]
    words += ["--information", "-100"]  # models of two updates know nothing
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    runs = tmp_path / "out" / "seed-1" / "runs"
    (found,) = json.loads((tmp_path / "found.json").read_bytes())["found"]
    for name in ("clean", "noisy", "cleaned"):
        scores = json.loads((runs / name / "scores" / "scores.json").read_bytes())
        assert found["bleu"][name] == scores["metrics"]["bleu"]["score"]
    dropped = (runs / "cleaned" / "clean" / "dropped.jsonl").read_text().count("\n")
    counts = {"clean": 60, **dict.fromkeys(NOISES, 6)}
    assert sum(round(counts[kind] * (1 - share)) for kind, share in found["kept"].items()) == dropped
    assert sum(found["dropped"].values()) == dropped
