"""Hugging Face's `generate` with the weights of a model of ours: ids and seconds, as JSON.

Usage: python decode_huggingface.py < JSON     (needs: torch, transformers)

M2M100 has the same parts as our pre-norm Transformer with sinusoids; its table of positions is replaced by ours. As is
good practice, sentences are sorted by length, and the beam stops at W finished hypotheses (early_stopping).
"""

import json
import math
import sys
from functools import partial
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import M2M100Config, M2M100ForConditionalGeneration, PreTrainedModel

from bench.decoding.answering import answer_sources
from bench.peers.huggingface import BEGIN, END, PAD, size_settings

NORM_NAMES = {
    "around_attention.norm": "self_attn_layer_norm",
    "around_cross_attention.norm": "encoder_attn_layer_norm",
    "around_feed_forward.norm": "final_layer_norm",
}
LINEAR_NAMES = {"feed_forward.inner": "fc1", "feed_forward.outer": "fc2"}
FUSED_PROJECTIONS = {
    "attention.query_key_value": ("self_attn", "qkv"),
    "cross_attention.query": ("encoder_attn", "q"),
    "cross_attention.key_value": ("encoder_attn", "kv"),
    "attention.output": ("self_attn", "o"),
    "cross_attention.output": ("encoder_attn", "o"),
}
PROJECTION_BY_LETTER = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


def rename_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors under the names that M2M100 has for them."""
    table = weights["source_embedding.table.weight"]
    renamed_weights = {"lm_head.weight": table, "model.shared.weight": table}
    for name, tensor in weights.items():
        stack, _, rest = name.partition(".")
        if stack in ("encoder_norm", "decoder_norm"):
            renamed_weights[f"model.{stack.removesuffix('_norm')}.layer_norm.{rest}"] = tensor
        if stack not in ("encoder", "decoder"):
            continue
        layer, _, part = rest.partition(".")
        part, _, kind = part.rpartition(".")
        prefix = f"model.{stack}.layers.{layer}"
        if part in FUSED_PROJECTIONS:
            owner, letters = FUSED_PROJECTIONS[part]
            for letter, piece in zip(letters, tensor.chunk(len(letters)), strict=True):
                renamed_weights[f"{prefix}.{owner}.{PROJECTION_BY_LETTER[letter]}.{kind}"] = piece
        else:
            renamed_weights[f"{prefix}.{(NORM_NAMES | LINEAR_NAMES)[part]}.{kind}"] = tensor
    return renamed_weights


def sinusoids(dim: int, length: int) -> Tensor:
    """Sines and cosines in turn   (Vaswani et al. 2017, sec. 3.5)."""
    steps = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(10_000.0) / dim))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * steps
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).float()


def make_model(request: dict[str, Any]) -> M2M100ForConditionalGeneration:
    size, longest = request["size"], request["positions"]
    model = M2M100ForConditionalGeneration(M2M100Config(**size_settings(size, longest)))
    missing, unexpected = model.load_state_dict(rename_weights(load_file(request["weights"])), strict=False)
    assert not unexpected, unexpected
    assert all("embed_tokens" in name for name in missing), missing  # these are the shared table
    model.tie_weights()
    for stack in (model.model.encoder, model.model.decoder):
        table = stack.embed_positions
        table.weights[PAD + 1 : PAD + 1 + longest] = sinusoids(size["dim"], longest)
    return model.to(request["device"], getattr(torch, request["type"])).eval()


def decode_greedily(
    model: PreTrainedModel, sources: list[list[int]], *, beam: int, batch: int, longest: int
) -> list[list[int]]:
    """The most probable targets that `generate` finds, `batch` sentences at a time."""
    options: dict[str, Any] = {"num_beams": beam, "max_new_tokens": longest + 1, "do_sample": False}
    if beam > 1:
        options |= {"early_stopping": True, "length_penalty": 1.0}
    targets: list[list[int]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
    with torch.inference_mode():
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            width = len(sources[rows[0]])
            ids = torch.tensor([sources[row] + [PAD] * (width - len(sources[row])) for row in rows])
            ids = ids.to(model.device)
            outputs = model.generate(ids, attention_mask=(ids != PAD).long(), suppress_tokens=[PAD, BEGIN], **options)
            for row, output in zip(rows, outputs[:, 1:].tolist(), strict=True):
                targets[row] = output[: output.index(END)] if END in output else output
    return targets


def main(request: dict[str, Any]) -> None:
    options = {"beam": request["beam"], "batch": request["batch"], "longest": request["longest"]}
    answer_sources(
        partial(decode_greedily, make_model(request), **options),
        request["sources"],
        one_at_a_time=request["one_at_a_time"],
    )


if __name__ == "__main__":
    main(json.load(sys.stdin))
