"""Recorded attention: within `record_attentions`, the weights of every attention are kept under the name of its module.

Legend: B sentences · H heads · T queries · S keys.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention, InnerAttention


class AttentionRecorder:
    """Keeps attention weights until they are taken."""

    def __init__(self) -> None:
        self._weights: defaultdict[str, list[Tensor]] = defaultdict(list)

    def record(self, name: str, weights: Tensor) -> None:
        """Keep the weights (B, H, T, S) of the attention in a module."""
        self._weights[name].append(weights.detach())

    def pop_weights(self) -> dict[str, Tensor]:
        """The weights (B, H, T, S) kept since they were last taken, by the name of the module, in the order of use.

        Queries that a network asks one after the other, as a recurrent decoder does, are joined along T.
        """
        weights = {name: torch.cat(calls, dim=2) for name, calls in self._weights.items()}
        self._weights.clear()
        return weights


class _RecordingDropout(nn.Module):
    """Dropout of attention weights that also hands them to a recorder."""

    def __init__(self, dropout: nn.Module, recorder: AttentionRecorder, name: str) -> None:
        super().__init__()
        self.dropout, self.recorder, self.name = dropout, recorder, name

    def forward(self, weights: Tensor) -> Tensor:
        self.recorder.record(self.name, weights)
        return self.dropout(weights)  # type: ignore[no-any-return]


@contextmanager
def record_attentions(network: nn.Module) -> Iterator[AttentionRecorder]:
    """Compute every attention of a network by the equation written out, and record it, while the body runs.

    The network must be in eval mode, and is as before afterwards. Raises ValueError for one in training, whose weights
    are dropped at random.
    """
    if network.training:
        raise ValueError("attention is recorded in eval mode")
    recorder = AttentionRecorder()
    put_back: list[tuple[nn.Module, str, nn.Module]] = []
    try:
        for name, module, slot, equation in attention_modules(network):
            put_back.append((module, slot, module.get_submodule(slot)))
            put_back.append((equation, "dropout", equation.dropout))
            setattr(module, slot, equation)
            equation.add_module("dropout", _RecordingDropout(equation.dropout, recorder, name))
        yield recorder
    finally:
        for module, slot, was in reversed(put_back):
            setattr(module, slot, was)


def attention_modules(network: nn.Module) -> list[tuple[str, nn.Module, str, ExplicitAttention]]:
    """The attentions of a network: name of the module, the module, the attribute that mixes, the equation behind it."""
    return [
        (name, module, slot, to_explicit_attention(child))
        for name, module in network.named_modules()
        if not isinstance(module, InnerAttention)
        for slot, child in module.named_children()
        if isinstance(child, InnerAttention)
    ]


def to_explicit_attention(attention: InnerAttention) -> ExplicitAttention:
    """Return the equation that an implementation of attention computes."""
    while not isinstance(attention, ExplicitAttention):
        attention = attention.equation if isinstance(attention, FusedAttention) else attention.fallback
    return attention
