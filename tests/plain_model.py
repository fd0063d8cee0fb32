"""A small encoder-decoder of the parts that compiled loops know, in which every weight tells."""

from typing import Any

import torch
from torch import nn

from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.transformer.encoder_decoder import EncoderDecoder

VOCAB = 23
STACK = StackConfig(layers=2, dim=24, heads=4, feed_forward_dim=36)


@torch.no_grad()
def network(**changes: Any) -> EncoderDecoder:
    """A model of `changes` whose weights, biases and norms are all random, and which is sure of what it says."""
    base = {"encoder": STACK, "decoder": STACK, "max_length": 32, "positions": "learned", "tie": "all"}
    base["dropout"] = DropoutConfig(residual=0, embedding=0)
    model = build(ModelConfig.model_validate(base | changes), source_vocab=VOCAB, target_vocab=VOCAB, seed=3)
    assert isinstance(model, EncoderDecoder)
    generator = torch.Generator().manual_seed(4)
    for parameter in model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    for stack in (model.encoder, model.decoder):
        for matrix in (parameter for parameter in stack.parameters() if parameter.dim() == 2):
            matrix.mul_(2)
    if isinstance(model.decoder_norm, nn.LayerNorm):
        model.decoder_norm.bias.mul_(0.1)  # what it says should come of what it reads
    return model.eval()
