"""What preprocessing, training and the tokenizer say that they counted, counted again."""

import math
import re
from typing import Any

import pytest
from tokenizers import Tokenizer

from tests.meaning import plain_counts as plain
from tests.meaning.campaign import LIMITS, number, printed
from tests.meaning.conftest import Case

pytestmark = [pytest.mark.slow, pytest.mark.meaning("counts")]
BUDGET, EPOCHS = 600, 30
SPLITS = {"train": "train", "valid": "valid", "test": "test", "again": "valid"}
KEEP = {**LIMITS, "duplicates": "keep"}


def tokenizer_of(case: Case) -> Tokenizer:
    return Tokenizer.from_file(str(case.run.folder / "tokenizer" / "tokenizer.json"))


def ids_of(case: Case, split: str) -> list[tuple[list[int], list[int]]]:
    """The pieces of both sides of each pair that is left of a split."""
    tokenizer = tokenizer_of(case)
    found = [(tokenizer.encode(one).ids, tokenizer.encode(other).ids) for one, other in case.corpora.pairs[split]]
    if split == "train":
        lengths = [(len(one), len(other)) for one, other in found]
        found = [found[row] for row in plain.kept(case.corpora.pairs[split], lengths, KEEP)[0]]
    return found


def test_splits_and_lengths(case: Case, record_property: Any) -> None:
    report = case.run.json("dataset/report.json")
    sizes = {name: len(ids_of(case, split)) for name, split in SPLITS.items()}
    rows = {row[0]: row for row in printed(case.run.said.err, "splits")}
    for name, split in SPLITS.items():
        found, ids = report["splits"][name], ids_of(case, split)
        assert found["rows"] == sizes[name] == number(rows[name][1])
        assert found["read"] == len(case.corpora.pairs[split])
        assert found["share"] == pytest.approx(sizes[name] / sum(sizes.values()))
        for column, side in enumerate(("source", "target")):
            tokens = [len(pair[column]) for pair in ids]
            unknown = sum(pair[column].count(1) for pair in ids)
            assert found[side]["tokens"] == sum(tokens) == number(rows[name][3 + column])
            assert found[side]["unknown"] == unknown
            assert found[side]["max_length"] == max(tokens)
            assert found[side]["mean_length"] == pytest.approx(sum(tokens) / len(tokens))
            for edges, count in found[side]["lengths"].items():
                low, _, high = edges.partition("-")
                last = (math.inf if edges.endswith("-") else int(low)) if not high else int(high)
                assert count == sum(int(low) <= length <= last for length in tokens), edges
        record_property("figures", 9)


def test_what_is_dropped(case: Case, record_property: Any) -> None:
    tokenizer, pairs = tokenizer_of(case), case.corpora.pairs["train"]
    lengths = [(len(tokenizer.encode(one).ids), len(tokenizer.encode(other).ids)) for one, other in pairs]
    _, dropped = plain.kept(pairs, lengths, KEEP)
    assert dropped["empty"] == 2
    assert dropped["too long"] + dropped["length ratio"] >= 2
    assert case.run.json("dataset/report.json")["splits"]["train"]["dropped"] == dropped
    rows = {row[0]: row for row in printed(case.run.said.err, f"dropped from the {len(pairs):,} training pairs read")}
    assert {reason: number(rows[reason][1]) for reason in dropped} == dropped
    record_property("figures", 4)


def test_repeated_and_overlap(case: Case, record_property: Any) -> None:
    """Of clean text in one normal form: pairs that are repeated, and those of a test that training has as well."""
    report = case.run.json("dataset/report.json")
    known = {split: [(tuple(one), tuple(other)) for one, other in ids_of(case, split)] for split in SPLITS.values()}
    for name, split in SPLITS.items():
        assert report["splits"][name]["repeated"] == plain.repeated(known[split])
        if name != "train":
            found = report["overlap"][name]
            assert found["pairs"] == plain.found_in(known[split], known["train"])
            sources = ([source for source, _ in known[each]] for each in (split, "train"))
            assert found["sources"] == plain.found_in(*sources)
            record_property("figures", 2)
    record_property("figures", 4)


def test_batches_updates_and_epochs(case: Case, record_property: Any) -> None:
    report, figures = case.run.json("dataset/report.json")["batches"], case.run.json("model/manifest.json")["figures"]
    seed = case.run.json("model/manifest.json")["seed"]
    lengths = [(len(one) + 1, len(other) + 1) for one, other in ids_of(case, "train")]
    assert report["rows_an_epoch"] == len(lengths)
    updates = plain.num_updates(lengths, BUDGET, seed, EPOCHS)
    assert figures["updates"] == updates == len(case.run.metrics("train"))
    assert figures["epochs"] == EPOCHS == case.run.metrics("train")[-1]["epoch"]
    assert f"at most {updates:,} updates" in case.run.said.err
    said = re.search(r"([\d,]+) examples in (?:about )?([\d,]+) batches", case.run.said.err)
    assert said is not None
    assert number(said[1]) == len(lengths)
    assert number(said[2]) == plain.num_batches(lengths, BUDGET, seed, 0)
    record_property("figures", 6)


def test_what_the_tokenizer_says_of_itself(case: Case, record_property: Any) -> None:
    tokenizer, figures = tokenizer_of(case), case.run.json("tokenizer/manifest.json")["figures"]["shared"]
    texts = [text for pair in case.corpora.pairs["valid"] for text in pair]
    pieces = [len(tokenizer.encode(text).ids) for text in texts]
    words = sum(len(text.split()) for text in texts)
    assert figures["vocabulary_size"] == tokenizer.get_vocab_size()
    assert figures["tokens_a_word"] == pytest.approx(sum(pieces) / words)
    assert figures["unknown_rate"] == 0
    rows = {row[0]: row[1] for row in printed(case.run.said.err, "tokenizer, measured on")}
    assert number(rows["vocabulary size"]) == tokenizer.get_vocab_size()
    assert number(rows["tokens a word"]) == pytest.approx(sum(pieces) / words, abs=0.0005)
    record_property("figures", 3)
