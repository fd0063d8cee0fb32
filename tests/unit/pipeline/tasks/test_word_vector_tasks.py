"""The task of word vectors: its two losses beside their equations, its draws, what it leaves out, and its training."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from tests.rounding import assert_rounds_like
from tests.tiny_model import tiny_model
from tests.tiny_training import run, training, write_dataset
from tfm.data.batching.example_keys import text_rng_keys
from tfm.data.dataset.split import Dataset, Split, TokenIdColumn
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.labelling import predicts_labels
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.likelihood_scores import score_likelihood
from tfm.pipeline.tasks import word_vector_objectives, word_vectors
from tfm.pipeline.tasks.losses import CHUNK_ROWS
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.tasks.word_vector_objectives import draw_noise_words, negative_sampling_losses
from tfm.pipeline.tasks.word_vectors import WordVectorTask, keep_probability, num_words, word_frequencies
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.sampled import hash_numbers
from tfm.tokenizer.special import UNK_ID

TEXTS = [[4, 5, 6, 4], [7, UNK_ID, 8], [5], [9, 4, 10, 11, 6]]
KEY = 12345


def config_of(architecture: str = "skip_gram", *, dim: int = 6, **words: Any) -> ModelConfig:
    given = {"architecture": architecture, "task": "word_vectors", "embedding_dim": dim, "word_vectors": words}
    return ModelConfig.model_validate({"max_length": 32, **given})


def task_of(config: ModelConfig, smoothing: float = 0.0) -> WordVectorTask:
    return WordVectorTask.from_context(TaskContext(TrainingConfig(label_smoothing=smoothing), config, None, None, 64))  # type: ignore[arg-type]


def keys_of(count: int, key: int) -> Any:
    return hash_numbers(np.array([key], np.uint64), np.arange(count))


def split_of(texts: Sequence[Sequence[int]]) -> Split:
    return Split(TokenIdColumn.from_lists([[]] * len(texts)), TokenIdColumn.from_lists(texts), np.ones(len(texts)))


def dataset_of(texts: Sequence[Sequence[int]], valid: Sequence[Sequence[int]] = TEXTS) -> Dataset:
    return Dataset(split_of(texts), split_of(valid), {}, 64, Path())


def made(
    config: ModelConfig, texts: Sequence[Sequence[int]] = TEXTS, vocab: int = 12
) -> tuple[WordVectorTask, Any, Any]:
    """The task, a model in float64 whose training has begun, and all texts as one batch."""
    task, model = task_of(config), build(config, source_vocab=vocab, target_vocab=vocab, seed=1).double()
    data = dataset_of(texts)
    task.prepare_model(model, data)
    model.dropout_rng.seed_batch(1, 1)
    return task, model, task.batch(data.train, np.arange(len(texts)))


def predictions(architecture: str, model: Any, window: int) -> list[tuple[Tensor, int]]:
    """What predicts and what is predicted, by the definition, text by text; the unknown word is no word."""
    found = []
    for text in TEXTS:
        words = [word for word in text if word != UNK_ID]
        for place, word in enumerate(words):
            near = words[max(place - window, 0) : place] + words[place + 1 : place + 1 + window]
            if architecture == "skip_gram":
                found += [(model.table.weight[word], neighbour) for neighbour in near]
            elif near:
                found.append((model.table.weight[near].mean(0), word))
    return found


# The losses


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_the_softmax_is_the_equation_of_the_lecture(architecture: str) -> None:
    task, model, batch = made(config_of(architecture, window=2))
    found = task.loss(model, batch)
    wanted = [-(model.output.weight @ h).log_softmax(0)[word] for h, word in predictions(architecture, model, 2)]
    assert found.count == len(wanted) > 10
    check_same(found, torch.stack(wanted).sum(), model)


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_negative_sampling_is_equation_4(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, model, batch = made(config_of(architecture, window=2, negatives=3))
    noise = torch.randint(4, 12, (len(predictions(architecture, model, 2)), 3))
    monkeypatch.setattr(word_vector_objectives, "draw_noise_words", lambda *_: noise)
    monkeypatch.setattr(word_vectors, "neighbour_pairs", in_order_of_words)
    found = task.loss(model, batch)
    total, output = torch.zeros((), dtype=torch.float64), model.output.weight
    for (h, word), others in zip(predictions(architecture, model, 2), noise.tolist(), strict=True):
        total = total - torch.log(1 / (1 + torch.exp(-(output[word] @ h))))
        total = total - sum(torch.log(1 / (1 + torch.exp(output[other] @ h))) for other in others)
    check_same(found, total, model)


def in_order_of_words(sentence: Tensor, reach: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Pairs of a word and its neighbours, in the order in which `predictions` has them."""
    places = range(len(sentence))
    pairs = [(i, j) for i in places for j in places if sentence[i] == sentence[j] and 0 < abs(i - j) <= window]
    return torch.tensor(pairs).unbind(1)  # type: ignore[return-value]


def check_same(found: Any, total: Tensor, model: Any) -> None:
    """Whether a loss and its gradients are those of a formula."""
    torch.testing.assert_close(found.sum, total, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.nll, total.detach(), rtol=0, atol=1e-10)
    weights = (model.table.weight, model.output.weight)
    own, plain = torch.autograd.grad(found.sum, weights), torch.autograd.grad(total, weights)
    for one, other in zip(own, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_the_gradients_of_equation_4() -> None:
    true, false = torch.randn(4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(negative_sampling_losses, (true.requires_grad_(), false.requires_grad_()))


def test_label_smoothing_is_of_the_softmax() -> None:
    config = config_of(window=1)
    task, model, batch = made(config)
    plain, smooth = task.loss(model, batch), task_of(config, smoothing=0.1).loss(model, batch)
    torch.testing.assert_close(smooth.nll, plain.nll)
    logits = torch.stack([model.output.weight @ h for h, _ in predictions("skip_gram", model, 1)])
    wanted = torch.tensor([word for _, word in predictions("skip_gram", model, 1)])
    expected = torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(smooth.sum, expected)


# Validation


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_validation_counts_each_prediction_that_is_the_likeliest_of_all(architecture: str) -> None:
    texts = [[4 + (3 * row + place) % 8 for place in range(20)] for row in range(30)]  # more than one chunk
    task, model, batch = made(config_of(architecture, window=4), texts)
    found, loss = task.evaluate(model, batch), task.loss(model, batch)
    torch.testing.assert_close(found.nll, loss.nll, rtol=0, atol=1e-9)
    assert found.count == loss.count > CHUNK_ROWS
    reach, keys = torch.full_like(batch.tokens_out, 4), np.zeros(len(texts), np.uint64)
    hidden, wanted, _ = task._predictions(model, batch, word_vectors.is_word(batch.tokens_out), reach, keys)
    assert int(found.correct) == int(((hidden @ model.output.weight.T).argmax(1) == wanted).sum())


def test_validation_with_noise_words_counts_who_beats_them_all() -> None:
    task, model, batch = made(config_of(window=2, negatives=2))
    found, correct, count = task.evaluate(model, batch), 0, 0
    keys = text_rng_keys(batch.tokens_out.numpy(), batch.lengths.numpy())
    for number in range(7):
        reach, drawn = torch.full_like(batch.tokens_out, 2), hash_numbers(keys, np.array([number]))
        hidden, wanted, of_words = task._predictions(model, batch, word_vectors.is_word(batch.tokens_out), reach, drawn)
        noise, output = draw_noise_words(model.frequencies, wanted, 2, of_words()), model.output.weight
        true = [hidden[n] @ output[wanted[n]] for n in range(len(wanted))]
        false = [[hidden[n] @ output[word] for word in noise[n]] for n in range(len(wanted))]
        correct += sum(score > max(others) for score, others in zip(true, false, strict=True))
        count += len(wanted)
    assert (int(found.correct), found.count) == (correct, count)
    assert not task.has_perplexity


def test_each_prediction_has_noise_words_of_its_own() -> None:
    """In every pass others, for a word's neighbours others, and the same for the same text beside other texts."""
    task, model, batch = made(config_of(window=3, negatives=3), [[4, 5, 6, 4, 5, 6]] * 2)
    keys = text_rng_keys(batch.tokens_out.numpy(), batch.lengths.numpy())
    reach, kept = torch.full_like(batch.tokens_out, 3), word_vectors.is_word(batch.tokens_out)
    *_, found = task._predictions(model, batch, kept, reach, keys)
    assert len(set(found().tolist())) == len(found()) // 2
    *_, alone = task._predictions(model, task.batch(split_of([[4, 5, 6, 4, 5, 6]]), np.arange(1)), kept[:7], reach[:7],
                                  keys[:1])  # fmt: skip
    assert set(alone().tolist()) == set(found().tolist())


@pytest.mark.parametrize("words", [{}, {"negatives": 3, "shrink": True, "subsample": 0.01}], ids=["softmax", "drawn"])
def test_validation_draws_by_its_texts_alone(words: dict[str, Any]) -> None:
    task, model, batch = made(config_of(window=3, **words))
    with torch.no_grad():
        once = task.evaluate(model, batch)
        model.dropout_rng.seed_batch(2, 9)
        again = task.evaluate(model, batch)
    assert (float(once.nll), int(once.correct), once.count) == (float(again.nll), int(again.correct), again.count)


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_windows_that_shrink_are_validated_at_each_width(architecture: str) -> None:
    task, model, batch = made(config_of(architecture, window=3, shrink=True))
    found, wanted = task.evaluate(model, batch), [*map(partial(predictions, architecture, model), (1, 2, 3))]
    expected = [-(model.output.weight @ h).log_softmax(0)[word] for each in wanted for h, word in each]
    assert found.count == len(expected)
    torch.testing.assert_close(found.nll, torch.stack(expected).sum(), rtol=0, atol=1e-10)


def test_texts_are_validated_whole() -> None:
    whole, sampled = made(config_of(window=2)), made(config_of(window=2, subsample=1e-6))
    assert sampled[0].evaluate(*sampled[1:]).count == whole[0].evaluate(*whole[1:]).count


# Draws


def test_training_draws_by_seed_and_step_alone() -> None:
    task, model, batch = made(config_of(window=3, negatives=3, shrink=True, subsample=0.1))
    losses = []
    for seed, step in ((1, 1), (1, 2), (2, 1), (1, 1)):
        model.dropout_rng.seed_batch(seed, step)
        losses.append(float(task.loss(model, batch).sum.detach()))
    assert losses[0] == losses[3]
    assert len(set(losses)) == 3


def test_noise_words_come_by_three_quarters_of_their_frequency() -> None:
    shares = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.5, 0.3, 0.2, 0.0])
    for word in range(3, 8):  # also words that are never drawn, and the last one that is
        drawn = draw_noise_words(shares, torch.full((1000,), word), 200, keys_of(1000, KEY))
        wanted = shares.double() ** 0.75
        wanted[word] = 0
        found = torch.bincount(drawn.flatten(), minlength=8) / drawn.numel()
        torch.testing.assert_close(found.double(), wanted / wanted.sum(), rtol=0, atol=5e-3)
        assert found[wanted == 0].sum() == 0


@given(st.lists(st.sampled_from([0.0, 1e-18, 1e-9, 0.1, 1 / 3, 0.9]), min_size=2, max_size=12), st.integers(0, 9))
def test_no_noise_word_is_the_wanted_one_where_there_is_another(shares: list[float], key: int) -> None:
    frequencies = torch.tensor(shares, dtype=torch.float64)
    ends = [0.0, 1 - 2**-53, 0.5, 1 / 3]  # what may be drawn, both ends among it
    for word in range(len(shares)):
        others = {other for other, share in enumerate(shares) if share > 0} - {word}
        wanted = torch.full((4,), word)
        drawn = draw_noise_words(frequencies, wanted, 50, keys_of(4, key))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(word_vector_objectives, "rng_keys_to_uniform", lambda keys: np.tile(ends, (len(keys), 1)))
            drawn = torch.cat([drawn, draw_noise_words(frequencies, wanted, 4, keys_of(4, key))], 1)
        if any(frequencies.pow(0.75).cumsum(0)[-1] > frequencies.pow(0.75)[word] for _ in others):
            assert set(drawn.flatten().tolist()) <= others
        assert 0 <= int(drawn.min()) <= int(drawn.max()) < len(shares)


def test_frequent_words_are_kept_as_equation_5_has_it() -> None:
    shares, t = torch.tensor([0.5, 0.01, 0.001, 0.0], dtype=torch.float64), 0.01
    discard = [max(1 - math.sqrt(t / share), 0) if share else 0 for share in shares.tolist()]
    torch.testing.assert_close(1 - keep_probability(shares, t), torch.tensor(discard, dtype=torch.float64))


def test_what_is_left_out_is_nobody_s_neighbour() -> None:
    texts = [[4] * 30 + [5, 6] + [4] * 30]  # of the 4s one in eight is kept, the others always are
    task, model, batch = made(config_of(window=1, subsample=1 / 62), texts)
    counts = []
    for step in range(40):
        model.dropout_rng.seed_batch(1, step)
        counts.append(task.loss(model, batch).count)
    num_words = 2 + 60 * math.sqrt((1 / 62) / (60 / 62))
    assert sum(counts) / len(counts) == pytest.approx(2 * (num_words - 1), rel=0.1)


def test_a_batch_of_which_nothing_is_left_is_read_whole() -> None:
    task, model, batch = made(config_of(window=1, subsample=1e-12), [[4, 5, 6]])
    assert task.loss(model, batch).count == 4


def test_a_window_that_shrinks_is_the_whole_one_at_most() -> None:
    whole = made(config_of(window=3))
    task, model, batch = made(config_of(window=3, shrink=True))
    counts = set()
    for step in range(20):
        model.dropout_rng.seed_batch(1, step)
        counts.add(task.loss(model, batch).count)
    nearest = made(config_of(window=1))
    assert nearest[0].loss(*nearest[1:]).count <= min(counts) < max(counts) <= whole[0].loss(*whole[1:]).count


# Data


def test_frequencies_are_shares_of_words_by_the_weight_of_their_texts() -> None:
    split = replace(split_of(TEXTS), weights=np.array([1.0, 1.0, 1.0, 2.0]))
    found = word_frequencies(split, 12)
    counts = {4: 2 + 2, 5: 2, 6: 1 + 2, 7: 1, 8: 1, 9: 2, 10: 2, 11: 2}
    assert found.tolist() == pytest.approx([counts.get(word, 0) / 17 for word in range(12)])
    assert num_words(split).tolist() == [4, 2, 1, 5]


def test_texts_of_one_word_are_in_no_batch() -> None:
    task = task_of(config_of())
    epoch = task.epochs(split_of(TEXTS), 8, seed=1)
    assert sorted(row for rows in epoch(0) for row in rows.tolist()) == [0, 1, 3]
    assert sorted(row for rows in task.ordered_batches(split_of(TEXTS), 8) for row in rows.tolist()) == [0, 1, 3]


def test_texts_without_two_words_are_refused() -> None:
    config = config_of()
    with pytest.raises(DataError, match="the train split has no text with two known words"):
        task_of(config).check_data(dataset_of([[4], [UNK_ID, 5]]), config)
    with pytest.raises(DataError, match="the valid split has no text with two known words"):
        task_of(config).check_data(dataset_of(TEXTS, [[4]]), config)
    with pytest.raises(DataError, match=r"1 of 4 train examples has more than model\.max_length = 5"):
        task_of(config).check_data(dataset_of(TEXTS), config.model_copy(update={"max_length": 5}))


# Training


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


WAYS = {"softmax": {"window": 2}, "noise": {"window": 2, "negatives": 2, "shrink": True, "subsample": 0.1}}


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_a_resumed_training_is_one_that_never_stopped(
    architecture: str, words: dict[str, Any], dataset: Path, tmp_path: Path
) -> None:
    config = config_of(architecture, **words)
    whole = run(dataset, tmp_path / "whole", training(max_steps=12, ema=0.9), model=config)
    run(dataset, tmp_path / "parts", training(max_steps=5, ema=0.9), model=config)
    parts = run(dataset, tmp_path / "parts", training(max_steps=12, ema=0.9), model=config)
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert set(one) == {"table.weight", "output.weight", "frequencies"}
    data = load_dataset(dataset)
    assert one["frequencies"].tolist() == pytest.approx(word_frequencies(data.train, len(one["frequencies"])).tolist())


@pytest.mark.parametrize("negatives", [None, 3], ids=["softmax", "noise"])
def test_a_test_set_is_scored_as_validation_is(negatives: int | None, dataset: Path, tmp_path: Path) -> None:
    model = config_of("cbow", window=2, negatives=negatives)
    folder = run(dataset, tmp_path, training(max_steps=5), model=model)
    lines = (tmp_path / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    valid = next(line for line in map(json.loads, lines) if line["event"] == "valid")
    found, exact = (
        score_likelihood(
            load_model(folder, "cpu", dtype), "valid", load_dataset(dataset).valid, 64, NullReporter()
        ).scores
        for dtype in (torch.float32, torch.float64)
    )

    def assert_same(figure: str, of_training: float) -> None:
        scores = torch.tensor([of_training]), torch.tensor([found[figure].score])
        assert_rounds_like(*scores, torch.tensor([exact[figure].score], dtype=torch.float64))

    assert found["token_accuracy"].score == pytest.approx(100 * valid["accuracy"])
    if negatives is None:
        assert set(found) == {"perplexity", "token_accuracy", "objective"}
        assert valid["perplexity"] == pytest.approx(math.exp(valid["loss"]), rel=1e-12)
        assert_same("perplexity", valid["perplexity"])
        assert found["perplexity"].signature.startswith("unit:word|count:")
    else:
        assert set(found) == {"loss", "token_accuracy", "objective"}
        assert_same("loss", valid["loss"])
        assert valid["perplexity"] is None
        assert "noise-words:3-others|draws:7" in found["loss"].signature


def test_a_test_set_without_pairs_is_refused(dataset: Path, tmp_path: Path) -> None:
    folder = run(dataset, tmp_path, training(max_steps=2), model=config_of())
    with pytest.raises(
        DataError, match=r"short has nothing that this model .* predicts: it has no text with two known words"
    ):
        score_likelihood(load_model(folder, "cpu"), "short", split_of([[4], [5]]), 64, NullReporter())


def test_a_model_of_word_vectors_translates_nothing() -> None:
    with pytest.raises(DataError, match="was trained for word_vectors and does not translate: use `tfm embed`"):
        predicts_labels(tiny_model(architecture="cbow", task="word_vectors"))


# Recipes


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('model.task="translation"', 'is for "word_vectors", not "translation"'),
        ("model.word_vectors.window=0", "model.word_vectors.window"),
        ("model.word_vectors.negative=5", "did you mean model.word_vectors.negatives"),
        ("model.adaptive.cutoffs=[100]", "has no adaptive softmax"),
        ("training.layout=flat", "is for translation and language_model"),
        ("model.source_vectors=v.txt", "has no separate source embedding: give target_vectors"),
    ],
    ids=lambda each: each.split("=")[0],
)
def test_what_does_not_fit_is_refused(key: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_recipe(Path("recipes/skip-gram.toml"), [key])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["training.early_stopping.metric=perplexity"], "negative sampling has a loss, but no perplexity"),
        (["training.label_smoothing=0.1"], "label_smoothing needs a softmax"),
    ],
    ids=["perplexity", "label smoothing"],
)
def test_negative_sampling_has_no_probabilities(keys: list[str], said: str) -> None:
    recipe = Path("recipes/skip-gram.toml")
    assert load_recipe(recipe, keys).model.word_vectors.negatives is None
    with pytest.raises(RecipeError, match=said):
        load_recipe(recipe, [*keys, "model.word_vectors.negatives=5"])


def test_word_vectors_are_of_no_other_model() -> None:
    with pytest.raises(RecipeError, match=r'has no effect with .*: it is for architecture = "skip_gram" and "cbow"'):
        load_recipe(Path("recipes/demo.toml"), ["model.word_vectors.window=3"])
