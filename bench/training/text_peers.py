"""The peers of `python -m bench train` for tasks other than translation: nanoGPT's loop, and GPT-2, BERT and CANINE of
Hugging Face. Each run is a process. Does not import torch."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.compare import Figures
from bench.processes import run, run_module
from bench.training.workload import Workload, venv_python
from tfm.data.dataset.split import Split
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.tokenizer.special import EOS_ID

PROGRAM = Path(__file__).parent.parent / "peers" / "training" / "train_huggingface_texts.py"
IGNORED_LABEL = -100
EXAMPLES = "examples.jsonl"
MAX_CANINE_HASHES = 16
"""So many primes transformers has for them."""
DEFAULTS = {"mixing": "attention", "window": None, "adaptive": None, "vision": None, "embedding_dim": None}


def text_model_size(work: Workload) -> dict[str, Any]:
    """Return the sizes of the model that a peer builds. Raises RecipeError for a model that peers do not have."""
    model = work.model
    architecture = "decoder_only" if model.task == "language_model" else "encoder_only"
    for name, expected in {"architecture": architecture, **DEFAULTS}.items():
        if (actual := getattr(model, name)) != expected:
            raise RecipeError(f"model.{name} = {actual!r}: peers have models with {expected!r} alone")
    if model.task == "language_model" and model.block is None:
        raise RecipeError("model.block is none: peers read windows of a running text, so set it")
    stack = model.decoder if model.task == "language_model" else model.encoder
    size: dict[str, Any] = {
        "layers": stack.layers,
        "dim": stack.dim,
        "heads": stack.heads,
        "inner": stack.feed_forward_dim,
    }
    size |= {"dropout": model.dropout.residual, "smoothing": work.config.label_smoothing, "block": model.block}
    return size | {"vocab": work.source_vocab, "labels": work.vocab, "canine": canine_size(model)}


def canine_size(model: ModelConfig) -> dict[str, int] | None:
    """Return what makes rows of characters, if a model reads them. Raises RecipeError for what transformers has not.

    Its blocks are as wide as our windows to both sides: the pairs of characters that attend are as many.
    """
    canine = model.canine
    if canine is None:
        return None
    if canine.hashes > MAX_CANINE_HASHES:
        raise RecipeError(f"model.canine.hashes = {canine.hashes}: transformers has {MAX_CANINE_HASHES} at most")
    if canine.buckets < model.max_length:
        raise RecipeError(
            f"model.canine.buckets = {canine.buckets}: transformers has as many positions as buckets, so set it to "
            f"model.max_length = {model.max_length} or more"
        )
    size = {"hashes": canine.hashes, "buckets": canine.buckets, "block": 2 * canine.window}
    return size | {"rate": canine.rate, "upsampling": canine.upsampling}


def measure_plain_gpt(work: Workload, folder: Path, repository: Path | None) -> Figures:
    """nanoGPT's loop, run by our own Python; with a repository the network of its model.py."""
    size = text_model_size(work)
    request: dict[str, Any] = {"dataset": str(work.dataset), "warmup": work.warmup, "steps": work.steps, "size": size}
    request |= {"windows": windows_a_batch(work), "device": work.device}
    process = run_module(
        "bench.peers.training.train_plain_gpt",
        request | {"repository": None if repository is None else str(repository.resolve())},
    )
    return {**process.answer(), "peak": process.peak}


def measure_huggingface_texts(work: Workload, folder: Path, venv: Path | None) -> Figures:
    """GPT-2, BERT or CANINE, and Trainer, of Hugging Face transformers."""
    is_running = work.model.task == "language_model"
    request: dict[str, Any] = {
        "examples": str(folder / EXAMPLES),
        "task": work.model.task,
        "size": text_model_size(work),
    }
    request |= {"warmup": work.warmup, "steps": work.steps, "device": work.device}
    request |= {"batch": windows_a_batch(work) if is_running else texts_a_batch(work)}
    with TemporaryDirectory() as out:
        process = run([venv_python(venv), PROGRAM], folder=Path(out), text=json.dumps(request))
    return {**process.answer(), "peak": process.peak}


def windows_a_batch(work: Workload) -> int:
    """The windows of running text that fill the budget of a batch."""
    assert work.model.block is not None  # so says text_model_size
    return max(work.data.batch_tokens // work.model.block, 1)


def texts_a_batch(work: Workload) -> int:
    """The texts that fill the budget of a batch on average."""
    return max(round(work.data.batch_tokens / float((work.data.train.source_lengths + 1).mean())), 1)


def write_examples(work: Workload, folder: Path) -> None:
    """Write the training split as a file of examples."""
    lines = windows(work.data.train, work.model.block or 1) if work.model.task == "language_model" else texts(work)
    with (folder / EXAMPLES).open("w", encoding="utf-8") as file:
        for example in lines:
            file.write(json.dumps(example) + "\n")


def windows(split: Split, block: int) -> Iterator[dict[str, object]]:
    """Windows of the running text of all targets, each with its end token."""
    text = np.concatenate([np.append(split.target[row], EOS_ID) for row in range(len(split))])
    for begin in range(0, len(text) - block + 1, block):
        window = text[begin : begin + block].tolist()
        yield {"input_ids": window, "labels": window}


def texts(work: Workload) -> Iterator[dict[str, object]]:
    """Sources, with their label or a label for each token: that of a word at its first piece."""
    split, task = work.data.train, work.model.task
    if task == "tagging" and split.words is None:
        raise RecipeError(f"{work.dataset} does not say how many pieces each word has: make it again")
    for row in range(len(split)):
        source, labels = split.source[row].tolist(), split.target[row].tolist()
        example: dict[str, object] = {"input_ids": [*source, EOS_ID]}
        if task == "classification":
            example["labels"] = labels[0]
        elif task == "tagging":
            assert split.words is not None
            pieces = split.words[row]
            marked = np.full(len(source) + 1, IGNORED_LABEL)
            marked[np.cumsum(pieces) - pieces] = labels
            example["labels"] = marked.tolist()
        yield example
