"""The contestants of `python -m bench train`: our own command in any configuration, and the peers. Each run is a
process."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from bench.compare import Figures
from bench.processes import ProcessError, run, run_module, run_tfm
from bench.training.pieces import SOURCE, TARGET, VOCABULARY
from bench.training.text_peers import measure_huggingface_texts, measure_plain_gpt
from bench.training.workload import SEED, ModelSize, RecurrentSize, Workload, set_options, venv_python
from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig

PEERS_FOLDER = Path(__file__).parent.parent / "peers" / "training"
NEVER_STEP = 10**6
EOLE_CONFIGS = {"transformer": "train_eole.yaml", "recurrent": "train_eole_recurrent.yaml"}
"""By architecture."""
EOLE_LINE = re.compile(r"Step\s+(\d+)/.*bsz:\s*\d+/\s*(\d+)/\s*\d+;\s*\d+/\s*(\d+) tok/s")


def measure_tfm(work: Workload, model: ModelConfig, config: TrainingConfig) -> Figures:
    """`tfm train`: the rate of its updates after the warm-up."""
    figures, peak = train_tfm(work, model, config)
    padding = {"padding": work.padding()} if model.task == "translation" else {}
    return {**figures, "peak": peak, **padding}


def train_tfm(work: Workload, model: ModelConfig, config: TrainingConfig) -> tuple[Figures, int]:
    """`tfm train`: the figures of its updates after the warm-up, from its metrics.jsonl, and its peak memory."""
    request: dict[str, Any] = {"max_steps": work.warmup + work.steps, "max_epochs": None, "early_stopping": {}}
    request |= {"log_every": 1, "save_every": None, "device": work.device, "tensorboard": False, "trackers": []}
    request["validation"] = {"every_steps": NEVER_STEP, "every_epochs": None, "bleu": False}
    words = set_options({"model": model, "training": TrainingConfig.model_validate(config.model_dump() | request)})
    with TemporaryDirectory() as out:
        process = run_tfm("train", "--data", work.dataset, *words, "--seed", str(SEED), "--out", out)
        lines = (Path(out) / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    return average_metrics(map(json.loads, lines), work.warmup), process.peak


def average_metrics(lines: Iterable[Mapping[str, Any]], warmup: int) -> Figures:
    """Target tokens a second, and an update, after the warm-up, of a metrics.jsonl with a line an update."""
    updates, tokens, seconds, previous = 0, 0.0, 0.0, 0.0
    for line in lines:
        if line["event"] == "train":
            if line["step"] > warmup:
                updates += 1
                seconds += line["seconds"] - previous
                tokens += line["tokens_per_second"] * (line["seconds"] - previous)
            previous = line["seconds"]
    if not seconds:
        raise ProcessError("no update came after the warm-up")
    return {"rate": tokens / seconds, "tokens": tokens / updates}


def measure_plain(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """torch's own layers in a plain loop, run by our own Python on our batches."""
    request: dict[str, Any] = {"dataset": str(work.dataset), "warmup": work.warmup, "steps": work.steps}
    request |= {"size": asdict(model_size(work)), "device": work.device, "architecture": work.model.architecture}
    process = run_module("bench.peers.training.train_plain", request)
    return {**process.answer(), "peak": process.peak}


def measure_huggingface(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """Marian and Seq2SeqTrainer of Hugging Face transformers."""
    request = {
        "source": str(pieces / SOURCE),
        "target": str(pieces / TARGET),
        "warmup": work.warmup,
        "steps": work.steps,
    }
    request |= {"sentences": work.sentences_a_batch(), "size": asdict(model_size(work)), "device": work.device}
    with TemporaryDirectory() as folder:
        process = run(
            [venv_python(venv), PEERS_FOLDER / "train_huggingface.py"],
            folder=Path(folder),
            text=json.dumps(request),
        )
    return {**process.answer(), "peak": process.peak}


def measure_eole(work: Workload, pieces: Path, venv: Path | None) -> Figures:
    """`eole train`, its rates from its log."""
    size = model_size(work)
    request = asdict(size) | {"source": pieces / SOURCE, "target": pieces / TARGET, "vocabulary": pieces / VOCABULARY}
    request |= {"steps": work.warmup + work.steps, "batch_tokens": work.data.batch_tokens}
    template = PEERS_FOLDER / EOLE_CONFIGS[work.model.architecture]
    with TemporaryDirectory() as folder:
        config = Path(folder) / "eole.yaml"
        config.write_text(Template(template.read_text("utf-8")).substitute(request), encoding="utf-8")
        process = run([venv_python(venv).parent / "eole", "train", "-c", config], folder=Path(folder))
    return {**parse_eole_log(process.out + process.err, work.warmup), "peak": process.peak}


def parse_eole_log(log: str, warmup: int) -> Figures:
    """Target tokens a second, and an update, after the warm-up, of a log with a line an update."""
    updates, tokens, seconds = 0, 0, 0.0
    for step, size, rate in EOLE_LINE.findall(log):
        if int(step) > warmup:
            updates += 1
            tokens += int(size)
            seconds += int(size) / int(rate)
    if not seconds:
        raise ProcessError("eole's log has no rate after the warm-up")
    return {"rate": tokens / seconds, "tokens": tokens / updates}


def model_size(work: Workload) -> ModelSize | RecurrentSize:
    size = RecurrentSize if work.model.architecture == "recurrent" else ModelSize
    return size.from_config(work.model, work.config, work.vocab)


Peer = Callable[[Workload, Path, Path | None], Figures]
_ENCODERS: dict[str, Peer] = {"huggingface": measure_huggingface_texts}
PEERS: dict[str, dict[str, Peer]] = {
    "translation": {"plain": measure_plain, "huggingface": measure_huggingface, "eole": measure_eole},
    "language_model": {
        "plain": measure_plain_gpt,
        "nanogpt": measure_plain_gpt,
        "huggingface": measure_huggingface_texts,
    },
    "masked_language_model": _ENCODERS,
    "classification": _ENCODERS,
    "tagging": _ENCODERS,
}
"""By task, then by name."""
RECURRENT_PEERS: dict[str, Peer] = {"plain": measure_plain, "eole": measure_eole}
"""The peers that train recurrent models, by name."""
PLACES = {"huggingface": "bin/python", "eole": "bin/python", "nanogpt": "model.py"}
"""The file that has to be in the folder of a peer; `plain` has none."""


def find_peers(model: ModelConfig) -> dict[str, Peer]:
    """The peers that train such a model, by name."""
    if model.task == "translation" and model.architecture == "recurrent":
        return RECURRENT_PEERS
    return PEERS.get(model.task, {})
