"""Small models that a server holds without torch: whatever they cannot answer themselves, torch answers."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="no starlette (extra: serve)")

from tests.serving_engine import finish
from tests.tiny_model import publish_model
from tfm.pipeline.serving.catalog import read_served_model
from tfm.pipeline.serving.dispatch.messages import LoadModel, Query, QueryBatch
from tfm.pipeline.serving.engine.light_networks import NumpyNetwork, load_light_network
from tfm.pipeline.serving.engine.networks import TorchNetwork
from tfm.pipeline.serving.engine.scheduler import Scheduler


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize(("loads_torch", "problem"), [(True, None), (False, "--numpy")])
def test_attention_of_a_model_that_numpy_labels_with_is_computed_by_torch(
    tmp_path: Path, task: str, loads_torch: bool, problem: str | None
) -> None:
    version = read_served_model(publish_model(tmp_path / "tiny", architecture="encoder_only", task=task)).version
    light = load_light_network(version, TorchNetwork.load if loads_torch else None)
    assert isinstance(light, NumpyNetwork)
    scheduler = Scheduler(lambda _: light)
    scheduler.receive(LoadModel(version))
    queries = [Query(version.key, "label", "a dog runs"), Query(version.key, "attend", "a dog runs")]
    answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
    assert answers[0].problem is None
    if problem is None:
        assert answers[1].problem is None
        assert answers[1].value["tokens"]["encoder"]["queries"]
    else:
        assert problem in answers[1].problem
