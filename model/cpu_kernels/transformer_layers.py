"""Weights of a Transformer's stack as the compiled searches read them, and the parts of a layer that they share.

Legend: L layers · N rows · D width · F feed-forward width · H heads · G heads of keys and values · K width of a head's
queries and keys · V width of its values, or the vocabulary · M most positions.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from tfm.model.cpu_kernels.jit import UNROLL_FACTOR, compile_function, helper_jit, inline_jit
from tfm.model.cpu_kernels.layer_norm import layer_norm
from tfm.model.cpu_kernels.softmax import ZERO, exp
from tfm.model.cpu_kernels.vectors import LANES, load, load_partial, load_scalar, splat, store_partial, vmax

Array = Any


class LinearWeights(NamedTuple):
    """y = W x + b of each layer: weight (L, out, in), or in panels (L, out / LANES, in, LANES); bias (L, out)."""

    weight: Array
    bias: Array


class NormWeights(NamedTuple):
    """(x - mean) / sqrt(var + eps) * g + b of each layer: gain and bias (L, D)."""

    gain: Array
    bias: Array


class AttentionWeights(NamedTuple):
    """projection D -> H K, and in self-attention + G K + G V; output H V -> D; norm: that of its residual.

    An SSRU has them, too: projection D -> 2 D, the forget gates and the candidates; no output.
    """

    projection: LinearWeights
    output: LinearWeights
    norm: NormWeights


class FeedForwardWeights(NamedTuple):
    """inner D -> F; outer F -> D; norm: that of its residual."""

    inner: LinearWeights
    outer: LinearWeights
    norm: NormWeights


class StackSettings(NamedTuple):
    """head_shapes: H, G, K, V. is_pre_norm: whether norms stand before sublayers, or after. activation: that of the
    feed-forward layers. has_ssru: whether the first sublayer is an SSRU (`greedy_search.py`), and no self-attention.
    """

    head_shapes: tuple[int, int, int, int]
    embedding_scale: float
    norm_eps: float
    is_pre_norm: bool
    activation: int
    has_ssru: bool


class StackWeights(NamedTuple):
    """An encoder, or a decoder but for its cross-attention.

    Args:
        table: (V, D) embeddings of pieces.
        positions: (M, D), added to the embeddings.
        cos_sin: (M, K / 2, 2), cosine and sine of the angles by which `rotate_heads` rotates queries and keys of a
            position.
        attention: weights of self-attention.
        feed_forward: weights of the feed-forward layers.
        final_norm: the norm that a pre-norm stack ends with.
        settings: settings of the stack.
    """

    table: Array
    positions: Array
    cos_sin: Array
    attention: AttentionWeights
    feed_forward: FeedForwardWeights
    final_norm: NormWeights
    settings: StackSettings


PANEL_ROWS = 5
"""The rows of a product whose sums the registers hold beside a weight in panels: as many as a beam usually has."""
FLOAT32_2D, FLOAT32_3D, FLOAT32_4D, FLOAT32_5D = (types.Array(types.float32, dims, "C") for dims in (2, 3, 4, 5))
IDS_TYPE, INT_TYPE, FLOAT_TYPE = types.Array(types.int64, 1, "C"), types.int64, types.float64
HEADS_TYPE, SPECIAL_IDS_TYPE = types.UniTuple(INT_TYPE, 4), types.UniTuple(INT_TYPE, 3)
STACK_SETTINGS_TYPE = types.NamedTuple(
    [HEADS_TYPE, FLOAT_TYPE, FLOAT_TYPE, types.boolean, INT_TYPE, types.boolean], StackSettings
)
NORMS_TYPE = types.NamedUniTuple(FLOAT32_2D, 2, NormWeights)
LINEARS_TYPE, PANELS_TYPE = (
    types.NamedTuple([weight, FLOAT32_2D], LinearWeights) for weight in (FLOAT32_3D, FLOAT32_4D)
)


def _sublayer_numba_type(linears: Any, kind: type) -> Any:
    """The type of `AttentionWeights` or `FeedForwardWeights` of such linear layers."""
    return types.NamedTuple([linears, linears, NORMS_TYPE], kind)


def _stack_type(linears: Any) -> Any:
    """The type of `StackWeights` of such linear layers."""
    sublayers = (_sublayer_numba_type(linears, kind) for kind in (AttentionWeights, FeedForwardWeights))
    return types.NamedTuple(
        [FLOAT32_2D, FLOAT32_2D, FLOAT32_3D, *sublayers, NORMS_TYPE, STACK_SETTINGS_TYPE], StackWeights
    )


ATTENTION_TYPE, PANELS_ATTENTION_TYPE = (
    _sublayer_numba_type(each, AttentionWeights) for each in (LINEARS_TYPE, PANELS_TYPE)
)
STACK_TYPE, PANELS_STACK_TYPE = (_stack_type(each) for each in (LINEARS_TYPE, PANELS_TYPE))

RELU, GELU, GELU_TANH = range(3)
"""Activations of a feed-forward layer."""


@helper_jit
def apply_linear(linears, layer, x):  # type: ignore[no-untyped-def]
    """W x + b of each row: (N, in) -> (N, out)."""
    y = np.empty((len(x), linears.bias.shape[1]), np.float32)
    multiply_rows(linears.weight[layer], linears.bias[layer], x, y)
    return y


@helper_jit
def multiply_rows(weight, bias, x, y):  # type: ignore[no-untyped-def]
    """Set y = W x + b of each row.

    Args:
        weight: (out, in), or in panels (out / LANES, in, LANES).
        bias: (out,).
        x: (N, in).
        y: (N, out), written.
    """
    if weight.ndim == 2:
        _multiply_plain(weight, bias, x, y)
    elif len(x) >= PANEL_ROWS:
        _multiply_panels(weight, bias, x, y)
    else:
        padded = np.zeros((PANEL_ROWS, x.shape[1]), np.float32), np.empty((PANEL_ROWS, y.shape[1]), np.float32)
        padded[0][: len(x)] = x
        _multiply_panels(weight, bias, padded[0], padded[1])
        y[:] = padded[1][: len(x)]


@helper_jit
def _multiply_plain(weight, bias, x, y):  # type: ignore[no-untyped-def]
    """Set y = W x + b of each row, by a weight (out, in)."""
    unrolled_end = len(x) // UNROLL_FACTOR * UNROLL_FACTOR
    for o in range(len(bias)):
        for n in range(0, unrolled_end, UNROLL_FACTOR):
            y0 = y1 = y2 = y3 = np.float32(0.0)
            for i in range(weight.shape[1]):
                w = weight[o, i]
                y0 += w * x[n, i]
                y1 += w * x[n + 1, i]
                y2 += w * x[n + 2, i]
                y3 += w * x[n + 3, i]
            y[n, o], y[n + 1, o], y[n + 2, o], y[n + 3, o] = y0 + bias[o], y1 + bias[o], y2 + bias[o], y3 + bias[o]
        for n in range(unrolled_end, len(x)):
            total = np.float32(0.0)
            for i in range(weight.shape[1]):
                total += weight[o, i] * x[n, i]
            y[n, o] = total + bias[o]


@helper_jit
def _multiply_panels(weight, bias, x, y):  # type: ignore[no-untyped-def]
    """Set y = W x + b of PANEL_ROWS rows or more, by a weight in panels.

    Each number is one sum over the width, in one order, whichever rows are beside it.
    """
    (panels, dim, _), (rows, out) = weight.shape, y.shape
    for p in range(panels):
        first, column, count, n = p * dim * LANES, p * LANES, out - p * LANES, 0
        while n < rows:
            n = min(n, rows - PANEL_ROWS)  # the last ones with some that are done, which get the same again
            x_offset, y_offset = n * dim, n * out + column
            y0 = y1 = y2 = y3 = y4 = load_partial(bias, column, count, ZERO)
            for i in range(dim):
                w = load(weight, first + i * LANES)
                y0 = y0 + splat(load_scalar(x, x_offset + i)) * w
                y1 = y1 + splat(load_scalar(x, x_offset + dim + i)) * w
                y2 = y2 + splat(load_scalar(x, x_offset + 2 * dim + i)) * w
                y3 = y3 + splat(load_scalar(x, x_offset + 3 * dim + i)) * w
                y4 = y4 + splat(load_scalar(x, x_offset + 4 * dim + i)) * w
            store_partial(y, y_offset, count, y0)
            store_partial(y, y_offset + out, count, y1)
            store_partial(y, y_offset + 2 * out, count, y2)
            store_partial(y, y_offset + 3 * out, count, y3)
            store_partial(y, y_offset + 4 * out, count, y4)
            n += PANEL_ROWS


@helper_jit
def apply_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Layer norm of each row (N, D)."""
    y = np.empty_like(x)
    layer_norm(x, norms.gain[layer], norms.bias[layer], np.float32(settings.norm_eps), y)
    return y


@helper_jit
def pre_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Return the input of a sublayer, or the output of the stack: norm(x), or x."""
    return apply_norm(settings, norms, layer, x) if settings.is_pre_norm else x


@helper_jit
def post_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Return the output of a residual: x, or norm(x)."""
    return x if settings.is_pre_norm else apply_norm(settings, norms, layer, x)


@helper_jit
def add_rows(x, added):  # type: ignore[no-untyped-def]
    """Return x + added, rows (N, D)."""
    y, (rows, width) = np.empty_like(x), x.shape
    for n in range(rows):
        for i in range(width):
            y[n, i] = x[n, i] + added[n, i]
    return y


@helper_jit
def embed_ids(table, positions, scale, ids, first_position):  # type: ignore[no-untyped-def]
    """Return embedding * scale + position, of rows from position `first_position` on: ids (N,) -> (N, D)."""
    rows, width, x = len(ids), table.shape[1], np.empty((len(ids), table.shape[1]), np.float32)
    for n in range(rows):
        for i in range(width):
            x[n, i] = table[ids[n], i] * np.float32(scale) + positions[first_position + n, i]
    return x


@inline_jit
def _gelu(x):  # type: ignore[no-untyped-def]
    """Return x Phi(x) of a vector: max(0, x) - |x| erfc(|x| / sqrt(2)) / 2, erfc by Abramowitz and Stegun 1964, 7.1.26.

    That polynomial is exact to 1.5e-7.
    """
    size = vmax(x, splat(ZERO) - x)
    t = splat(np.float32(1.0)) / (splat(np.float32(1.0)) + splat(np.float32(0.3275911 * 0.5**0.5)) * size)
    sum_ = splat(np.float32(1.061405429)) * t + splat(np.float32(-1.453152027))
    sum_ = sum_ * t + splat(np.float32(1.421413741))
    sum_ = sum_ * t + splat(np.float32(-0.284496736))
    sum_ = (sum_ * t + splat(np.float32(0.254829592))) * t
    tail = sum_ * exp(splat(np.float32(-0.5)) * size * size)
    return vmax(x, splat(ZERO)) - splat(np.float32(0.5)) * size * tail


@inline_jit
def _gelu_tanh(x):  # type: ignore[no-untyped-def]
    """Return x / 2 (1 + tanh(y)) = x / (1 + e^(-2y)), y = sqrt(2 / pi) (x + 0.044715 x^3), of a vector."""
    y = splat(np.float32(2.0 * (2.0 / np.pi) ** 0.5)) * (x + splat(np.float32(0.044715)) * x * x * x)
    exponent = splat(ZERO) - vmax(y, splat(np.float32(-80.0)))
    return x / (splat(np.float32(1.0)) + exp(exponent))


@helper_jit
def activate(rows, activation):  # type: ignore[no-untyped-def]
    """Apply the activation to rows (N, F), in place."""
    for i in range(0, rows.size, LANES):
        x = load_partial(rows, i, rows.size - i, ZERO)
        if activation == GELU:
            x = _gelu(x)
        elif activation == GELU_TANH:
            x = _gelu_tanh(x)
        else:
            x = vmax(x, splat(ZERO))
        store_partial(rows, i, rows.size - i, x)


@helper_jit
def rotate_heads(rows, cos_sin, heads):  # type: ignore[no-untyped-def]
    """Rotate the first heads of rows, in place; rows beyond the first R stay.

    Args:
        rows: (N, heads K or more).
        cos_sin: (R, K / 2, 2): cosine and sine of the angle of each pair x_2i, x_2i+1; (R, 0, 2) rotates nothing.
        heads: number of heads to rotate.
    """
    num_rows, pairs, _ = cos_sin.shape
    for n in range(num_rows):
        for h in range(heads):
            for i in range(pairs):
                column = 2 * (h * pairs + i)
                x, y, cos, sin = rows[n, column], rows[n, column + 1], cos_sin[n, i, 0], cos_sin[n, i, 1]
                rows[n, column], rows[n, column + 1] = x * cos - y * sin, x * sin + y * cos


@compile_function("void(f4[:,::1], f4[:,:,::1], i8)")
def rotate_rows(rows, cos_sin, heads):  # type: ignore[no-untyped-def]
    """Rotate the first heads of rows, in place: `rotate_heads` as a compiled loop.

    Args:
        rows: (N, heads K or more).
        cos_sin: (R, K / 2, 2).
        heads: number of heads to rotate.
    """
    rotate_heads(rows, cos_sin, heads)
