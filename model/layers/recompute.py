"""Activation checkpointing (Chen et al. 2016): layers keep their input alone, and are computed again in backward.

The same dropout is drawn the second time, so that gradients are the same to the bit.
"""

from contextlib import nullcontext
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from tfm.model.layers.dropout import DropoutRng


def recompute_layer(layer: nn.Module, dropout_rng: DropoutRng) -> None:
    """Let a layer compute its activations again in the backward pass of training.

    Args:
        layer: changed in place.
        dropout_rng: the source of its dropout masks.
    """
    forward = layer.forward

    def recompute(*inputs: Any) -> Any:
        if not layer.training:
            return forward(*inputs)
        state = dropout_rng.state
        return checkpoint(
            forward,
            *inputs,
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=lambda: (nullcontext(), dropout_rng.replay(state)),
        )

    layer.forward = recompute
