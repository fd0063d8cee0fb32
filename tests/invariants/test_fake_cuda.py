"""What runs on an NVIDIA GPU, run without one: no operation mixes devices, the results are those of a CPU, and an
update waits for the device nowhere but where this file says (see `tests/fake_cuda.py`)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.fake_cuda import FakeCuda
from tfm.data.dataset.store import Column, Dataset, Split
from tfm.model.build import Model, build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Bar, NullReporter
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoints
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings, Progress, TrainState
from tfm.pipeline.training.checkpoints.weight_averaging import Ema
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training.update import Gradients
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
READS_THE_LOSS = "event in update._async_copy_to_cpu.<locals>.read"
OF_THE_TAILS = {"bincount in losses._adaptive_loss", "tolist in losses._adaptive_loss"}
OF_WORD_VECTORS = {
    "boolean index in word_vectors.WordVectorTask._predictions",
    "boolean index in word_vectors.neighbour_pairs",
    "copy to the device in word_vectors._sentence_ids",
}
WAITS_BESIDES = {
    "adaptive softmax": OF_THE_TAILS,  # how many rows each tail has
    "adaptive language model": OF_THE_TAILS,
    "skip-gram": OF_WORD_VECTORS,  # which words are neighbours
    "CBOW with noise words": {
        *OF_WORD_VECTORS,
        "bincount in word_vectors.predict_centre",
        "nonzero in word_vectors.predict_centre",
        "boolean index in word_vectors.WordVectorTask._has_predictions",  # whether subsampling left two words of a text
        "item in word_vectors.WordVectorTask._has_predictions",
        "copy to the CPU in word_vectors.WordVectorTask.loss",  # words to leave out are drawn on the CPU
        "copy to the device in word_vectors.WordVectorTask.loss",
        "copy to the CPU in word_vectors.WordVectorTask._predictions.<locals>.keys_of_predictions",
        "copy to the CPU in word_vector_objectives.draw_noise_words",
        "copy to the CPU in word_vector_objectives.draw_noise_words.<locals>.<genexpr>",
        "copy to the device in word_vector_objectives.NegativeSampling._noise_scores",
    },
}
"""Where an update waits but for its loss: where the size of what is computed depends on values."""
FLAT = ("transformer", "rotary", "adaptive softmax", "recurrent", "decoder only", "language model")
OTHER_STATES = ("recurrent", "decoder only", "recurrent mixing")
TRANSLATES = [name for name, more in MODELS.items() if "task" not in more]


def configured(name: str) -> ModelConfig:
    return ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "max_length": 24, **MODELS[name]})


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
    words = Column.from_lists([[1] * len(source) for source in sources])
    return Split(Column.from_lists(sources), Column.from_lists(targets), np.ones(12), words=words)


class Watched(Trainer):
    """Remembers what waited within its updates, and how many operations a GPU had to do for each."""

    fake: FakeCuda

    def run(self) -> None:
        self.waits, self.num_operations = Counter[str](), list[int]()
        super().run()

    def update(self, bar: Bar) -> None:
        waits, num_operations = self.fake.waits.copy(), self.fake.num_operations
        super().update(bar)
        self.waits += self.fake.waits - waits
        self.num_operations.append(self.fake.num_operations - num_operations)


def trained(name: str, device: str, folder: Path, *, layout: str = "padded", fake: FakeCuda | None = None) -> Watched:
    """After three updates of two batches each, with clipping and a moving average, and a validation."""
    config, world = configured(name), World(device=torch.device(device))
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
    task.begin(model, Dataset(split, split, {}, BUDGET, folder))
    trainer = Watched(
        config=training,
        state=TrainState(model, optimizer, Ema(model, 0.9), Progress(settings=SETTINGS, plan={})),
        gradients=Gradients(model, task, split, training, 1, world),
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
    trainer.fake = fake or FakeCuda()
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


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *((name, "padded") for name in MODELS),
        *(pytest.param(name, "flat", marks=pytest.mark.slow) for name in FLAT[1:]),
    ],
)
def test_updates_and_a_validation(name: str, layout: str, tmp_path: Path) -> None:
    expected = trained(name, "cpu", tmp_path / "cpu", layout=layout)
    with FakeCuda() as fake:
        found = trained(name, "cuda", tmp_path / "cuda", layout=layout, fake=fake)
        after = weights(found)
    # Each update's loss is read when the GPU has nearly all of the next update to do; the last one's, for a checkpoint.
    assert found.waits.pop(READS_THE_LOSS) == UPDATES - 1
    assert all(2 * ahead > min(found.num_operations) for ahead in fake.ahead[:-1])
    assert len(fake.ahead) == UPDATES
    assert set(found.waits) == WAITS_BESIDES.get(name, set())
    assert len(found.log.lines) == UPDATES + 1
    for ours, theirs in zip(figures(found), figures(expected), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)
    for which, values in weights(expected).items():
        assert after[which] == pytest.approx(values, abs=1e-9), which


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


def assert_the_same(make: Any, searches: Sequence[str]) -> None:
    model = make("cpu")
    expected = {search: searched(model, search, "cpu") for search in searches}
    with FakeCuda():
        model = make("cuda")
        found = {search: searched(model, search, "cuda") for search in searches}
    for search in searches:
        for ours, theirs in zip(found[search], expected[search], strict=True):
            assert [ids for ids, _ in ours] == [ids for ids, _ in theirs], search
            assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-9), search


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TRANSLATES)
def test_searches(name: str) -> None:
    """All of them by one model; a few by the others, whose states differ."""
    searches = tuple(SEARCHES) if name == "transformer" else ("bans, beam", "greedy")[: 1 + (name in OTHER_STATES)]
    assert_the_same(lambda device: decisive(network(configured(name), device)), searches)


def test_an_ensemble_searches() -> None:
    def make(device: str) -> Ensemble:
        names = ("transformer", "recurrent", "adaptive softmax")
        return Ensemble([decisive(network(configured(name), device, seed)) for seed, name in enumerate(names)])

    assert_the_same(make, ("greedy", "bans, beam"))
