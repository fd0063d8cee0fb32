"""A corpus and a model so small that a training takes a second; also the program that the two-process tests start."""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from tfm.data.batching.resegmentation import Resegmenter
from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.store import load_dataset, write_split
from tfm.data.errors import TfmError
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.runtime.distributed import World, init_world
from tfm.pipeline.runtime.progress import NullReporter, Reporter
from tfm.pipeline.stages.train import train
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.task import Rows, Task
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.assembly import starting_point as first_state
from tfm.pipeline.training.helpers import start_gradient_workers
from tfm.pipeline.training.optimizers import make_optimizer, set_learning_rate
from tfm.pipeline.training.update import GradientComputer
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train as train_tokenizer

WORDS = "one two three four five six seven eight nine ten"
WHOLE_WORDS = TokenizerConfig(kind="word", vocab_size=20, min_frequency=1)
STACK = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=24)
MODEL = ModelConfig(encoder=STACK, decoder=STACK, max_length=32, dropout=DropoutConfig(residual=0.2, embedding=0.1))
TRAINING: dict[str, Any] = {
    "max_steps": 20,
    "precision": "fp32",
    "device": "cpu",
    "log_every": 3,
    "schedule": {"name": "inverse_sqrt", "peak": 0.01, "warmup_steps": 5},
    "validation": {"every_steps": 5},
}


def training(**changes: Any) -> TrainingConfig:
    """A short training, changed as asked."""
    return TrainingConfig.model_validate({**TRAINING, **changes})


def write_dataset(
    folder: Path,
    *,
    num_train: int = 60,
    batch_tokens: int = 64,
    words: str = WORDS,
    pieces: TokenizerConfig = WHOLE_WORDS,
    by: Tokenizer | None = None,
) -> Path:
    """An artifact as `tfm preprocess` makes it: copying words. by: a tokenizer, where it has not learned them."""
    draw = random.Random(5)
    lines = [" ".join(draw.choices(words.split(), k=draw.randint(1, 7))) for _ in range(num_train + 12)]
    tokenizer = train_tokenizer(lines, pieces) if by is None else by
    plan = Plan(stage="preprocess", folder=folder, config={}, inputs={}, seed=1)
    with publish(plan, command=["test"]) as draft:
        for name, texts in (("train", lines[:num_train]), ("valid", lines[num_train:])):
            ids = [np.array(each, np.int32) for each in tokenizer.encode_batch(texts)]
            column = np.concatenate(ids), np.array([len(each) for each in ids])
            with write_split(draft.folder / name, texts=name != "train") as writer:
                writer.write(column, column, *((np.ones(len(ids)),) if name == "train" else (texts, texts)))
        write_metadata(draft.folder, tests=[], batch_tokens=batch_tokens, train_corpora=[])
        (draft.folder / "tokenizer").mkdir()
        tokenizer.save(draft.folder / "tokenizer" / "tokenizer.json")
    return folder


def run(
    dataset: Path,
    out: Path,
    config: TrainingConfig,
    *,
    model: ModelConfig = MODEL,
    reporter: Reporter | None = None,
    **more: Any,
) -> Path:
    """Train; the folder of the model."""
    seed, talk, decoding = more.pop("seed", 3), reporter or NullReporter(), more.pop("decoding", DecodingConfig())
    more = {"evaluation": EvaluationConfig(), **more}
    train(config, model, decoding, dataset, out, seed=seed, command=["test"], reporter=talk, **more)
    return out / "model"


@contextmanager
def in_float64() -> Iterator[None]:
    """Within, the train stage trains, validates and publishes models in float64, which it offers nobody else."""
    with patch.object(first_state, "build", lambda *given, **more: build(*given, **more).double()):
        yield


def gradients_in_float64(
    dataset: Path,
    groups: Sequence[Sequence[Rows]],
    world: World,
    helpers: int = 0,
    *,
    shape: ModelConfig = MODEL,
    task: Task | None = None,
    resegmentation: Resegmenter | None = None,
) -> dict[str, Tensor]:
    """The gradients of one update a group of batches, without dropout; a group is shared among the processes, each of
    its batches with so many helpers. task: by default translation."""
    data = load_dataset(dataset)
    exact = shape.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0)})
    model = build(exact, source_vocab=20, target_vocab=20, seed=1).double()
    config = training(l2=1e-3, clip_norm=0.5, optimizer={"name": "sgd"})
    task = task or Translation(CrossEntropy(0.1))
    gradients = GradientComputer(model, task, data.train, config, 1, world, resegmentation)
    optimizer, found = make_optimizer(model, config.optimizer), {}
    set_learning_rate(optimizer, 0.3)
    with start_gradient_workers(gradients, helpers) as gradients.helpers:
        for step, group in enumerate(groups, 1):
            gradients.compute(group, step, stop=False)
            found |= {f"{step}/{name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
            optimizer.step()
    return found


def groups_of(size: int) -> list[list[Rows]]:
    """20 updates of 12 rows each, in batches of `size` rows; some batches are a row short, so that counts differ."""
    rows = np.random.default_rng(2).permutation(240) % 60
    updates = [rows[begin : begin + 11 + (begin % 24 > 0)] for begin in range(0, 240, 12)]
    return [[update[begin : begin + size] for begin in range(0, len(update), size)] for update in updates]


def main(dataset: Path, out: Path, config: TrainingConfig, precision: str = "") -> None:
    """Train as a program: alone, or as one of several processes, which then also do `gradients_in_float64`.

    precision: "float64", or nothing: that of the config.
    """
    with init_world(torch.device("cpu")) as world:
        if world.size > 1:
            found = gradients_in_float64(dataset, groups_of(5), world)
            out.mkdir(parents=True, exist_ok=True)
            save_file(found, out / f"gradients-{world.rank}.safetensors")
    os.environ["MASTER_PORT"] = os.environ.get("SECOND_PORT", "")  # the first one may still be served
    with in_float64() if precision == "float64" else nullcontext():
        run(dataset, out, config)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), TrainingConfig.model_validate_json(sys.argv[3]), *sys.argv[4:])
    except TfmError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
