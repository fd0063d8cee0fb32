"""What is done to sixteen numbers side by side is what numpy does to each."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tfm.model.cpu_kernels.library", reason="no numba (extra: fast)", exc_type=ImportError)

from numba import njit

from tfm.model.cpu_kernels import vectors as v

SIDE, DRAW = v.LANES, np.random.default_rng(0)
X, Y = DRAW.standard_normal((2, SIDE)).astype(np.float32)


def bits(numbers: np.ndarray) -> np.ndarray:
    """As the upper halves of their bits."""
    return torch.from_numpy(numbers).bfloat16().view(torch.uint16).numpy()


@pytest.mark.parametrize("count", [-(2**40), -1, 0, 1, 7, SIDE - 1, SIDE, SIDE + 1, 2**40])
@pytest.mark.parametrize("is_low", [False, True])
@pytest.mark.few(9)
def test_the_first_numbers_are_read_and_written_and_no_others(count: int, is_low: bool) -> None:
    @njit
    def copy(read, written, count):
        v.store_partial(written, 2, count, v.load_partial(read, 1, count, np.float32(-9.0)))
        v.store(written, SIDE + 4, v.load_partial(read, 1, count, np.float32(-9.0)))

    numbers = bits(np.arange(SIDE + 2, dtype=np.float32)) if is_low else np.arange(SIDE + 2, dtype=np.float32)
    written, num_read = np.full(2 * SIDE + 4, -1.0, np.float32), min(max(count, 0), SIDE)
    copy(numbers, written, count)
    of_read = list(range(1, num_read + 1))
    assert written.tolist() == [-1, -1, *of_read, *[-1] * (SIDE + 2 - num_read), *of_read, *[-9] * (SIDE - num_read)]


def test_nothing_is_read_beyond_the_end_of_memory() -> None:
    """The last numbers of a page that no readable page follows."""
    import ctypes
    import mmap

    @njit
    def last(numbers, found):
        v.store(found, 0, v.load_partial(numbers, len(numbers) - 3, 3, np.float32(0.0)))
        v.store(found, SIDE, v.load_partial(numbers, len(numbers), 0, np.float32(0.0)))

    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    held = np.frombuffer(pages, np.float32)
    held[:] = 1.0
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mprotect"):
        pytest.skip("no mprotect")
    guarded = ctypes.c_void_p(held.ctypes.data + mmap.PAGESIZE)
    assert libc.mprotect(guarded, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    found = np.full(2 * SIDE, -1.0, np.float32)
    last(held[: len(held) // 2], found)
    assert libc.mprotect(guarded, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert found.tolist() == [1.0] * 3 + [0.0] * (2 * SIDE - 3)


def test_vectors_are_added_subtracted_and_multiplied() -> None:
    @njit
    def compute(x, y, found):
        a, b = v.load(x, 0), v.load(y, 0)
        v.store(found, 0, a + b)
        v.store(found, SIDE, a - b)
        v.store(found, 2 * SIDE, a * b)
        v.store(found, 3 * SIDE, v.vmax(a, b))
        v.store(found, 4 * SIDE, v.floor(a))
        v.store(found, 5 * SIDE, v.exp2(v.floor(b)))
        v.store(found, 6 * SIDE, v.splat(y[3]))
        return v.hsum(a), v.hmax(a)

    found = np.empty((7, SIDE), np.float32)
    total, largest = compute(X, Y, found.reshape(-1))
    wanted = [X + Y, X - Y, X * Y, np.maximum(X, Y), np.floor(X), 2.0 ** np.floor(Y), np.full(SIDE, Y[3])]
    assert (found == np.array(wanted, np.float32)).all()
    assert total == pytest.approx(X.astype(float).sum(), abs=1e-5)
    assert largest == X.max()


def test_the_sums_of_four_vectors_stand_side_by_side() -> None:
    @njit
    def sums(numbers, found):
        v.store_hsums(found, 1, *(v.load(numbers, 0), v.load(numbers, 16), v.load(numbers, 32), v.load(numbers, 48)))

    numbers, found = DRAW.integers(-99, 99, (4, SIDE)).astype(np.float32), np.zeros(6, np.float32)
    sums(numbers.reshape(-1), found)
    assert found.tolist() == [0.0, *numbers.sum(1).tolist(), 0.0]


@pytest.mark.parametrize("place", [0, 5, SIDE - 1])
def test_one_number_that_reaches_a_bound_is_found(place: int) -> None:
    @njit
    def reaches(numbers, bound):
        return v.any_at_least(v.load(numbers, 0), bound)

    numbers = np.full(SIDE, -1.0, np.float32)
    numbers[place] = 2.0
    assert reaches(numbers, np.float32(2.0))
    assert not reaches(numbers, np.nextafter(np.float32(2.0), np.float32(3.0)))
    numbers[place] = math.nan
    assert not reaches(numbers, np.float32(0.0))


def test_what_is_not_a_number_is_kept_where_it_is_compared_first() -> None:
    @njit
    def compared(x, y, found):
        v.store(found, 0, v.vmax(v.load(x, 0), v.load(y, 0)))

    found, nans = np.empty(SIDE, np.float32), np.full(SIDE, math.nan, np.float32)
    compared(nans, X, found)
    assert np.isnan(found).all()
    compared(X, nans, found)
    assert (found == X).all()


@njit
def _copy(read, written):  # type: ignore[no-untyped-def]
    v.store(written, 0, v.load(read, 0))
    return v.load_scalar(read, 3)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=SIDE, max_size=SIDE))
def test_numbers_are_rounded_to_bf16_and_back_as_torch_does(each: list[int]) -> None:
    numbers = np.array(each, np.uint32).view(np.float32)
    low, wide, wanted = np.empty(SIDE, np.uint16), np.empty(SIDE, np.float32), torch.from_numpy(numbers).bfloat16()
    _copy(numbers, low)
    fourth = _copy(low, wide)
    is_nan = np.isnan(numbers)
    assert (torch.from_numpy(low).view(torch.bfloat16).isnan().numpy() == is_nan).all()
    assert (low == wanted.view(torch.uint16).numpy())[~is_nan].all()
    assert (wide == wanted.float().numpy())[~is_nan].all()
    assert fourth == wide[3] or is_nan[3]


def test_the_first_numbers_are_rounded_and_written_and_no_others() -> None:
    @njit
    def write(numbers, low):
        v.store_partial(low, 1, 5, v.load(numbers, 0))

    low = np.zeros(SIDE, np.uint16)
    write(X, low)
    assert (low == np.concatenate([[0], bits(X)[:5], np.zeros(SIDE - 6)])).all()
