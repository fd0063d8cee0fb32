"""FLOP of known models, and against the products that a model really makes."""

from math import prod

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.kernels.flops import TokenCounts, decoding_flops, forward_flops, training_flops
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layout import Layout
from tfm.pipeline.errors import RecipeError


def model(layers: int, dim: int, inner: int, heads: int, **rest: object) -> ModelConfig:
    stack = StackConfig(layers=layers, dim=dim, heads=heads, feed_forward_dim=inner)
    return ModelConfig.model_validate({"encoder": stack, "decoder": stack, **rest})


TINY, BASE = model(4, 128, 256, 4), model(6, 512, 2048, 8)


@pytest.mark.parametrize(
    ("config", "vocab", "length", "megaflops"),
    [(TINY, 10_000, 15, 15.8), (BASE, 32_000, 27, 368)],
    ids=["tiny", "base"],
)
def test_training_of_known_models(config: ModelConfig, vocab: int, length: int, megaflops: float) -> None:
    work = TokenCounts.from_lengths([(length, length)] * 10)
    assert training_flops(config, vocab, work) / work.target / 1e6 == pytest.approx(megaflops, rel=0.02)


def test_decoding_of_a_known_model() -> None:
    work = TokenCounts.from_lengths([(15, 15)] * 10)
    assert decoding_flops(TINY, 10_000, work, beam=5) / work.target / 1e6 == pytest.approx(20.9, rel=0.02)


def test_one_hypothesis_costs_what_the_forward_pass_does() -> None:
    work = TokenCounts.from_lengths([(3, 5), (7, 2)])
    assert decoding_flops(TINY, 100, work, beam=1) == forward_flops(TINY, 100, work)


VARIANTS: dict[str, dict[str, object]] = {
    "as wide": {},
    "narrower embeddings": {"embedding_dim": 16},
    "gated": {"activation": "swiglu"},
    "shared keys": {"key_value_heads": 1},
    "heads of other widths": {"key_dim": 7, "value_dim": 5},
    "positions beside": {"positions_join": "concatenate"},
    "positions beside narrow embeddings": {"positions_join": "concatenate", "embedding_dim": 16},
}


@pytest.mark.parametrize("rest", VARIANTS.values(), ids=VARIANTS)
def test_products_with_weights_are_those_of_the_model(rest: dict[str, object]) -> None:
    heads = {name: value for name, value in rest.items() if name in StackConfig.model_fields}
    stack = StackConfig.model_validate({"layers": 2, "dim": 32, "heads": 2, "feed_forward_dim": 48, **heads})
    others = {name: value for name, value in rest.items() if name not in heads}
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack, **others})
    lengths = [(5, 7), (3, 4)]
    batch = pair_batch_from_ids([[4] * (s - 1) for s, _ in lengths], [[4] * (t - 1) for _, t in lengths])
    network = build(config, source_vocab=50, target_vocab=50)
    with FlopCounterMode(display=False) as counter:
        layouts = Layout.from_lengths(batch.source_lengths), Layout.from_lengths(batch.target_lengths)
        network.output(network(batch.source, layouts[0], batch.target_in, layouts[1]))
    weights = sum(
        count
        for each, count in counter.get_flop_counts()["Global"].items()
        if each in (torch.ops.aten.mm, torch.ops.aten.addmm)
    )
    work = TokenCounts.from_lengths(lengths)
    without_attention = TokenCounts(work.source, work.target, 0, 0, 0)
    assert forward_flops(config, 50, without_attention) == weights


@pytest.mark.parametrize("rest", [{"mixing": "convolution"}, {"window": 3}])
def test_what_the_equations_are_not_of_is_refused(rest: dict[str, object]) -> None:
    with pytest.raises(RecipeError, match=f"model.{next(iter(rest))} = .*not counted"):
        forward_flops(model(1, 8, 8, 2, **rest), 9, TokenCounts.from_lengths([(3, 5)]))


def test_a_stack_that_mixes_otherwise_is_refused() -> None:
    config = model(1, 8, 8, 2)
    other = config.model_copy(update={"decoder": config.decoder.model_copy(update={"mixing": "recurrent"})})
    with pytest.raises(RecipeError, match=r"model\.decoder\.mixing = 'recurrent': its FLOP are not counted"):
        forward_flops(other, 9, TokenCounts.from_lengths([(3, 5)]))


def test_a_pair_of_positions_costs_the_widths_of_heads() -> None:
    stack = StackConfig(layers=1, dim=8, heads=3, key_dim=4, value_dim=6, feed_forward_dim=8)
    config = ModelConfig(encoder=stack, decoder=stack)
    assert forward_flops(config, 9, TokenCounts(0, 0, 1, 0, 0)) == 2 * 3 * (4 + 6)


def test_attention_counts_pairs_of_positions() -> None:
    work = TokenCounts.from_lengths([(3, 5)])
    assert (work.within_source, work.within_target, work.across) == (9, 15, 15)
    attention = forward_flops(TINY, 100, work) - forward_flops(TINY, 100, TokenCounts(3, 5, 0, 0, 0))
    assert attention == prod((4, 128, 4)) * (9 + 15 + 15)
