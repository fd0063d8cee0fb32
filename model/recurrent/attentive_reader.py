"""The encoder of a recurrent model that does not read step by step: an image's tokens, or rows of characters.

The rows are the memory, and their mean is the first state.
"""

from collections.abc import Iterable

from torch import Tensor, nn

from tfm.model.layout import Layout
from tfm.model.masks import padding_mask
from tfm.model.recurrent.cells import States


class AttentionEncoderWithMeanState(nn.Module):
    """tokens -> layers -> norm -> the memory a, and its mean, of which the decoder's first states are made.

    A decoder without attention sees of the image only these states (Vinyals et al. 2015; Karpathy and Fei-Fei 2015);
    one with attention also looks at each token (Xu et al. 2015, sec. 3.1.2: h_0 = f(mean of a)).
    Legend: N rows · B images · D width.
    """

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module) -> None:
        super().__init__()
        self.layers, self.norm = nn.ModuleList(layers), norm

    def forward(self, rows: Tensor, layout: Layout) -> tuple[Tensor, list[States]]:
        """Return the memory (N, D) of rows (N, D), and one state (B, D) of one layer."""
        mask = padding_mask(layout)
        for layer in self.layers:
            rows = layer(rows, layout, mask)
        rows = self.norm(rows)
        lengths = layout.lengths.to(rows.device, rows.dtype, non_blocking=True)
        return rows, [(layout.pad(rows).sum(1) / lengths.unsqueeze(1),)]
