import numpy as np
import pytest

from tfm.data.batching.token_stream import TokenStream
from tfm.data.dataset.split import Split
from tfm.data.dataset.store import load_split, write_split
from tfm.data.errors import DataError
from tfm.data.formats.lazy_arrays import LazyArray, piecewise_constant
from tfm.pipeline.tasks.language_model import concatenate_targets

SIZES = (3, 0, 700, 1, 296)


@pytest.fixture
def splits(tmp_path) -> tuple[Split, Split]:
    """One split, read at once and read when it is asked for."""
    rng = np.random.default_rng(5)
    with write_split(tmp_path / "train", texts=False) as written:
        for size in SIZES:
            sides = []
            for _ in range(2):
                lengths = rng.integers(0, 9, size)
                sides.append((rng.integers(4, 50, lengths.sum()).astype(np.int32), lengths))
            written.write(*sides, np.full(size, 0.5 + size % 2))
    return load_split(tmp_path / "train", texts=False), load_split(tmp_path / "train", texts=False, shard_rows=10)


def test_a_column_in_the_file_is_that_in_memory(splits):
    whole, lazy = splits
    rows = np.random.default_rng(1).integers(0, 1_000, 300)
    assert isinstance(lazy.source.lengths, LazyArray)
    assert isinstance(lazy.weights, LazyArray)
    for name in ("source", "target"):
        one, other = getattr(whole, name), getattr(lazy, name)
        assert len(one) == len(other) == 1_000
        assert (np.asarray(other.lengths) == one.lengths).all()
        assert (np.asarray(other.starts) == one.starts).all()
        for some in (slice(2, 4), slice(690, 1_000), slice(5, 2), slice(0, 900, 7)):
            assert (other.lengths[some] == one.lengths[some]).all()
        assert all((found == wanted).all() for found, wanted in zip(other.take(rows), one.take(rows), strict=True))
        assert (other[703] == one[703]).all()
        assert (other[0] == one[0]).all()
    assert (lazy.weights[rows] == whole.weights[rows]).all()
    assert (np.asarray(lazy.weights) == whole.weights).all()


def test_running_text_in_the_file_is_that_in_memory(splits):
    whole, lazy = splits
    stream, text = TokenStream(lazy), concatenate_targets(whole)
    assert len(stream) == len(text)
    starts = np.random.default_rng(2).integers(0, len(text) - 30, 40)
    places = (starts[:, None] + np.arange(30)).reshape(-1)
    assert (stream[places] == text[places]).all()
    assert (stream[np.arange(len(text))] == text).all()


def test_ids_of_a_large_split_are_checked_when_they_are_read(splits):
    column = splits[1].source
    limited = type(column)(column.values, column.starts, column.lengths, vocab_size=40)
    with pytest.raises(DataError, match="token ids that its tokenizer does not have"):
        limited.take(np.arange(1_000))


def test_stretches_of_weights_multiply():
    one, other = piecewise_constant([2, 0, 3], [1.0, 9.0, 2.0]), piecewise_constant([4, 1], [3.0, 5.0])
    assert np.asarray(one * other).tolist() == [3.0, 3.0, 6.0, 6.0, 10.0]
    assert (one * other)[np.array([4, 1])].tolist() == [10.0, 3.0]
    assert (one * other)[1:4].tolist() == [3.0, 6.0, 6.0]
