import numpy as np
import pytest
import torch

from tfm.data.batching.batches import make_pair_batch, pair_batch_from_ids
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.tokenizer.special import BOS_ID, EOS_ID

SOURCES = [[4, 5], [6], [7, 8, 9], []]
TARGETS = [[10], [11, 12], [], [13]]
SPLIT = Split(TokenIdColumn.from_lists(SOURCES), TokenIdColumn.from_lists(TARGETS), np.ones(4))


def test_a_batch_has_no_padding_and_its_control_tokens_in_place():
    batch = make_pair_batch(SPLIT, np.array([2, 0]))
    assert batch.source.tolist() == [7, 8, 9, EOS_ID, 4, 5, EOS_ID]
    assert batch.source_lengths.tolist() == [4, 3]
    assert batch.target_in.tolist() == [BOS_ID, BOS_ID, 10]
    assert batch.target_out.tolist() == [EOS_ID, 10, EOS_ID]
    assert batch.target_lengths.tolist() == [1, 2]
    assert batch.rows.tolist() == [2, 0]
    assert batch.num_target_tokens == 3


def test_any_rows_agree_with_the_plain_loop():
    rng = np.random.default_rng(0)
    lists = [[rng.integers(4, 99, rng.integers(0, 6)).tolist() for _ in range(40)] for _ in range(2)]
    split = Split(TokenIdColumn.from_lists(lists[0]), TokenIdColumn.from_lists(lists[1]), np.ones(40))
    for rows in (rng.permutation(40)[:7], np.arange(40), np.array([3, 3])):
        batch = make_pair_batch(split, rows)
        assert batch.source.tolist() == [token for row in rows for token in [*lists[0][row], EOS_ID]]
        assert batch.target_in.tolist() == [token for row in rows for token in [BOS_ID, *lists[1][row]]]
        assert batch.target_out.tolist() == [token for row in rows for token in [*lists[1][row], EOS_ID]]
        assert batch.source_lengths.sum() == len(batch.source)
        assert batch.target_lengths.sum() == len(batch.target_in)


def test_tensors_are_int64():
    batch = make_pair_batch(SPLIT, np.array([1]))
    tensors = (batch.source, batch.source_lengths, batch.target_in, batch.target_out, batch.target_lengths)
    assert {tensor.dtype for tensor in tensors} == {torch.int64}


def test_ids_in_memory_make_the_same_batch():
    one, other = pair_batch_from_ids(SOURCES, TARGETS), make_pair_batch(SPLIT, np.arange(4))
    for name in ("source", "source_lengths", "target_in", "target_out", "target_lengths"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert one.rows.tolist() == [0, 1, 2, 3]


def test_sides_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="2 sources but 1 targets"):
        pair_batch_from_ids([[4], [5]], [[6]])


def test_to_moves_the_tokens_and_leaves_the_lengths():
    moved = pair_batch_from_ids([[4]], [[5]]).to("meta")
    assert {each.device.type for each in (moved.source, moved.target_in, moved.target_out)} == {"meta"}
    assert {each.device.type for each in (moved.source_lengths, moved.target_lengths)} == {"cpu"}
