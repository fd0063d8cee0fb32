"""Killed at every kind of moment, in every kind of training, and started again: the same bytes, the same figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.killing import ALL_THREE, MOMENTS, DieAt, Killed, arrange, ends, result, start
from tests.tiny_training import run, training
from tfm.pipeline.training_config import TrainingConfig

pytestmark = pytest.mark.usefixtures("no_curves")
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"max_steps": 25},
    "accumulated": {"max_steps": 25, "accumulate": 4},
    "early stopping, moving average, mean of the best": ALL_THREE,
    "early stopping, moving average, mean of the best, accumulated": {**ALL_THREE, "accumulate": 4},
}


# All that is peculiar to one variant is in the last one as well, and every moment is tried in it.
LATER = ("plain", "accumulated", "early stopping, moving average, mean of the best")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow if name in LATER else ()) for name in VARIANTS],
)
def straight(
    request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TrainingConfig, Path]:
    """A variant, and a run of it that nothing stopped."""
    config, out = training(**VARIANTS[request.param]), tmp_path_factory.mktemp("straight")
    run(dataset, out, config)
    last = result(out)[1][-1]["step"]
    assert last == 25 if config.max_steps == 25 else 20 <= last < 200
    return config, out


def die() -> None:
    raise Killed


@pytest.mark.few(1)
@pytest.mark.promise("resume")
@pytest.mark.parametrize("moment", MOMENTS)
def test_dead_and_resumed_is_the_same(
    straight: tuple[TrainingConfig, Path],
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    record_property: Callable[[str, object], None],
) -> None:
    config, expected = straight
    with monkeypatch.context() as patch:
        arrange(MOMENTS[moment], MOMENTS[moment].nth, die, patch.setattr)
        with pytest.raises(Killed):
            run(dataset, tmp_path, config)
    run(dataset, tmp_path, config)
    assert result(tmp_path) == result(expected)
    record_property("deaths", 1)


@pytest.mark.slow
@pytest.mark.promise("resume")
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_by_the_system_and_resumed_is_the_same(
    straight: tuple[TrainingConfig, Path],
    dataset: Path,
    tmp_path: Path,
    moment: str,
    record_property: Callable[[str, object], None],
) -> None:
    config, expected = straight
    for nth in (1, MOMENTS[moment].nth):
        (end,) = ends(start(dataset, tmp_path, config, prepare=DieAt(moment, nth)))
        assert end.code == -9, end.said
    (end,) = ends(start(dataset, tmp_path, config))
    assert end.code == 0, end.said
    assert result(tmp_path) == result(expected)
    record_property("kills", 2)
