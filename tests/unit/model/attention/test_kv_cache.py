import torch

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.masks import Mask


def slots(own: list[list[int]], used: int) -> CacheSlots:
    places = torch.tensor(own)
    return CacheSlots(places, torch.zeros_like(places), torch.zeros(len(own), used, dtype=torch.long), Mask())


def rows(first: int, width: int) -> torch.Tensor:
    """(2, 3, W, 4) different numbers."""
    return torch.arange(first, first + 2 * 3 * width * 4, dtype=torch.float32).view(2, 3, width, 4)


def test_each_row_is_where_it_was_written_however_much_comes_after_it() -> None:
    cache, expected = LayerKVCache(), torch.zeros(2, 3, 100, 4)
    written = [[[0, 1], [0, 1]], [[2, 3], [1, 0]], [[2, 70], [3, 99]], [[4, 5], [4, 5]]]
    for step, own in enumerate(written):
        used = max(map(max, own)) + 1
        new = rows(1000 * step + 1, 2)
        keys, values = cache.write(new, -new, slots(own, used))
        for sentence, places in enumerate(own):
            for place, row in zip(places, new[sentence].unbind(1), strict=True):
                expected[sentence, :, place] = row
        assert torch.equal(keys, expected[:, :, :used])
        assert torch.equal(values, -expected[:, :, :used])


def test_what_was_never_written_is_a_number() -> None:
    keys, _ = LayerKVCache().write(rows(1, 2), rows(1, 2), slots([[0, 9], [1, 2]], 10))
    assert not keys[0, :, 1:9].any()
    assert not keys[1, :, 3:].any()


def test_sentences_that_are_kept_keep_what_they_have() -> None:
    cache = LayerKVCache()
    cache.write(rows(1, 1), rows(1, 1), slots([[0], [0]], 1))
    kept = cache.select(torch.tensor([1]))
    new = rows(500, 1)[1:]
    keys, _ = kept.write(new, new, slots([[1]], 2))
    assert torch.equal(keys, torch.cat([rows(1, 1)[1:], new], 2))
    before, _ = cache.write(rows(9, 1), rows(9, 1), slots([[1], [1]], 2))
    assert torch.equal(before[:, :, :1], rows(1, 1))
    assert torch.equal(LayerKVCache().select(torch.tensor([0])).write(new, new, slots([[0]], 1))[0], new)
