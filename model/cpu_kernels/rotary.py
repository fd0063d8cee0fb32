"""Rotary positions: pairs of components of queries and keys are turned by the position of their row."""

from tfm.model.cpu_kernels.jit import compile_function, helper_jit


@helper_jit
def rotate_heads(rows, turns, heads):  # type: ignore[no-untyped-def]
    """Turn the first heads of rows, in place; rows beyond the first R stay.

    Args:
        rows: (N, heads K or more).
        turns: (R, K / 2, 2): cosine and sine of the angle of each pair x_2i, x_2i+1 of a row; (R, 0, 2) turns nothing.
        heads: number of heads to turn.
    """
    num_rows, pairs, _ = turns.shape
    for n in range(num_rows):
        for h in range(heads):
            for i in range(pairs):
                place = 2 * (h * pairs + i)
                x, y, cos, sin = rows[n, place], rows[n, place + 1], turns[n, i, 0], turns[n, i, 1]
                rows[n, place], rows[n, place + 1] = x * cos - y * sin, x * sin + y * cos


@compile_function("void(f4[:,::1], f4[:,:,::1], i8)")
def rotate_rows(rows, turns, heads):  # type: ignore[no-untyped-def]
    """Turn the first heads of rows, in place: `rotate_heads` as a compiled loop.

    Args:
        rows: (N, heads K or more).
        turns: (R, K / 2, 2).
        heads: number of heads to turn.
    """
    rotate_heads(rows, turns, heads)
