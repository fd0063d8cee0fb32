"""Artifacts after their texts were renamed: made again when and only when a text changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest

from tests.tiny_artifact import make, plan_of
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.table_keys import SYNTHETIC_FILES
from tfm.pipeline.artifacts.artifact import Input, Plan, publish, stale_reason
from tfm.pipeline.artifacts.corpus_inputs import SYNTHESIZE_STAGE, corpus_inputs, text_changing_settings

Files = tuple[str, str]


def plan_for(folder: Path, **splits: dict[str, str]) -> Plan:
    """The plan of an artifact that is made of a corpus a split."""
    corpora = {name: [CorpusConfig.model_validate(keys)] for name, keys in splits.items()}
    data = {name: [text_changing_settings(each) for each in several] for name, several in corpora.items()}
    inputs = {"tokenizer": Input.from_value("of 100 pieces"), **corpus_inputs(corpora, online=False)}
    return plan_of(folder, inputs=inputs, data=data)


def write_synthetic_text(folder: Path, translation: str) -> None:
    """Publish what `tfm synthesize` makes of one line, as far as it is read."""
    folder.parent.mkdir(parents=True)
    with publish(plan_of(folder, SYNTHESIZE_STAGE), command=["tfm"]) as draft:
        for name, text in zip(SYNTHETIC_FILES, ("a dog", translation), strict=True):
            (draft.folder / name).write_text(f"{text}\n")


@pytest.fixture
def artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.en", "one\n"), ("a.de", "eins\n"), ("b.en", "two\n"), ("b.de", "zwei\n")):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(text)
    return tmp_path / "artifact"


def test_texts_of_another_name_or_place_are_the_same_input(artifact: Path, tmp_path: Path) -> None:
    def plan(train: Files, valid: Files) -> Plan:
        sides = ({"source": source, "target": target} for source, target in (train, valid))
        return plan_for(artifact, **dict(zip(("train", "valid"), sides, strict=True)))

    make(plan(("texts/a.en", "texts/a.de"), ("texts/b.en", "texts/b.de")))
    absolute = tmp_path / "texts"
    assert stale_reason(plan((f"{absolute}/a.en", f"{absolute}/a.de"), ("texts/b.en", "texts/b.de"))) is None
    Path("texts").rename("moved")
    assert stale_reason(plan(("moved/a.en", "moved/a.de"), ("moved/b.en", "moved/b.de"))) is None
    Path("moved/a.en").rename("first.txt")
    assert stale_reason(plan(("first.txt", "moved/a.de"), ("moved/b.en", "moved/b.de"))) is None
    swapped = plan(("moved/b.en", "moved/b.de"), ("first.txt", "moved/a.de"))
    assert str(stale_reason(swapped)).startswith("config changed: data.train.0.source")
    exchanged = plan(("moved/a.de", "first.txt"), ("moved/b.en", "moved/b.de"))
    assert str(stale_reason(exchanged)).startswith("config changed: data.train.0.source")
    Path("first.txt").write_text("other\n")
    changed = plan(("first.txt", "moved/a.de"), ("moved/b.en", "moved/b.de"))
    assert str(stale_reason(changed)).startswith("config changed: data.train.0.source")


def test_the_names_of_two_texts_may_be_exchanged_with_their_contents(artifact: Path) -> None:
    make(plan_for(artifact, train={"source": "texts/a.en", "target": "texts/a.de"}))
    Path("texts/a.en").rename("texts/spare")
    Path("texts/a.de").rename("texts/a.en")
    Path("texts/spare").rename("texts/a.de")
    assert stale_reason(plan_for(artifact, train={"source": "texts/a.de", "target": "texts/a.en"})) is None
    assert stale_reason(plan_for(artifact, train={"source": "texts/a.en", "target": "texts/a.de"})) is not None


def test_one_of_two_equal_texts_that_changed_is_noticed(artifact: Path) -> None:
    shutil.copy("texts/a.en", "texts/copy")
    make(plan_for(artifact, train={"source": "texts/a.en", "target": "texts/copy"}))
    Path("texts/copy").write_text("other\n")
    assert stale_reason(plan_for(artifact, train={"source": "texts/a.en", "target": "texts/copy"})) is not None
    shutil.copy("texts/a.en", "texts/copy")
    assert stale_reason(plan_for(artifact, train={"source": "texts/a.en", "target": "texts/copy"})) is None
    shutil.copy("texts/a.en", "texts/more")
    unclear = plan_for(artifact, train={"source": "texts/a.en", "target": "texts/more"})
    assert stale_reason(unclear) is not None, "either of the old names may stand for the new one"


def test_renamed_references_are_the_same_input(artifact: Path) -> None:
    """A test set has its references in a list of files, in their order."""

    def plan(*references: str) -> Plan:
        source_and_target = {"source": "texts/a.en", "target": "texts/a.de"}
        return plan_for(artifact, test={**source_and_target, "references": [*references]})  # type: ignore[dict-item]

    make(plan("texts/b.en", "texts/b.de"))
    Path("texts/b.en").rename("second.txt")
    assert stale_reason(plan("second.txt", "texts/b.de")) is None
    Path("texts/b.de").rename("third.txt")
    assert stale_reason(plan("second.txt", "third.txt")) is None
    assert stale_reason(plan("third.txt", "second.txt")) is not None
    Path("third.txt").write_text("other\n")
    assert stale_reason(plan("second.txt", "third.txt")) is not None


def test_renamed_text_that_a_model_made_is_the_same_input(artifact: Path, tmp_path: Path) -> None:
    """A folder, whose two files are the sides of the pairs."""
    folder = tmp_path / "runs" / "first" / "synthetic"
    write_synthetic_text(folder, "ein Hund")

    def plan(name: str, **more: str) -> Plan:
        return plan_for(artifact, train={"synthetic": f"runs/{name}/synthetic", "tag": "<BT>", **more})

    make(plan("first"))
    folder.parent.rename(tmp_path / "runs" / "second")
    assert stale_reason(plan("second")) is None
    assert str(stale_reason(plan("second", side="target"))).startswith("config changed: data.train.0.side")
    assert str(stale_reason(plan("second", tag="<FT>"))).startswith("config changed: data.train.0.tag")
    write_synthetic_text(tmp_path / "runs" / "third" / "synthetic", "ein Hase")
    assert stale_reason(plan("third")) is not None


def test_a_renamed_shortlist_is_the_same_input(artifact: Path) -> None:
    """A folder that the settings of decoding name; another one of that name is another input."""

    def plan(folder: str, fingerprint: str = "f") -> Plan:
        shortlist = {"shortlist": Input.from_value(fingerprint, folder)}
        return plan_of(artifact, inputs=shortlist, decoding={"beam": 5, "shortlist": folder})

    make(plan("runs/a/shortlist"))
    assert stale_reason(plan("moved/a/shortlist")) is None
    assert stale_reason(plan("moved/a/shortlist", "g")) is not None


def test_columns_of_references_are_no_paths(artifact: Path) -> None:
    """A table called `en` that is renamed to `de`, of which another column has the references."""
    Path("en").write_text("en\tde\tfr\nb\ta\tc\n")

    def plan(path: str, reference: str) -> Plan:
        columns = {"format": "tsv", "path": path, "source": "fr", "target": "fr"}
        return plan_for(artifact, test={**columns, "references": [reference]})  # type: ignore[dict-item]

    make(plan("en", "en"))
    Path("en").rename("de")
    assert stale_reason(plan("de", "en")) is None
    assert stale_reason(plan("de", "de")) is not None


def test_columns_of_a_table_are_no_paths(artifact: Path) -> None:
    """A table called `en` that is renamed to `de`, of which another column is read."""
    Path("en").write_text("en\tde\nb\ta\n")

    def plan(path: str, source: str) -> Plan:
        corpus = {"format": "tsv", "path": path, "source": source, "target": "de"}
        return plan_for(artifact, train=corpus)

    make(plan("en", "en"))
    Path("en").rename("de")
    assert stale_reason(plan("de", "en")) is None
    assert stale_reason(plan("de", "de")) == "config changed: data.train.0.source 'en' -> 'de'"


def _write_parquet(folder: Path) -> dict[str, str]:
    (folder / "data").mkdir()
    datasets.Dataset.from_dict({"en": ["a"], "de": ["b"]}).to_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return {"format": "huggingface", "split": "train", "source": "en", "target": "de"}


def _write_texts(folder: Path) -> dict[str, str]:
    (folder / "texts.tsv").write_text("en\tde\nb\ta\n")
    return {"format": "tsv", "source": "en", "target": "de"}


@pytest.mark.parametrize(("write", "below"), [(_write_parquet, ""), (_write_texts, "/texts.tsv")])
def test_a_renamed_folder_of_tables_is_the_same_input(
    artifact: Path, write: Callable[[Path], dict[str, str]], below: str
) -> None:
    """The names are short: letters of other labels are not theirs."""
    Path("e").mkdir()
    keys = write(Path("e"))
    make(plan_for(artifact, train={**keys, "path": f"e{below}"}))
    Path("e").rename("new")
    assert stale_reason(plan_for(artifact, train={**keys, "path": f"new{below}"})) is None
    assert stale_reason(plan_for(artifact, train={**keys, "path": f"new{below}", "target": "en"})) is not None
