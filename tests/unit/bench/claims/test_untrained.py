"""Claims that need no training: each computed a second way on a tiny size."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch

from bench.claims.attention import parallel, scores
from bench.claims.judging import grid, intervals
from bench.claims.positions import order, sinusoids
from bench.claims.recurrence import gradients
from bench.claims.recurrence.gradients import gradient_norms, make_networks, read_recurrent
from tfm.model.layout import Layout
from tfm.model.recurrent.cells import CELLS
from tfm.model.recurrent.steps import TimeMajorPacking
from tfm.pipeline.significance.segment_statistics import SegmentStatistics


def test_permuted_words_have_permuted_outputs_without_positions_alone() -> None:
    for stack in order.STACKS:
        assert order.measure_moved("none", stack, 16)["any"] < 1e-9
        assert order.measure_moved("sinusoidal", stack, 16)["any"] > 1e-3


def test_attention_of_one_head_by_hand_is_that_of_the_network_in_every_order() -> None:
    network = order.make_network("none", order.STACKS["1 head"], 8)
    (layer,) = network.encoder
    attention = layer.attention
    for words in permutations(range(3)):
        rows = network.embedding(torch.tensor(words), torch.arange(3))
        normed = layer.around_attention.norm(rows)
        query, key, value = (normed @ attention.query_key_value.weight.T + attention.query_key_value.bias).chunk(3, -1)
        weights = torch.softmax(query @ key.T / math.sqrt(8), -1)
        mixed = rows + attention.output(weights @ value)
        assert torch.allclose(network.encoder_norm(mixed), order.encode(network, words))


def test_alibi_in_an_encoder_does_not_know_a_sentence_from_its_mirror() -> None:
    moved = order.measure_moved("alibi", "8 heads", 16)
    assert moved["mirror"] < 1e-9 < 1e-3 < moved["any"]


def test_entropy_and_largest_weight_of_logits() -> None:
    even, sure = scores.describe_logits(torch.zeros(5, 8)), scores.describe_logits(torch.eye(8) * 100)
    assert even == pytest.approx({"variance": 0, "entropy": 1, "largest": 1 / 8})
    assert sure["entropy"] == pytest.approx(0, abs=1e-6)
    assert sure["largest"] == pytest.approx(1)
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    found = scores.describe_logits(torch.tensor(np.log(weights))[None] + 3)
    assert found["entropy"] == pytest.approx(1.75 / 2)  # bits, of two


def test_variance_grows_with_the_width_unless_it_is_scaled() -> None:
    found = scores.measure_initial(widths=(4, 64), num_keys=16, draws=20)["scores"]
    for source in scores.SOURCES:
        narrow, wide = (each["variance"] for each in found[source]["q · k"])
        assert wide / narrow == pytest.approx(16, rel=0.25)
        assert [each["variance"] for each in found[source]["q · k / √d"]] == pytest.approx([1, 1], rel=0.25)


def test_a_shift_by_rotation_and_the_product_of_sinusoids() -> None:
    found = sinusoids.measure(dim=8, length=12)
    by_hand = [sum(math.cos(k / 10_000 ** (2 * i / 8)) for i in range(4)) for k in range(12)]
    assert found["products"] == pytest.approx(by_hand)
    assert found["rotation_error"] < 1e-12
    assert found["table"][3][2] == pytest.approx(math.sin(3 / 10_000 ** (2 / 8)), abs=5e-4)


def test_the_gradient_of_a_tanh_cell_is_the_product_of_its_factors() -> None:
    torch.manual_seed(3)
    cell, length = CELLS["tanh"](4, 4, compute_dtype=torch.float32), 5
    rows = torch.randn(length, 4)
    torch.manual_seed(4)
    norms = gradient_norms(read_recurrent([cell], TimeMajorPacking(Layout.from_lengths(torch.tensor([length])))), rows)
    torch.manual_seed(4)
    direction = torch.nn.functional.normalize(torch.randn(4), dim=0)
    hidden, slopes = torch.zeros(4), []
    for row in rows:
        hidden = torch.tanh(cell.input(row) + cell.recurrent(hidden))
        slopes.append(1 - hidden**2)
    factor, by_hand = direction, []
    for slope in reversed(slopes):
        factor = factor * slope
        by_hand.append(float((factor @ cell.input.weight).detach().norm()))
        factor = factor @ cell.recurrent.weight
    assert norms == pytest.approx(by_hand, rel=1e-4)


def test_every_network_sees_every_row() -> None:
    torch.manual_seed(1)
    for name, network in make_networks(8, 6, 2).items():
        norms = gradient_norms(network, torch.randn(6, 8))
        assert len(norms) == 6, name
        assert all(each > 0 for each in norms), name


def test_gradients_have_a_figure_for_every_network() -> None:
    found = gradients.measure(dim=8, length=102, layers=1, depth=2, draws=1)
    assert len(gradients.figures(found)) == len(found["by_distance"]) + len(found["by_depth"])
    assert found["by_depth"]["pre-norm"][-1] == pytest.approx(1, rel=1e-4)  # the direction itself


def test_a_loop_over_queries_and_one_product_agree() -> None:
    query, key, value = torch.randn(3, 7, 4, dtype=torch.float64)
    assert torch.allclose(parallel.attend_by_loop(query, key, value), parallel.attend_at_once(query, key, value))


def test_decoding_step_by_step_finds_what_teacher_forcing_does() -> None:
    network, tokens = parallel.make_network(16, 2, 8), torch.arange(5, 13)
    hidden = parallel.take_gradients(network, tokens)
    assert torch.allclose(network.log_probs(hidden), parallel.decode_steps(network, tokens), atol=1e-4)


def test_parallel_has_milliseconds_of_every_length() -> None:
    found = parallel.measure(lengths=(4, 8), dim=16, layers=1, budget=0.001)
    assert all(len(each) == 2 and min(each) > 0 for each in found["milliseconds"].values())
    assert "loop over matrix, n = 8" in parallel.figures(found)


def test_a_grid_of_k_values_is_a_quarter_of_a_step_off_and_draws_are_nearer_where_one_key_matters() -> None:
    found = grid.measure(sides=(2, 3), draws=2000)
    one = found["distances"]["1 of 3 matters"]
    assert one[grid.GRID] == pytest.approx([1 / 8, 1 / 12], rel=0.05)
    nearest = [1 / (2 * (n + 1)) * (n + 2) / (n + 1) for n in (8, 27)]  # of n uniform points, the ends counted
    assert one[grid.DRAWN] == pytest.approx(nearest, rel=0.15)
    assert found["distances"]["3 of 3 matter"][grid.GRID] == pytest.approx([3 / 16, 1 / 8], rel=0.05)


def test_an_interval_of_a_share_is_that_of_the_binomial_and_shrinks_with_the_root() -> None:
    generator = np.random.default_rng(3)
    right = (generator.random((2, 800)) < np.array([[0.5], [0.9]])).astype(float)
    systems = [
        SegmentStatistics(np.stack([row, np.ones(800)], 1), lambda sums: 100 * sums[..., 0] / sums[..., 1])
        for row in right
    ]
    small, large = intervals.resample(systems, (50, 200), 6)
    assert small["half"] == pytest.approx(196 * math.sqrt(0.25 / 50), rel=0.2)
    assert small["half"] / large["half"] == pytest.approx(2, rel=0.25)
    assert (large["apart"], large["wrong"]) == (1, 0)
