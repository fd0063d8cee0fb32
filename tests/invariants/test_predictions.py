"""Every batch of every task has something to predict, and every example of which something is predicted is in one."""

from typing import Any, get_args

import numpy as np
import pytest

from tfm.data.dataset.split import Dataset, Split, TokenIdColumn
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import SUPPORTED_TASKS, Architecture, ModelConfig, StackConfig
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
TOKENIZER = train(["a b c d e f g h"], TokenizerConfig(kind="word", min_frequency=1, vocab_size=20, sentinels=2))
VOCAB = TOKENIZER.vocab_size
CASES = [
    *((architecture, task, {}) for architecture in get_args(Architecture) for task in SUPPORTED_TASKS[architecture]),
    ("decoder_only", "language_model", {"block": 4}),
    ("skip_gram", "word_vectors", {"word_vectors": {"negatives": 2, "subsample": 0.001}}),
]


def made(architecture: str, task: str, more: dict[str, Any]) -> tuple[Any, Any, ModelConfig]:
    given = {"architecture": architecture, "task": task, "max_length": 40, "encoder": STACK, "decoder": STACK, **more}
    if architecture == "recurrent":
        given["positions"] = "none"
    config = ModelConfig.model_validate(given)
    model = build(config, source_vocab=VOCAB, target_vocab=VOCAB, seed=1)
    return TASKS[task](TaskContext(TrainingConfig(), config, TOKENIZER, TOKENIZER, 24)), model, config


def split_of(task: str, seed: int) -> Split:
    """Rows of which many are empty, on one side or both, or hold one word, known or unknown."""
    rng = np.random.default_rng(seed)
    lists = [
        [
            rng.integers(1 if rng.random() < 0.2 else 4, VOCAB, size=rng.choice([0, 0, 1, 2, 5])).tolist()
            for _ in range(30)
        ]
        for _ in range(2)
    ]
    sources, targets = ([[1 if number < 4 else number for number in ids] for ids in each] for each in lists)
    if task == "classification":
        targets = [[4 + row % 3] for row in range(30)]
    if task == "tagging":
        targets = [[4] * len(source) for source in sources]
    words = TokenIdColumn.from_lists([[1] * len(source) for source in sources])
    return Split(TokenIdColumn.from_lists(sources), TokenIdColumn.from_lists(targets), np.ones(30), words=words)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("architecture", "name", "more"),
    [
        pytest.param(
            *case, marks=[pytest.mark.slow] * (case[0] == "recurrent"), id=f"{case[0]}-{case[1]}-{len(case[2])}"
        )
        for case in CASES
    ],
)
def test_no_batch_has_nothing_to_predict(architecture: str, name: str, more: dict[str, Any]) -> None:
    task, model, config = made(architecture, name, more)
    for seed in range(4):
        split = split_of(name, seed)
        data = Dataset(split, split, {}, 24, None)  # type: ignore[arg-type]
        task.check_data(data, config)
        task.prepare_model(model, data)
        epochs = task.epochs(split, 12, seed)
        assert epochs.num_batches(seed) == len(epochs(seed))
        for batches in (epochs(seed), task.ordered_batches(split, 12)):
            for step, rows in enumerate(batches):
                model.dropout_rng.seed_batch(1, step)
                assert task.loss(model, task.batch(split, rows)).count > 0
                assert task.evaluate(model, task.batch(split, rows)).count > 0
        if "block" not in more:
            wanted = np.flatnonzero(predictions(task, split)).tolist()
            assert sorted(np.concatenate(epochs(seed)).tolist()) == wanted
            assert sorted(np.concatenate(task.ordered_batches(split, 12)).tolist()) == wanted


def predictions(task: Any, split: Split) -> Any:
    """How many predictions each row has by itself, which says what is predicted of a batch of that row alone."""
    sources, targets = split.source.to_lists(), split.target.to_lists()
    known = np.array([sum(number >= 4 for number in target) for target in targets])
    return {
        "MaskedLanguageModel": np.array([len(source) for source in sources]),
        "Tagging": np.array([len(source) for source in sources]),
        "SpanCorruption": np.array([len(target) > 1 for target in targets]),
        "WordVectorTask": known * (known > 1),
    }.get(type(task).__name__, np.ones(len(split)))


MAY_PREDICT_NOTHING = ("masked_language_model", "span_corruption", "tagging", "word_vectors")
EMPTY = [(a, t, m) for a, t, m in CASES if t in MAY_PREDICT_NOTHING]


@pytest.mark.parametrize(("architecture", "name", "more"), EMPTY, ids=[f"{a}-{t}-{len(m)}" for a, t, m in EMPTY])
def test_a_split_with_nothing_to_predict_is_refused_before_training(
    architecture: str, name: str, more: dict[str, Any]
) -> None:
    task, _, config = made(architecture, name, more)
    full, blank = (
        split_of(name, 1),
        Split(TokenIdColumn.from_lists([[]] * 3), TokenIdColumn.from_lists([[]] * 3), np.ones(3)),
    )
    for which, data in (
        ("train", Dataset(blank, full, {}, 24, None)),  # type: ignore[arg-type]
        ("valid", Dataset(full, blank, {}, 24, None)),  # type: ignore[arg-type]
        ("main", Dataset(full, full, {"main": blank}, 24, None)),  # type: ignore[arg-type]
    ):
        with pytest.raises(DataError, match=f"the {which} split has no (text|sentence)"):
            task.check_data(data, config)
