"""Moments of a training at which a test lets it die, and trainings in processes of their own, which die for real."""

import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_training import MODEL, run
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import TfmError, is_error_of_one_rank
from tfm.pipeline.model_io.loaded_model import save_model
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import session
from tfm.pipeline.training.checkpoints import checkpoint_folder, train_state
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training_config import TrainingConfig

# A process is forked from one that has imported torch already, which saves it the seconds that this takes.
CONTEXT = multiprocessing.get_context("forkserver")
SLOW_MODULES = ("torch._dynamo", "torch.distributed.fsdp")
"""Modules of torch that trainings import."""
TIMES = {"seconds", "tokens_per_second"}
# Early stopping, moving average and averaged checkpoints together: another thing is published than the last weights,
# and the end is not known before.
ALL_THREE: dict[str, Any] = {
    "max_steps": 200,
    "ema": 0.9,
    "early_stopping": {"patience": 2},
    "schedule": {"name": "inverse_sqrt", "peak": 0.05, "warmup_steps": 5},
    "keep": {"last": 2, "best": 2, "average": "best"},
}


class Killed(BaseException):
    """What no code of ours catches: as near to SIGKILL as one process allows."""


@dataclass(frozen=True)
class Moment:
    """The calls of `owner.name` for which `when` holds, each after `begin` has done a part of its work.

    nth: one of them that comes after the first checkpoint.
    """

    owner: Any
    name: str
    nth: int
    when: Callable[..., bool] = lambda *_, **__: True
    begin: Callable[..., object] = lambda *_, **__: None


MOMENTS = {
    "in the middle of an epoch": Moment(Translation, "loss", 20),
    "at an epoch's end": Moment(Trainer, "log_update", 3, when=lambda trainer, *_: trainer.state.progress.batch == 0),
    "while writing a checkpoint": Moment(
        Checkpoints, "_write_file", 6, begin=lambda _, file, contents: file.write_bytes(contents[: len(contents) // 2])
    ),
    "when a checkpoint has its name": Moment(
        checkpoint_folder, "sync_folder", 2, when=lambda folder: folder.name == "checkpoints"
    ),
    "while removing a checkpoint": Moment(
        checkpoint_folder,
        "remove_path_below",
        1,
        when=lambda _, path: path.name.startswith(".dropped") and path.exists(),
    ),
    "while validating": Moment(Translation, "evaluate", 3),
    "when validation is done": Moment(MetricsLog, "append", 2, when=lambda log, line: line["event"] == "valid"),
    "while publishing": Moment(session, "save_model", 1, begin=save_model),
}


SHARDED_MOMENTS = {
    "while gathering weights": Moment(train_state, "full_tensor", 40),
    "while writing its part": Moment(
        Checkpoints, "_write_file", 5, begin=lambda _, file, contents: file.write_bytes(contents[: len(contents) // 2])
    ),
    "when its parts are written": Moment(Checkpoints, "_write_tensors", 2, begin=Checkpoints._write_tensors),
    "when all parts are written": Moment(Checkpoints, "_publish_draft", 2),
}
"""The places of a training whose processes have a part of the weights each."""


def arrange(moment: Moment, nth: int, die: Callable[[], object], put: Callable[..., None] = setattr) -> None:
    """Let `die` be called at the nth of these moments."""
    real, times = getattr(moment.owner, moment.name), 0

    def counting(*given: Any, **more: Any) -> Any:
        nonlocal times
        if moment.when(*given, **more):
            times += 1
            if times == nth:
                moment.begin(*given, **more)
                die()
        return real(*given, **more)

    put(moment.owner, moment.name, counting)


def result(out: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """All that may not differ: the model's bytes and the figures but for times."""
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    figures = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
    return (out / "model" / "model.safetensors").read_bytes(), figures


# Processes


@dataclass(frozen=True)
class End:
    """How a process ended: its exit code, what it said, and how long after it was asked for."""

    code: int
    said: str
    seconds: float


def start(
    dataset: Path,
    out: Path,
    config: TrainingConfig,
    *,
    ranks: int = 1,
    rank: int = 0,
    prepare: Callable[[], object] | None = None,
    model: ModelConfig = MODEL,
) -> list[BaseProcess]:
    """A training by so many processes, as torchrun starts them; one of them (`rank`) is prepared for something."""
    CONTEXT.set_forkserver_preload([__name__, *SLOW_MODULES])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        out.mkdir(parents=True, exist_ok=True)
        processes = []
        for each in range(ranks):
            environment = {**shared, "RANK": str(each), "LOCAL_RANK": str(each)} if ranks > 1 else {}
            rest = (out / f"said-{each}.txt", environment, prepare if each == rank else None, model)
            process = CONTEXT.Process(target=_train, args=(dataset, out, config, *rest), name=str(out), daemon=True)
            process.start()
            processes.append(process)
    return processes


def free_port() -> int:
    """A port that nobody has. Not one that systems give to whoever connects: a process that waits for its leader to
    open it could be given it itself, and then talks to itself."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def ends(processes: list[BaseProcess], patience: float = 600) -> list[End]:
    """How each of them ended, in this much time after the call."""
    began, found = time.monotonic(), []
    try:
        for rank, process in enumerate(processes):
            process.join(max(began + patience - time.monotonic(), 0))
            assert process.exitcode is not None, f"process {rank} goes on"
            said = (Path(process.name) / f"said-{rank}.txt").read_text("utf-8")
            found.append(End(process.exitcode, said, time.monotonic() - began))
    finally:
        for process in processes:
            process.kill()
            process.join()
            process.close()
    return found


@dataclass(frozen=True)
class DieAt:
    """Prepares a process for its death by SIGKILL at the nth of these moments."""

    moment: str
    nth: int

    def __call__(self) -> None:
        moments = {**MOMENTS, **SHARDED_MOMENTS}
        arrange(moments[self.moment], self.nth, lambda: os.kill(os.getpid(), signal.SIGKILL))


@dataclass(frozen=True)
class SignalAt:
    """Prepares a process to be asked to stop at the nth of these moments."""

    moment: str
    nth: int
    number: int = signal.SIGTERM

    def __call__(self) -> None:
        arrange(MOMENTS[self.moment], self.nth, lambda: os.kill(os.getpid(), self.number))


@dataclass(frozen=True)
class Hurry:
    """Prepares a process to be asked to stop twice at the nth of these moments, which then takes long."""

    moment: str
    nth: int
    number: int

    def __call__(self) -> None:
        arrange(MOMENTS[self.moment], self.nth, self.ask)

    def ask(self) -> None:
        for _ in range(2):
            os.kill(os.getpid(), self.number)
            time.sleep(0.1)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # one call of native code, which lets other threads run


@dataclass(frozen=True)
class LittleRoom:
    """Prepares a process to have only so many bytes more from the nth batch on."""

    nth: int
    num_bytes: int

    def __call__(self) -> None:
        arrange(MOMENTS["in the middle of an epoch"], self.nth, self.limit)

    def limit(self) -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + self.num_bytes, resource.RLIM_INFINITY))


@dataclass(frozen=True)
class Spoil:
    """Prepares a process for losses that are infinite (or, without room, for no memory) from call `first` to `last`."""

    first: int
    last: int
    room: bool = True

    def __call__(self) -> None:
        real, calls = Translation.loss, iter(range(1, 1_000_000))

        def loss(self_: Translation, model: Any, batch: Any) -> Any:
            spoilt = self.first <= next(calls) <= self.last
            if spoilt and not self.room:
                raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
            found = real(self_, model, batch)
            return LossSums(found.sum * float("inf"), found.nll, found.count) if spoilt else found

        Translation.loss = loss  # type: ignore[method-assign]


def _train(
    dataset: Path,
    out: Path,
    config: TrainingConfig,
    said: Path,
    environment: dict[str, str],
    prepare: Callable[[], object] | None,
    model: ModelConfig,
) -> None:
    os.environ.update(environment)
    with said.open("w") as stream:
        for standard in (1, 2):
            os.dup2(stream.fileno(), standard)
    session.draw_curves = lambda metrics, file: None  # drawing takes most of such a short run's time
    if prepare is not None:
        prepare()
    try:
        run(dataset, out, config, model=model)
    except TfmError as error:
        if is_error_of_one_rank(error):
            print(error, file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
