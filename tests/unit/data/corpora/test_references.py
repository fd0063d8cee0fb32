"""Several references of a segment: where they come from, which are refused, and how they lie in a dataset."""

import json

import datasets
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.references import group_references, read_further_references, write_further_references
from tfm.data.corpora.sources import content_fingerprints, corpus_files, read_pairs, read_rows, resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

ROWS = [("one", "eins", "ein", "1"), ("two", "zwei", "zwo", "2")]
KEYS = ("en", "de", "de2", "de3")


def write_any(format_, folder):
    """The rows in a corpus of a format; its config, without further references."""
    path = folder / f"rows.{format_}"
    if format_ == "text":
        for key, column in zip(KEYS, zip(*ROWS, strict=True), strict=True):
            (folder / key).write_text("".join(text + "\n" for text in column), encoding="utf-8")
        return {"source": str(folder / "en"), "target": str(folder / "de")}, [str(folder / key) for key in KEYS[2:]]
    records = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
    if format_ == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    elif format_ == "parquet":
        datasets.Dataset.from_list(records).to_parquet(str(path))
    elif format_ == "huggingface":
        datasets.Dataset.from_list(records).save_to_disk(str(path))
    else:
        between = {"tsv": "\t", "csv": ","}[format_]
        path.write_text("".join(between.join(row) + "\n" for row in (KEYS, *ROWS)), encoding="utf-8")
    return {"format": format_, "path": str(path), "source": "en", "target": "de"}, list(KEYS[2:])


@pytest.mark.parametrize("format_", ["text", "tsv", "csv", "jsonl", "parquet", "huggingface"])
def test_further_references_are_read_beside_the_first(tmp_path, format_):
    config, further = write_any(format_, tmp_path)
    corpus = CorpusConfig(**config, references=further)
    assert list(read_rows(corpus)) == ROWS
    assert list(read_pairs(corpus)) == [row[:2] for row in ROWS]
    plain = {name: value for name, value in config.items() if name != "target"}
    assert CorpusConfig(**plain, references=[config["target"], *further]) == corpus
    of_more, of_one = ({part[2] for part in content_fingerprints(each)} for each in (corpus, corpus_of(config)))
    assert (of_more != of_one) == (format_ in ("text", "huggingface"))
    assert check_and_count_splits(
        resolve_splits(DataConfig(train=CorpusConfig(**config), valid=CorpusConfig(**config), tests={"t": corpus}))
    )


def test_a_reference_of_another_length_is_named(tmp_path):
    config, further = write_any("text", tmp_path)
    (tmp_path / "de3").write_text("1\n", encoding="utf-8")
    corpus = CorpusConfig(**config, references=further)
    assert len(corpus_files(corpus)) == 4
    for read in (
        lambda: list(read_rows(corpus)),
        lambda: check_and_count_splits(
            resolve_splits(DataConfig(train=corpus_of(config), valid=corpus_of(config), tests={"t": corpus}))
        ),
    ):
        with pytest.raises(DataError, match=r"en: has 2 lines, but .*de3 has 1"):
            read()


def corpus_of(config):
    return CorpusConfig(**config)


LISTS = [{"s": "a", "t": ["x", "y z"]}, {"s": "b", "t": []}, {"s": "c", "t": ["w"]}]


def lists_in(format_, folder):
    path = folder / f"lists.{format_}"
    if format_ == "jsonl":
        path.write_text("".join(json.dumps(each) + "\n" for each in LISTS), encoding="utf-8")
    elif format_ == "parquet":
        datasets.Dataset.from_list(LISTS).to_parquet(str(path))
    else:
        datasets.Dataset.from_list(LISTS).save_to_disk(str(path))
    return {"format": format_, "path": str(path)}


@pytest.mark.parametrize("format_", ["jsonl", "parquet", "huggingface"])
def test_lists_of_texts_are_what_the_recipe_says(tmp_path, format_):
    config = {**lists_in(format_, tmp_path), "source": "s", "target": "t"}
    assert list(read_rows(CorpusConfig(**config, lists="references"))) == [("a", "x", "y z"), ("b", ""), ("c", "w")]
    assert list(read_rows(CorpusConfig(**config, lists="join"))) == [("a", "x y z"), ("b", ""), ("c", "w")]
    turned = {**config, "source": "t", "target": "s"}
    assert list(read_rows(CorpusConfig(**turned, lists="join"))) == [("x y z", "a"), ("", "b"), ("w", "c")]
    with pytest.raises(
        DataError, match=r"'t' holds lists; say lists = \"join\" .* or, of a test set's target, lists = "
    ):
        list(read_rows(CorpusConfig(**config)))
    with pytest.raises(DataError, match=r"'t' holds lists; say lists = \"join\" for their texts with spaces between$"):
        list(read_rows(CorpusConfig(**turned, lists="references")))


def test_pairs_of_one_source_are_merged_into_one_with_all_references():
    given = [("a  b", "x"), ("c", "z"), ("a b ", "y"), ("a\u00a0b", " x"), ("e\u0301", "1"), ("é", "2"), ("C", "w")]
    assert list(group_references(given)) == [("a  b", "x", "y"), ("c", "z"), ("e\u0301", "1", "2"), ("C", "w")]
    assert list(group_references([("a", "x", "y"), ("a", "y", "z")])) == [("a", "x", "y", "z")]
    assert list(group_references([])) == []


def test_further_references_lie_beside_a_split_line_by_line(tmp_path):
    given = [("a\u2028b", "c"), (), ("", "e\r")]
    write_further_references(tmp_path, given)
    assert read_further_references(tmp_path, 3) == [["a\u2028b", "", ""], ["c", "", "e "]]
    with pytest.raises(DataError, match=r"reference\.2\.txt: has 3 lines for 4 segments"):
        read_further_references(tmp_path, 4)
    write_further_references(tmp_path / "none", [])
    assert read_further_references(tmp_path / "none", 7) == []


TEXT = {"source": "a.en", "target": "a.de"}


@pytest.mark.parametrize("keys", [{"references": ("b",)}, {"merge_references": True}])
def test_only_test_sets_have_several_references(keys):
    plain, several = CorpusConfig(**TEXT), CorpusConfig(**TEXT, **keys)
    assert DataConfig(train=plain, valid=plain, tests={"t": several}).tests["t"].has_references
    for name in ("train", "valid"):
        with pytest.raises(ValueError, match=rf"{name}.*only test sets have several references"):
            DataConfig(**{"train": plain, "valid": plain, name: several})
    with pytest.raises(ValueError, match="texts without a source have no references"):
        CorpusConfig(source=None, target="a", **keys)


def test_keys_that_a_format_has_no_use_for_are_refused():
    with pytest.raises(ValueError, match='format "labelled" has one for each segment'):
        CorpusConfig(format="labelled", path="x", target="label", references=["label"])
    with pytest.raises(ValueError, match='format "tsv" has no lists'):
        CorpusConfig(format="tsv", path="x", lists="join")
