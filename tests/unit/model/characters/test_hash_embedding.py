"""Vectors of characters by hashes: the formula, written out; and few ids that share all of their buckets."""

import torch

from tfm.model.characters.hash_embedding import HASH_MULTIPLIER, HASH_PRIME, HashEmbedding

TEXT = "aé‐ क्षि السلام 猫 \U0001f469\u200d\U0001f52c \U0010ffff"


def test_a_bucket_is_what_the_formula_says() -> None:
    table = HashEmbedding(5, 1000, 10)
    ids = [0, 1, 2, 3, *(4 + ord(character) for character in TEXT), 0x110000 + 4]
    found = table.bucket_indices(torch.tensor(ids))
    a = [pow(48271, 2 * k + 1, 2**31 - 1) for k in range(1, 6)]
    b = [pow(48271, 2 * k + 2, 2**31 - 1) for k in range(1, 6)]
    assert found.tolist() == [[(a[k] * (i + 1) + b[k]) % (2**31 - 1) % 1000 for k in range(5)] for i in ids]
    rows = table(torch.tensor(ids))
    assert rows.shape == (len(ids), 10)
    for i, row in enumerate(rows):
        for k in range(5):
            assert torch.equal(row[2 * k : 2 * k + 2], table.tables.weight[1000 * k + found[i, k]])


def test_the_hashes_are_those_of_all_models_ever_written() -> None:
    """A changed constant would silently give every published model other characters."""
    found = HashEmbedding(3, 16384, 6).bucket_indices(torch.tensor([4 + ord("a"), 4 + ord("क"), 4 + 0x1F469]))
    assert found.tolist() == [[1951, 12683, 11475], [14867, 2924, 14915], [9857, 4373, 13532]]


def test_the_multiplier_reaches_every_number() -> None:
    """Park and Miller: the order of 48271 modulo the prime 2^31 - 1 is 2^31 - 2, so that no two tables hash alike."""
    order = HASH_PRIME - 1
    assert pow(HASH_MULTIPLIER, order, HASH_PRIME) == 1
    for factor in (2, 3, 7, 11, 31, 151, 331):  # 2^31 - 2 = 2 * 3^2 * 7 * 11 * 31 * 151 * 331
        assert order % factor == 0
        assert pow(HASH_MULTIPLIER, order // factor, HASH_PRIME) != 1
    assert order == 2 * 3**2 * 7 * 11 * 31 * 151 * 331


def test_two_characters_hardly_ever_share_all_buckets() -> None:
    """Of all characters of the plane that is in use; with the authors' hashes every 512th would be the same."""
    table, ids = HashEmbedding(4, 512, 4), torch.arange(4, 4 + 0x10000)
    places = table.bucket_indices(ids)
    assert len(torch.unique(places, dim=0)) == len(ids)
    for k in range(4):
        counts = torch.bincount(places[:, k], minlength=512)
        assert 64 < int(counts.min()) <= 128 <= int(counts.max()) < 200, "128 each in the mean"
    one, other = places[:, 0], places[:, 1]
    shared = (one[:512, None] == one) & (other[:512, None] == other)
    assert shared.sum() - 512 < 3 * 512 * 2**16 / 512**2, "as often as chance has it"


def test_tables_are_as_large_as_they_are_said_to_be() -> None:
    table = HashEmbedding(8, 64, 16)
    assert sum(each.numel() for each in table.parameters()) == 8 * 64 * 2
    assert [*table.state_dict()] == ["tables.weight"]
    assert table(torch.tensor([0x110000 + 3 + 4])).shape == (1, 16)
