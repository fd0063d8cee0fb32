"""Labels as integers: their names, wherever a data set has them, else the numbers."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.class_labels import card_class_names, feature_class_names

ROWS = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
NAMES = ["neg", "пос"]
NAMED = [("good", "пос"), ("bad", "neg")]
CARD = (
    "dataset_info:\n  features:\n  - name: text\n    dtype: string\n  - name: label\n    dtype:\n      class_label:\n"
)
CARD += "        names:\n          '0': neg\n          '1': пос\n"


def read(path: Path, **keys: Any) -> list[tuple[str, str]]:
    format_ = "huggingface" if path.is_dir() else {"json": "jsonl"}.get(path.suffix[1:], path.suffix[1:])
    about = {"format": format_, "path": str(path), "source": "text", "target": "label", **keys}
    return list(read_pairs(CorpusConfig.model_validate(about)))


def features(*, in_list: bool = False) -> datasets.Features:
    label = datasets.ClassLabel(names=NAMES)
    return datasets.Features(text=datasets.Value("string"), label=datasets.List(label) if in_list else label)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_integers_without_names_are_their_numbers_or_what_the_recipe_calls_them(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        file.write_text("\n".join(map(json.dumps, ROWS)) if name.endswith("l") else json.dumps(ROWS), "utf-8")
    assert read(file) == [("good", "1"), ("bad", "0")]
    assert read(file, classes=NAMES) == NAMED
    with pytest.raises(DataError, match=rf"{name}: row 1: column 'label' holds 1: its classes are 0 to 0"):
        read(file, classes=["one"])
    with pytest.raises(DataError, match="not text"):
        read(file, source="label", target="text")


@pytest.mark.parametrize("values", [[True, False], [None, True]])
def test_truth_values(tmp_path: Path, values: list[bool | None]) -> None:
    rows = [{"text": "a", "label": value} for value in values]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    wanted = [("a", "" if value is None else json.dumps(value)) for value in values]
    assert read(tmp_path / "a.jsonl") == read(tmp_path / "a.parquet") == wanted


def test_datasets_names_its_classes_in_parquet_and_in_a_saved_folder(tmp_path: Path) -> None:
    """As the library itself decodes them."""
    made = datasets.Dataset.from_list(ROWS, features=features())
    made.to_parquet(tmp_path / "a.parquet")
    made.save_to_disk(str(tmp_path / "saved"))
    own = [(row["text"], made.features["label"].int2str(row["label"])) for row in made]
    assert read(tmp_path / "a.parquet") == read(tmp_path / "saved") == own == NAMED


def test_lists_of_classes_are_tags(tmp_path: Path) -> None:
    rows = [{"text": "a b", "label": [1, 0]}, {"text": "c", "label": [0]}]
    made = datasets.Dataset.from_list(rows, features=features(in_list=True))
    made.to_parquet(tmp_path / "a.parquet")
    made.save_to_disk(str(tmp_path / "saved"))
    wanted = [("a b", "пос neg"), ("c", "neg")]
    assert read(tmp_path / "a.parquet", lists="words") == read(tmp_path / "saved", lists="join") == wanted
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert read(tmp_path / "a.jsonl", lists="words") == [("a b", "1 0"), ("c", "0")]
    assert read(tmp_path / "a.jsonl", lists="words", classes=NAMES) == wanted


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet"])
def test_the_card_of_a_folder_names_them_and_is_part_of_the_data(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / name)
    else:
        (tmp_path / name).write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    (tmp_path / "README.md").write_text(f"---\n{CARD}---\n# A set\n", "utf-8")
    corpus = CorpusConfig(format="huggingface", path=str(tmp_path), split="train", source="text", target="label")
    assert list(read_pairs(corpus)) == NAMED
    before = content_fingerprints(corpus)
    (tmp_path / "README.md").write_text(f"---\n{CARD.replace('neg', 'bad')}---\n", "utf-8")
    assert list(read_pairs(corpus)) == [("good", "пос"), ("bad", "bad")]
    assert content_fingerprints(corpus) != before
    assert content_fingerprints(corpus.model_copy(update={"target": "text"})) == content_fingerprints(
        corpus.model_copy(update={"target": "text"})
    )


def test_a_saved_folder_whose_classes_are_called_otherwise_is_another(tmp_path: Path) -> None:
    corpora = []
    for names in (["a", "b"], ["a", "c"]):
        of_rows = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=names))
        datasets.Dataset.from_list(ROWS, features=of_rows).save_to_disk(str(tmp_path / names[1]))
        corpora.append(CorpusConfig(format="huggingface", path=str(tmp_path / names[1]), source="text", target="label"))
    assert content_fingerprints(corpora[0])[0][2] != content_fingerprints(corpora[1])[0][2]


@pytest.mark.parametrize("table", ["metadata.jsonl", "metadata.parquet"])
def test_a_table_of_images(tmp_path: Path, table: str) -> None:
    rows = [{"file_name": f"{number}.png", "label": number} for number in range(2)]
    for row in rows:
        Image.new("RGB", (2, 2)).save(tmp_path / str(row["file_name"]))
    if table.endswith("jsonl"):
        (tmp_path / table).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / table)
    about = {"format": "imagefolder", "path": str(tmp_path)}
    assert [label for _, label in read_pairs(CorpusConfig.model_validate(about))] == ["0", "1"]
    assert [label for _, label in read_pairs(CorpusConfig.model_validate({**about, "classes": NAMES}))] == NAMES


def test_a_row_without_a_class_is_refused(tmp_path: Path) -> None:
    made = datasets.Dataset.from_list([*ROWS, {"text": "x", "label": -1}], features=features())
    made.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="row 3: column 'label' holds -1: it says that the row has no class"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("card", "configuration", "found"),
    [
        ({"dataset_info": {"features": [{"name": "l", "dtype": {"class_label": {"names": ["a", "b"]}}}]}}, None, True),
        ({"dataset_info": [{"config_name": "x", "features": [
            {"name": "l", "sequence": {"class_label": {"names": {"0": "a", "1": "b"}}}}]},
            {"config_name": "y", "features": []}]}, "x", True),
        ({"dataset_info": [{"features": [{"name": "l", "list": {"dtype": {"class_label": {"names": {
            "1": "b", "0": "a"}}}}}]}]}, None, True),
        ({"dataset_info": {"features": [{"name": "l", "dtype": {"class_label": {"names": {"1": "a"}}}}]}}, None, False),
        ({"dataset_info": {"features": [3, {"name": "l"}]}}, None, False),
        ({"dataset_info": {"features": "x"}}, None, False),
        ({"dataset_info": 3}, None, False),
        ("", None, False),
    ],
)  # fmt: skip
def test_names_in_a_card(card: object, configuration: str | None, found: bool) -> None:
    assert card_class_names(card, configuration) == ({"l": ("a", "b")} if found else {})


def test_features_that_are_none() -> None:
    for features in (None, 3, {"a": 3}, {"a": {"_type": "ClassLabel"}}, {"a": {"_type": "ClassLabel", "names": 3}}):
        assert feature_class_names(features) == {}
    old = {"a": [{"_type": "ClassLabel", "names": ["x"]}], "b": {"_type": "Sequence", "feature": {
        "_type": "ClassLabel", "names": ["y"]}}}  # fmt: skip
    assert feature_class_names(old) == {"a": ("x",), "b": ("y",)}


def test_metadata_that_are_damaged_are_named(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS).replace_schema_metadata({"huggingface": "{"})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: not a Parquet file: is damaged"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "train.csv", "saved"])
def test_names_for_classes_that_are_texts_are_refused(tmp_path: Path, name: str) -> None:
    """They would be without effect."""
    rows = [{"text": "good", "label": "new"}, {"text": "bad", "label": "old"}]
    if name == "a.jsonl":
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    elif name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    elif name == "train.csv":
        (tmp_path / name).write_text("text,label\ngood,1\nbad,0\n", "utf-8")
    else:
        datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / name))
    path = tmp_path if name == "train.csv" else tmp_path / name
    with pytest.raises(DataError, match="column 'label' holds texts, which `classes` does not name"):
        read(path, classes=NAMES)
