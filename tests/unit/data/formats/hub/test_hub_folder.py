"""Folders of the Hub: the files that `datasets` finds for each split, and the texts that it reads in them."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.hub.hub_folder import find_folder_splits, match_path

LAYOUTS = {
    "files": ["train.jsonl", "validation.jsonl", "test.jsonl"],
    "one": ["texts.csv"],
    "shards": [f"data/{name}.parquet" for name in (
        "train-00000-of-00002", "train-00001-of-00002", "extra-00000-of-00001")],
    "folders": ["train/a.csv", "train/b.csv", "dev/c.csv"],
    "words": ["my_train_1.csv", "my-val.csv", "my test.csv", "trainer.csv"],
    "packed": ["train.jsonl.gz", "test.jsonl.gz"],
    "lines of tabs": ["train.tsv", "eval.tsv"],
    "hidden": [".train.csv", "__a__/train.csv", "train.csv"],
    "arrays": ["train.json", "valid.json"],
}  # fmt: skip
CARD = """---
configs:
- config_name: de
  default: true
  data_files:
  - split: train
    path: a/*.csv
  - split: test
    path: [b/**, c/d.csv]
- config_name: hi
  data_dir: a
---
# A card
"""


def write(file: Path) -> None:
    """A file of two pairs that say which file it is."""
    target = "ü, {}" if file.suffix == ".tsv" else '"ü", {}'
    rows = [{"source": f"{file.name} {number}", "target": target.format(number)} for number in range(2)]
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix == ".gz":
        file.write_bytes(gzip.compress(lines.encode()))
    elif file.suffix in (".jsonl", ".json"):
        file.write_text(lines if file.suffix == ".jsonl" else json.dumps(rows, indent=1), "utf-8")
    else:
        cells = [["source", "target"], *([row["source"], row["target"]] for row in rows)]
        quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in cells]
        plain = ["\t".join(row) for row in cells]
        file.write_text("\n".join(plain if file.suffix == ".tsv" else quoted) + "\n", "utf-8")


def ours(folder: str, splits: list[str]) -> dict[str, list[tuple[str, str]]]:
    about = {"format": "huggingface", "path": folder}
    return {split: list(read_pairs(CorpusConfig.model_validate({**about, "split": split}))) for split in splits}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_splits_and_texts_are_those_of_datasets(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    for name in LAYOUTS[layout]:
        write(tmp_path / "set" / name)
    theirs = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    expected = {
        split: list(zip(rows["source"][:], rows["target"][:], strict=True)) for split, rows in dict(theirs).items()
    }
    assert list(find_folder_splits(tmp_path / "set")) == list(expected)
    assert ours(str(tmp_path / "set"), list(expected)) == expected


def test_a_card_says_which_files_are_of_which_split(tmp_path: Path) -> None:
    for name in ("a/x.csv", "a/y.csv", "b/e/f.csv", "c/d.csv", "c/g.csv", "a/test.csv"):
        write(tmp_path / name)
    (tmp_path / "README.md").write_text(CARD, "utf-8")
    theirs = datasets.load_dataset(str(tmp_path), cache_dir=str(tmp_path.parent / "cache"))
    for split, rows in dict(theirs).items():
        assert ours(str(tmp_path), [split])[split] == list(zip(rows["source"][:], rows["target"][:], strict=True))
    assert ours(f"{tmp_path}:hi", ["test"])["test"][0][0] == "test.csv 0"
    with pytest.raises(DataError, match="no configuration 'fr'; it has de, hi"):
        find_folder_splits(tmp_path, "fr")


def test_several_configurations_are_named_and_one_is_chosen(tmp_path: Path) -> None:
    for name in ("de/train.csv", "fr/train.csv"):
        write(tmp_path / name)
    configs = "".join(f"- config_name: {name}-en\n  data_files: {name}/train.csv\n" for name in ("de", "fr"))
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    named = r"has several configurations: write .*:NAME, one of de-en, fr-en"
    with pytest.raises(DataError, match=named):
        find_folder_splits(tmp_path)
    with pytest.raises(DataError, match=named) as error:
        resolve_splits(DataConfig(path=str(tmp_path)))
    assert "\n" not in str(error.value)
    (corpus,) = resolve_splits(DataConfig(path=f"{tmp_path}:fr-en")).train[0].corpora  # type: ignore[union-attr]
    assert next(source for source, _ in read_pairs(corpus)) == "train.csv 0"
    assert find_folder_splits(tmp_path, "fr-en")["train"].files == (tmp_path / "fr" / "train.csv",)
    with pytest.raises(DataError, match="no configuration 'xx'; it has de-en, fr-en"):
        resolve_splits(DataConfig(path=f"{tmp_path}:xx"))


@pytest.mark.parametrize(
    ("path", "pattern", "is_match"),
    [
        ("a/b.csv", "a/*.csv", True),
        ("a/b.csv", "*.csv", False),
        ("a/b.csv", "**", True),
        ("a/b/c.csv", "a/**/c.csv", True),
        ("a/c.csv", "a/**/c.csv", True),
        ("a/c.csv", "a/**/*/c.csv", False),
        ("train-1.csv", "train-[0-9].csv", True),
        ("a" * 200, "*a" * 60 + "b", False),
    ],
)
def test_patterns(path: str, pattern: str, is_match: bool) -> None:
    assert match_path(path.split("/"), pattern.split("/")) is is_match


def rows_by_split(folder: Path) -> dict[str, list[str]]:
    return {split: [file.name for file in files.files] for split, files in find_folder_splits(folder).items()}


def test_splits_are_found_whatever_the_case_of_their_names(tmp_path: Path) -> None:
    """`datasets` reads them all as training data, Test.csv included."""
    for name in ("Train.csv", "Validation.csv", "TEST.csv"):
        write(tmp_path / name)
    assert rows_by_split(tmp_path) == {"train": ["Train.csv"], "validation": ["Validation.csv"], "test": ["TEST.csv"]}


@pytest.mark.parametrize("folder", ["data/", "", "en/"])
def test_a_shard_that_is_missing_is_named(folder: str, tmp_path: Path) -> None:
    """A download that ended early was a smaller set, without a word."""
    for number in (0, 2):
        write(tmp_path / f"{folder}train-0000{number}-of-00003.parquet")
    with pytest.raises(DataError, match=f"{folder}train-00001-of-00003.parquet is missing: download it again"):
        find_folder_splits(tmp_path)
    write(tmp_path / f"{folder}train-00001-of-00003.parquet")
    assert len(rows_by_split(tmp_path)["train"]) == 3


def test_of_several_configurations_with_shards_no_two_are_advised_as_source_and_target(tmp_path: Path) -> None:
    for name in ("a/train-00000.jsonl", "a/train-00001.jsonl", "b/train.jsonl"):
        write(tmp_path / name)
    configs = "".join(f"- config_name: {name}\n  data_files: {name}/*\n" for name in ("a", "b"))
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    with pytest.raises(DataError, match=r"several configurations: write \S+:NAME, one of a, b$"):
        resolve_splits(DataConfig(path=str(tmp_path)))
    (tmp_path / "README.md").write_text("---\nconfigs:\n- config_name: a\n  data_files: missing*\n---\n", "utf-8")
    with pytest.raises(DataError, match="there is no such data file") as error:
        resolve_splits(DataConfig(path=str(tmp_path)))
    assert "source =" not in str(error.value)


def test_the_default_of_several_configurations_is_remarked_with_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name / "train.csv")
    configs = "- config_name: a\n  data_files: a/*\n- config_name: b\n  default: true\n  data_files: b/*\n"
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    for name, said in ((str(tmp_path), 1), (f"{tmp_path}:a", 0)):
        with collect_remarks() as found:
            assert list(read_pairs(CorpusConfig(format="huggingface", path=name, split="train")))
        assert len([each for each in found if f"its default configuration is read; {name}:NAME is" in each]) == said


def test_settings_and_programs_are_no_training_data(tmp_path: Path) -> None:
    for name in ("dataset_dict.json", "words.py"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text('{"splits": ["train"]}', "utf-8")
        with pytest.raises(DataError) as error:
            resolve_splits(DataConfig(path=str(folder)))
        assert "data.train = {" not in str(error.value)


def test_configurations_without_a_card_are_read_as_one_and_that_is_remarked(tmp_path: Path) -> None:
    for name in ("en-de", "en-fr"):
        write(tmp_path / name / "train.csv")
    with collect_remarks() as found:
        corpus = CorpusConfig(format="huggingface", path=str(tmp_path), split="train")
        assert len(list(read_pairs(corpus))) == 4
    (said,) = found
    said_last = f"its folders en-de, en-fr are read as one set; for one of them set path to it, as {tmp_path / 'en-de'}"
    assert said.endswith(said_last)
    with collect_remarks() as found:
        list(read_pairs(corpus.model_copy(update={"path": str(tmp_path / "en-de")})))
        (tmp_path / "README.md").write_text("---\nconfigs:\n- config_name: all\n  data_files: '*/train.csv'\n---\n")
        assert len(list(read_pairs(corpus))) == 4
    assert not found


@pytest.mark.parametrize(
    ("name", "problem"), [("clips/a.wav", "holds recordings"), ("a-000000.tar", "as webdataset writes them: unpack")]
)
def test_files_of_other_things_than_texts_are_named(name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"RIFF")
    with pytest.raises(DataError, match=problem):
        find_folder_splits(tmp_path)


@pytest.mark.parametrize(
    ("names", "remarked"),
    [
        (("dut_train.tsv", "kor_train.tsv", "kor_dev.tsv"), "dut_train.tsv, kor_train.tsv"),
        (("train-00000-of-00002.csv", "train-00001-of-00002.csv"), None),
        (("train-0-0123abcdef.csv", "train-1-abcdef0123.csv"), None),
        (("train/a.csv", "train/b.csv"), None),
        (("train.csv", "dev.csv"), None),
    ],
)
def test_files_of_a_split_that_are_no_shards_are_remarked(
    names: Sequence[str], remarked: str | None, tmp_path: Path
) -> None:
    """Words of two languages were one training set without a word."""
    for name in names:
        write(tmp_path / name)
    with collect_remarks() as found:
        list(read_pairs(CorpusConfig(format="huggingface", path=str(tmp_path), split="train")))
    said = [each for each in found if "are read as one set: name those" in each]
    assert [f"its files {remarked} are" in each for each in said] == [True] * (remarked is not None)


def test_names_of_recordings_as_sources_are_remarked(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("file_name,text\nclips/a.wav,hello\n")
    corpora = [
        {"format": "csv", "path": str(tmp_path / "train.csv")},
        {"format": "huggingface", "path": str(tmp_path), "split": "train"},
    ]
    for corpus in corpora:
        with collect_remarks() as found:
            list(read_pairs(CorpusConfig.model_validate({**corpus, "source": "file_name", "target": "text"})))
        assert any("its first source is the name of a recording" in each for each in found)


def test_splits_with_other_names_are_listed_with_the_key_that_takes_one(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list([{"source": "a", "target": "b"}])
    datasets.DatasetDict({"Train": rows, "Test": rows}).save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(DataError, match=r"it has Train, Test: .* data.train = (\{.*\})") as error:
        resolve_splits(DataConfig(path=str(tmp_path / "saved")))
    assert str(error.value).endswith('saved", split = "Train" }')


def test_a_stream_of_arrow_alone_is_named(tmp_path: Path) -> None:
    table = pa.table({"source": ["a"], "target": ["b"]})
    with pa.OSFile(str(tmp_path / "a-train.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match=r"is a stream of Arrow, .* set data.path to the folder"):
        resolve_splits(DataConfig(path=str(tmp_path / "a-train.arrow")))
    assert list(rows_by_split(tmp_path)) == ["train"]
