"""Small models of each task and architecture, trained for a few updates and searched, on any kind of device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from tfm.data.dataset.store import Dataset, Split, TokenIdColumn
from tfm.model.build import Model, build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings, Progress, TrainState
from tfm.pipeline.training.checkpoints.weight_averaging import Ema
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training.update import GradientComputer
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

UPDATES, BUDGET = 3, 24
STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
TOKENIZER = train(["a b c d e f g h"], TokenizerConfig(kind="word", min_frequency=1, vocab_size=20, sentinels=2))
VOCAB = TOKENIZER.vocab_size
SETTINGS = ExecutionSettings(device="cuda", precision="fp32", threads=1, world_size=1, batch_tokens=BUDGET)
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "post-norm, RMS norm, heads that share keys": {
        "norm": "post",
        "normalization": "rms",
        "decoder": STACK.model_copy(update={"key_value_heads": 1}),
    },
    "rotary": {"positions": "rotary"},
    "Shaw": {"positions": "shaw"},
    "ALiBi": {"positions": "alibi"},
    "Transformer-XL": {"positions": "transformer_xl"},
    "window, learned positions": {"window": 2, "positions": "learned"},
    "additive score": {"score": "additive"},
    "convolutions": {"mixing": "convolution"},
    "recurrent mixing": {"mixing": "recurrent", "positions": "none"},
    "adaptive softmax": {"adaptive": {"cutoffs": (6, 9), "factor": 2}},
    "recurrent": {"architecture": "recurrent", "positions": "none"},
    "recurrent, reads the source backwards": {
        "architecture": "recurrent",
        "positions": "none",
        "recurrent": {"cell": "gru", "attention": "luong", "reverse_source": True},
    },
    "decoder only": {"architecture": "decoder_only"},
    "language model": {"architecture": "decoder_only", "task": "language_model"},
    "language model of running text": {"architecture": "decoder_only", "task": "language_model", "block": 4},
    "adaptive language model": {
        "architecture": "decoder_only",
        "task": "language_model",
        "adaptive": {"cutoffs": (6, 9), "factor": 2},
    },
    "span corruption": {"task": "span_corruption"},
    "masked language model": {"architecture": "encoder_only", "task": "masked_language_model"},
    "classifier": {"architecture": "encoder_only", "task": "classification"},
    "masked language model as BERT is": {
        "architecture": "encoder_only",
        "task": "masked_language_model",
        "begin_token": True,
        "head_transform": True,
    },
    "classifier by the first row": {"architecture": "encoder_only", "task": "classification", "pooling": "first"},
    "tagger": {"architecture": "encoder_only", "task": "tagging"},
    "skip-gram": {"architecture": "skip_gram", "task": "word_vectors"},
    "CBOW with noise words": {
        "architecture": "cbow",
        "task": "word_vectors",
        "word_vectors": {"negatives": 2, "subsample": 0.1},
    },
}
FLAT = ("transformer", "rotary", "adaptive softmax", "recurrent", "decoder only", "language model")
TRANSLATES = [name for name, more in MODELS.items() if "task" not in more]


def configured(name: str, **changes: Any) -> ModelConfig:
    return ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "max_length": 24, **MODELS[name], **changes})


def network(config: ModelConfig, device: str = "cpu", seed: int = 1) -> Model:
    """In float64, so that the way taken on a GPU gives the figures of the way taken on a CPU."""
    return build(config, source_vocab=VOCAB, target_vocab=VOCAB, seed=seed).double().to(torch.device(device))


def split_of(task: str) -> Split:
    rng = np.random.default_rng(1)
    sources, targets = ([rng.integers(4, VOCAB, size=rng.integers(1, 7)).tolist() for _ in range(12)] for _ in range(2))
    if task == "classification":
        targets = [[4 + row % 3] for row in range(12)]
    if task == "tagging":
        targets = [[4 + number % 3 for number in source] for source in sources]
    words = TokenIdColumn.from_lists([[1] * len(source) for source in sources])
    return Split(TokenIdColumn.from_lists(sources), TokenIdColumn.from_lists(targets), np.ones(12), words=words)


T_Trainer = TypeVar("T_Trainer", bound=Trainer)


def trained(
    name: str,
    device: str,
    folder: Path,
    *,
    layout: str = "padded",
    make_trainer: Callable[..., T_Trainer] = Trainer,  # type: ignore[assignment]
    **changes: Any,
) -> T_Trainer:
    """After three updates of two batches each, with clipping and a moving average, and a validation."""
    config, world = configured(name, **changes), World(device=torch.device(device))
    smoothing = 0.0 if config.adaptive else 0.1
    training = TrainingConfig.model_validate(
        {
            "max_steps": UPDATES,
            "accumulate": 2,
            "ema": 0.9,
            "clip_norm": 0.1,
            "l2": 1e-3,
            "label_smoothing": smoothing,
            "layout": layout,
            "log_every": 1,
            "optimizer": {"eps": 1e-3},  # or rounding decides where the gradient is nought
            "schedule": {"name": "constant", "peak": 0.01},
            "validation": {"every_steps": UPDATES, "bleu": False},
        }
    )
    task = TASKS[config.task](TaskContext(training, config, TOKENIZER, TOKENIZER, BUDGET))
    model, split = network(config, device), split_of(config.task)
    optimizer = make_optimizer(model, training.optimizer)
    task.prepare_model(model, Dataset(split, split, {}, BUDGET, folder))
    trainer = make_trainer(
        config=training,
        state=TrainState(model, optimizer, Ema(model, 0.9), Progress(settings=SETTINGS, plan={})),
        gradients=GradientComputer(model, task, split, training, 1, world),
        batches=task.epochs(split, BUDGET, 1),
        validator=Validator(task, split, task.ordered_batches(split, BUDGET), None),
        checkpoints=Checkpoints(folder / "checkpoints"),
        log=MetricsLog(folder / "metrics.jsonl"),
        reporter=NullReporter(),
        total_steps=UPDATES,
        width=8,
        world=world,
    )
    folder.mkdir()
    trainer.run()
    return trainer


def figures(trainer: Trainer) -> list[dict[str, Any]]:
    """The log, without times."""
    times = {"event", "seconds", "tokens_per_second"}
    lines = trainer.log.lines
    return [{key: v for key, v in line.items() if key not in times and v is not None} for line in lines]


def weights(trainer: Trainer) -> dict[str, list[float]]:
    files = trainer.state.tensors()
    return {f"{file}/{name}": x.flatten().tolist() for file, each in files.items() for name, x in each.items()}


PHRASES = PhraseConstraints(forbidden=[(5,), (6, 7)])
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greedy": ({"beam": 1}, {}),
    "one at a time": ({"beam": 1, "batch_sentences": 1}, {}),
    "beam": ({"beam": 3, "n_best": 2}, {}),
    "sampling": ({"strategy": "sample", "n_best": 2, "top_k": 6, "top_p": 0.9, "temperature": 1.2}, {}),
    "prefixes, least lengths, greedy": ({"beam": 1, "min_length": 2}, {"prefixes": True}),
    "prefixes, least lengths, beam": ({"beam": 3, "min_length": 2}, {"prefixes": True}),
    "bans, greedy": ({"beam": 1, "no_repeat_ngram": 2, "min_length": 2}, {"phrases": PHRASES, "prefixes": True}),
    "bans, beam": ({"beam": 3, "no_repeat_ngram": 2, "min_length": 2}, {"phrases": PHRASES, "prefixes": True}),
    "bans, sampling": ({"strategy": "sample", "no_repeat_ngram": 2}, {"phrases": PHRASES, "prefixes": True}),
    "forced": ({"beam": 3, "min_length": 1}, {"forced": True, "prefixes": True}),
}


def searched(model: Any, search: str, device: str, count: int = 5) -> list[list[tuple[tuple[int, ...], float]]]:
    settings, more = SEARCHES[search]
    sources = split_of("translation").source.to_lists()[:count]
    given: dict[str, Any] = {"phrases": more.get("phrases", PhraseConstraints())}
    if "prefixes" in more:
        given["prefixes"] = [[4 + row % 5][: row % 2] for row in range(count)]
    if "forced" in more:
        given["phrases"] = PhraseConstraints(
            (), [[(7, 8)] if row % 2 else [(9,), (10,)] for row in range(count)], continuing=[11]
        )
    config = DecodingConfig.model_validate({"batch_sentences": 3, "max_length": 5, **settings})
    found = decode(model.eval(), sources, config, device=device, **given)
    return [[(each.ids, each.score) for each in hypotheses] for hypotheses in found]


@torch.no_grad()
def decisive(model: Any) -> Any:
    """The same model, surer of what it says: no two hypotheses are equally good but for rounding."""
    for parameter in model.parameters():
        parameter.mul_(3)
    return model
