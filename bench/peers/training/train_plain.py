"""A plain PyTorch loop on a dataset of ours: `python -m bench.peers.training.train_plain < JSON`. Prints JSON.

What a good tutorial writes: torch.nn.Transformer or torch.nn.LSTM, padded batches, fused kernels, fused Adam,
F.cross_entropy; on a GPU bf16 by autocast. The batches are those of `tfm train`, padded.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from bench.peers.training.plain_recurrent import PlainRecurrent
from bench.training.workload import SEED, rows_of_batches
from tfm.data.batching.batches import make_pair_batch
from tfm.data.dataset.store import load_dataset
from tfm.model.attention.positions import sinusoids
from tfm.tokenizer.special import PAD_ID


class PlainTransformer(nn.Module):
    """torch's own layers over padded batches."""

    table: Tensor

    def __init__(self, size: dict[str, Any], longest: int) -> None:
        super().__init__()
        dim, self.dropout = size["dim"], size["dropout"]
        self.embedding = nn.Embedding(size["vocab"], dim, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        shape = (dim, size["heads"], size["layers"], size["layers"], size["inner"])
        self.transformer = nn.Transformer(*shape, dropout=self.dropout, batch_first=True, norm_first=size["norm_first"])
        for layer in self.transformer.modules():
            if isinstance(layer, nn.MultiheadAttention):
                layer.dropout = 0.0  # as ours, so that both use the fused kernel
        self.register_buffer("table", sinusoids(dim, longest).float())

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.table[: ids.shape[1]]
        return F.dropout(x, self.dropout)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device),
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD_ID,
            memory_key_padding_mask=source == PAD_ID,
        )
        return F.linear(hidden, self.embedding.weight)


MODELS: dict[str, Callable[[dict[str, Any], int], nn.Module]] = {
    "transformer": PlainTransformer,
    "recurrent": PlainRecurrent,
}


def pad_rows(rows: Tensor, lengths: Tensor) -> Tensor:
    """(N,) ids of sentences end to end -> (B, longest)."""
    return pad_sequence(list(torch.split(rows, lengths.tolist())), batch_first=True, padding_value=PAD_ID)


def synchronize(device: torch.device) -> None:
    """Until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def main(request: dict[str, Any]) -> None:
    warnings.filterwarnings("ignore", message="enable_nested_tensor")  # torch's advice for pre-norm inference
    torch.manual_seed(SEED)
    data, size, warmup = load_dataset(Path(request["dataset"])), request["size"], request["warmup"]
    longest = int(max(data.train.source_lengths.max(), data.train.target_lengths.max())) + 1
    device = torch.device(request["device"])
    model = MODELS[request["architecture"]](size, longest).to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), 5e-4, betas=(0.9, 0.98), fused=True)
    tokens = real = positions = 0
    start = time.perf_counter()
    for step, rows in zip(range(warmup + request["steps"]), rows_of_batches(data), strict=False):
        if step == warmup:
            synchronize(device)
            tokens = real = positions = 0
            start = time.perf_counter()
        batch = make_pair_batch(data.train, rows)
        source, target = pad_rows(batch.source, batch.source_lengths), pad_rows(batch.target_in, batch.target_lengths)
        labels = pad_rows(batch.target_out, batch.target_lengths).to(device)
        source, target = source.to(device), target.to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(source, target).flatten(0, 1)
            loss = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD_ID, label_smoothing=size["smoothing"])
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens += batch.num_target_tokens
        real += batch.source.numel() + batch.target_in.numel()
        positions += source.numel() + target.numel()
    synchronize(device)
    rate = tokens / (time.perf_counter() - start)
    print(json.dumps({"rate": rate, "tokens": tokens / request["steps"], "padding": 1 - real / positions}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
