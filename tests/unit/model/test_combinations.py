"""Every combination of named parts is a model, or is refused with a reason."""

import random
from math import prod
from typing import Any

import pytest
import torch

from tests.combinations import NAMES, Choice, configured, covering, every_pair, pairs, refusal
from tfm.model.build import build
from tfm.model.layout import Layout
from tfm.pipeline.model_io.model_weights import model_weight_shapes

COVERING = covering()


def in_words(choice: Choice) -> str:
    return " ".join(str(name) for name in choice.values())


@pytest.mark.slow
def test_combinations_go_together_or_hold_two_parts_that_do_not() -> None:
    """A hundred thousand of the two million, and every pair."""
    apart = {two: refusal(pair) for pair in every_pair() for two in pairs(pair)}
    reasons = [reason for reason in apart.values() if reason is not None]
    assert len(reasons) == 42
    for pair, reason in apart.items():
        for part, name in pair if reason is not None else ():
            assert part in reason, reason
            assert name is None or str(name).replace("False", "false") in reason, reason
    draw = random.Random(2)
    for _ in range(100_000):
        choice = {part: draw.choice(names) for part, names in NAMES.items()}
        found = refusal(choice)
        # where only the decoder has attention, the same reason names it in the encoder's place
        assert found is None or found.replace("decoder.", "encoder.") in reasons
        assert (found is None) == all(apart[two] is None for two in pairs(choice)), choice


def test_a_few_combinations_try_every_pair_that_goes_together() -> None:
    together = {two for pair in every_pair() if refusal(pair) is None for two in pairs(pair)}
    assert {two for choice in COVERING for two in pairs(choice)} == together
    assert all(refusal(choice) is None for choice in COVERING)
    fewest = prod(sorted(map(len, NAMES.values()))[-2:])  # the two parts with most names, each with each
    assert len(COVERING) < 2 * fewest
    assert covering() == COVERING


def test_what_goes_together_has_weights() -> None:
    draw = random.Random(1)
    for _ in range(60):
        choice = {part: draw.choice(names) for part, names in NAMES.items()}
        if refusal(choice) is None:
            assert model_weight_shapes(configured(choice), source_vocab=9, target_vocab=9)


@pytest.mark.parametrize("choice", COVERING, ids=in_words)
@pytest.mark.few(39)
def test_what_goes_together_can_be_trained(choice: Choice) -> None:
    model: Any = build(configured(choice), source_vocab=9, target_vocab=9, seed=1)
    source, target = Layout.from_lengths(torch.tensor([3, 1, 5])), Layout.from_lengths(torch.tensor([2, 6, 1]))
    hidden = model(torch.arange(9) % 5 + 4, source, torch.arange(9) % 5 + 4, target)
    model.log_probs(hidden)[:, 5].sum().backward()
    assert hidden.isfinite().all()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
