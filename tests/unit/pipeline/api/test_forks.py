"""A model in processes that were forked from one that has used it, and in those that it is sent to.

Each process has as long as a slow machine may need; one that waits for ever is killed, and has no answer.
"""

import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.config import StackConfig
from tfm.pipeline.api.loading import load
from tfm.pipeline.api.model import Model
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel, save_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.tokenizer import SHARED

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
ROOT = Path(__file__).parents[4]
SECONDS = 20.0
FAST = {"beam": 1, "max_length": 2}
WIDE = StackConfig(layers=1, dim=256, heads=2, feed_forward_dim=1024)
TWO = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def wide() -> Model:
    """A model whose products take several threads."""
    return Model(tiny_model(encoder=WIDE, decoder=WIDE), NullReporter())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a model is published."""
    return published(tiny_model(), tmp_path_factory.mktemp("run") / "model")


def published(loaded: LoadedModel, folder: Path) -> Path:
    tokenizer = folder.parent / SHARED
    loaded.target_tokenizer.save(tokenizer)
    with publish(Plan("train", folder, {}, {}, 1), command=["test"]) as draft:
        save_model(draft.folder, loaded.config, loaded.model.state_dict(), folder.parent)
    return folder


@pytest.fixture
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def in_fork(work: Callable[[], Any]) -> Any:
    """What some work gives in a forked process (a JSON value)."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        has_answered, _, _ = select.select([answer], [], [], SECONDS)
        os.kill(process, signal.SIGKILL if not has_answered else 0)
        found = answer.read()
    os.waitpid(process, 0)
    assert found, "the forked process gave no answer"
    return json.loads(found)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.slow
def test_a_forked_process_finds_the_same(wide: Model) -> None:
    texts = list(TEXTS) * 4
    wanted = wide.translate(texts, batch_sentences=12, **FAST)
    found = in_fork(lambda: [wide.translate(texts, batch_sentences=12, **FAST), torch.get_num_threads()])
    assert found == [wanted, 1]
    assert torch.get_num_threads() == 2
    assert np.allclose(in_fork(lambda: wide.score(texts, texts).log_probs.tolist()), wide.score(texts, texts).log_probs)


@pytest.mark.usefixtures("two_threads")
def test_a_process_forked_while_a_thread_translates_need_not_wait(wide: Model) -> None:
    ends, texts = threading.Event(), list(TEXTS)

    def work() -> None:
        while not ends.is_set():
            wide.translate(texts, **FAST)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        time.sleep(0.02)
        assert in_fork(lambda: wide.translate(texts[:1], **FAST)) is not None
    finally:
        ends.set()
        thread.join()


def test_a_pool_is_given_a_method(folder: Path) -> None:
    model = load(folder, device="cpu")
    wanted = model.translate(list(TEXTS), **FAST)
    with TWO.Pool(1) as pool:
        assert pool.apply_async(model.translate, (list(TEXTS),), FAST).get(SECONDS) == wanted
        with pytest.raises(DataError, match="was not trained with languages"):
            pool.apply_async(model.translate, (["a"],), {"to": "deu"}).get(SECONDS)


def test_a_model_of_no_folder_is_not_sent(wide: Model) -> None:
    with TWO.Pool(1) as pool, pytest.raises(DataError, match="was not loaded from a folder"):
        pool.apply_async(wide.translate, (["a"],)).get(SECONDS)


def test_where_another_model_was_published_the_one_that_was_sent_is_not_taken(tmp_path: Path) -> None:
    model = load(published(tiny_model(), tmp_path / "model"), device="cpu")
    make, arguments = model.__reduce__()
    assert make(*arguments)._loaded is model._loaded
    (path, fingerprint, device), *others = arguments
    with pytest.raises(DataError, match="which must stay as it is"):
        make((path, fingerprint[::-1], device), *others)


STARTED_ANEW = """
import multiprocessing, sys, tfm
if __name__ == "__main__":
    model = tfm.load(sys.argv[1], device="cpu")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(model.translate, (["a dog runs"],), {"beam": 1, "max_length": 3}))
"""


@pytest.mark.slow
def test_a_process_started_anew_reads_the_model(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STARTED_ANEW)
    kept = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, program, folder], env=kept, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == f"{load(folder, device='cpu').translate('a dog runs', beam=1, max_length=3)}\n"
