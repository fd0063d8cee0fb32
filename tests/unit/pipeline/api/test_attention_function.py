"""Attention on given numbers: its equation in plain loops, and what a network computes of its own queries and keys."""

import doctest
import math
from typing import Any

import numpy as np
import pytest
import torch

import tfm
from tests.tiny_model import tiny_model
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.pipeline.api import attention_function
from tfm.pipeline.api.attention_function import PARAMETER_FREE_SCORES, attention
from tfm.pipeline.api.model import Model
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.runtime.progress import NullReporter

EQUATIONS = {
    "scaled_dot": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)),
    "dot": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)),
    "distance": lambda q, k: 1 / math.sqrt(sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) + 1e-6),
}


def drawn() -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(5)
    return draw.normal(size=(4, 3)), draw.normal(size=(5, 3)), draw.normal(size=(5, 2))


def test_the_weather_stations_are_as_the_docstring_says() -> None:
    found = doctest.testmod(attention_function)
    assert (found.failed, found.attempted) == (0, 3)


@pytest.mark.parametrize("name", PARAMETER_FREE_SCORES)
@pytest.mark.parametrize("masked", ["all", "causal", "strict", "some"])
def test_it_is_its_equation(name: Any, masked: str) -> None:
    query, key, value = drawn()
    may = np.random.default_rng(6).random((4, 5)) < 0.5
    may[:, 2] = True
    before = np.tri(4, 5, -1, dtype=bool)
    before[0, 0] = True  # before the first query there is nothing
    may = {"all": np.ones((4, 5), bool), "causal": np.tri(4, 5, dtype=bool), "strict": before, "some": may}[masked]
    given = {"all": None, "causal": "causal", "strict": "strict", "some": may.astype(int)}[masked]
    values, weights = attention(query.tolist(), key, value, score=name, mask=given)  # type: ignore[arg-type]
    for t in range(4):
        exps = [math.exp(EQUATIONS[name](query[t], key[s])) * may[t, s] for s in range(5)]
        want = [each / sum(exps) for each in exps]
        assert weights[t].tolist() == pytest.approx(want, rel=1e-12)
        assert values[t].tolist() == pytest.approx([sum(want[s] * value[s, v] for s in range(5)) for v in range(2)])


def test_the_written_out_form_of_a_mask_is_the_same() -> None:
    """E * M + c M - c with a large c."""
    query, key, value = drawn()
    may = np.tri(4, 5)
    for large in (1e3, 1e6):
        written = attention(query, key, value, score=lambda q, k, c=large: q @ k.T * may + c * may - c)  # type: ignore[misc]
        np.testing.assert_allclose(written.weights, attention(query, key, value, score="dot", mask=may).weights)


def test_one_query_and_flat_values_have_fewer_dimensions() -> None:
    query, key, value = drawn()
    values, weights = attention(query[0], key, value[:, 0], mask=[1, 1, 0, 0, 1])
    assert (values.shape, weights.shape) == ((), (5,))
    many = attention(query[:1], key, value, mask=[[1, 1, 0, 0, 1]])
    assert weights.tolist() == many.weights[0].tolist()
    assert float(values) == pytest.approx(many.values[0, 0])


@pytest.mark.parametrize("score", [*PARAMETER_FREE_SCORES, "additive"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_network_computes_the_same_of_its_own_queries_and_keys(
    score: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tiny_model(dtype=torch.float64, score=score)
    calls: list[tuple[Any, ...]] = []
    forward = ExplicitAttention.forward

    def keep(self: Any, query: Any, key: Any, value: Any, mask: Any, *rest: Any) -> Any:
        mixed = forward(self, query, key, value, mask, *rest)
        calls.append((self, query, key, value, mixed))
        return mixed

    monkeypatch.setattr(ExplicitAttention, "forward", keep)
    shown = Model(loaded, NullReporter()).attend("a dog runs .", "the sea is cold")
    per_layer = {"encoder": calls[:2], "decoder": calls[2::2], "cross": calls[3::2]}[kind]
    weights = shown.weights(kind)
    for layer, (module, query, key, value, mixed) in enumerate(per_layer):
        for head in range(2):
            q, k, v = (each[0, head].numpy() for each in (query, key, value))

            def additive(q: Any, k: Any, h: int = head, own: Any = module.score) -> Any:
                for_query, for_key, weight = (
                    each[h].detach().numpy() for each in (own.for_query, own.for_key, own.weight)
                )
                return (np.tanh((q @ for_query)[:, None] + (k @ for_key)[None]) @ weight)[..., 0]

            mask = "causal" if kind == "decoder" else None
            found = attention(q, k, v, score=additive if score == "additive" else score, mask=mask)  # type: ignore[arg-type]
            np.testing.assert_allclose(found.weights, weights[layer, head], atol=1e-6)
            np.testing.assert_allclose(found.values, mixed[0, head].numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": [[1.0, 2.0]]}, r"shapes do not fit \(query \(1, 1\), key \(1, 2\)"),
        ({"value": [1.0]}, r"value \(1,\)\): give"),
        ({"score": "additive"}, "score = 'additive' is not allowed; it may be 'scaled_dot' or 'dot' or 'distance'"),
        ({"score": lambda q, k: q}, r"the score returned \(1, 1\): return \(1, 2\)"),
        ({"mask": [[1, 1, 1]]}, r"the mask has the shape \(1, 3\): give \(1, 2\)"),
        ({"mask": [[0, 0]]}, "query 0 may attend to no key"),
        ({"mask": [[0.0, -math.inf]]}, "the mask has -inf: give 1 where a query may attend to a key, and 0 elsewhere"),
        ({"mask": [[0.5, 1.0]]}, "the mask has 0.5: give 1"),
        ({"value": np.ones((2, 2, 3))}, r"value \(2, 2, 3\)\): give"),
        ({"value": 1.0}, r"value \(\)\): give"),
        ({"query": 1.0}, r"query \(\), "),
        ({"query": [[]], "key": [[], []]}, r"query \(1, 0\), key \(2, 0\)"),
        ({"key": np.ones((0, 1)), "value": np.ones((0, 1))}, "there are no keys"),
        ({"score": lambda q, k: np.full((1, 2), -math.inf)}, "all scores of query 0 are -infinity"),
        ({"mask": "later"}, "mask = 'later' is not allowed; it may be 'causal' or 'strict'"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], problem: str) -> None:
    given = {"query": [[1.0]], "key": [[1.0], [2.0]], "value": [[1.0], [2.0]]} | changes
    with pytest.raises((DataError, RecipeError), match=problem):
        tfm.attention(**given)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"mask": [[1], [1, 1]]}, "mask is no array of numbers"),
        ({"score": lambda q, k: "near"}, "what the score returned is no array of numbers"),
        ({"query": torch.ones(1, 1, requires_grad=True)}, "query is no array of numbers: .* requires grad"),
    ],
)
def test_what_is_no_array_of_numbers_is_a_type_error(changes: dict[str, Any], problem: str) -> None:
    given = {"query": [[1.0]], "key": [[1.0], [2.0]], "value": [[1.0], [2.0]]} | changes
    with pytest.raises(TypeError, match=problem):
        tfm.attention(**given)
