"""Rules with the same two models measure each pair once."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.recording_reporter import Listening
from tests.tiny_model import TEXTS, publish_model
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.alignment import direction
from tfm.pipeline.cleaning import late_scores
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean, show_dry_run

OFF = dict.fromkeys(("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
OTHERS = ["a dog", "the sea", "two cats asleep", "snow", "", "a cat"]
PAIRS = [(source, target) for source in (*TEXTS[:3], *OTHERS) for target in ("a cat", TEXTS[1])]


class CountedPairs:
    """The number of pairs that models have scored, from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = direction.target_log_probs

        def counted(model: Any, sources: Sequence[Any], targets: Sequence[Any], **more: Any) -> Any:
            self.count += len(targets)
            return real(model, sources, targets, **more)

        monkeypatch.setattr(direction, "target_log_probs", counted)

    def take(self) -> int:
        """Return the number, and count from 0 again."""
        count, self.count = self.count, 0
        return count


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataConfig:
    """Pairs, and two models, each in two folders; texts are scored three pairs at a time."""
    monkeypatch.setattr(late_scores, "ROWS_PER_SAVE", 4)
    for name, settings in (("forward", {}), ("backward", {"norm": "post"})):
        shutil.copytree(publish_model(tmp_path / name, **settings), tmp_path / "copies" / name)
    for side in (0, 1):
        (tmp_path / f"text.{side}").write_text("".join(pair[side] + "\n" for pair in PAIRS), "utf-8")
    return DataConfig(train=(CorpusConfig(source=str(tmp_path / "text.0"), target=str(tmp_path / "text.1")),))


def config_of(folder: Path, cross_entropy_folder: Path | None, least: float) -> CleanConfig:
    """Mutual information by the models of one folder; cross-entropy by those of another, if there is one."""
    models = {name: str(folder / name) for name in ("forward", "backward")}
    rules: dict[str, Any] = {"mutual_information": {**models, "min": least}}
    if cross_entropy_folder is not None:
        others = {name: str(cross_entropy_folder / name) for name in ("forward", "backward")}
        rules["cross_entropy"] = {**others, "percentile": 20}
    return CleanConfig.model_validate(OFF | rules)


def clean_into(out: Path, config: CleanConfig, data: DataConfig) -> None:
    clean(config, data, out, whole_corpora=True, command=["tfm"], reporter=NullReporter())


def read_scores(out: Path, rule: str) -> list[float | None]:
    return pq.read_table(out / "scores.parquet")[rule].to_pylist()


def test_pairs_are_scored_once_for_both_rules(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rule has the scores that it has by copies of the models, which score anew."""
    pairs = CountedPairs(monkeypatch)
    clean_into(tmp_path / "alone", config_of(tmp_path, None, -100), data)
    scores = read_scores(tmp_path / "alone", "mutual_information")
    first_rule = pairs.take()
    least = float(np.sort(np.array(scores, np.float64))[4])
    for name, limit, tolerance in (("all", -100.0, 0.0), ("some", least, 1e-5)):
        clean_into(tmp_path / f"{name} shared", config_of(tmp_path, tmp_path, limit), data)
        assert pairs.take() == first_rule > 0
        clean_into(tmp_path / f"{name} apart", config_of(tmp_path, tmp_path / "copies", limit), data)
        assert pairs.take() > first_rule
        shared, apart = (tmp_path / f"{name} shared", tmp_path / f"{name} apart")
        for rule in ("mutual_information", "cross_entropy"):
            found, expected = (np.array(read_scores(out, rule), np.float64) for out in (shared, apart))
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=0)
        assert (shared / "train.0.source.txt").read_bytes() == (apart / "train.0.source.txt").read_bytes()
    assert 0 < read_scores(tmp_path / "some shared", "cross_entropy").count(None) < len(PAIRS)


def test_a_dry_run_scores_pairs_once_and_decides_as_the_run_does(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also pairs that the first rule drops, and those that an earlier one drops."""
    pairs, reporters = CountedPairs(monkeypatch), (Listening(), Listening())
    length = {"length": CleanConfig.model_validate({"length": {"min": 2}}).length}
    for reporter, second in zip(reporters, (None, tmp_path), strict=True):
        config = config_of(tmp_path, second, 0.0).model_copy(update=length)
        show_dry_run(config, data, None, whole_corpora=True, reporter=reporter)
        if second is None:
            first_rule = pairs.take()
    assert pairs.take() == first_rule > 0
    clean_into(tmp_path / "clean", config, data)
    kept = (tmp_path / "clean" / "train.0.source.txt").read_bytes().count(b"\n")
    assert any(f"{len(PAIRS)} pairs read, {kept} kept" in line for line in reporters[1].lines), reporters[1].lines


class Killed(BaseException):
    """The end at a moment that no code of ours foresees."""


@pytest.mark.parametrize("rule", ["mutual_information", "cross_entropy"])
def test_killed_it_goes_on_with_the_entropies_on_disk(
    rule: str, data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, pairs = config_of(tmp_path, tmp_path, 0.0), CountedPairs(monkeypatch)
    clean_into(tmp_path / "whole", config, data)
    whole, real, calls = pairs.take(), late_scores.PAIR_SCORERS[rule], []

    def killed(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise Killed
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setitem(late_scores.PAIR_SCORERS, rule, killed)
        with pytest.raises(Killed):
            clean_into(tmp_path / "again", config, data)
    before = pairs.take()
    clean_into(tmp_path / "again", config, data)
    if rule == "cross_entropy":
        assert (before, pairs.take()) == (whole, 0)
    else:
        assert 0 < pairs.take() < whole
    for file in ("scores.parquet", "dropped.jsonl", "train.0.source.txt", "train.0.target.txt"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_another_limit_cuts_the_scores_of_the_artifact_that_is_made_again(
    tmp_path: Path, data: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bytes of a cleaning from the beginning; of the first rule it is other pairs that the second looks at."""
    pairs = CountedPairs(monkeypatch)

    def clean_again(least: float, percentile: float) -> int:
        config = config_of(tmp_path, tmp_path, least)
        assert config.cross_entropy is not None
        last = config.cross_entropy.model_copy(update={"percentile": percentile})
        config = config.model_copy(update={"cross_entropy": last})
        shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
        clean_into(tmp_path / "fresh", config, data)
        pairs.take()
        clean_into(tmp_path / "again", config, data)
        for name in ("train.0.source.txt", "train.0.target.txt", "dropped.jsonl", "scores.parquet", "report.json"):
            assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()
        return pairs.take()

    assert clean_again(-0.5, 20) > 0
    assert clean_again(-0.5, 50) == 0
    assert clean_again(-0.4, 50) > 0
    assert clean_again(-0.4, 20) == 0
