"""What onnxruntime computes of a model's graphs, and what the script of an exported folder writes by itself."""

import copy
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.huggingface_models import KINDS, LLAMA, our_logits
from tfm.model.config import StackConfig
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import BOS_ID, EOS_ID

WIDE = StackConfig(layers=1, dim=24, heads=4, key_value_heads=2, key_dim=6, value_dim=10, feed_forward_dim=16)
ENCODER_ONLY = {"architecture": "encoder_only"}
MODELS: dict[str, dict[str, Any]] = {
    **{name: changes for name, (_, changes) in KINDS.items()},
    "batch norm": {"normalization": "batch"},
    "positions of fairseq": {"positions": "fairseq"},
    "rotary, RMS, norms of queries and keys": {
        **LLAMA,
        "qk_norm": True,
        "output_bias": True,
        "decoder": WIDE.model_copy(update={"dim": 16}),
    },
    "stacks of two widths, post-norm": {
        "encoder": WIDE,
        "embedding_dim": 8,
        "activation": "gelu_tanh",
        "norm": "post",
        "embedding_norm": True,
    },
    "classifier, mean": {**ENCODER_ONLY, "task": "classification", "pooling": "mean"},
    "classifier, max": {**ENCODER_ONLY, "task": "classification", "pooling": "max", "norm": "post"},
    "classifier, begin token": {**ENCODER_ONLY, "task": "classification", "pooling": "first", "begin_token": True},
    "masked language model, as BERT": {
        **ENCODER_ONLY,
        "task": "masked_language_model",
        "embedding_dim": 8,
        "begin_token": True,
        "head_transform": True,
    },
}
"""By name: what a model has otherwise than the default."""
ALONE = """
import runpy, sys
sys.modules["tfm"] = sys.modules["torch"] = sys.modules["onnx"] = None
sys.argv = sys.argv[1:]
import functools, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # where many tests run, further threads only wait
onnxruntime.InferenceSession = functools.partial(onnxruntime.InferenceSession, sess_options=options)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def onnxruntime() -> Any:
    """The package; the test is skipped where it is not installed."""
    pytest.importorskip("onnx", reason="needs the extra `onnx`")
    return pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")


def sessions_of(loaded: LoadedModel) -> dict[str, Any]:
    """The graphs of a model, ready to be run, by the names of their files."""
    runtime = onnxruntime()
    from tfm.pipeline.model_io.onnx.networks import build_graphs

    graphs = build_graphs(loaded.model, loaded.config)
    return {name: runtime.InferenceSession(graph.SerializeToString()) for name, graph in graphs.items()}


def run(session: Any, **inputs: Any) -> dict[str, Any]:
    """The outputs of a graph by their names; what it does not ask for is left out."""
    names, asked = [each.name for each in session.get_outputs()], {each.name for each in session.get_inputs()}
    given = {name: value for name, value in inputs.items() if name in asked}
    return dict(zip(names, session.run(names, given), strict=True))


def onnx_logits(
    sessions: dict[str, Any],
    loaded: LoadedModel,
    source: list[int],
    target: list[int],
    *,
    left: int = 0,
    right: int = 0,
    parts: Sequence[int] = (),
) -> Tensor:
    """The same logits (T, V) as `our_logits`, of a text with padding to its left and right beside a longer one.

    parts: after how many pieces the decoder is asked anew, with what it gave as the past.
    """
    config, read, written = loaded.config, [*source, EOS_ID], [BOS_ID, *target]
    if config.architecture == "decoder_only":
        before = [] if config.task == "language_model" else read
        ids, mask = batch([*before, *written], left, right)
        logits = in_parts(sessions["model"], ids, parts, attention_mask=mask)
        return logits[left + len(before) : left + len(before) + len(written)]
    ids, mask = batch(read, left, right)
    if config.architecture == "encoder_only":
        found = torch.from_numpy(run(sessions["model"], input_ids=ids, attention_mask=mask)["logits"])[0]
        return found[None] if config.task == "classification" else found[left : left + len(read)]
    memory = run(sessions["encoder"], input_ids=ids, attention_mask=mask)
    return in_parts(sessions["decoder"], np.array([written, written]), parts, attention_mask=mask, **memory)


def batch(ids: list[int], left: int, right: int) -> tuple[Any, Any]:
    """Ids (2, S) with padding around them, beside a text that is as long as both; and the mask."""
    whole = left + len(ids) + right
    other = [5 + number % 20 for number in range(whole)]
    mask = [[0] * left + [1] * len(ids) + [0] * right, [1] * whole]
    return np.array([[0] * left + ids + [0] * right, other]), np.array(mask)


def in_parts(session: Any, ids: Any, parts: Sequence[int], *, attention_mask: Any, **inputs: Any) -> Tensor:
    """Logits (T, V) of the first row of ids (B, T), which are given in parts."""
    asked = [each for each in session.get_inputs() if each.name.startswith("past.")]
    past = {each.name: np.zeros((len(ids), each.shape[1], 0, each.shape[3]), np.float32) for each in asked}
    grows, found = "memory.0.key" not in inputs, []
    for first, end in zip((0, *parts), (*parts, ids.shape[1]), strict=True):
        mask = attention_mask[:, :end] if grows else attention_mask
        given = run(session, input_ids=ids[:, first:end], attention_mask=mask, **inputs, **past)
        past = {name.replace("present", "past"): each for name, each in given.items() if name != "logits"}
        found.append(torch.from_numpy(given["logits"][0]))
    return torch.cat(found)


def in_float64(loaded: LoadedModel) -> LoadedModel:
    """The same model in float64."""
    return replace(loaded, model=copy.deepcopy(loaded.model).double())


def smallest_gap(exact: LoadedModel, source: list[int], target: Iterable[int]) -> float:
    """By how much the piece that is chosen is ahead of the second, where that is least on the way to a translation."""
    logits = our_logits(exact, source, [*target])[:, [1, *range(EOS_ID, exact.target_tokenizer.vocab_size)]]
    best = logits.topk(2, dim=1).values
    return float((best[:, 0] - best[:, 1]).min())


def script_output(script: Path, stdin: str, *words: str) -> str:
    """What a script of an exported folder writes, in a process that has neither tfm nor torch."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-W", "error", "-c", ALONE, str(script), *words]
    done = subprocess.run(
        command, input=stdin.encode(), capture_output=True, env=environment, cwd=script.parent, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode("utf-8")
