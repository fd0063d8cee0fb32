"""Of two columns of one dataset, each counts as an input."""

from pathlib import Path

import datasets

from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.artifacts.corpus_inputs import corpus_inputs


def inputs(folder: Path, *targets: str) -> dict[str, Input]:
    about = {"format": "huggingface", "path": str(folder), "split": "train", "source": "en"}
    corpora = [CorpusConfig.model_validate({**about, "target": target}) for target in targets]
    return corpus_inputs({"train": corpora}, online=False)


def test_columns_of_one_dataset_are_inputs_apart(tmp_path: Path) -> None:
    for name, german in (("one", "ein Hund"), ("two", "ein Hase")):
        rows = datasets.Dataset.from_dict({"en": ["a dog"], "de": [german], "fr": ["un chien"]})
        datasets.DatasetDict({"train": rows}).save_to_disk(tmp_path / name)
    both = inputs(tmp_path / "one", "de", "fr")
    assert len(both) == 2
    assert {each.fingerprint for each in both.values()} == {
        each.fingerprint for name in ("de", "fr") for each in inputs(tmp_path / "one", name).values()
    }
    other = inputs(tmp_path / "two", "de", "fr")
    assert {each.fingerprint for each in both.values()} != {each.fingerprint for each in other.values()}
    assert len(inputs(tmp_path / "one", "de", "de")) == 1, "the same texts twice"
