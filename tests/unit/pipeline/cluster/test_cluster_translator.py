"""Settings of decoding on their way to a node, which has another working folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recording_reporter import Listening
from tfm.pipeline.cluster.translation import ClusterTranslator
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.minimum_bayes_risk.selection import cost_message
from tfm.pipeline.runtime.progress import NullReporter


class Recorder:
    """A cluster that computes nothing, and keeps what it is asked."""

    def __init__(self) -> None:
        self.configs: list[dict[str, Any]] = []

    def map_in_order(self, function: object, chunks: Any, **_: object) -> Iterator[tuple[int, bytes]]:
        self.configs += [json.loads(chunk.arguments[5]) for _, chunk in chunks]
        yield from ()


@pytest.mark.parametrize("shortlist", ["runs/short", "/data/short", None])
def test_a_shortlist_is_named_by_its_whole_path(
    shortlist: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"beam": 2} if shortlist is None else {"beam": 2, "shortlist": shortlist}
    cluster: Any = Recorder()
    translator = ClusterTranslator(cluster, [], DecodingConfig.model_validate(given), "cpu", 1)
    assert list(translator.translate(["a", "b"], (None, None), reporter=NullReporter())) == []
    wanted = {"beam": 2} if shortlist is None else {"beam": 2, "shortlist": str(tmp_path / shortlist)}
    assert cluster.configs == [wanted]


@pytest.mark.parametrize(("strategy", "count"), [("mbr", 1), ("search", 0)])
def test_the_cost_of_minimum_bayes_risk_is_told_as_without_a_cluster(strategy: str, count: int) -> None:
    cluster: Any = Recorder()
    config, reporter = DecodingConfig.model_validate({"strategy": strategy}), Listening()
    assert (
        list(ClusterTranslator(cluster, [], config, "cpu", 1).translate(["a"], (None, None), reporter=reporter)) == []
    )
    assert reporter.lines == [cost_message(config)] * count
