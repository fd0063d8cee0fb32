"""Several columns as a source: every format of tables gives what pandas reads, joined by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.portions import HashRange, Portion
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import content_fingerprints, read_pairs, read_rows, resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.corpus_inputs import text_changing_settings
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe

FRAME = pd.DataFrame(
    {
        "lemma": ["go", "be", "", "auf geben", "so", ""],
        "form": ["went", "was", "x", "gab auf", "so", "y"],
        "features": ["V;PST", "V;PST;1+3;SG", "N;PL", "V;PST;3;SG", "", ""],
    }
)
Writer = Callable[[Path, pd.DataFrame], dict[str, object]]


def write_text(file: str, format_: str, **options: Any) -> Writer:
    def write(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
        frame.to_csv(folder / file, index=False, **options)
        return {"format": format_, "path": str(folder / file)}

    return write


def write_json(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
    frame.replace("", None).to_json(folder / "a.jsonl", orient="records", lines=True, force_ascii=False)
    return {"format": "jsonl", "path": str(folder / "a.jsonl")}


def write_parquet(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
    frame.replace("", None).to_parquet(folder / "a.parquet")
    return {"format": "parquet", "path": str(folder / "a.parquet")}


def write_saved(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
    rows = datasets.Dataset.from_pandas(frame, preserve_index=False)
    datasets.DatasetDict(train=rows).save_to_disk(str(folder / "saved"))
    return {"format": "huggingface", "path": str(folder / "saved")}


def write_folder(write: Writer) -> Writer:
    def write_within(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
        (folder / "hub").mkdir()
        file = Path(str(write(folder, frame)["path"]))
        file.rename(folder / "hub" / f"train{file.suffix}")
        return {"format": "huggingface", "path": str(folder / "hub")}

    return write_within


def write_arrow(folder: Path, frame: pd.DataFrame) -> dict[str, object]:
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(folder / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    return {"path": str(folder / "a.arrow")}


WRITERS: dict[str, Writer] = {
    "tsv": write_text("a.tsv", "tsv", sep="\t"),
    "tsv.gz": write_text("a.tsv.gz", "tsv", sep="\t"),
    "csv": write_text("a.csv", "csv", sep="|"),
    "jsonl": write_json,
    "parquet": write_parquet,
    "saved dataset": write_saved,
    **{
        f"folder of {name}": write_folder(write)
        for name, write in {
            "csv": write_text("a.csv", "csv"),
            "jsonl": write_json,
            "parquet": write_parquet,
            "arrow": write_arrow,
        }.items()
    },
}


def read(**config: Any) -> list[tuple[str, str]]:
    return list(read_pairs(CorpusConfig.model_validate(config)))


def joined(*columns: str) -> list[tuple[str, str]]:
    sources = [" ".join(cell for cell in row if cell) for row in FRAME[[*columns]].to_numpy()]
    return list(zip(sources, FRAME["form"], strict=True))


@pytest.mark.parametrize("kind", WRITERS)
def test_columns_are_joined_in_the_order_of_the_list(kind: str, tmp_path: Path) -> None:
    corpus = WRITERS[kind](tmp_path, FRAME)
    for columns in (["lemma", "features"], ["features", "lemma"], ["lemma"]):
        assert read(**corpus, source=columns, target="form") == joined(*columns)
    wanted = CorpusConfig.model_validate({**corpus, "source": ["lemma", "features"], "target": "form", "skip": 1})
    assert list(read_pairs(wanted)) == joined("lemma", "features")[1:]
    halves = [list(read_pairs(Portion((wanted,), HashRange(low, low + 0.5, 1)))) for low in (0.0, 0.5)]
    assert sorted(halves[0] + halves[1]) == sorted(joined("lemma", "features")[1:])
    with pytest.raises(DataError, match=r"there is no (column )?'(tags|lemma)'"):
        read(**corpus, source=["lemma", "tags"], target="form")


@pytest.mark.parametrize("format_", ["tsv", "csv"])
def test_columns_by_number(format_: str, tmp_path: Path) -> None:
    corpus = write_text(f"a.{format_}", format_, sep="\t" if format_ == "tsv" else ",", header=False)(tmp_path, FRAME)
    assert read(**corpus, source=[0, 2], target=1) == joined("lemma", "features")
    assert read(**corpus, source=[2, "0"], target="1") == joined("features", "lemma")
    with pytest.raises(DataError, match=r"line 1: has 3 columns, but column 8 is needed"):
        read(**corpus, source=[0, 7], target=1)
    with pytest.raises(DataError, match=r"line 1: there is no column '0'; its header names: go, went, V;PST"):
        read(**corpus, source=[0, "features"], target=1)


def test_a_row_of_names_that_is_read_as_data_is_remarked(tmp_path: Path) -> None:
    corpus = write_text("a.tsv", "tsv", sep="\t")(tmp_path, FRAME)
    with collect_remarks() as remarks:
        assert read(**corpus, source=[0, 2], target=1)[0] == ("lemma features", "form")
    assert "if it names columns, header = true" in str(remarks)
    assert read(**corpus, source=[0, 2], target=1, header=True) == joined("lemma", "features")


def test_references_and_merged_references(tmp_path: Path) -> None:
    rows = [{"a": "x", "b": "y", "t": "1", "r": "2"}, {"a": "x", "b": "y", "t": "3", "r": "2"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    for format_ in ("parquet", "jsonl", "csv"):
        corpus = {"format": format_, "path": str(tmp_path / f"a.{format_}"), "source": ["a", "b"], "target": "t"}
        config = CorpusConfig.model_validate({**corpus, "references": ["r"]})
        assert list(read_rows(config)) == [("x y", "1", "2"), ("x y", "3", "2")]
        merged = config.model_copy(update={"merge_references": True})
        assert list(read_rows(merged)) == [("x y", "1", "2", "3")]


@pytest.mark.parametrize("kind", ["saved", "parquet", "folder"])
def test_lists_are_joined_and_classes_are_their_names(kind: str, tmp_path: Path) -> None:
    rows = {"words": [["a", "b"], []], "kind": [1, 0], "year": [1999, 2000], "more": [{"x": "y"}] * 2, "t": ["s", "t"]}
    features = datasets.Features(
        {
            "words": datasets.Sequence(datasets.Value("string")),
            "kind": datasets.ClassLabel(names=["noun", "verb"]),
            "year": datasets.Value("int64"),
            "more": {"x": datasets.Value("string")},
            "t": datasets.Value("string"),
        }
    )
    dataset = datasets.Dataset.from_dict(rows, features=features)
    corpus = {"format": "huggingface", "path": str(tmp_path / "a"), "target": "t"}
    if kind == "saved":
        dataset.save_to_disk(str(tmp_path / "a"))
    elif kind == "parquet":
        dataset.to_parquet(str(tmp_path / "a"))
        corpus["format"] = "parquet"
    else:
        (tmp_path / "a").mkdir()
        dataset.to_json(str(tmp_path / "a" / "train.jsonl"))
        names = "{name: kind, dtype: {class_label: {names: {'0': noun, '1': verb}}}}"
        (tmp_path / "a" / "README.md").write_text(f"---\ndataset_info:\n  features: [{names}]\n---\n")
    assert read(**corpus, source=["kind", "words"], lists="join") == [("verb a b", "s"), ("noun", "t")]
    assert read(**corpus, source=["more.x", "kind"]) == [("y verb", "s"), ("y noun", "t")]
    with pytest.raises(DataError, match="column 'words' holds lists; say lists"):
        read(**corpus, source=["kind", "words"])
    for column in ("year", "more"):
        with pytest.raises(DataError, match=f"'{column}' holds .*, not text"):
            read(**corpus, source=["kind", column])
    named = {**corpus, "source": ["t", "kind"], "target": "year"}
    assert read(**named) == [("s verb", "1999"), ("t noun", "2000")]
    with pytest.raises(DataError, match="column 'year' holds 1999: its classes are 0 to 1"):
        read(**named, classes=["p", "q"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"source": ["a.en", "b.en"], "target": "a.de"}, r'a list of columns, which is for tables .*, not for "text"'),
        ({"format": "conllu", "path": "a", "source": ["form", "upos"]}, 'not for "conllu": name one'),
        ({"format": "tsv", "path": "a", "source": []}, 'is an empty list: name its columns, or set source = "none"'),
        ({"format": "tsv", "path": "a", "source": [0, 0], "target": 1}, 'names the column "0" twice'),
        ({"format": "tsv", "path": "a", "source": [0, 1], "target": 1}, 'column "1", which is the target: remove it'),
        ({"format": "tsv", "path": "a", "source": [0, True]}, r"by name or number, and not \[0, True\]"),
        ({"format": "tsv", "path": "a", "source": {"a": 1}}, r"by name or number, and not {'a': 1}"),
        ({"format": "tsv", "path": "a", "target": [0, 1]}, "`target` is one column, as a model writes one text"),
        ({"format": "tsv", "path": "a", "source": ["a", "b"], "header": False}, 'from 0: replace "a"'),
        ({"format": "tsv", "path": "a", "source": ["a\0", "b"]}, "cannot contain NUL"),
        ({"format": "imagefolder", "path": "a", "source": ["a", "b"]}, "the source of a corpus of images is the image"),
    ],
)
def test_lists_that_are_refused(keys: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        CorpusConfig.model_validate(keys)
    data = {"data": {"train": keys}}
    (tmp_path / "a.toml").write_text(f"data = {{ train = {toml(keys)} }}\n", "utf-8")
    with pytest.raises(RecipeError) as error:
        load_recipe(tmp_path / "a.toml")
    assert "more problem" not in str(error.value), data


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def test_settings_differ_by_columns_and_those_of_one_column_are_as_before() -> None:
    corpus = {"format": "tsv", "path": "a", "target": "1"}
    found = [
        text_changing_settings(CorpusConfig.model_validate({**corpus, "source": source}))
        for source in (0, [0, 2], [2, 0], [0, 3], None)
    ]
    assert [json.loads(json.dumps(each))["source"] for each in found] == ["0", ["0", "2"], ["2", "0"], ["0", "3"], None]
    read_again = CorpusConfig.model_validate_json(json.dumps(found[1]))
    assert text_changing_settings(read_again) == found[1]


@pytest.mark.parametrize("source", [["lemma", "features"], ["features", "lemma"]])
def test_only_the_columns_of_the_list_count(source: list[str], tmp_path: Path) -> None:
    def known(frame: pd.DataFrame) -> str:
        corpus = write_saved(tmp_path, frame)
        return content_fingerprints(CorpusConfig.model_validate({**corpus, "source": source, "target": "form"}))[0][2]

    first = known(FRAME.assign(other="x"))
    assert known(FRAME.assign(other="y")) == first
    assert len({first, *(known(FRAME.assign(**{column: "z"})) for column in FRAME.columns)}) == 4


def test_columns_of_a_dataset_at_a_path(tmp_path: Path) -> None:
    path = str(write_saved(tmp_path, FRAME)["path"])
    config = DataConfig.model_validate({"path": path, "source": ["lemma", "features"], "target": "form"})
    (train,) = resolve_splits(config).train
    assert isinstance(train, Portion)
    assert list(read_pairs(train.corpora[0])) == joined("lemma", "features")
    with pytest.raises(ValueError, match='the column "form", which is the target'):
        DataConfig.model_validate({"path": path, "source": ["lemma", "form"], "target": "form"})
    (tmp_path / "texts").mkdir()
    for name in ("train.lemma", "train.features", "train.form"):
        (tmp_path / "texts" / name).write_text("a\n")
    with pytest.raises(DataError, match="texts: holds no data files"):
        resolve_splits(config.model_copy(update={"path": str(tmp_path / "texts")}))
