"""The contestants of `python -m bench train`: our own command in any configuration, and the peers. Each run is a
process."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from bench.compare import Figures
from bench.pieces import SOURCE, TARGET, VOCABULARY
from bench.processes import Failed, run, run_module, tfm
from bench.workload import SEED, Size, Workload, settings
from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig

PEERS = Path(__file__).parent / "peers"
NEVER = 10**6
EOLE_LINE = re.compile(r"Step\s+(\d+)/.*bsz:\s*\d+/\s*(\d+)/\s*\d+;\s*\d+/\s*(\d+) tok/s")


def ours(work: Workload, model: ModelConfig, config: TrainingConfig) -> Figures:
    """`tfm train`: the rate of its updates after the warm-up."""
    figures, peak = trained(work, model, config)
    return {**figures, "peak": peak, "padding": work.padding()}


def trained(work: Workload, model: ModelConfig, config: TrainingConfig) -> tuple[Figures, int]:
    """`tfm train`: the figures of its updates after the warm-up, from its metrics.jsonl, and its peak memory."""
    asked = config.model_dump(mode="json", exclude_defaults=True)
    asked |= {"max_steps": work.warmup + work.steps, "max_epochs": None}
    asked |= {"log_every": 1, "save_every": None, "device": work.device, "tensorboard": False}
    asked["validation"] = {"every_steps": NEVER, "every_epochs": None, "bleu": False}
    asked["early_stopping"] = {"metric": "loss"}
    words = [*settings("model", model.model_dump(mode="json", exclude_defaults=True)), *settings("training", asked)]
    with TemporaryDirectory() as out:
        done = tfm("train", "--data", work.dataset, *words, "--seed", str(SEED), "--out", out)
        lines = (Path(out) / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    return figures_of_metrics(map(json.loads, lines), work.warmup), done.peak


def figures_of_metrics(lines: Iterable[Mapping[str, Any]], warmup: int) -> Figures:
    """Target tokens a second, and an update, after the warm-up, of a metrics.jsonl with a line an update."""
    updates, tokens, seconds, before = 0, 0.0, 0.0, 0.0
    for line in lines:
        if line["event"] == "train":
            if line["step"] > warmup:
                updates += 1
                seconds += line["seconds"] - before
                tokens += line["tokens_per_second"] * (line["seconds"] - before)
            before = line["seconds"]
    if not seconds:
        raise Failed("no update came after the warm-up")
    return {"rate": tokens / seconds, "tokens": tokens / updates}


def plain(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """torch's own layers in a plain loop, run by our own Python on our batches."""
    asked: dict[str, Any] = {"dataset": str(work.dataset), "warmup": work.warmup, "steps": work.steps}
    asked |= {"size": asdict(size_of(work)), "device": work.device}
    done = run_module("bench.peers.train_plain", asked)
    return {**done.answer(), "peak": done.peak}


def huggingface(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """Marian and Seq2SeqTrainer of Hugging Face transformers."""
    asked = {"source": str(pieces / SOURCE), "target": str(pieces / TARGET), "warmup": work.warmup, "steps": work.steps}
    asked |= {"sentences": work.sentences_a_batch(), "size": asdict(size_of(work)), "device": work.device}
    with TemporaryDirectory() as folder:
        done = run([python_of(venv), PEERS / "train_huggingface.py"], folder=Path(folder), text=json.dumps(asked))
    return {**done.answer(), "peak": done.peak}


def eole(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """`eole train`, its rates from its log."""
    size = size_of(work)
    asked = asdict(size) | {"source": pieces / SOURCE, "target": pieces / TARGET, "vocabulary": pieces / VOCABULARY}
    asked |= {"steps": work.warmup + work.steps, "batch_tokens": work.data.batch_tokens}
    with TemporaryDirectory() as folder:
        config = Path(folder) / "eole.yaml"
        config.write_text(Template((PEERS / "train_eole.yaml").read_text("utf-8")).substitute(asked), encoding="utf-8")
        done = run([python_of(venv).parent / "eole", "train", "-c", config], folder=Path(folder))
    return {**figures_of_eole(done.out + done.err, work.warmup), "peak": done.peak}


def figures_of_eole(log: str, warmup: int) -> Figures:
    """Target tokens a second, and an update, after the warm-up, of a log with a line an update."""
    updates, tokens, seconds = 0, 0, 0.0
    for step, size, rate in EOLE_LINE.findall(log):
        if int(step) > warmup:
            updates += 1
            tokens += int(size)
            seconds += int(size) / int(rate)
    if not seconds:
        raise Failed("eole's log has no rate after the warm-up")
    return {"rate": tokens / seconds, "tokens": tokens / updates}


def size_of(work: Workload) -> Size:
    return Size.of(work.model, work.config, work.vocab)


def python_of(venv: Path | None) -> Path:
    """The Python of a virtual environment, or our own."""
    return Path(sys.executable) if venv is None else venv.absolute() / "bin" / "python"


Peer = Callable[[Workload, Path, Path | None], Figures]
RIVALS: dict[str, Peer] = {"plain": plain, "huggingface": huggingface, "eole": eole}
