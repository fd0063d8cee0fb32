"""Residual connections, with the norm before or after what is added.

Legend: N rows · D width.
"""

from collections.abc import Callable

from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout

Sublayer = Callable[[Tensor], Tensor]


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x)))   (Xiong et al. 2020)."""

    ends_normed = False  # the sum of all sublayers leaves the stack as it is

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        added: Tensor = self.dropout(sublayer(self.norm(x)))
        return x + added


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x)))   (Vaswani et al. 2017, sec. 3.1)."""

    ends_normed = True

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed


Residual = PreNorm | PostNorm
NORMS: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
