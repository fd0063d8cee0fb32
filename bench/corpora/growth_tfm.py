"""One training up to a few updates, and an epoch's change: `python -m bench.corpora.growth_tfm < JSON`. Prints JSON."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BEGAN = time.perf_counter()  # before anything heavy is imported


class MeasurementDone(BaseException):
    """All updates to measure are done."""


class UpdateClock:
    """A reporter that records the time of each update."""

    def __init__(self, updates: int) -> None:
        self.updates, self.done = updates, list[float]()

    def line(self, text: str) -> None:
        print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        print(text, file=sys.stderr)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        pass

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator["UpdateClock"]:
        yield self

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.done.append(time.perf_counter())
        if len(self.done) > self.updates:
            raise MeasurementDone


def main(request: dict[str, Any]) -> None:
    from bench.processes import AnonymousMemory
    from tfm.model.config import ModelConfig
    from tfm.pipeline.config import DecodingConfig, EvaluationConfig
    from tfm.pipeline.stages.train import train
    from tfm.pipeline.training_config import TrainingConfig

    memory = AnonymousMemory()
    memory.start()
    model, training = ModelConfig.model_validate(request["model"]), TrainingConfig.model_validate(request["training"])
    dataset, clock = Path(request["dataset"]), UpdateClock(request["updates"])
    with TemporaryDirectory(dir=dataset.parent) as out:
        rest: dict[str, Any] = {"seed": 1, "evaluation": EvaluationConfig(), "command": ["bench"], "reporter": clock}
        with suppress(MeasurementDone):
            train(training, model, DecodingConfig(), dataset, Path(out), **rest)
    pause = epoch_pause(dataset, model, training)
    rate = (len(clock.done) - 1) / (clock.done[-1] - clock.done[0])
    print(json.dumps({"start": clock.done[0] - BEGAN, "memory": memory.peak, "pause": pause, "rate": rate}))


def epoch_pause(dataset: Path, model: Any, training: Any) -> float:
    """The seconds from the last batch of an epoch to the first of the next."""
    from tfm.data.artifact_tokenizers import load_tokenizer_pair
    from tfm.pipeline.tasks.registry import make_task
    from tfm.pipeline.tasks.task import TaskContext
    from tfm.pipeline.training.session import read_dataset

    data = read_dataset(dataset)
    task = make_task(TaskContext(training, model, *load_tokenizer_pair(data.tokenizer_folder), data.batch_tokens))
    epochs = task.epochs(data.train, data.batch_tokens, 1)
    task.batch(data.train, epochs(0)[0])
    start = time.perf_counter()
    task.batch(data.train, epochs(1)[0])
    return time.perf_counter() - start


if __name__ == "__main__":
    main(json.load(sys.stdin))
