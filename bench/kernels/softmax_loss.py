"""Seconds of an output layer's loss and gradients, in a process: `python -m bench.kernels.softmax_loss < JSON`.

Without cutoffs it is the full softmax, a linear layer.
"""

import json
import sys
from typing import Any

import torch
from torch import nn

from bench.kernels.gemm import best_seconds
from tfm.model.config import AdaptiveConfig
from tfm.model.layers.adaptive_softmax import AdaptiveSoftmax, make_clusters
from tfm.model.layers.linear import Linear
from tfm.pipeline.tasks.losses import output_loss


def make_layer(options: dict[str, Any], dtype: torch.dtype) -> nn.Module:
    """The output layer that is asked for."""
    vocab, dim = options["vocab"], options["dim"]
    if not options["cutoffs"]:
        return Linear(dim, vocab, bias=False, compute_dtype=dtype)
    config = AdaptiveConfig(cutoffs=tuple(options["cutoffs"]), factor=options["factor"])
    return AdaptiveSoftmax(make_clusters(config, dim, vocab), compute_dtype=dtype)


def main(options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    output = make_layer(options, torch.bfloat16 if options["bf16"] else torch.float32).train()
    hidden = torch.randn(options["rows"], options["dim"], requires_grad=True)
    by_rank = 1 / torch.arange(1, options["vocab"] + 1)
    targets = torch.multinomial(by_rank, options["rows"], replacement=True)

    def update() -> None:
        for tensor in (hidden, *output.parameters()):
            tensor.grad = None
        output_loss(output, hidden, targets, smoothing=0.0)[0].backward()  # type: ignore[no-untyped-call]

    print(json.dumps({"seconds": best_seconds(update, options["seconds"])}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
