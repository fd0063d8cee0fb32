"""The paper's experiment without its corpus: text of its vocabulary and lengths, through all five stages."""

import json
import math
import random
from itertools import accumulate
from pathlib import Path

import pytest
from safetensors import safe_open

from tests.cli.user import ROOT, start, write_lines

NUM_WORDS = 120_000
SIZES = {"train": 12_000, "valid": 40, "test": 12}
MEAN_WORDS, DEVIATION = 3.0, 0.6
"""Mean and deviation of the logarithm of a sentence's length: a mean of 24 words, as in WMT 2014."""
UPDATES = 50


def write_corpus(folder: Path) -> None:
    """Sentences of words by Zipf's law, with lengths by a log-normal law; targets are a tenth longer or shorter."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 12))) for _ in range(NUM_WORDS)]
    cumulated = list(accumulate(1 / rank for rank in range(1, NUM_WORDS + 1)))
    for split, size in SIZES.items():
        lengths = [max(1, round(draw.lognormvariate(MEAN_WORDS, DEVIATION))) for _ in range(size)]
        for side in ("en", "de"):
            lines = [
                " ".join(draw.choices(words, cum_weights=cumulated, k=max(1, round(length * draw.gauss(1, 0.1)))))
                for length in lengths
            ]
            write_lines(folder / f"{split}.{side}", lines)


@pytest.mark.slow
def test_the_five_stages_of_the_paper_run(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    changed = {
        "data.path": str(tmp_path),
        "data.online": "false",
        "data.batch_tokens": "256",
        "data.limits.max_length": "120",
        "training.accumulate": "1",
        "training.max_steps": str(UPDATES),
        "training.validation.every_steps": "25",
        "decoding.max_length": "20",
    }
    sets = [word for key, value in changed.items() for word in ("--set", f"{key}={value}")]
    process = start("run", ROOT / "recipes" / "wmt14-en-de.toml", *sets, folder=tmp_path)
    _, err = process.communicate(timeout=1500)
    assert process.returncode == 0, err
    run = tmp_path / "runs" / "wmt14-en-de"
    with safe_open(run / "model" / "model.safetensors", "np") as weights:
        size = sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    assert size / 1e6 == pytest.approx(65, rel=0.03)
    trained = json.loads((run / "model" / "manifest.json").read_bytes())
    assert trained["figures"]["updates"] == UPDATES, trained["figures"]
    scores = json.loads((run / "scores" / "scores.json").read_bytes())["metrics"]
    assert {"bleu", "bleu_paper", "chrf", "perplexity"} <= scores.keys()
