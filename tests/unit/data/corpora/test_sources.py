import gzip
import json
import os

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.portions import HashRange, Portion
from tfm.data.corpora.sources import (
    READERS,
    content_fingerprints,
    corpus_files,
    describe_corpus,
    read_pairs,
    resolve_splits,
)
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats import huggingface
from tfm.data.formats.huggingface import hash_dataset
from tfm.data.synthetic import registry

PAIRS = [("one\u2028two", "eins zwei"), ("", "drei"), ('the "big" dog, here', "der große Hund")]


def write_text(folder, pairs=PAIRS, name="train"):
    for ending, side in (("en", 0), ("de", 1)):
        (folder / f"{name}.{ending}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    return CorpusConfig(source=str(folder / f"{name}.en"), target=str(folder / f"{name}.de"))


def write_lines(path, lines):
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def read(**config):
    return list(read_pairs(CorpusConfig(**config)))


def test_there_is_a_reader_for_every_format():
    assert set(READERS) == set(CorpusConfig.model_fields["format"].annotation.__args__)


def test_text(tmp_path):
    assert list(read_pairs(write_text(tmp_path))) == PAIRS


def test_text_with_a_missing_line_names_both_counts(tmp_path):
    corpus = write_text(tmp_path)
    (tmp_path / "train.de").write_text("eins\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.en: has 3 lines, but .*train\.de has 1"):
        list(read_pairs(corpus))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_tsv(tmp_path, name):
    rows = ["\t".join(("7", *pair)) for pair in PAIRS]
    path = write_lines(tmp_path / name, rows)
    assert read(format="tsv", path=path, source="1", target="2") == PAIRS
    path = write_lines(tmp_path / name, ["id\ten\tde", *rows])
    assert read(format="tsv", path=path, source="en", target="de") == PAIRS


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('de,en\r\n"eins","o\n""n""e"\r\nzwei,two\r\n', encoding="utf-8", newline="")
    assert read(format="csv", path=str(path), source="en", target="de") == [('o "n"e', "eins"), ("two", "zwei")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_jsonl(tmp_path, name):
    path = write_lines(tmp_path / name, [json.dumps({"en": a, "x": {"de": b}}) for a, b in PAIRS] + [""])
    assert read(format="jsonl", path=path, source="en", target="x.de") == PAIRS


def test_json_null_is_an_empty_text_and_a_line_break_a_space(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", ['{"source": null, "target": "a\\nb"}'])
    assert read(format="jsonl", path=path) == [("", "a b")]


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_parquet(tmp_path, name):
    table = pa.table({"en": [a for a, _ in PAIRS], "n": [1, 2, 3], "x": [{"de": b, "fr": ""} for _, b in PAIRS]})
    pq.write_table(table, tmp_path / "plain")
    content = (tmp_path / "plain").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read(format="parquet", path=str(tmp_path / name), source="en", target="x.de") == PAIRS
    with pytest.raises(DataError, match=r"no column 'fr'; it has "):
        read(format="parquet", path=str(tmp_path / name), source="fr", target="en")
    with pytest.raises(DataError, match="'n' holds int64, not text"):
        read(format="parquet", path=str(tmp_path / name), source="n", target="en")


def test_a_glob_reads_files_in_order_of_name(tmp_path):
    for i in (2, 0, 1):
        write_lines(tmp_path / f"part{i}.tsv", [f"s{i}\tt{i}"])
    corpus = CorpusConfig(format="tsv", path=str(tmp_path / "part*.tsv"), source="0", target="1")
    assert list(read_pairs(corpus)) == [("s0", "t0"), ("s1", "t1"), ("s2", "t2")]
    assert [path.name for path in corpus_files(corpus)] == ["part0.tsv", "part1.tsv", "part2.tsv"]


def test_a_saved_dataset_with_a_translation_column(tmp_path):
    rows = [{"translation": {"en": a, "de": b}} for a, b in PAIRS]
    datasets.DatasetDict(test=datasets.Dataset.from_list(rows)).save_to_disk(str(tmp_path / "set"))
    corpus = {"format": "huggingface", "path": str(tmp_path / "set"), "source": "en", "target": "de"}
    assert read(**corpus, split="test") == PAIRS
    assert read(**corpus) == PAIRS
    with pytest.raises(DataError, match="no split 'train'; it has test"):
        read(**corpus, split="train")


def test_a_dataset_that_is_not_here_is_not_downloaded():
    with pytest.raises(DataError, match=r"nobody/nothing: cannot open .*; to download it, set data\.online = true"):
        read(format="huggingface", path="nobody/nothing", split="train")


@pytest.mark.parametrize("online", [True, False])
def test_the_network_is_forbidden_unless_asked_for(monkeypatch, online):
    seen = []

    def load(*_):
        seen.append(datasets.config.HF_HUB_OFFLINE)
        raise ValueError

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets, "load_dataset_builder" if online else "load_dataset", load)
    with pytest.raises(DataError, match="some/set: cannot open this dataset"):
        huggingface.open_splits("some/set", online=online)
    assert seen == [not online]
    assert datasets.config.HF_HUB_OFFLINE is False


def test_a_configuration_is_named_after_a_colon(monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *names: asked.append(names) or {})
    huggingface.open_splits("some/set:de-en")
    huggingface.open_splits("some/set")
    assert asked == [("some/set", "de-en"), ("some/set", None)]


def test_a_set_of_the_hub_without_a_split_has_no_training_data(monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: {})
    with pytest.raises(DataError, match="some/empty: there is no training data: expected a split 'train'"):
        resolve_splits(DataConfig(path="some/empty"))


def test_generated():
    config = {"format": "generated", "path": "copy", "split": "train"}
    found = read(**config, size=5)
    assert len(found) == 5
    assert all(source == target for source, target in found)
    assert read(**config, size=5) == found


@pytest.mark.parametrize(
    ("name", "lines", "config", "message"),
    [
        (
            "a.tsv",
            ["a\tb", "c"],
            {"source": "0", "target": "1"},
            r"a\.tsv, line 2: has 1 column, but the first row has 2",
        ),
        ("a.tsv", ["en\tde"], {}, r"a\.tsv, line 1: there is no column 'source'; its header names: en, de"),
        ("a.csv", ["source,target", "a,b", "c"], {}, r"a\.csv, line 3: has 1 column, but the first row has 2"),
        ("a.csv", ["source,target", '"a'], {}, r"a\.csv, line 2: not a CSV row"),
        ("a.jsonl", ['{"source": "a", "target": "b"}', "{"], {}, r"a\.jsonl, line 2: not JSON"),
        ("a.jsonl", ['{"source": "a"}'], {}, r"a\.jsonl, line 1: there is no 'target'; it has source"),
        ("a.jsonl", ['["a", "b"]'], {}, r"a\.jsonl: item 1 is a text, and a row must be an object"),
        ("a.jsonl", ['{"source": 3, "target": ""}'], {}, r"line 1: 'source' holds 3, not text"),
        ("a.jsonl", [r'{"source": "\ud83d", "target": ""}'], {}, r"line 1: 'source' contains half a surrogate pair"),
        ("a.parquet", ["x"], {}, r"a\.parquet: not a Parquet file"),
    ],
)
def test_a_bad_row_is_named(tmp_path, name, lines, config, message):
    path = write_lines(tmp_path / name, lines)
    with pytest.raises(DataError, match=message):
        read(format=name.partition(".")[2], path=path, **config)


TEXTS = [("", target) for _, target in PAIRS]


def write_any(format_, folder):
    """PAIRS in a file of a format; the corpus without its source."""
    if format_ == "text":
        return {"target": write_text(folder).target}
    path = folder / f"a.{format_}"
    if format_ == "tsv":
        write_lines(path, ["\t".join(("7", *pair)) for pair in PAIRS])
        return {"path": str(path), "target": "2"}
    if format_ == "csv":
        rows = [",".join('"' + side.replace('"', '""') + '"' for side in pair) for pair in PAIRS]
        return {"path": write_lines(path, ["source,target", *rows])}
    if format_ == "jsonl":
        return {"path": write_lines(path, [json.dumps({"target": target}) for _, target in PAIRS])}
    table = {"target": [target for _, target in PAIRS]}
    if format_ == "parquet":
        pq.write_table(pa.table(table), path)
        return {"path": str(path)}
    datasets.DatasetDict(train=datasets.Dataset.from_dict(table)).save_to_disk(str(path))
    return {"path": str(path), "split": "train"}


@pytest.mark.parametrize("format_", ["text", "tsv", "csv", "jsonl", "parquet", "huggingface"])
def test_without_a_source_there_are_texts_alone(tmp_path, format_):
    corpus = CorpusConfig(format=format_, source=None, **write_any(format_, tmp_path))
    assert list(read_pairs(corpus)) == TEXTS
    assert str(tmp_path) in describe_corpus(corpus)
    assert len(content_fingerprints(corpus)) == 1
    assert [path.parent for path in corpus_files(corpus)] == [tmp_path] * (format_ != "huggingface")
    parts = [list(read_pairs(Portion((corpus,), HashRange(low, high, 1)))) for low, high in ((0.0, 0.5), (0.5, 1.0))]
    assert sorted(parts[0] + parts[1]) == sorted(TEXTS)


@pytest.mark.parametrize("format_", ["text", "tsv", "csv", "jsonl", "parquet", "huggingface"])
def test_a_part_of_a_corpus_is_so_many_pairs_after_those_passed_over(tmp_path, format_):
    config = {"format": format_, "source": None, **write_any(format_, tmp_path)}
    assert read(**config, size=2) == TEXTS[:2]
    assert read(**config, size=9) == TEXTS
    assert read(**config, skip=1) == TEXTS[1:]
    assert read(**config, skip=1, size=1) == TEXTS[1:2]


def test_a_missing_column_of_a_corpus_of_texts_is_named(tmp_path):
    path = write_lines(tmp_path / "a.csv", ["text", "a"])
    with pytest.raises(DataError, match=r"a\.csv, line 1: there is no column 'target'"):
        read(format="csv", path=path, source=None)
    path = write_lines(tmp_path / "a.tsv", ["a\tb", "c"])
    with pytest.raises(DataError, match=r"a\.tsv, line 2: has 1 column, but the first row has 2"):
        read(format="tsv", path=path, source=None, target="1")


def test_generated_pairs_are_those_after_the_ones_passed_over():
    config = {"format": "generated", "path": "sort", "split": "train"}
    assert read(**config, skip=3, size=4) == read(**config, size=7)[3:]
    assert read(**config, source=None, size=2) == [("", target) for _, target in read(**config, size=2)]


def test_programs_have_a_length_and_a_nesting():
    config = {"format": "generated", "path": "programs", "split": "train", "length": 2, "nesting": 1}
    assert len(read(**config, size=5)) == 5
    assert read(**config, size=5) != read(**config, size=5, mix=True)
    assert read(format="generated", path="addition", split="test", length=3, size=1)[0][0].startswith("print(")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"no\*such\.tsv: no such file"):
        read(format="tsv", path=str(tmp_path / "no*such.tsv"))


def test_identity_follows_the_content_of_files(tmp_path):
    corpus = write_text(tmp_path)
    before = content_fingerprints(corpus)
    assert [path.name for _, path, _ in before] == ["train.en", "train.de"]
    assert content_fingerprints(Portion((corpus,), HashRange(0.0, 0.5, 1))) == before
    write_text(tmp_path, [*PAIRS[:-1], (PAIRS[-1][0], "x")])
    after = content_fingerprints(corpus)
    assert before[0] == after[0]
    assert before[1][2] != after[1][2]


def test_identity_of_generated_corpora_follows_their_parameters():
    one, same, other = (
        content_fingerprints(CorpusConfig(format="generated", path="copy", split="train", size=size))
        for size in (5, 5, 6)
    )
    assert one == same != other
    assert one[0][1] is None
    shapes = [{"length": 1, "nesting": 2}, {"length": 2, "nesting": 1}, {"length": 1, "nesting": 2, "mix": True}]
    config = {"format": "generated", "path": "programs", "split": "train", "size": 5}
    found = [
        content_fingerprints(CorpusConfig(**config, **shape))[0][2] for shape in (*shapes, {**shapes[0], "skip": 1})
    ]
    assert len(set(found)) == 4


def test_the_code_of_programs_is_not_that_of_other_built_in_corpora():
    one, other, third = (registry.corpus_version(name).partition("code")[2] for name in ("programs", "copy", "grammar"))
    assert other == third != one
    assert registry.corpus_version("addition") == registry.corpus_version("programs")


def test_a_portion_streams_only_its_own_pairs(tmp_path):
    corpus = write_text(tmp_path, [(f"source {i}", f"target {i}") for i in range(200)])
    parts = [list(read_pairs(Portion((corpus,), HashRange(low, high, 1)))) for low, high in ((0.0, 0.8), (0.8, 1.0))]
    assert sorted(parts[0] + parts[1]) == sorted(read_pairs(corpus))
    assert 130 < len(parts[0]) < 190


def test_descriptions_name_what_is_read(tmp_path):
    corpus = write_text(tmp_path)
    assert describe_corpus(corpus) == f"{corpus.source} | {corpus.target}"
    assert describe_corpus(Portion((corpus,), HashRange(0.9, 1.0, 1))).startswith("random 10% of ")
    corpus = CorpusConfig(format="generated", path="grammar", split="train", size=7)
    assert describe_corpus(corpus) == "grammar train 7 pairs"
    config = {"format": "generated", "path": "programs", "split": "test", "size": 7, "length": 4, "nesting": 3}
    assert describe_corpus(CorpusConfig(**config, mix=True)) == "programs test 7 pairs length 4 nesting 3 mixed"
    part = CorpusConfig(source=None, target="a.txt", size=5, skip=2)
    assert describe_corpus(part) == "a.txt 5 pairs from pair 3 on"


def test_resolve_is_found_here_too(tmp_path):
    corpus = write_text(tmp_path)
    assert resolve_splits(DataConfig(train=corpus, valid=corpus, tests={"test": corpus})).train == (corpus,)


@pytest.mark.promise("text")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_corpus_since_it_can_be_read_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: is a pipe or device, but a corpus is read more than once"):
        content_fingerprints(CorpusConfig(source=str(tmp_path / "pipe"), target=str(tmp_path / "pipe")))


@pytest.mark.promise("text")
def test_a_name_with_a_nul_is_refused_with_the_recipe():
    with pytest.raises(ValueError, match="cannot contain NUL"):
        CorpusConfig(source="a\0b", target="c")


def saved(folder, rows):
    """A dataset on disk, written over what was there, that says it is the one before."""
    before = json.loads((folder / "state.json").read_text()) if folder.exists() else None
    datasets.Dataset.from_list(rows).save_to_disk(str(folder))
    state = json.loads((folder / "state.json").read_text())
    kept = before or {**state, "_fingerprint": "0123456789abcdef"}
    (folder / "state.json").write_text(json.dumps({**state, "_fingerprint": kept["_fingerprint"]}))
    return CorpusConfig(format="huggingface", path=str(folder), source="en", target="de")


@pytest.mark.parametrize("nested", [False, True])
def test_a_saved_dataset_is_known_by_its_content_not_by_the_fingerprint_it_names(tmp_path, nested):
    def rows(*texts, other="x"):
        pairs = [{"en": source, "de": target} for source, target in texts]
        return [{"translation": pair, "other": other} if nested else {**pair, "other": other} for pair in pairs]

    def known(*texts, other="x"):
        corpus = saved(tmp_path / "set", rows(*texts, other=other))
        named.add(huggingface.open_split(corpus.path, None)._fingerprint)
        assert list(read_pairs(corpus)) == list(texts)
        return content_fingerprints(corpus)[0][2]

    named = set()
    same = [("a", "b"), ("c", "d")]
    first = known(*same)
    changed = [
        known(("a", "b"), ("c", "e")),
        known(("a", "b")),
        known(("a", "bc"), ("", "d")),
        known(("ab", ""), *same),
    ]
    assert len({first, *changed}) == 5
    assert known(*same, other="y") == known(*same) == first
    assert len(named) == 1


def test_a_dataset_is_the_same_wherever_its_rows_are_stored(tmp_path):
    rows = [{"en": f"one {i}", "de": f"eins {i}"} for i in range(2500)]
    whole = datasets.Dataset.from_list(rows)
    whole.save_to_disk(str(tmp_path / "one"), num_shards=1)
    whole.save_to_disk(str(tmp_path / "three"), num_shards=3)
    turned = datasets.Dataset.from_list(rows[::-1]).select(range(2499, -1, -1))
    loaded = [datasets.load_from_disk(str(tmp_path / name)) for name in ("one", "three")]
    assert len({hash_dataset(each, ["en", "de"]) for each in (whole, turned, *loaded)}) == 1
    assert (
        hash_dataset(whole, ["en"]) != hash_dataset(whole, ["en", "de"]) != hash_dataset(whole.select(range(9)), ["en"])
    )


def test_columns_without_a_name_may_be_given_as_numbers(tmp_path):
    path = write_lines(tmp_path / "a.tsv", ["7\ta\tb\tc"])
    given = CorpusConfig.model_validate(
        {"format": "tsv", "path": path, "source": 1, "target": 2, "references": [3]}, strict=True
    )
    assert given == CorpusConfig(format="tsv", path=path, source="1", target="2", references=("3",))
    assert list(read_pairs(given)) == [("a", "b")]
    with pytest.raises(ValueError, match="source"):
        CorpusConfig(format="tsv", path=path, source=True)
    with pytest.raises(DataError, match="there is no column '-1'"):
        read(format="tsv", path=path, source=-1, target=2)
