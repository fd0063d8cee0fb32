"""Tasks: what a batch of each holds, what its loss sums over, and what of a dataset it refuses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tfm.data.batching.batches import PairBatch, TextBatch
from tfm.data.dataset.split import Dataset, Split, TokenIdColumn
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.pipeline.tasks.classification import Classification
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.language_model import RunningText
from tfm.pipeline.tasks.masked_language_model import (
    MASKED_TOKEN_ID,
    MaskedLanguageModel,
    draw_masked_positions,
    draw_replacements,
    partition_positions,
)
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.tagging import Tagging
from tfm.pipeline.tasks.task import TaskContext, count_correct_labels
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.sampled import hash_numbers
from tfm.tokenizer.special import BOS_ID, EOS_ID, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

LINES = ("the cat sees a small dog", "a dog sees the cat", "cats and dogs run")
STACK = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=24)


def split(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Split:
    return Split(TokenIdColumn.from_lists(sources), TokenIdColumn.from_lists(targets), np.ones(len(sources)))


def dataset(train_split: Split) -> Dataset:
    return Dataset(train_split, train_split, {}, 64, None)  # type: ignore[arg-type]


def tokenizer(kind: str = "word", **more: Any) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300, "min_frequency": 1, **more})
    return train(LINES, config)


def model_of(**changes: Any) -> tuple[ModelConfig, Any]:
    base = {"encoder": STACK, "decoder": STACK, "max_length": 16, "dropout": DropoutConfig(residual=0, embedding=0)}
    config = ModelConfig.model_validate(base | changes)
    return config, build(config, source_vocab=40, target_vocab=40, seed=1).double()


def about(config: ModelConfig, **changes: Any) -> TaskContext:
    return TaskContext(TrainingConfig.model_validate(changes), config, tokenizer(), tokenizer(), 64)


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("transformer", "translation"),
        ("decoder_only", "translation"),
        ("decoder_only", "language_model"),
        ("encoder_only", "masked_language_model"),
        ("encoder_only", "classification"),
        ("encoder_only", "tagging"),
    ],
)
def test_a_loss_is_the_sum_of_those_of_its_examples(architecture: str, task: str) -> None:
    """So that batches of any size weigh every prediction alike; what is masked is drawn by the example too."""
    config, model = model_of(architecture=architecture, task=task)
    sources = [[4, 5, 6], [7, 8], [9, 10, 11, 12]]
    targets = [[20, 21, 22], [23, 24], [25, 26, 27, 28]] if task != "classification" else [[20], [21], [22]]
    whole = split(sources, targets)
    objective = TASKS[task](about(config, label_smoothing=0.1))
    if task == "tagging":
        objective = Tagging(CrossEntropy(0.1), lambda: [True] * 40)
    for passed in (
        lambda batch: objective.evaluate(model.eval(), batch),
        lambda batch: trained(objective, model, batch),
    ):
        together = passed(objective.batch(whole, np.arange(3)))
        alone = [passed(objective.batch(whole, np.array([row]))) for row in range(3)]
        assert together.count == sum(each.count for each in alone)
        torch.testing.assert_close(together.nll, torch.stack([each.nll for each in alone]).sum(), rtol=0, atol=1e-10)
    loss = trained(objective, model, objective.batch(whole, np.arange(3)))
    loss.sum.backward()
    if task != "masked_language_model":
        assert loss.count == num_predictions(task, sources, targets)
    assert all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None)


def trained(objective: Any, model: Any, batch: Any) -> Any:
    """The loss of a batch in an update."""
    model.train()
    model.dropout_rng.seed_batch(1, 1)
    return objective.loss(model, batch)


def num_predictions(task: str, sources: list[list[int]], targets: list[list[int]]) -> int:
    """How many predictions there are, counted by hand."""
    if task == "classification":
        return len(sources)
    return sum(len(target) + (task != "tagging") for target in targets)


@pytest.mark.parametrize("task", [Translation(CrossEntropy(0.0)), Classification(CrossEntropy(0.0))])
@pytest.mark.parametrize("which", ["train", "valid", "main"])
def test_splits_whose_sources_are_all_empty_are_refused(task: Any, which: str) -> None:
    full, empty = split([[4], []], [[5], [6]]), split([[], []], [[5], [6]])
    given = {"train": full, "valid": full, "main": full} | {which: empty}
    data = Dataset(given["train"], given["valid"], {"main": given["main"]}, 64, None)  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match=rf'all sources of the {which} split are empty, and model\.task = "translation"'
    ):
        task.check_data(data, ModelConfig())
    task.check_data(Dataset(full, full, {"main": full}, 64, None), ModelConfig())  # type: ignore[arg-type]


# Running text


def test_windows_are_the_running_text() -> None:
    task = RunningText(4, CrossEntropy(0.0))
    text = split([[], [], []], [[10, 11, 12], [], [13, 14, 15, 16]])
    running = [10, 11, 12, EOS_ID, EOS_ID, 13, 14, 15, 16, EOS_ID]
    batches = task.ordered_batches(text, 8)
    assert [rows.tolist() for rows in batches] == [[0, 4], [8]]
    batch = task.batch(text, batches[0])
    assert isinstance(batch, TextBatch)
    assert batch.tokens_out.tolist() == running[:8]
    assert batch.tokens_in.tolist() == [BOS_ID, *running[:3], BOS_ID, *running[4:7]]
    last = task.batch(text, batches[1])
    assert (last.tokens_out.tolist(), last.lengths.tolist()) == (running[8:], [2])


def test_each_epoch_cuts_the_text_elsewhere_and_reads_no_token_twice() -> None:
    task, text = RunningText(5, CrossEntropy(0.0)), split([[]], [list(range(4, 50))])
    epochs, again = task.epochs(text, 16, seed=3), task.epochs(text, 16, seed=3)
    firsts = set()
    for number in range(12):
        starts = np.concatenate(epochs(number))
        assert [rows.tolist() for rows in epochs(number)] == [rows.tolist() for rows in again(number)]
        assert len(np.unique(starts)) == len(starts) >= 8
        assert len(set((starts % 5).tolist())) == 1
        assert starts.max() + 5 <= 47
        firsts.add(int(starts.min()))
    assert len(firsts) > 2


@pytest.mark.parametrize(("tokens", "weight", "problem"), [(3, 1.0, "fewer than model.block = 5"), (9, 0.5, "weight")])
def test_running_text_that_cannot_be_read_is_refused(tokens: int, weight: float, problem: str) -> None:
    text = Split(TokenIdColumn.from_lists([[]]), TokenIdColumn.from_lists([[4] * tokens]), np.array([weight]))
    with pytest.raises(DataError, match=problem):
        RunningText(5, CrossEntropy(0.0)).check_data(dataset(text), ModelConfig())


# Masked tokens


def keys_of(count: int, seed: int = 7) -> Any:
    return hash_numbers(np.array([seed], np.uint64), np.arange(count))


def test_of_the_tokens_fifteen_percent_are_chosen_and_most_of_them_hidden() -> None:
    lengths, keys = np.full(500, 201), keys_of(500)
    chosen = draw_masked_positions(lengths, keys)
    assert not (chosen % 201 == 200).any()
    assert len(chosen) / 100_000 == pytest.approx(0.15, abs=0.005)
    check_replaced(chosen, lengths, keys)


def check_replaced(chosen: Any, lengths: Any, keys: Any) -> None:
    """Whether of some chosen tokens 80 % are hidden, 10 % are some other piece, and 10 % are left."""
    places, instead = draw_replacements(chosen, lengths, 1000, keys)
    assert set(places.tolist()) <= set(chosen.tolist())
    assert (instead == MASKED_TOKEN_ID).sum() / len(chosen) == pytest.approx(0.8, abs=0.01)
    assert 1 - len(places) / len(chosen) == pytest.approx(0.1, abs=0.01)
    others = instead[instead != MASKED_TOKEN_ID]
    assert (others.min(), others.max()) == (4, 999)


def test_of_each_text_a_token_is_chosen_whatever_the_key() -> None:
    lengths = np.array([3, 1, 2, 9, 1])
    found = [draw_masked_positions(lengths, keys_of(5, seed)).tolist() for seed in range(50)]
    for chosen in found:
        assert {0, 1} & {*chosen}
        assert 4 in chosen
        assert {*range(6, 14)} & {*chosen}
        assert not {2, 3, 5, 14, 15} & {*chosen}, "end tokens, and texts that have nothing else"
    assert len({*map(tuple, found)}) > 20
    assert found[0] == draw_masked_positions(lengths, keys_of(5, 0)).tolist()


def test_in_evaluation_each_token_is_chosen_once_in_parts_of_a_seventh() -> None:
    lengths = np.array([1, 2, 5, 8, 30, 701])
    keys = keys_of(6)
    passes = partition_positions(lengths, keys, 7)
    ends = np.cumsum(lengths) - 1
    assert sorted(np.concatenate(passes).tolist()) == sorted(set(range(747)) - {*ends.tolist()})
    for text, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        sizes = [int(((chosen < end) & (chosen > end - length)).sum()) for chosen in passes]
        assert max(sizes) - min(sizes) <= 1, text
    assert len({*np.diff(passes[0][passes[0] > 46]).tolist()}) > 5, "they do not lie in a row"
    check_replaced(np.arange(100_000), np.array([100_001]), keys_of(1))


def test_masks_differ_from_step_to_step_and_are_those_of_the_step() -> None:
    _, model = model_of(architecture="encoder_only", task="masked_language_model")
    task, texts = MaskedLanguageModel(CrossEntropy(0.0)), split([list(range(4, 16))] * 4, [[]] * 4)
    batch, losses = task.batch(texts, np.arange(4)), []
    for step in (1, 2, 1):
        model.dropout_rng.seed_batch(5, step)
        losses.append(float(task.loss(model, batch).nll))
    assert losses[0] == losses[2] != losses[1]
    with torch.no_grad():
        assert task.evaluate(model, batch).nll == task.evaluate(model, batch).nll


# Labels


def test_a_label_of_several_pieces_is_refused() -> None:
    with pytest.raises(DataError, match=r'1 train label is not one piece .*row 1.*model.task = "classification"'):
        Classification(CrossEntropy(0.0)).check_data(dataset(split([[4], [5]], [[6], [7, 8]])), ModelConfig())


def test_empty_labels_are_refused_as_such() -> None:
    """They were said to be not one piece, whatever task the recipe had."""
    with pytest.raises(DataError, match=r"2 train labels are empty \(the first: row 0\): remove these texts"):
        Classification(CrossEntropy(0.0)).check_data(dataset(split([[4], [5], [4]], [[], [6], []])), ModelConfig())


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram", "char", "byte", "wordpiece"])
def test_a_tag_belongs_to_a_word_however_the_word_is_cut(kind: str) -> None:
    pieces = tokenizer(kind)
    within = {"word": "dog", "wordpiece": "dogcat"}.get(kind, "dog-cat")  # they may not know what they find in a word
    lines = ["the cat sees a small dog", "dogs", f"a {within} sees cats ."]
    texts = split(pieces.encode_batch(lines), [[5] * len(line.split()) for line in lines])
    task = Tagging(CrossEntropy(0.0), pieces.word_start_mask)
    assert task.num_words(texts).tolist() == [len(line.split()) for line in lines]
    task.check_data(dataset(texts), ModelConfig())
    with pytest.raises(DataError, match=r"1 train sentence has not a tag for each word .*row 1"):
        task.check_data(
            dataset(split(pieces.encode_batch(lines[:2]), [[5] * len(lines[0].split()), []])), ModelConfig()
        )


def test_predictions_are_the_likeliest_labels_and_never_control_tokens() -> None:
    config, model = model_of(architecture="encoder_only", task="tagging")
    with torch.no_grad():
        model.output.weight[:4] *= 100
    task = Tagging(CrossEntropy(0.0), lambda: [True] * 40)
    texts = split([[4, 5, 6], [7], [8, 9]], [[]] * 3)
    batch = task.batch(texts, np.arange(3))
    assert isinstance(batch, PairBatch)
    with torch.inference_mode():
        found = [best for (best,) in task.predict(model.eval(), batch, 1)]
    assert [len(each.ids) for each in found] == [3, 1, 2]
    assert min(label for each in found for label in each.ids) >= 4
    assert all(each.log_prob < 0 for each in found)
    assert config.task == "tagging"


def test_a_label_that_training_does_not_have_is_wrong_and_in_no_loss() -> None:
    logits = torch.tensor([[0.0, 9.0, 0, 0, 1, 2], [0, 9, 0, 0, 3, 2], [0, 9, 0, 0, 3, 2]], dtype=torch.float64)
    found = count_correct_labels(logits, torch.tensor([UNK_ID, 4, 5]))
    assert (found.count, found.unknown, int(found.correct)) == (2, 1, 1)
    wanted = -(logits[1].log_softmax(0)[4] + logits[2].log_softmax(0)[5])
    torch.testing.assert_close(found.nll, wanted, rtol=0, atol=1e-12)
    none = count_correct_labels(logits[:1], torch.tensor([UNK_ID]))
    assert (none.count, none.unknown, int(none.correct), float(none.nll)) == (0, 1, 0, 0.0)


def test_a_validation_split_of_unknown_labels_alone_is_refused() -> None:
    known, unknown = split([[4]], [[4]]), split([[4], [5]], [[UNK_ID], [UNK_ID]])
    with pytest.raises(DataError, match="none of the labels of the valid split is in the training data"):
        Classification(CrossEntropy(0.0)).check_data(Dataset(known, unknown, {}, 64, None), ModelConfig())  # type: ignore[arg-type]
