"""Sizes of updates: the tokens and predictions that a task computes, not those of its corpus."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.cli.user import ROOT
from tests.tiny_training import training
from tfm.model.config import WordVectorsConfig
from tfm.model.word_vectors import neighbour_pairs
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.planning.corpus_size import CorpusSize, assume_corpus_and_vocabularies, assume_lengths
from tfm.pipeline.planning.devices import parse_devices
from tfm.pipeline.planning.run_plan import make_plan, update_sizes, with_starting_model
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.tasks.masked_language_model import draw_masked_positions, expected_masked_tokens
from tfm.pipeline.tasks.translation import num_flat_rows
from tfm.pipeline.tasks.word_vectors import num_neighbour_pairs, num_words_with_neighbours


@pytest.mark.parametrize("length", [1, 3, 9, 30])
def test_expected_masked_tokens_are_the_mean_of_many_draws(length: int) -> None:
    num_texts = 20_000
    keys = np.random.default_rng(length).integers(1, 2**63, num_texts).astype(np.uint64)
    chosen = draw_masked_positions(np.full(num_texts, length + 1), keys)
    assert expected_masked_tokens(length) == pytest.approx(len(chosen) / num_texts, rel=0.02)


@pytest.mark.parametrize(
    ("model", "lengths"),
    [
        ({}, (21, 21, 21)),
        ({"task": "span_corruption", "span_corruption": {"share": 0.15, "mean_length": 3}}, (19, 5, 5)),
        ({"architecture": "encoder_only", "task": "masked_language_model"}, (21, 21, 3 + 0.85**20)),
        ({"architecture": "encoder_only", "task": "classification"}, (21, 21, 1)),
    ],
)
def test_assumed_rows_have_the_lengths_that_the_task_makes_of_them(
    model: dict[str, Any], lengths: tuple[float, ...]
) -> None:
    data = {name: {"format": "labelled", "path": name} for name in ("train", "valid")}
    by_task = {"span_corruption": {"sentinels": 60}, "classification": {"shared": False, "target_kind": "label"}}
    tokenizer = by_task.get(model.get("task", ""), {})
    recipe = Recipe.model_validate({"name": "x", "data": data, "model": model, "tokenizer": tokenizer})
    assert assume_lengths(recipe, 20) == pytest.approx(lengths)


@pytest.mark.parametrize(
    ("recipe", "settings", "lengths"),
    [
        ("captions", (), (36, 21, 21)),
        ("captions-patches", (), (9, 21, 21)),
        ("fashion-mnist", (), (49, 2, 1)),
        ("skip-gram", (), (21, 21, 2 * (19 + 18))),
        ("skip-gram", ("model.word_vectors.shrink=true",), (21, 21, 2 * (19 + 18 / 2))),
        ("cbow", (), (21, 21, 20)),
    ],
)
def test_assumed_images_have_their_cells_and_words_their_neighbours(
    recipe: str, settings: tuple[str, ...], lengths: tuple[float, ...]
) -> None:
    assert assume_lengths(load_recipe(ROOT / "recipes" / f"{recipe}.toml", settings), 20) == pytest.approx(lengths)


@pytest.mark.parametrize("num_words", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("window", [1, 3, 9])
def test_pairs_of_words_are_those_that_a_model_reads(num_words: int, window: int) -> None:
    def count(reach: int) -> int:
        sentence = torch.zeros(num_words, dtype=torch.long)
        return len(neighbour_pairs(sentence, torch.full_like(sentence, reach), window)[0])

    whole, shrinking = (WordVectorsConfig(window=window, shrink=shrink) for shrink in (False, True))
    words = np.array([num_words, 0, num_words])
    assert num_neighbour_pairs(words, whole).tolist() == [count(window), 0, count(window)]
    mean = sum(map(count, range(1, window + 1))) / window
    assert num_neighbour_pairs(words, shrinking).tolist() == pytest.approx([mean, 0, mean])
    assert num_words_with_neighbours(words, whole).tolist() == [
        num_words * (num_words > 1),
        0,
        num_words * (num_words > 1),
    ]


def test_flat_batches_are_filled_and_filler_attends_to_nothing() -> None:
    corpus = CorpusSize(10, 100, 80, 80, 13, 10, 0.1, 5, 5, 10, 2, 1, 64, None, is_exact=True)
    padded, flat = (update_sizes(corpus, training(layout=each)) for each in ("padded", "flat"))
    assert (padded.source_tokens, padded.target_tokens, padded.predictions) == (20, 16, 16)
    assert flat.source_tokens == flat.target_tokens == flat.predictions == 2 * num_flat_rows(64)
    assert flat.source_length * flat.source_tokens == pytest.approx(padded.source_length * padded.source_tokens)
    assert flat.target_length * flat.target_tokens == pytest.approx(padded.target_length * padded.target_tokens)


@pytest.mark.slow
def test_each_recipe_is_planned_or_refused_with_the_reason() -> None:
    recipes = sorted(file for file in (ROOT / "recipes").rglob("*.toml") if file.parent.name != "search")
    number, device = parse_devices("8 x H100")
    refused, planned = [], 0
    for file in recipes:
        try:
            recipe = with_starting_model(load_recipe(file, ()))
        except (RecipeError, DataError) as error:  # from a model that is not made here
            refused.append(str(error))
            continue
        corpus, *vocabularies = assume_corpus_and_vocabularies(recipe, 10_000, 20.0, number)
        both = vocabularies[0], vocabularies[1]
        plan = make_plan(recipe, corpus, both, (number, device), None, price=2.0)
        assert min(plan.flop_per_update, plan.total_memory, plan.total_seconds, plan.cost or 0.0) > 0, file
        planned += 1
    assert all("there is nothing here" in each for each in refused)
    assert planned > 100
