"""A dataset of generated lengths and ids as `tfm preprocess` writes it: `python -m bench.corpora.growth_dataset`."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.examples import CHUNK_ROWS
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.store import TOKENIZER_FOLDER, write_split
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.train import train as train_tokenizer

MAX_LENGTH = 120
NUM_VALID = 200


def draw_lengths(rng: np.random.Generator, count: int, median: float) -> tuple[Ints, Ints]:
    """Lengths of both sides, log-normal and correlated, as those of translated sentences are."""
    source = median * np.exp(rng.normal(0.0, 0.55, count))
    target = source * np.exp(rng.normal(0.05, 0.2, count))
    return tuple(np.clip(side.round(), 1, MAX_LENGTH).astype(np.int64) for side in (source, target))  # type: ignore[return-value]


def main(request: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    vocab = request["vocab"]
    words = [f"w{number}" for number in range(vocab)]
    tokenizer = train_tokenizer([" ".join(words)], TokenizerConfig(kind="word", vocab_size=vocab, min_frequency=1))
    first, last = len(SPECIAL_TOKENS), tokenizer.vocab_size
    plan = Plan(stage="preprocess", folder=Path(request["folder"]), config={}, inputs={}, seed=1)
    with publish(plan, command=["python", "-m", "bench", "growth"]) as draft:
        for name, rows in (("train", request["rows"]), ("valid", NUM_VALID)):
            with write_split(draft.folder / name, texts=name == "valid") as split:
                for begin in range(0, rows, CHUNK_ROWS):
                    count = min(CHUNK_ROWS, rows - begin)
                    lengths = draw_lengths(rng, count, request["median"])
                    if request["texts"]:
                        lengths = np.zeros_like(lengths[0]), lengths[1]
                    sides = [(rng.integers(first, last, each.sum(), np.int32), each) for each in lengths]
                    extra = ([""] * count, [""] * count) if name == "valid" else (np.ones(count),)
                    split.write(sides[0], sides[1], *extra)
        write_metadata(draft.folder, tests=[], batch_tokens=request["batch_tokens"], train_corpora=[])
        (draft.folder / TOKENIZER_FOLDER).mkdir()
        tokenizer.save(draft.folder / TOKENIZER_FOLDER / "tokenizer.json")


if __name__ == "__main__":
    main(json.load(sys.stdin))
