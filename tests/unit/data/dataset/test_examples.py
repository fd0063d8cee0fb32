import numpy as np
import pytest

from tfm.data.config import LimitsConfig
from tfm.data.dataset import examples
from tfm.data.dataset.examples import DROP_REASONS, PairFilter, encode_rows
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train


@pytest.fixture(scope="module")
def tokenizer():
    return train(["abc abc def def"] * 4, TokenizerConfig(kind="word", vocab_size=20, min_frequency=1))


def sieve(pairs, tokenizer, has_source=True, **limits):
    made = PairFilter(LimitsConfig(**limits))
    kept = [made(chunk, has_source=has_source) for chunk in encode_rows(pairs, tokenizer, tokenizer)]
    texts = [pair for chunk in kept for pair in zip(chunk.source.texts, chunk.target.texts, strict=True)]
    return texts, {reason: count for reason, count in made.dropped.items() if count}


def test_chunks_hold_the_ids_of_every_pair_in_order(tokenizer, monkeypatch):
    monkeypatch.setattr(examples, "CHUNK_ROWS", 3)
    pairs = [(" ".join(["abc"] * (i % 3)), " ".join(["def"] * (i % 4))) for i in range(10)]
    chunks = list(encode_rows(iter(pairs), tokenizer, tokenizer))
    assert [len(chunk) for chunk in chunks] == [3, 3, 3, 1]
    assert np.concatenate([chunk.rows for chunk in chunks]).tolist() == list(range(10))
    for name, column in (("source", 0), ("target", 1)):
        sides = [getattr(chunk, name) for chunk in chunks]
        expected = tokenizer.encode_batch([pair[column] for pair in pairs])
        assert [text for side in sides for text in side.texts] == [pair[column] for pair in pairs]
        assert np.concatenate([side.lengths for side in sides]).tolist() == [len(ids) for ids in expected]
        assert np.concatenate([side.ids for side in sides]).tolist() == [token for ids in expected for token in ids]


def test_an_error_while_reading_arrives(tokenizer):
    def broken():
        yield "abc", "abc"
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(encode_rows(broken(), tokenizer, tokenizer))


def test_each_pair_is_dropped_for_its_first_reason(tokenizer):
    good = ("abc def", "abc def")
    pairs = [good, ("", "abc"), ("abc", " \u2003"), ("abc " * 5, "abc " * 5), ("abc " * 4, "abc"), good, ("abc", "abc")]
    kept, dropped = sieve(pairs, tokenizer, max_length=4, max_ratio=3, duplicates="drop")
    assert kept == [good, ("abc", "abc")]
    assert dropped == {"empty": 2, "too long": 1, "length ratio": 1, "duplicate": 1}


def test_limits_are_inclusive(tokenizer):
    pairs = [("abc " * 4, "abc " * 2)]
    assert sieve(pairs, tokenizer, max_length=4, max_ratio=2) == (pairs, {})
    assert sieve(pairs, tokenizer, max_length=3)[1] == {"too long": 1}
    assert sieve(pairs, tokenizer, max_length=4, max_ratio=1.9)[1] == {"length ratio": 1}


def test_without_a_source_the_target_alone_is_looked_at(tokenizer):
    pairs = [("", "abc"), ("", " "), ("", "abc def"), ("", "abc " * 5), ("", ""), ("", "abc")]
    kept, dropped = sieve(pairs, tokenizer, has_source=False, max_length=4, max_ratio=1.5, duplicates="drop")
    assert kept == [("", "abc"), ("", "abc def")]
    assert dropped == {"empty": 2, "too long": 1, "duplicate": 1}


def test_empty_lines_are_kept_where_that_is_asked_for(tokenizer):
    texts = [("", "abc"), ("", ""), ("", " "), ("", "def"), ("", "")]
    assert sieve(texts, tokenizer, has_source=False, empty="keep", max_ratio=2) == (texts, {})
    pairs = [("abc", ""), ("", ""), ("", "abc")]
    assert sieve(pairs, tokenizer, empty="keep") == (pairs, {})
    assert sieve(pairs, tokenizer)[1] == {"empty": 3}


def test_duplicates_are_whole_pairs_and_are_seen_across_chunks(tokenizer, monkeypatch):
    monkeypatch.setattr(examples, "CHUNK_ROWS", 2)
    pairs = [("abc", "abc"), ("abc", "def"), ("abc", "abc"), ("def", "abc"), ("abc", "def")]
    assert sieve(pairs, tokenizer, duplicates="drop") == (pairs[:2] + pairs[3:4], {"duplicate": 2})
    assert sieve(pairs, tokenizer) == (pairs, {})


def test_what_was_dropped_for_another_reason_makes_no_duplicate(tokenizer):
    pairs = [("abc " * 3, "abc")] * 2
    assert sieve(pairs, tokenizer, max_length=2, duplicates="drop")[1] == {"too long": 2}


def test_kept_rows_keep_their_numbers_and_ids(tokenizer):
    (chunk,) = encode_rows([("abc", "def"), ("", "abc"), ("def abc", "abc")], tokenizer, tokenizer)
    kept = PairFilter(LimitsConfig())(chunk)
    assert kept.rows.tolist() == [0, 2]
    assert kept.source.ids.tolist() == tokenizer.encode("abc") + tokenizer.encode("def abc")
    assert kept.target.lengths.tolist() == [1, 1]


def test_every_reason_is_counted_from_zero():
    assert PairFilter(LimitsConfig()).dropped == dict.fromkeys(DROP_REASONS, 0)
