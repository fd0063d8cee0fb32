"""A process of a training with parts of the weights is killed: the other leaves, and both go on from the newest whole
checkpoint to the bits of a training that nothing disturbed.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.killing import SHARDED_MOMENTS, DieAt, ends, result, start
from tests.tiny_training import training
from tfm.pipeline.training_config import TrainingConfig

pytestmark = [pytest.mark.slow, pytest.mark.promise("ranks")]
EVERY_STEPS = 3
SETTINGS: dict[str, Any] = {
    "max_steps": 12,
    "ema": 0.9,
    "save_every": EVERY_STEPS,
    "validation": {"every_steps": EVERY_STEPS},
    "keep": {"last": 2},
}
DEATHS = (
    ("while gathering weights", 0, "full"),
    ("while gathering weights", 1, "full"),
    ("while gathering weights", 1, "optimizer"),
    ("while writing its part", 1, "full"),
    ("when its parts are written", 1, "full"),
    ("when all parts are written", 0, "full"),
)


def whole(dataset: Path, out: Path, config: TrainingConfig) -> Any:
    """The result of two processes that nothing disturbs from here on."""
    found = ends(start(dataset, out, config, ranks=2))
    assert [each.code for each in found] == [0, 0], found
    return result(out)


@pytest.fixture(scope="module")
def straight(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of trainings that nothing stopped, by what is sharded."""
    return {
        shard: whole(dataset, tmp_path_factory.mktemp(shard), training(**SETTINGS, shard=shard))
        for shard in ("full", "optimizer")
    }


@pytest.mark.parametrize(("moment", "rank", "shard"), DEATHS)
def test_one_is_killed_and_both_go_on_from_the_newest_whole_checkpoint(
    straight: dict[str, Any],
    dataset: Path,
    tmp_path: Path,
    moment: str,
    rank: int,
    shard: str,
    record_property: Callable[[str, object], None],
) -> None:
    config = training(**SETTINGS, shard=shard)
    death = DieAt(moment, SHARDED_MOMENTS[moment].nth)
    found = ends(start(dataset, tmp_path, config, ranks=2, rank=rank, prepare=death))
    dead, other = found[rank], found[1 - rank]
    assert dead.code == -signal.SIGKILL, dead.said
    assert other.code == 75, other.said
    assert "another process of this training has ended" in other.said
    assert "Traceback" not in other.said
    assert other.seconds < 60
    checkpoints = tmp_path / "training" / "checkpoints"
    step = max(int(each.name.partition("-")[2]) for each in checkpoints.glob("step-*"))
    assert 0 < step < config.max_steps
    assert whole(dataset, tmp_path, config) == straight[shard]
    assert not list(checkpoints.glob(".*"))
    record_property("kills", 1)
