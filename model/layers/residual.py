"""Residual connections, with the norm before or after the sublayer.

Legend: N rows · D width.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout, DropoutRng

Sublayer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class StochasticDepth:
    """b f(x) / (1 - r) in place of f(x) in training, b = 0 with probability r, else 1   (Huang et al. 2016, eq. 2).

    One b for all rows of a batch, as in the paper, so that a sublayer f that is left out need not be computed. The
    paper multiplies by 1 - r after training instead (eq. 5): the expectation is the same.
    """

    rate: float
    dropout_rng: DropoutRng

    def draw_factor(self) -> float:
        """Return b / (1 - r) of this pass and this sublayer: 0 if it is left out."""
        if not self.rate:
            return 1.0
        return 0.0 if self.dropout_rng.should_drop_layer(self.rate) else 1 / (1 - self.rate)


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x)))   (Xiong et al. 2020).

    Args:
        norm: norm of the sublayer's input.
        dropout: dropout of the sublayer's output.
        depth: stochastic depth, which leaves the sublayer out.
    """

    output_is_normalized = False  # the sum of all sublayers leaves the stack unchanged

    def __init__(self, norm: nn.Module, dropout: Dropout, depth: StochasticDepth) -> None:
        super().__init__()
        self.norm, self.dropout, self.depth = norm, dropout, depth

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        factor = self.depth.draw_factor() if self.training else 1.0
        if factor == 0:
            return x
        added: Tensor = self.dropout(sublayer(self.norm(x)))
        return x + (added if factor == 1 else added * factor)


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x)))   (Vaswani et al. 2017, sec. 3.1).

    Args:
        norm: norm of the sum.
        dropout: dropout of the sublayer's output.
        depth: stochastic depth, which leaves the sublayer out.
    """

    output_is_normalized = True

    def __init__(self, norm: nn.Module, dropout: Dropout, depth: StochasticDepth) -> None:
        super().__init__()
        self.norm, self.dropout, self.depth = norm, dropout, depth

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        factor = self.depth.draw_factor() if self.training else 1.0
        if factor:
            added = self.dropout(sublayer(x))
            x = x + (added if factor == 1 else added * factor)
        normed: Tensor = self.norm(x)
        return normed


class PreNormWithoutResidual(nn.Module):
    """dropout(sublayer(norm(x))): x is not added.

    Args:
        norm: norm of the sublayer's input.
        dropout: dropout of the sublayer's output.
        depth: unused: what leaves a sublayer out would leave nothing of x.
    """

    def __init__(self, norm: nn.Module, dropout: Dropout, depth: StochasticDepth) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        output: Tensor = self.dropout(sublayer(self.norm(x)))
        return output


class PostNormWithoutResidual(nn.Module):
    """norm(dropout(sublayer(x))): x is not added.

    Args:
        norm: norm of the sublayer's output.
        dropout: dropout of the sublayer's output.
        depth: unused: what leaves a sublayer out would leave nothing of x.
    """

    def __init__(self, norm: nn.Module, dropout: Dropout, depth: StochasticDepth) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        normed: Tensor = self.norm(self.dropout(sublayer(x)))
        return normed


Residual = PreNorm | PostNorm | PreNormWithoutResidual | PostNormWithoutResidual
RESIDUALS_BY_NORM_PLACEMENT: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
RESIDUALS: dict[str, dict[str, Callable[[nn.Module, Dropout, StochasticDepth], Residual]]] = {
    "add": {"pre": PreNorm, "post": PostNorm},
    "none": {"pre": PreNormWithoutResidual, "post": PostNormWithoutResidual},
}
"""By name: by the norm's place: (norm, dropout, stochastic depth) -> what is around a sublayer."""
