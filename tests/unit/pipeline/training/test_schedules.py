"""Learning-rate schedules against their formulas and against torch's own."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, ReduceLROnPlateau, StepLR

from tfm.model.config import ModelConfig
from tfm.pipeline.training.schedules import SCHEDULES, TOTAL_STEPS_SCHEDULES, ScheduleContext
from tfm.pipeline.update_config import Schedule, ScheduleConfig


def rates(
    name: Schedule, steps: int, *, total: int = 20, losses: Sequence[float] = (), **settings: float
) -> list[float]:
    """Rates of steps 1 to `steps`."""
    config = ScheduleConfig.model_validate({"name": name, "peak": 2.0, "warmup_steps": 0, **settings})
    return [SCHEDULES[name](step, config, ScheduleContext(total, 16, losses)) for step in range(1, steps + 1)]


def torch_rates(make: Callable[[torch.optim.Optimizer], LRScheduler], steps: int) -> list[float]:
    """What torch's scheduler gives after 1 to `steps` steps, from 2.0."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


def test_noam_is_the_papers_formula() -> None:
    expected = [2.0 * 16**-0.5 * min(step**-0.5, step * 4**-1.5) for step in range(1, 13)]
    assert rates("noam", 12, warmup_steps=4) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "width"),
    [
        ({"architecture": "skip_gram", "task": "word_vectors", "embedding_dim": 64}, 64),
        ({"architecture": "cbow", "task": "word_vectors", "encoder": {"dim": 48}}, 48),
        ({"architecture": "encoder_only", "task": "masked_language_model", "encoder": {"dim": 48, "heads": 4}}, 48),
        ({"encoder": {"dim": 48, "heads": 4}, "decoder": {"dim": 48, "heads": 4}}, 48),
    ],
)
def test_noam_scales_by_the_width_of_what_predicts(model: dict[str, object], width: int) -> None:
    assert ModelConfig.model_validate(model).width == width


def test_inverse_sqrt_peaks_at_the_end_of_warmup_and_is_noam_scaled() -> None:
    found = rates("inverse_sqrt", 12, warmup_steps=4)
    assert found[3] == max(found) == 2.0
    assert found == pytest.approx([rate * 4**0.5 * 16**0.5 for rate in rates("noam", 12, warmup_steps=4)])


def test_cosine_is_torchs() -> None:
    expected = torch_rates(lambda optimizer: CosineAnnealingLR(optimizer, 20, eta_min=0.5), 20)
    assert rates("cosine", 20, final=0.5) == pytest.approx(expected)


def test_linear_is_torchs() -> None:
    def torchs(optimizer: torch.optim.Optimizer) -> LinearLR:
        return LinearLR(optimizer, start_factor=1.0, end_factor=0.25, total_iters=20)

    assert rates("linear", 25, final=0.5) == pytest.approx(torch_rates(torchs, 25))


def test_step_is_torchs() -> None:
    expected = torch_rates(lambda optimizer: StepLR(optimizer, step_size=3, gamma=0.5), 12)
    assert rates("step", 12, decay_steps=3) == pytest.approx(expected)


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), max_size=30), st.integers(0, 3))
def test_plateau_is_torchs(losses: list[float], patience: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, threshold=0.0, eps=0.0)
    for number, loss in enumerate(losses, 1):
        scheduler.step(loss)
        assert rates("plateau", 1, losses=losses[:number], patience=patience) == [optimizer.param_groups[0]["lr"]]


def test_warmup_stable_decay_has_three_phases() -> None:
    found = rates("warmup_stable_decay", 20, warmup_steps=4, decay_steps=5, final=0.5)
    assert found[:4] == [0.5, 1.0, 1.5, 2.0]
    assert found[4:15] == [2.0] * 11
    assert found[15:] == pytest.approx([1.7, 1.4, 1.1, 0.8, 0.5])


@pytest.mark.parametrize("name", sorted(set(SCHEDULES) - {"noam"}))
def test_warmup_is_linear_up_to_the_peak(name: Schedule) -> None:
    found = rates(name, 5, total=5000, warmup_steps=5)
    assert found == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0], rel=1e-3)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
@given(step=st.integers(1, 10_000), warmup_steps=st.integers(0, 3000))
def test_rates_are_positive_and_finite_even_past_the_end(name: Schedule, step: int, warmup_steps: int) -> None:
    config = ScheduleConfig(name=name, peak=1e-3, warmup_steps=warmup_steps, final=1e-6)
    rate = SCHEDULES[name](step, config, ScheduleContext(5000, 512, [2.0, 3.0, 3.0, 3.0]))
    assert math.isfinite(rate)
    assert 0 < rate <= 1e-3


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_only_schedules_with_an_end_know_how_many_updates_there_are(name: Schedule) -> None:
    settings = {"warmup_steps": 3, "decay_steps": 6, "final": 0.1}
    alike = [rates(name, 20, total=total, losses=[3.0, 2.0], **settings) for total in (20, 40)]
    assert (alike[0] != alike[1]) == (name in TOTAL_STEPS_SCHEDULES)
    if name in TOTAL_STEPS_SCHEDULES:
        assert alike[0][-1] == pytest.approx(0.1)
