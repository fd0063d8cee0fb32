import json
import re

import datasets
import numpy as np
import pytest

from tfm.data.config import DataConfig
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import Plan, open_artifact, publish, stale_reason
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.preprocess import plan_dataset, preprocess
from tfm.tokenizer.code_points import load_pair, save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import LabelTrainer, train


class Loud(NullReporter):
    """Remembers what it was told."""

    def __init__(self):
        self.lines, self.tables, self.warnings = [], {}, []

    def line(self, text):
        self.lines.append(text)

    def warn(self, text):
        self.warnings.append(text)

    def table(self, title, columns, rows):
        assert all(len(row) == len(columns) for row in rows)
        self.tables[title] = [[str(cell) for cell in row] for row in rows]


WORDS = list("abcdefgh")
TAGGED = [("a b", "X Y"), ("c", "Z")]
TRAIN = [(f"{one} {two} x", f"{two} {one}") for one in WORDS for two in WORDS]


def make_tokenizer(folder, pairs, **config):
    """Publish a tokenizer learned from pairs."""
    learned = train([text for pair in pairs for text in pair], TokenizerConfig(vocab_size=100, **config))
    with publish(Plan("tokenize", folder, {}, {}, None), command=["test"]) as draft:
        save_pair(learned, learned, draft.folder)
    return folder


@pytest.fixture
def tokenizer(tmp_path):
    return make_tokenizer(tmp_path / "tokenizer", TRAIN, kind="word")


@pytest.fixture
def corpora(tmp_path):
    """Write corpora as NAME.en, NAME.de and give the folder's config."""

    def corpora(**splits):
        folder = tmp_path / "corpora"
        folder.mkdir(exist_ok=True)
        for name, pairs in splits.items():
            for side, ending in enumerate(("en", "de")):
                (folder / f"{name}.{ending}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        return {"path": str(folder), "source": "en", "target": "de"}

    return corpora


def run(config, tokenizer, out, reporter=None):
    preprocess(DataConfig(**config), tokenizer, out, command=["test"], reporter=reporter or NullReporter())
    return load_dataset(out)


def test_a_dataset_holds_every_pair_of_every_split(corpora, tokenizer, tmp_path):
    valid, test = [("a b", "b"), ("", "c")], [("zzz", "a"), ("", ""), ("a b", "b")]
    found = run(corpora(train=TRAIN, val=valid, test=test), tokenizer, tmp_path / "dataset")
    source, target = load_pair(tokenizer)
    assert found.train.source.to_lists() == source.encode_batch([pair[0] for pair in TRAIN])
    assert found.train.target.to_lists() == target.encode_batch([pair[1] for pair in TRAIN])
    assert found.valid.texts() == tuple(map(list, zip(*valid, strict=True)))
    assert found.tests["test"].texts() == tuple(map(list, zip(*test, strict=True)))
    assert load_pair(found.tokenizer_folder)[0].encode("a b") == source.encode("a b")
    assert datasets.load_from_disk(str(tmp_path / "dataset" / "train")).num_rows == len(TRAIN)
    assert open_artifact(tmp_path / "dataset", "preprocess").figures["rows"] == {"train": 64, "valid": 2, "test": 3}


def test_the_report_says_what_is_in_it(corpora, tokenizer, tmp_path):
    bad = [("", "a"), ("a " * 30, "a"), ("a a a a a", "a"), TRAIN[0]]
    test = [TRAIN[1], (TRAIN[2][0], "other"), ("new zzz", "new")]
    config = corpora(train=TRAIN + bad, valid=TRAIN[:1], test=test)
    limits = {"max_length": 20, "max_ratio": 4.0, "duplicates": "drop"}
    loud = Loud()
    run({**config, "limits": limits, "batch_tokens": 64}, tokenizer, tmp_path / "dataset", loud)
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))

    training = report["splits"]["train"]
    assert training["dropped"] == {"empty": 1, "too long": 1, "length ratio": 1, "duplicate": 1}
    assert (training["read"], training["rows"], training["repeated"]) == (68, 64, 0)
    assert training["share"] == pytest.approx(64 / 68)
    assert training["source"]["tokens"] == 3 * 64
    assert training["source"]["lengths"]["1-5"] == 64
    assert training["target"]["mean_length"] == 2
    assert report["splits"]["test"]["source"]["unknown"] == 2
    assert report["splits"]["test"]["dropped"] == {}
    assert report["overlap"] == {
        "valid": {"pairs": 1, "sources": 1, "targets": 1},
        "test": {"pairs": 1, "sources": 2, "targets": 1},
    }
    assert report["batches"]["rows_an_epoch"] == 64
    num_batches = report["batches"]["batches_an_epoch"]
    assert num_batches in (4, 5)
    assert report["batches"]["padding"] == 0.0

    assert loud.tables["splits"][0][:4] == ["train", "64", "94.1%", "192"]
    assert ["empty", "1", "1.47%"] in loud.tables["dropped from the 68 training pairs read"]
    assert loud.tables["also in the training data"][1] == ["test", "1 (33.3%)", "2 (66.7%)", "1 (33.3%)"]
    assert loud.tables["lengths in tokens, source | target"][0][0] == "1-5"
    assert any(f"64 pairs in {num_batches} batches" in line and "; 0.0% of" in line for line in loud.lines)


def test_rows_of_one_side_are_texts(corpora, tokenizer, tmp_path):
    config = {**corpora(train=[*TRAIN, ("", "a " * 30)], valid=TRAIN[:2], test=TRAIN[:2]), "source": None}
    loud = Loud()
    run({**config, "limits": {"max_length": 20}, "batch_tokens": 16}, tokenizer, tmp_path / "dataset", loud)
    (batches,) = (line for line in loud.lines if "epoch:" in line)
    assert re.search(r"epoch: 64 texts in \d+ batches of at most 16 padded tokens, a row each; ", batches)
    assert ["too long", "1", "1.54%"] in loud.tables["dropped from the 65 training texts read"]
    assert not any("pair" in title for title in loud.tables)


def test_nothing_is_dropped_from_validation_and_test(corpora, tokenizer, tmp_path):
    odd = [("", "a"), ("a " * 50, "a"), ("a", "a"), ("a", "a")]
    config = {**corpora(train=TRAIN, valid=odd, test=odd), "batch_tokens": 16}
    found = run({**config, "limits": {"max_length": 8, "duplicates": "drop"}}, tokenizer, tmp_path / "dataset")
    assert len(found.valid) == len(found.tests["test"]) == 4


def test_the_folds_together_are_what_is_trained_on_without_them(corpora, tokenizer, tmp_path):
    odd = [("a " * 30, "a"), ("", "b"), ("b", " "), *TRAIN[:5], ("A b  X", "B a"), ("a b x", "c")]
    limits = {"max_length": 20, "duplicates": "drop"}
    data = DataConfig.model_validate({**corpora(train=TRAIN + odd, valid=TRAIN[:1], test=TRAIN[:1]), "limits": limits})
    preprocess(data, tokenizer, tmp_path / "whole", command=["test"], reporter=NullReporter())
    expected = len(load_dataset(tmp_path / "whole").train)
    found, dropped = [], []
    for number in range(1, 4):
        loud, folder = Loud(), tmp_path / f"fold-{number}"
        one = DataConfig.model_validate({**data.model_dump(), "fold": {"number": number, "of": 3}})
        preprocess(one, tokenizer, folder, command=["test"], reporter=loud)
        made = load_dataset(folder)
        assert len(made.train) + len(made.valid) == expected
        found += zip(*made.valid.texts(), strict=True)
        report = json.loads((folder / "report.json").read_text())
        assert report["overlap"]["valid"]["sources"] == 0
        dropped.append(sum(report["splits"]["valid"]["dropped"].values()))
        assert any(title.endswith("held-out pairs read") for title in loud.tables)
    assert len(found) == expected
    assert len(set(found)) == expected
    assert sum(dropped) == len(TRAIN) + len(odd) - expected == 8
    assert not any(len(source.split()) > 20 or not source for source, _ in found)


def test_missing_splits_are_drawn_at_random_and_kept_apart(corpora, tokenizer, tmp_path):
    found = run(corpora(train=TRAIN * 3), tokenizer, tmp_path / "one")
    assert len(found.train) + len(found.valid) + len(found.tests["test"]) == 3 * len(TRAIN)
    report = json.loads((tmp_path / "one" / "report.json").read_text("utf-8"))
    assert report["overlap"]["test"] == {"pairs": 0, "sources": 0, "targets": 0}
    again = run(corpora(train=TRAIN * 3), tokenizer, tmp_path / "two")
    assert again.valid.texts() == found.valid.texts()


def test_a_fresh_dataset_is_not_made_again(corpora, tokenizer, tmp_path):
    config = corpora(train=TRAIN, valid=TRAIN, test=TRAIN)
    run(config, tokenizer, tmp_path / "dataset")
    before, loud = (tmp_path / "dataset").resolve(), Loud()
    run(config, tokenizer, tmp_path / "dataset", loud)
    assert (tmp_path / "dataset").resolve() == before
    assert "up to date, nothing to do" in loud.lines[0]
    corpora(train=TRAIN[:-1])
    assert len(run(config, tokenizer, tmp_path / "dataset", loud).train) == 63
    assert "train.de changed" in "".join(loud.lines)


def test_the_order_of_test_sets_counts_and_the_network_does_not(corpora, tokenizer, tmp_path):
    folder = corpora(train=TRAIN, val=TRAIN[:3], one=TRAIN[:2], two=TRAIN[:2])["path"]

    def config(*names, **more):
        def corpus(name):
            return {"source": f"{folder}/{name}.en", "target": f"{folder}/{name}.de"}

        return {"train": corpus("train"), "valid": corpus("val"), "tests": {n: corpus(n) for n in names}, **more}

    def is_stale(config):
        return stale_reason(plan_dataset(DataConfig(**config), tokenizer, tmp_path / "dataset"))

    assert list(run(config("one", "two"), tokenizer, tmp_path / "dataset").tests) == ["one", "two"]
    assert is_stale(config("one", "two", online=True)) is None
    assert "tests" in is_stale(config("two", "one"))


def test_a_vocabulary_a_side(corpora, tmp_path):
    sides = [
        train([pair[side] for pair in TRAIN], TokenizerConfig(kind="char", vocab_size=50 - side * 40))
        for side in (0, 1)
    ]
    with publish(Plan("tokenize", tmp_path / "two", {}, {}, 1), command=["test"]) as draft:
        save_pair(*sides, draft.folder)
    found = run(corpora(train=TRAIN, valid=TRAIN, test=TRAIN), tmp_path / "two", tmp_path / "dataset")
    assert found.train.source.to_lists() == sides[0].encode_batch([pair[0] for pair in TRAIN])
    assert found.train.target.to_lists() == sides[1].encode_batch([pair[1] for pair in TRAIN])
    assert [one.vocab_size for one in load_pair(found.tokenizer_folder)] == [one.vocab_size for one in sides]


def test_weights_reach_the_dataset(corpora, tokenizer, tmp_path):
    folder = corpora(a=TRAIN, b=TRAIN[:10])["path"]
    a, b = ({"source": f"{folder}/{name}.en", "target": f"{folder}/{name}.de"} for name in "ab")
    config = {"train": [a, {**b, "weight": 2.5}], "valid": a, "tests": {"test": a}}
    found = run(config, tokenizer, tmp_path / "dataset")
    assert found.train.weights.tolist() == [1.0] * 64 + [2.5] * 10
    about = json.loads((tmp_path / "dataset" / "dataset.json").read_text("utf-8"))
    assert about["train_corpora"] == [{"rows": 64, "weight": 1.0}, {"rows": 10, "weight": 2.5}]
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["batches"]["rows_an_epoch"] == 64 + 25


def test_corpora_take_their_turns(corpora, tokenizer, tmp_path):
    folder = corpora(a=TRAIN, b=TRAIN[:10], valid=TRAIN[:3])["path"]
    a, b, valid = ({"source": f"{folder}/{name}.en", "target": f"{folder}/{name}.de"} for name in ("a", "b", "valid"))
    config = {"train": [{**a, "epochs": [2, 3]}, {**b, "epochs": [1, 2]}], "valid": valid, "tests": {"test": valid}}
    loud = Loud()
    found = run(config, tokenizer, tmp_path / "dataset", loud).train
    rows = [found.weights_in_epoch(epoch) for epoch in range(3)]
    assert rows[1] is None
    assert [np.flatnonzero(each).tolist() for each in (rows[0], rows[2])] == [list(range(64, 74)), list(range(64))]
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["batches"]["rows_an_epoch"] == 10
    assert [each["epochs"] for each in report["splits"]["train"]["corpora"]] == [[2, 3], [1, 2]]
    assert any(line.startswith("the first epoch: 10 pairs in") for line in loud.lines)


def test_texts_without_sources(corpora, tokenizer, tmp_path):
    lines = [("x", "a b"), ("x", ""), ("x", "c " * 9), ("x", ""), ("x", "d e"), ("x", "a b")]
    config = {**corpora(train=lines, valid=lines[-2:], test=lines[:1] * 2), "source": None}
    loud = Loud()
    found = run({**config, "limits": {"max_length": 4}}, tokenizer, tmp_path / "dataset", loud)
    _, target = load_pair(tokenizer)
    assert found.train.target.to_lists() == target.encode_batch(["a b", "d e", "a b"])
    assert found.train.source.to_lists() == [[], [], []]
    assert found.valid.texts() == (["", ""], ["d e", "a b"])
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["splits"]["train"]["dropped"] == {"empty": 2, "too long": 1, "length ratio": 0, "duplicate": 0}
    assert report["splits"]["train"]["repeated"] == 1
    assert report["overlap"] == {name: {"pairs": 2, "sources": 0, "targets": 2} for name in ("valid", "test")}
    assert [row[:4] for row in loud.tables["splits"]] == [
        ["train", "3", "42.9%", "6"], ["valid", "2", "28.6%", "4"], ["test", "2", "28.6%", "4"],
    ]  # fmt: skip
    assert loud.tables["lengths in tokens, target"] == [["1-5", *["100.0%"] * 3]]
    assert loud.tables["also in the training data"][0] == ["valid", "2 (100.0%)"]

    kept = run({**config, "limits": {"max_length": 32, "empty": "keep"}}, tokenizer, tmp_path / "whole")
    assert kept.train.target.to_lists() == target.encode_batch([text for _, text in lines])


def test_a_line_of_running_text_may_be_longer_than_a_batch(corpora, tokenizer, tmp_path):
    """It is read in windows, and a paragraph of 600 words was refused beside windows of 64."""
    line = ("x", "a " * 30)
    config = {**corpora(train=[line] * 3, valid=[line], test=[line]), "source": None, "batch_tokens": 16}
    found = run({**config, "running_text": True}, tokenizer, tmp_path / "running")
    assert found.train.target_lengths.tolist() == [30, 30, 30]
    with pytest.raises(DataError, match="text 1 has 31 tokens including its end token, but a batch holds 16: raise"):
        run(config, tokenizer, tmp_path / "lines")


@pytest.mark.parametrize("empty", ["keep", "drop"])
def test_blank_lines_that_training_drops_and_validation_has_are_warned_of(corpora, tokenizer, tmp_path, empty):
    """Half the lines of a book may be blank: its perplexity was that of line breaks that were never learned."""
    lines = [("x", "a b"), ("x", ""), ("x", "d e")]
    config = {**corpora(train=lines, valid=lines * 2, test=lines[:1]), "source": None, "limits": {"empty": empty}}
    loud = Loud()
    run(config, tokenizer, tmp_path / "dataset", loud)
    warnings = [warning for warning in loud.warnings if "blank" in warning]
    assert warnings == [
        "2 of 6 texts are blank in the valid split, and those of the training data are dropped: for a language model "
        'set data.limits.empty = "keep", or remove them'
    ] * (empty == "drop")


def test_texts_are_drawn_at_random_and_kept_apart(corpora, tokenizer, tmp_path):
    config = {**corpora(train=[("x", text) for _, text in TRAIN] * 3), "source": None}
    found = run(config, tokenizer, tmp_path / "dataset")
    parts = [found.valid.texts()[1], found.tests["test"].texts()[1]]
    assert len(found.train) + len(parts[0]) + len(parts[1]) == 3 * len(TRAIN)
    assert all(len(part) % 3 == 0 for part in parts)
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["overlap"]["test"] == {"pairs": 0, "sources": 0, "targets": 0}


@pytest.mark.parametrize(
    ("pairs", "limits", "message"),
    [
        (
            [("a " * 16, "a")],
            {},
            r"train\.en .*: pair 2 has 17 tokens including its end token, but a batch holds 16: raise",
        ),
        ([("a", "a")], {"max_length": 1, "max_ratio": 1.5}, None),
    ],
)
def test_a_training_pair_over_the_budget_is_an_error_now(corpora, tokenizer, tmp_path, pairs, limits, message):
    config = {**corpora(train=[("a", "b"), *pairs], valid=TRAIN, test=TRAIN), "batch_tokens": 16, "limits": limits}
    if message is None:
        assert len(run(config, tokenizer, tmp_path / "dataset").train) == 2
        return
    with pytest.raises(DataError, match=message):
        run(config, tokenizer, tmp_path / "dataset")
    assert not (tmp_path / "dataset").exists()


def test_a_training_split_of_which_nothing_is_left_is_an_error(corpora, tokenizer, tmp_path):
    config = {**corpora(train=[("", "a"), ("a b", "a")], valid=TRAIN, test=TRAIN), "limits": {"max_length": 1}}
    with pytest.raises(DataError, match=r"no pair is left in the train split; dropped: empty: 1, too long: 1"):
        run(config, tokenizer, tmp_path / "dataset")


def test_bad_data_is_found_before_any_work(corpora, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("tfm.pipeline.stages.preprocess.load_tokenizer_pair", lambda folder: pytest.fail("work began"))
    config = corpora(train=TRAIN, valid=TRAIN, test=TRAIN)
    (tmp_path / "corpora" / "test.de").write_bytes(b"a\nb\n")
    with pytest.raises(DataError, match=r"test\.en: has 64 lines, but \S*test\.de has 2"):
        run(config, tokenizer, tmp_path / "dataset")


def test_the_report_says_what_of_the_references_no_model_can_write(corpora, tokenizer, tmp_path):
    train = [("a b", "น้ำ ทำ"), ("c d", "（a）")] * 4
    learned = make_tokenizer(tmp_path / "nfkc", train, kind="char", normalization="nfkc")
    valid = [("a", "ทำ"), ("a", "a"), ("a", "（日）")]
    loud = Loud()
    run(corpora(train=train, valid=valid, test=[("a", "a")]), learned, tmp_path / "dataset", loud)
    splits = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))["splits"]
    assert "unwritable" not in splits["train"]
    assert splits["test"]["unwritable"]["segments"] == 0
    told = splits["valid"]["unwritable"]
    assert (told["segments"], told["changed_by_normalization"], told["with_unknown_pieces"]) == (2, 2, 1)
    assert [each["character"] for each in told["characters"]] == list("ำ日（）")
    (row,) = loud.tables["references that the tokenizer cannot give back as they are"]
    assert row[:4] == ["valid", "2 (66.7%)", "2 (66.7%)", "1 (33.3%)"]
    assert row[4] == "ำ U+0E33 1, 日 U+65E5 1, （ U+FF08 1, ） U+FF09 1"


ALIKE = ["{} ", " {}", "{}\u00a0", "\u3000{}", "{}\t\t"]


def test_overlap_and_duplicates_are_told_by_what_the_model_reads(corpora, tokenizer, tmp_path):
    """However the same words are spelled, at the ends, between words or in capitals of a lower-casing tokenizer."""
    variants = [
        (spelling.format(source.replace(" ", "  ")), spelling.format(target))
        for (source, target), spelling in zip(TRAIN, ALIKE * 13, strict=False)
    ]
    config = {**corpora(train=TRAIN + variants, valid=variants[:9], test=[("a zzz", "Q"), *variants]), "limits": {}}
    run(config, tokenizer, tmp_path / "kept")
    report = json.loads((tmp_path / "kept" / "report.json").read_text("utf-8"))
    assert report["splits"]["train"]["repeated"] == 64
    assert report["overlap"]["valid"] == {"pairs": 9, "sources": 9, "targets": 9}
    assert report["overlap"]["test"] == {"pairs": 64, "sources": 64, "targets": 64}
    dropped = run({**config, "limits": {"duplicates": "drop"}}, tokenizer, tmp_path / "dropped")
    assert len(dropped.train) == 64

    upper = [(source.upper(), target.upper()) for source, target in TRAIN]
    small = make_tokenizer(tmp_path / "small", TRAIN, kind="bpe", lowercase=True)
    run(corpora(train=TRAIN, valid=upper, test=upper), small, tmp_path / "small-dataset")
    report = json.loads((tmp_path / "small-dataset" / "report.json").read_text("utf-8"))
    assert report["overlap"]["test"] == {"pairs": 64, "sources": 64, "targets": 64}


def test_texts_that_differ_in_what_is_unknown_are_not_the_same(corpora, tokenizer, tmp_path):
    unknown = [(f"word{i} x", "a") for i in range(20)]
    config = {**corpora(train=unknown, valid=unknown[:1], test=[("other x", "a")]), "limits": {"duplicates": "drop"}}
    assert len(run(config, tokenizer, tmp_path / "dataset").train) == 20
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["overlap"] == {
        "valid": {"pairs": 1, "sources": 1, "targets": 1},
        "test": {"pairs": 0, "sources": 0, "targets": 1},
    }


def test_variants_in_white_space_never_lie_on_both_sides_of_a_random_split(corpora, tokenizer, tmp_path):
    variants = [(spelling.format(s.replace(" ", "\u2009")), t) for s, t in TRAIN for spelling in ALIKE]
    run(corpora(train=TRAIN + variants), tokenizer, tmp_path / "dataset")
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert report["splits"]["test"]["rows"] > 0
    assert [report["overlap"][name]["sources"] for name in ("valid", "test")] == [0, 0]


@pytest.fixture
def tags_tokenizer(tmp_path):
    """Publish a tokenizer of words and their tags."""
    source, names = (
        train([pair[0] for pair in TRAIN], TokenizerConfig(vocab_size=100, kind="bpe")),
        LabelTrainer("tags"),
    )
    names.add("X Y Z")
    with publish(Plan("tokenize", tmp_path / "tags", {}, {}, None), command=["test"]) as draft:
        save_pair(source, names.learn(), draft.folder)
    return tmp_path / "tags"


def test_where_targets_are_tags_the_pieces_of_each_word_are_kept(corpora, tags_tokenizer, tmp_path):
    pairs, reporter = [("a\u00b4b cd", "X Y"), ("a  b\u00adc ﷺ ", "X  Q Z")], Loud()
    run(corpora(train=pairs, valid=pairs, test=pairs), tags_tokenizer, tmp_path / "dataset", reporter)
    for split in (load_dataset(tmp_path / "dataset").train, load_dataset(tmp_path / "dataset").valid):
        assert [len(sizes) for sizes in split.words.to_lists()] == [2, 3]
    assert reporter.warnings == [
        f"1 label of the {name} split is not in the training data: 'Q' (1); each counts as wrong"
        for name in ("valid", "test")
    ]


@pytest.mark.parametrize(("num_labels", "num_warnings"), [(1, 1), (2, 0)])
def test_training_data_of_one_label_is_warned_of(corpora, tmp_path, num_labels, num_warnings):
    source, names = train([pair[0] for pair in TRAIN], TokenizerConfig(vocab_size=100)), LabelTrainer("label")
    labels = ["pos", "not so good"][:num_labels]
    for label in labels:
        names.add(label)
    with publish(Plan("tokenize", tmp_path / "labels", {}, {}, None), command=["test"]) as draft:
        save_pair(source, names.learn(), draft.folder)
    pairs, reporter = [(pair[0], label) for pair in TRAIN for label in labels], Loud()
    run(corpora(train=pairs, valid=pairs, test=pairs), tmp_path / "labels", tmp_path / "dataset", reporter)
    warnings = [each for each in reporter.warnings if each.startswith("the training data has only the label 'pos'")]
    assert len(warnings) == num_warnings


def test_a_sentence_with_too_few_tags_is_named(corpora, tags_tokenizer, tmp_path):
    data = corpora(train=TAGGED, valid=[*TAGGED, ("a b c", "X Y")], test=TAGGED)
    with pytest.raises(DataError, match=r"valid.*pair 3 has 3 words and 2 tags: each word needs one tag"):
        run(data, tags_tokenizer, tmp_path / "dataset")


def test_a_dataset_whose_text_changed_under_the_same_name_is_stale(tokenizer, tmp_path):
    folder = tmp_path / "set"

    def save(*words):
        rows = [{"source": word, "target": word} for word in words]
        datasets.DatasetDict(train=datasets.Dataset.from_list(rows)).save_to_disk(str(folder))
        state = folder / "train" / "state.json"
        state.write_text(json.dumps({**json.loads(state.read_text()), "_fingerprint": "0123456789abcdef"}))

    def is_stale():
        return stale_reason(plan_dataset(DataConfig(path=str(folder)), tokenizer, tmp_path / "dataset"))

    save(*WORDS * 4)
    run({"path": str(folder)}, tokenizer, tmp_path / "dataset")
    assert is_stale() is None
    save(*WORDS * 4)
    assert is_stale() is None
    save(*WORDS * 3, *"hgfedcbb")
    assert "changed" in is_stale()


def test_what_looks_like_a_split_and_is_not_used_is_warned_of(corpora, tokenizer, tmp_path):
    heard = Loud()
    found = run(corpora(train=TRAIN, valid=TRAIN, test2016=TRAIN), tokenizer, tmp_path / "one", heard)
    assert (len(found.train), list(found.tests), heard.warnings) == (len(TRAIN), ["test2016"], [])
    (tmp_path / "corpora" / "test2016.en").rename(tmp_path / "corpora" / "heldout.en")
    (tmp_path / "corpora" / "test2016.de").rename(tmp_path / "corpora" / "heldout.de")
    run(corpora(), tokenizer, tmp_path / "two", heard)
    assert len(heard.warnings) == 1
    assert "not used: heldout (test data are cut from the training data)" in heard.warnings[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_running_text_is_cut_in_consecutive_lines_and_that_is_said(seed, tokenizer, tmp_path):
    lines = ["" if number % 3 else f"{number % 7} {number}" for number in range(90)]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = {"train": {"source": None, "target": str(tmp_path / "text")}, "split_seed": seed}
    for name, more, how in (
        ("running", {"limits": {"empty": "keep"}}, "as consecutive lines"),
        ("lines", {}, "by a hash of each text"),
    ):
        heard = Loud()
        found = run({**corpus, **more}, tokenizer, tmp_path / name, heard)
        assert [warning for warning in heard.warnings if " are blank " not in warning] == [
            f"no validation and no test data are given: they are cut from the training data {how} (data.ratios, "
            "data.split_seed)"
        ]
        held = [found.valid.texts()[1], found.tests["test"].texts()[1]]
        is_one_stretch = ["\n".join(each) in "\n".join(lines) for each in held]
        assert is_one_stretch == [name == "running"] * 2
        if name == "running":
            assert (len(found.train), len(held[0]), len(held[1])) == (72, 9, 9)


def test_datasets_from_before_there_was_running_text_stay_fresh(corpora, tokenizer, tmp_path):
    config = DataConfig(**corpora(train=TRAIN))
    assert "running_text" not in plan_dataset(config, tokenizer, tmp_path / "dataset").config["data"]


def test_long_sources_are_cut_where_that_is_asked_for(corpora, tokenizer, tmp_path):
    """In every split; targets are not, and what is too long on their side is dropped as ever."""
    long = [("a b c d e f", "a"), ("a b c x", "b"), ("a b", "b"), ("a", "a b c d"), ("a b c d e f", "a")]
    heard = Loud()
    limits = {"max_length": 3, "cut_sources": True, "max_ratio": 3.0, "duplicates": "drop"}
    config = {**corpora(train=long, valid=long, test=long[:1]), "limits": limits}
    found = run(config, tokenizer, tmp_path / "dataset", heard)
    source, _ = load_pair(tokenizer)
    expected = [source.encode(text) for text in ("a b c", "a b c", "a b")]
    assert found.train.source.to_lists() == expected
    assert found.valid.source.to_lists() == [*expected, source.encode("a"), source.encode("a b c")]
    assert found.valid.texts()[0] == [pair[0] for pair in long]
    report = json.loads((tmp_path / "dataset" / "report.json").read_text("utf-8"))
    assert {name: split["cut"] for name, split in report["splits"].items()} == {"train": 3, "valid": 3, "test": 1}
    assert report["splits"]["train"]["dropped"] == {"empty": 0, "too long": 1, "length ratio": 0, "duplicate": 1}
    assert "sources cut to data.limits.max_length = 3 pieces: 3 of train, 3 of valid, 1 of test" in heard.lines
    run({**config, "limits": {"max_length": 3}}, tokenizer, tmp_path / "dropped")
    report = json.loads((tmp_path / "dropped" / "report.json").read_text("utf-8"))
    assert report["splits"]["train"]["dropped"]["too long"] == 4
