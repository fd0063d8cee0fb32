import torch
from hypothesis import given
from hypothesis import strategies as st

from tfm.model.layout import Layout

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=7)


@given(LENGTHS)
def test_pad_puts_each_row_at_its_place_and_zeros_elsewhere(lengths: list[int]) -> None:
    layout = Layout.from_lengths(torch.tensor(lengths))
    rows = torch.arange(1.0, sum(lengths) + 1)[:, None].expand(-1, 3)
    padded = layout.pad(rows)
    expected = torch.zeros(len(lengths), max(lengths), 3)
    row = 0
    for sentence, length in enumerate(lengths):
        for position in range(length):
            row += 1
            expected[sentence, position] = row
    assert torch.equal(padded, expected)
    assert torch.equal(padded[..., 0] > 0, layout.mask)
    assert torch.equal(layout.unpad(padded), rows)


@given(LENGTHS)
def test_positions_count_from_zero_in_each_sentence(lengths: list[int]) -> None:
    positions = Layout.from_lengths(torch.tensor(lengths)).positions
    assert positions.tolist() == [position for length in lengths for position in range(length)]


def test_gradients_of_pad_and_unpad() -> None:
    layout = Layout.from_lengths(torch.tensor([3, 1, 2]))
    rows = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    padded = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.pad, rows)
    assert torch.autograd.gradcheck(layout.unpad, padded)
