"""Small models that read characters (CANINE), and what they do written out by plain loops over one sentence."""

import math
from typing import Any

import torch
from torch import Tensor

from tfm.model.build import build
from tfm.model.config import ModelConfig

STACK = {"layers": 2, "dim": 12, "heads": 2, "feed_forward_dim": 10}
CANINE = {"hashes": 3, "buckets": 20, "window": 2, "rate": 3, "upsampling": 4}
TRANSLATES: dict[str, Any] = {"architecture": "transformer", "tie": "output"}
CLASSIFIES: dict[str, Any] = {"architecture": "encoder_only", "task": "classification"}
TAGS: dict[str, Any] = {"architecture": "encoder_only", "task": "tagging"}
ALL = {"translation": TRANSLATES, "classification": CLASSIFIES, "tagging": TAGS}
RECURRENT: dict[str, Any] = {"architecture": "recurrent", "tie": "output"}
EVERY = {
    **ALL,
    "lstm": RECURRENT,
    "gru, luong": {**RECURRENT, "recurrent": {"attention": "luong", "cell": "gru"}, "score": "general"},
}
V = 11
CHARACTERS = 0x110000 + 4


def config_of(about: dict[str, Any], **changes: Any) -> ModelConfig:
    canine = {**CANINE, **changes.pop("canine", {})}
    given = {"encoder": STACK, "decoder": STACK, "max_length": 40, **about, **changes}
    return ModelConfig.model_validate({**given, "canine": canine})


def network(about: dict[str, Any], **changes: Any) -> Any:
    """In float64, in eval mode, surer of what it does than a beginner is."""
    model = build(config_of(about, **changes), source_vocab=CHARACTERS, target_vocab=V, seed=3).double().eval()
    with torch.no_grad():
        draw = torch.Generator().manual_seed(5)
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
    return model


# The plain way: one sentence, one row after the other


def hashed(model: Any, number: int) -> Tensor:
    """[T_1[h_1(i)] ; ... ; T_K[h_K(i)]] by the formula."""
    table = model.tables.weight.view(model.hashes, model.buckets, -1)
    parts = []
    for k in range(model.hashes):
        a, b = 48271 ** (2 * k + 3) % (2**31 - 1), 48271 ** (2 * k + 4) % (2**31 - 1)
        parts.append(table[k, (a * (number + 1) + b) % (2**31 - 1) % model.buckets])
    return torch.cat(parts)


def normed(norm: Any, x: Tensor) -> Tensor:
    centred = x - x.sum() / len(x)
    result: Tensor = centred / ((centred**2).sum() / len(x) + norm.eps).sqrt() * norm.weight + norm.bias
    return result


def gelu(x: Tensor) -> Tensor:
    return torch.stack([each * 0.5 * (1 + math.erf(each.item() / math.sqrt(2))) for each in x])


def layer_of(layer: Any, rows: list[Tensor], reach: int | None) -> list[Tensor]:
    """Pre-norm self-attention within a reach, then feed-forward."""
    attention, heads = layer.attention, layer.attention.heads.num_heads
    width = len(rows[0]) // heads
    given = [attention.query_key_value.weight @ normed(layer.around_attention.norm, x) for x in rows]
    given = [each + attention.query_key_value.bias for each in given]
    query, key, value = (
        [[each[part * len(rows[0]) :][h * width : (h + 1) * width] for h in range(heads)] for each in given]
        for part in range(3)
    )
    result = []
    for i, x in enumerate(rows):
        seen = [j for j in range(len(rows)) if reach is None or abs(i - j) <= reach]
        mixed = []
        for h in range(heads):
            scores = torch.stack([(query[i][h] * key[j][h]).sum() / math.sqrt(width) for j in seen]).exp()
            mixed.append(sum(s / scores.sum() * value[j][h] for s, j in zip(scores, seen, strict=True)))
        x = x + attention.output.weight @ torch.cat(mixed) + attention.output.bias
        inner = layer.feed_forward.inner.weight @ normed(layer.around_feed_forward.norm, x)
        inner = (inner + layer.feed_forward.inner.bias).clamp(min=0)
        result.append(x + layer.feed_forward.outer.weight @ inner + layer.feed_forward.outer.bias)
    return result


def encoded(model: Any, source: list[int]) -> tuple[list[Tensor], list[Tensor]]:
    """Rows of one sentence's characters after the local layer, and what the encoder made of the shorter sequence."""
    embedding = getattr(model, "source_embedding", None) or model.embedding
    given, down = embedding.characters, embedding.downsampling
    rows = []
    for place, number in enumerate(source):
        row = hashed(given.table, number) * given.scale
        angles = [place / 10_000 ** (2 * (d // 2) / len(row)) for d in range(len(row))]
        waves = [math.cos(angle) if d % 2 else math.sin(angle) for d, angle in enumerate(angles)]
        rows.append(row + torch.tensor(waves, dtype=torch.float64).float().double())
    characters = layer_of(embedding.local, rows, 2)
    shorter = []
    for first in range(0, len(source), embedding.rate):
        together = [*characters[first : first + embedding.rate]]
        together += [torch.zeros_like(rows[0])] * (embedding.rate - len(together))
        shorter.append(normed(down.norm, gelu(down.words.weight @ torch.cat(together) + down.words.bias)))
    for layer in model.encoder:
        shorter = layer_of(layer, shorter, None)
    return characters, [normed(model.encoder_norm, x) for x in shorter]


def upsampled(model: Any, characters: list[Tensor], shorter: list[Tensor]) -> list[Tensor]:
    """Rows of characters again."""
    head, rate = model.head, model.embedding.rate
    both = [torch.cat([x, shorter[i // rate]]) for i, x in enumerate(characters)]
    rows = []
    for i in range(len(both)):
        around = [both[i + o] if 0 <= i + o < len(both) else torch.zeros_like(both[0]) for o in (-1, 0, 1, 2)]
        rows.append(normed(head.norm, gelu(head.words.weight @ torch.cat(around) + head.words.bias)))
    return [normed(head.last_norm, x) for x in layer_of(head.layer, rows, None)]
