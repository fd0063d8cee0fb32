"""The factory of networks with a single recurrent stack: language models, classifiers and taggers.

    h = embedding of the text        of each layer h' = dropout(cells(norm(h)))        the last h' -> output layer

The networks are `DecoderOnly` and `EncoderOnly`, with these layers in the place of theirs:
nothing is added to what a layer reads, and no feed-forward layer follows it.
"""

import torch
from torch import nn

from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers.dropout import Dropout
from tfm.model.layers.normalization import NORMALIZATIONS
from tfm.model.layers.residual import PreNormWithoutResidual, StochasticDepth
from tfm.model.recurrent.cells import CELLS
from tfm.model.transformer.factory import ModuleFactory
from tfm.model.transformer.layers import EncoderLayer
from tfm.model.transformer.token_mixing import RecurrentMixing


class RecurrentStackFactory(ModuleFactory):
    """The parts of a network with one stack of recurrent layers.

    Args:
        config: the [model] part of a recipe.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, config: ModelConfig, compute_dtype: torch.dtype) -> None:
        super().__init__(config.model_copy(update={"positions": "none"}), compute_dtype)

    def layer(self, stack: StackConfig, *, causal: bool = False, layer_index: int | None = None) -> EncoderLayer:
        """Return one recurrent layer.

        Args:
            stack: the settings of its stack.
            causal: whether a row sees none after it.
            layer_index: number of the layer in the stack, from 0.
        """
        recurrent = self.config.recurrent
        cell, directions = CELLS[recurrent.cell], 2 if recurrent.bidirectional and not causal else 1
        cells = [cell(stack.dim, stack.dim // directions, compute_dtype=self.compute_dtype) for _ in range(directions)]
        norm = NORMALIZATIONS[recurrent.normalization if layer_index else "none"](stack.dim, eps=self.config.norm_eps)
        dropout = Dropout(self.config.dropout.residual, self.dropout_rng)
        stochastic_depth = StochasticDepth(0.0, self.dropout_rng)
        return EncoderLayer(
            RecurrentMixing(cells), None, lambda: PreNormWithoutResidual(norm, dropout, stochastic_depth)
        )

    def final_norm(self, stack: StackConfig) -> nn.Module:
        """Return the identity: no norm ends the stack."""
        return nn.Identity()
