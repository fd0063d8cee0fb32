"""nanoGPT's loop on a dataset of ours: `python -m bench.peers.training.train_plain_gpt < JSON`. Prints JSON.

A language model as nanoGPT has it: learned positions, pre-norm without biases, GELU, one table of embeddings, torch's
attention kernel, AdamW, windows at random places, fp32 on a CPU and bf16 by autocast on a GPU. With a folder that holds
nanoGPT, the network and its optimiser are those of its model.py instead.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.peers.training.train_plain import synchronize
from bench.training.workload import SEED
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.tasks.language_model import concatenate_targets

BETAS, WEIGHT_DECAY, RATE, CLIP_NORM = (0.9, 0.99), 0.1, 1e-3, 1.0


class Layer(nn.Module):
    """Causal self-attention and a feed-forward layer, each in a pre-norm residual."""

    def __init__(self, dim: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(dim, bias=False), nn.LayerNorm(dim, bias=False)
        self.query_key_value, self.mixed = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.inner, self.outer = nn.Linear(dim, inner, bias=False), nn.Linear(inner, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, dim=2)
        query, key, value = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in parts)
        rate = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        x = x + F.dropout(self.mixed(attended.transpose(1, 2).flatten(2)), self.dropout, self.training)
        inner = F.gelu(self.inner(self.feed_forward_norm(x)))
        return x + F.dropout(self.outer(inner), self.dropout, self.training)


class PlainGpt(nn.Module):
    """nanoGPT's network. size: layers, dim, heads, inner, block, dropout, vocab."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__()
        dim, self.dropout = size["dim"], size["dropout"]
        self.table, self.positions = nn.Embedding(size["vocab"], dim), nn.Embedding(size["block"], dim)
        shape = (dim, size["heads"], size["inner"], self.dropout)
        self.layers = nn.Sequential(*(Layer(*shape) for _ in range(size["layers"])))
        self.norm = nn.LayerNorm(dim, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (B, T, V) and the mean cross-entropy of targets (B, T)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = F.dropout(self.table(tokens) + self.positions(places), self.dropout, self.training)
        logits = F.linear(self.norm(self.layers(x)), self.table.weight)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_plain(size: dict[str, Any], device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the network, and AdamW of one kernel, with decay for matrices alone."""
    model = PlainGpt(size).to(device)
    matrices = [each for each in model.parameters() if each.dim() > 1]
    vectors = [each for each in model.parameters() if each.dim() == 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    return model, torch.optim.AdamW(groups, RATE, betas=BETAS, fused=True)


def make_nanogpt(repository: Path, size: dict[str, Any], device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the network and the optimiser of a folder's model.py."""
    spec = importlib.util.spec_from_file_location("nanogpt", repository / "model.py")
    assert spec is not None
    assert spec.loader is not None
    nanogpt: Any = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt"] = nanogpt
    spec.loader.exec_module(nanogpt)
    shape = {"n_layer": size["layers"], "n_head": size["heads"], "n_embd": size["dim"], "bias": False}
    rest = {"block_size": size["block"], "vocab_size": size["vocab"], "dropout": size["dropout"]}
    model = nanogpt.GPT(nanogpt.GPTConfig(**shape, **rest)).to(device)
    return model, model.configure_optimizers(WEIGHT_DECAY, RATE, BETAS, device)


def draw_windows(text: Tensor, block: int, windows: int) -> tuple[Tensor, Tensor]:
    """Return the inputs and the targets (windows, block) at random places of a text (N,)."""
    places = torch.randint(len(text) - block, (windows,)).tolist()
    inputs = torch.stack([text[place : place + block] for place in places])
    return inputs, torch.stack([text[place + 1 : place + 1 + block] for place in places])


def main(request: dict[str, Any]) -> None:
    torch.manual_seed(SEED)
    size, device, warmup, windows = request["size"], request["device"], request["warmup"], request["windows"]
    text = torch.from_numpy(concatenate_targets(load_dataset(Path(request["dataset"])).train)).long()
    repository = request["repository"]
    model_and_optimizer = (
        make_plain(size, device) if repository is None else make_nanogpt(Path(repository), size, device)
    )
    model, optimizer = model_and_optimizer
    model.train()
    start, start_cpu = time.perf_counter(), time.process_time()
    for step in range(warmup + request["steps"]):
        if step == warmup:
            synchronize(torch.device(device))
            start, start_cpu = time.perf_counter(), time.process_time()
        inputs, targets = (each.to(device) for each in draw_windows(text, size["block"], windows))
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = model(inputs, targets)[1]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    synchronize(torch.device(device))
    tokens, seconds = windows * size["block"] * request["steps"], time.perf_counter() - start
    cpu_rate = tokens / (time.process_time() - start_cpu)
    print(json.dumps({"rate": tokens / seconds, "cpu_rate": cpu_rate, "tokens": windows * size["block"]}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
