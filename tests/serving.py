"""Servers for tests: with a stand-in for the decoding processes, or whole, as a user starts them."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.cli.user import start
from tfm.pipeline.serving.access import AccessControl, ApiKey
from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import ModelCatalog, ServedModel
from tfm.pipeline.serving.detection import Detector
from tfm.pipeline.serving.dispatch.dispatcher import Dispatcher
from tfm.pipeline.serving.dispatch.messages import (
    Answer,
    AnswerPart,
    CancelQuery,
    LoadModel,
    LoadResult,
    ModelVersion,
    Query,
    QueryBatch,
)
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.logs import Log
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

PATIENCE = 240.0
TOKENIZER = train(["a dog runs .", "two cats sleep !"], TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))


def served_model(
    name: str, task: str = "translation", pairs: tuple[tuple[str, str], ...] = (), **more: Any
) -> ServedModel:
    """A model that is nowhere but in a catalog."""
    version = ModelVersion(name, Path("nowhere"), "1", task, **more)
    return ServedModel(version, TOKENIZER, 64, pairs)


MODELS = (
    served_model("de", pairs=(("en", "de"),)),
    served_model("fr", pairs=(("en", "fr"), ("de", "fr"))),
    served_model("verse", "language_model"),
    served_model("mood", "classification"),
    served_model("words", "tagging"),
    served_model("captions", pairs=(("und", "und"),), reads_images=True),
    served_model("clothes", "classification", reads_images=True),
)


@dataclass
class StandIn:
    """Answers messages at once, or when it is told to; notes what it was asked.

    holds: whether it keeps queries unanswered. fails: the problem that it answers with. load_problem: that of models.
    """

    on_replies: Callable[[Sequence[Any]], None]
    on_end: Callable[[], None]
    holds: bool = False
    fails: str | None = None
    asked: list[Query] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    held: list[tuple[int, Query]] = field(default_factory=list)
    load_problem: str | None = None
    is_closed: bool = False

    def send(self, message: Any) -> None:
        if isinstance(message, LoadModel):
            self.on_replies([LoadResult(message.version.key, self.load_problem)])
        elif isinstance(message, CancelQuery):
            self.cancelled.append(message.number)
        elif isinstance(message, QueryBatch):
            for number, query in message.queries:
                self.asked.append(query)
                if self.holds:
                    if query.kind == "generate":
                        self.on_replies([AnswerPart(number, " one")])
                    self.held.append((number, query))
                else:
                    self.answer(number, query)

    def answer(self, number: int, query: Query) -> None:
        if self.fails is not None:
            self.on_replies([Answer(number, problem=self.fails, is_fault=True)])
            return
        if query.kind == "generate":
            self.on_replies([AnswerPart(number, f" {word}") for word in ("one", "two", "three")])
        self.on_replies([Answer(number, answer_of(query))])

    def close(self) -> None:
        self.is_closed = True


def answer_of(query: Query) -> Any:
    """The answer of the stand-in: the text in capitals, with what was asked of it."""
    if query.kind == "generate":
        return {"finish": "stop", "prompt_tokens": 2, "tokens": 3}
    if query.kind == "label":
        labels = ["good", "bad", "new"][: query.n_best]
        text = " ".join(["N"] * len(query.text.split()))
        return (
            [(text, -0.5, -0.5, 1)] if query.model.startswith("words") else [(each, -1.0, -1.0, 1) for each in labels]
        )
    if query.kind == "align":
        return None
    if query.kind == "attend":
        weights = [[[0.123456, 0.876544]]]
        axes = {"cross": {"queries": ["A"], "keys": ["a", "b"]}}
        layer = {"name": "x", "kind": "cross", "layer": 1, "weights": weights}
        return {"source": query.text, "target": query.target or "A", "tokens": axes, "attentions": [layer]}
    said = " ".join([query.text.upper(), *query.forced])
    return [(f"{said}{'~' * rank}", -0.5 - rank, -1.0, 2) for rank in range(query.n_best)]


@dataclass
class Bench:
    """A backend with stand-ins, and what they were asked."""

    backend: Backend
    workers: list[StandIn]
    log: StringIO
    warnings: list[str]

    @property
    def asked(self) -> list[Query]:
        return [query for worker in self.workers for query in worker.asked]


def make_bench(
    *,
    models: Sequence[ServedModel] = MODELS,
    limits: Limits | None = None,
    keys: Sequence[ApiKey] | None = None,
    detector: Detector | None = None,
    num_workers: int = 1,
    holds: bool = False,
    fails: str | None = None,
    with_texts: bool = False,
) -> Bench:
    """A backend whose processes are stand-ins."""
    workers: list[StandIn] = []
    limits = limits or Limits()

    def start_worker(on_replies: Callable[[Sequence[Any]], None], on_end: Callable[[], None]) -> StandIn:
        workers.append(StandIn(on_replies, on_end, holds=holds, fails=fails))
        return workers[-1]

    log = StringIO()
    warnings: list[str] = []
    dispatcher = Dispatcher(start_worker, num_workers, limits.sentences, warnings.append)
    access = AccessControl(keys, limits.requests_per_minute)
    backend = Backend(ModelCatalog(models), dispatcher, limits, access, Log(True, with_texts, log), detector)
    return Bench(backend, workers, log, warnings)


@dataclass
class Server:
    """A `tfm serve` that runs."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, fields: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of a response."""
        data = None if fields is None else json.dumps(fields).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json", **headers})
        try:
            with urlopen(request, timeout=PATIENCE) as response:
                return response.status, json.load(response)
        except HTTPError as error:
            return error.code, json.load(error)

    def wait_ready(self) -> None:
        """Wait until its models are loaded."""
        wait_until(lambda: self.ask("/health")[0] == 200)

    def workers(self) -> list[int]:
        """The numbers of its decoding processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(each) for each in children.split()]


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until something is so. Raises AssertionError if it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.02)


@contextmanager
def running_server(*words: str | Path, folder: Path) -> Iterator[Server]:
    """A `tfm serve` at a free port, which is ended after the body."""
    log = folder / "serve.log"
    with open(log, "w", encoding="utf-8") as stream:
        process = start("serve", *words, "--port", "0", folder=folder, stderr=stream, stdout=stream)
    try:

        def port() -> int | None:
            found = re.search(r"listening at http://127\.0\.0\.1:(\d+)", log.read_text("utf-8"))
            assert process.poll() is None, log.read_text("utf-8")
            return None if found is None else int(found[1])

        wait_until(lambda: port() is not None)
        server = Server(process, port() or 0, [])
        server.wait_ready()
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                raise
