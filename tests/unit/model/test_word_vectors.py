"""Skip-gram and CBOW: who is whose neighbour, and what predicts what; and where each network keeps its vectors."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tfm.model.build import build, num_parameters
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.word_vectors import WordVectors, embedding_table, neighbour_pairs, predict_centre, predict_neighbours

STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
WORDS = torch.tensor([5, 7, 5, 9])
CENTRES = torch.tensor([0, 0, 1, 2])
NEIGHBOURS = torch.tensor([1, 2, 0, 1])  # nobody is near the last word


def model_of(**changes: Any) -> Any:
    config = ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "tie": "none"} | changes)
    return build(config, source_vocab=12, target_vocab=12, seed=1)


def table() -> nn.Embedding:
    return nn.Embedding(12, 3, dtype=torch.float64)


@given(st.lists(st.integers(0, 6), max_size=4), st.integers(1, 8), st.randoms(use_true_random=False))
def test_neighbours_are_the_words_of_a_sentence_within_reach(lengths: list[int], window: int, draw: Any) -> None:
    sentence = [number for number, length in enumerate(lengths) for _ in range(length)]
    reach = [draw.randint(1, window) for _ in sentence]
    found = neighbour_pairs(torch.tensor(sentence, dtype=torch.long), torch.tensor(reach, dtype=torch.long), window)
    places = range(len(sentence))
    wanted = {(i, j) for i in places for j in places if i != j and sentence[i] == sentence[j]}
    wanted = {(i, j) for i, j in wanted if abs(i - j) <= reach[i]}
    pairs = list(zip(*(each.tolist() for each in found), strict=True))
    assert set(pairs) == wanted
    assert len(pairs) == len(wanted)


def test_skip_gram_says_each_neighbour_from_the_vector_of_the_word() -> None:
    vectors = table()
    hidden, centres, said = predict_neighbours(vectors, WORDS, CENTRES, NEIGHBOURS)
    assert WORDS[said].tolist() == [7, 5, 5, 7]
    assert centres is CENTRES
    torch.testing.assert_close(hidden, vectors.weight[[5, 5, 7, 5]], rtol=0, atol=0)


def test_cbow_says_a_word_from_the_mean_of_its_neighbours() -> None:
    vectors = table()
    hidden, centres, said = predict_centre(vectors, WORDS, CENTRES, NEIGHBOURS)
    assert WORDS[said].tolist() == [5, 7, 5]  # the word without neighbours is not said
    assert centres is said
    means = torch.stack([(vectors.weight[7] + vectors.weight[5]) / 2, vectors.weight[5], vectors.weight[7]])
    torch.testing.assert_close(hidden, means, rtol=0, atol=1e-15)


@pytest.mark.parametrize("reading", [predict_neighbours, predict_centre])
def test_gradients(reading: Any) -> None:
    def rows(weight: torch.Tensor) -> torch.Tensor:
        vectors = table()
        del vectors.weight
        vectors.weight = weight  # type: ignore[assignment]
        return reading(vectors, WORDS, CENTRES, NEIGHBOURS)[0]  # type: ignore[no-any-return]

    assert torch.autograd.gradcheck(rows, (torch.randn(12, 3, dtype=torch.float64, requires_grad=True),))


@pytest.mark.parametrize(("architecture", "width"), [("skip_gram", None), ("cbow", 5)])
def test_input_and_output_vectors_are_two_tables(architecture: str, width: int | None) -> None:
    model = model_of(architecture=architecture, task="word_vectors", embedding_dim=width, tie="all")
    assert isinstance(model, WordVectors)
    assert {name: tuple(each.shape) for name, each in model.named_parameters()} == {
        "table.weight": (12, width or 8),
        "output.weight": (12, width or 8),
    }
    assert num_parameters(model) == 2 * 12 * (width or 8)
    assert not torch.equal(model.table.weight, model.output.weight)
    assert model.frequencies.double().sum().item() == pytest.approx(1, abs=torch.finfo(torch.float32).eps)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ("source_embedding", "target_embedding")),
        ({"architecture": "recurrent", "positions": "none"}, ("source_embedding", "target_embedding")),
        ({"architecture": "decoder_only"}, ("embedding", "embedding")),
        ({"architecture": "encoder_only", "task": "tagging", "positions": "learned"}, ("embedding", "embedding")),
        ({"architecture": "cbow", "task": "word_vectors"}, ("", "")),
    ],
    ids=lambda each: each.get("architecture", "transformer") if isinstance(each, dict) else "",
)
def test_every_network_has_a_table(changes: dict[str, Any], names: tuple[str, str]) -> None:
    model = model_of(**changes)
    for side, name in zip(("source", "target"), names, strict=True):
        found = embedding_table(model, side)
        assert found is model.get_submodule(f"{name}.table".lstrip("."))
        assert found(torch.arange(12)).shape == (12, 8)


@pytest.mark.parametrize(
    ("changes", "frozen"),
    [
        ({"source_vectors": "v"}, {"source_embedding.table.weight"}),
        ({"target_vectors": "v"}, {"target_embedding.table.weight"}),
        ({"source_vectors": "v", "tie": "output"}, {"source_embedding.table.weight"}),
        ({"target_vectors": "v", "tie": "embeddings"}, {"source_embedding.table.weight"}),  # the one table of both
        ({"source_vectors": "v", "target_vectors": "v", "freeze_vectors": False}, set()),
        ({"architecture": "cbow", "task": "word_vectors", "target_vectors": "v"}, {"table.weight"}),
    ],
    ids=str,
)
def test_a_frozen_table_is_not_trained(changes: dict[str, Any], frozen: set[str]) -> None:
    model = model_of(**({"freeze_vectors": True} | changes))
    assert {name for name, each in model.named_parameters() if not each.requires_grad} == frozen
