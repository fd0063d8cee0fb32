"""A shortlist that is made anew while a command runs: no folder has translations of two."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_model import TEXTS, publish_model, publish_shortlist, tiny_model
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.manifest import Input, open_artifact
from tfm.pipeline.cluster import translation as cluster_translation
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.model_io import ensemble, loaded_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.evaluate_files import evaluate_files
from tfm.pipeline.stages.translate import translate_file

SAID = "short: was replaced while this command began to read it"


@pytest.fixture
def config(tmp_path: Path) -> DecodingConfig:
    """Settings with a shortlist, beside a model and a file."""
    publish_model(tmp_path / "tiny")
    (tmp_path / "some.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    publish_shortlist(tmp_path / "short", tiny_model())
    return DecodingConfig(beam=1, max_length=5, shortlist=str(tmp_path / "short"))


def translate(folder: Path, config: DecodingConfig) -> None:
    translate_file(
        folder / "tiny",
        folder / "some.txt",
        config,
        folder / "out",
        command=[],
        reporter=NullReporter(),
        device="cpu",
    )


def evaluate(folder: Path, config: DecodingConfig) -> None:
    evaluate_files(
        EvaluationConfig(metrics=("bleu",)),
        hypotheses=None,
        model=folder / "tiny",
        source=folder / "some.txt",
        references=[folder / "some.txt"],
        decoding=config,
        out=folder / "out",
        reporter=NullReporter(),
        device="cpu",
    )


@pytest.mark.parametrize(
    ("command", "module", "name"),
    [(translate, ensemble, "load_ensemble"), (evaluate, loaded_model, "load_model")],
)
def test_a_shortlist_that_is_replaced_before_it_is_read_is_said(
    command: Callable[[Path, DecodingConfig], None],
    module: Any,
    name: str,
    tmp_path: Path,
    config: DecodingConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command(tmp_path, config)
    known = open_artifact(tmp_path / "short").fingerprint
    assert open_artifact(tmp_path / "out").inputs["shortlist"].fingerprint == known
    load, config = getattr(module, name), config.model_copy(update={"max_length": 6})

    def load_while_another_is_made(*given: Any, **settings: Any) -> Any:
        publish_shortlist(tmp_path / "short", tiny_model(), linked=2)
        return load(*given, **settings)

    monkeypatch.setattr(module, name, load_while_another_is_made)
    with pytest.raises(DataError, match=SAID):
        command(tmp_path, config)
    assert open_artifact(tmp_path / "out").inputs["shortlist"].fingerprint == known


def test_a_node_translates_by_the_shortlist_that_was_asked_for_alone(tmp_path: Path, config: DecodingConfig) -> None:
    model, short = (Input.from_artifact(tmp_path / name) for name in ("tiny", "short"))
    chunks: list[Any] = []

    class Recorder:
        def map_in_order(self, function: Any, given: Any, **_: object) -> Any:
            chunks.extend(chunk.arguments for _, chunk in given)
            return iter(())

    recorder: Any = Recorder()
    translator = cluster_translation.ClusterTranslator(recorder, [model], config, "cpu", 1, shortlist=short)
    assert list(translator.translate(TEXTS, (None, None), reporter=NullReporter())) == []
    (arguments,) = chunks
    content = cluster_translation.translate_chunk(*arguments)
    found, _, _ = cluster_translation.parse_chunk_result(content, len(TEXTS))
    assert all(asdict(each[0])["text"] for each in found)
    publish_shortlist(tmp_path / "short", tiny_model(), linked=2)
    with pytest.raises(DataError, match=SAID):
        cluster_translation.translate_chunk(*arguments)
