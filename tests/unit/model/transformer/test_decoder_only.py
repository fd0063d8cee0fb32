"""The decoder-only Transformer: step by step as at once, whatever is beside it; the future is not seen."""

from itertools import chain
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, PositionsName, StackConfig
from tfm.model.layout import FlatLayout, Layout, concat_layouts_with_row_order
from tfm.model.transformer.decoder_only import DecoderOnly
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode

VOCAB = 24
SOURCES = [[5, 6, 7, 8, 9, 3], [10, 3], [11, 12, 13, 3], [5, 5, 5, 3]]
TARGETS = [[2, 20, 21, 22], [2, 23, 4, 5], [2, 16, 17, 18], [2, 10, 11, 12]]


def network(**changes: Any) -> DecoderOnly:
    stack = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=32)
    none = DropoutConfig(residual=0, embedding=0)
    base = {"architecture": "decoder_only", "decoder": stack, "dropout": none, "max_length": 32}
    model = build(ModelConfig.model_validate(base | changes), source_vocab=VOCAB, target_vocab=VOCAB, seed=1)
    assert isinstance(model, DecoderOnly)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # surer of what it says than a beginner is
    return model.double().eval()


def rows(sentences: list[list[int]]) -> tuple[Tensor, Layout]:
    lengths = torch.tensor([len(each) for each in sentences])
    return torch.tensor(list(chain.from_iterable(sentences))), Layout.from_lengths(lengths)


@pytest.mark.parametrize("flat", [False, True])
def test_joined_sentences_lie_one_after_the_other(flat: bool) -> None:
    lengths = torch.tensor([2, 1]), torch.tensor([1, 3])
    one, other = (FlatLayout(each, num_rows=6) if flat else Layout.from_lengths(each) for each in lengths)
    layout, order = concat_layouts_with_row_order(one, other)
    ids = torch.tensor(["a0 a1 b0".split().index(word) for word in ("a0", "a1", "b0")])
    assert ids.tolist() == [0, 1, 2]
    first = ["a0", "a1", "b0"] + ["-"] * (3 * flat)
    second = ["A0", "B0", "B1", "B2"] + ["="] * (2 * flat)
    read = [[*first, *second][row] for row in order.tolist()]
    assert read == ["a0", "a1", "A0", "b0", "B0", "B1", "B2"] + (["-"] * 3 + ["="] * 2 if flat else [])
    assert layout.positions.tolist()[:7] == [0, 1, 2, 0, 1, 2, 3]
    assert layout.lengths.tolist() == [3, 4]


@pytest.mark.parametrize("positions", get_args(PositionsName))
def test_step_by_step_is_as_at_once(positions: str) -> None:
    model = network(positions=positions)
    (source, layout), (target, target_layout) = rows(SOURCES), rows(TARGETS)
    with torch.inference_mode():
        at_once = model.log_probs(model(source, layout, target, target_layout)).view(4, 4, VOCAB)
        state = model.start(source, layout)
        for step in range(4):
            predict, state = model.step(torch.tensor([each[step] for each in TARGETS]), state)
            torch.testing.assert_close(predict(slice(None)), at_once[:, step], rtol=0, atol=1e-10)


@pytest.mark.parametrize("changes", [{}, {"norm": "post"}, {"normalization": "batch"}], ids=str)
def test_the_last_layer_feeds_the_rows_of_targets_alone(changes: dict[str, Any]) -> None:
    model = network(**changes)
    (source, source_layout), (target, target_layout) = rows([[7, 8, 3], [9, 3]]), rows([[2, 5], [2, 6, 4]])
    fed: list[int] = []
    model.layers[-1].feed_forward.register_forward_hook(lambda module, inputs, output: fed.append(len(output)))
    found = model(source, source_layout, target, target_layout)
    joined, joined_layout = rows([[7, 8, 3, 2, 5], [9, 3, 2, 6, 4]])
    everything = model.hidden_states(joined, joined_layout)
    torch.testing.assert_close(found, everything[[3, 4, 7, 8, 9]], rtol=0, atol=1e-12)
    assert fed == [10 if "normalization" in changes else 5, 10]


def test_a_text_without_a_source_is_read_from_nothing() -> None:
    model = network(task="language_model")
    tokens, layout = rows(TARGETS)
    with torch.inference_mode():
        at_once = model.log_probs(model.hidden_states(tokens, layout)).view(4, 4, VOCAB)
        state = model.empty_state(4)
        for step in range(4):
            predict, state = model.step(torch.tensor([each[step] for each in TARGETS]), state)
            torch.testing.assert_close(predict(slice(None)), at_once[:, step], rtol=0, atol=1e-10)


@pytest.mark.few(1)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_hypothesis_does_not_depend_on_what_is_beside_it(beam: int) -> None:
    model = network(positions="rotary")
    sources = [source[:-1] for source in SOURCES] * 6
    few = DecodingConfig(beam=beam, batch_sentences=5, max_length=12)  # some take the slots of others
    together = decode(model, sources, few)
    alone = [decode(model, [source], few)[0] for source in sources]
    assert [each[0].ids for each in together] == [each[0].ids for each in alone]
    for one, other in zip(together, alone, strict=True):
        assert one[0].log_prob == pytest.approx(other[0].log_prob, abs=1e-9)


def test_the_future_is_not_seen() -> None:
    model = network()
    (source, layout), (target, target_layout) = rows(SOURCES), rows(TARGETS)
    changed = target.clone()
    changed[2] = 9  # of the first sentence
    with torch.inference_mode():
        before, after = (model(source, layout, each, target_layout) for each in (target, changed))
    same = (before == after).all(1)
    assert same[:2].all()
    assert not same[2:4].any()
    assert same[4:].all()


def test_sentences_end_to_end_compute_what_padded_ones_do() -> None:
    model = network()
    (source, layout), (target, target_layout) = rows(SOURCES), rows(TARGETS)
    flat = [FlatLayout(each.lengths, num_rows=24) for each in (layout, target_layout)]
    filled = [torch.cat([each, torch.full((24 - len(each),), 3)]) for each in (source, target)]
    with torch.inference_mode():
        padded = model(source, layout, target, target_layout)
        as_they_lie = model(filled[0], flat[0], filled[1], flat[1])
    torch.testing.assert_close(as_they_lie[: len(padded)], padded, rtol=0, atol=1e-12)
