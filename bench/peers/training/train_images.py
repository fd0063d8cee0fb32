"""A plain PyTorch loop over images of a dataset of ours: figures as JSON.

Usage: python -m bench.peers.training.train_images < JSON

What a good tutorial writes: torch.nn's convolutions, norms and Transformer layers, a Dataset of single images and a
DataLoader that shuffles them, fused Adam, F.cross_entropy. The network is that of `tfm train`, with as many parameters.
"""

import json
import sys
import time
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from bench.training.workload import SEED
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.attention.positions import sinusoids
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID


class Block(nn.Module):
    """A residual block (He et al. 2016)."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False),
            nn.GroupNorm(1, out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
            nn.GroupNorm(1, out_channels),
        )
        self.outer = nn.Sequential()
        if in_channels != out_channels or stride > 1:
            self.outer.extend(
                [nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), nn.GroupNorm(1, out_channels)]
            )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.outer(x) + self.inner(x))


def make_feature_maps(vision: dict[str, Any], channels: int, dim: int) -> nn.Module:
    """Images (B, C, height, width) -> maps (B, D, rows, columns) of their tokens."""
    if vision["encoder"] == "patches":
        return nn.Conv2d(channels, dim, vision["patch"], vision["patch"])
    widths, stride = vision["channels"], vision["stride"]
    kernel = max(3, 2 * stride - 1)
    parts: list[nn.Module] = [
        nn.Conv2d(channels, widths[0], kernel, stride, padding=kernel // 2, bias=False),
        nn.GroupNorm(1, widths[0]),
        nn.ReLU(inplace=True),
    ]
    in_channels = widths[0]
    for stage, width in enumerate(widths):
        for block in range(vision["blocks"]):
            parts.append(Block(in_channels, width, 2 if stage and not block else 1))
            in_channels = width
    return nn.Sequential(*parts, nn.Conv2d(in_channels, dim, 1))


class PlainNetwork(nn.Module):
    """Tokens of an image, and either the label of their mean or a caption by a decoder that attends to them."""

    table: Tensor

    def __init__(self, model: dict[str, Any], shape: tuple[int, int, int], vocab: int) -> None:
        super().__init__()
        encoder, decoder, vision = model["encoder"], model["decoder"], model["vision"]
        height, width, channels = shape
        self.dropout, dim = model["dropout"]["residual"], encoder["dim"]
        self.maps = make_feature_maps(vision, channels, dim)
        with torch.no_grad():
            num_tokens = self.maps(torch.zeros(1, channels, height, width)).flatten(2).shape[2]
        self.places = nn.Parameter(torch.randn(num_tokens, dim) * dim**-0.5)
        layer = nn.TransformerEncoderLayer(
            dim, encoder["heads"], encoder["feed_forward_dim"], self.dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.Sequential(
            nn.TransformerEncoder(layer, encoder["layers"], enable_nested_tensor=False)
            if encoder["layers"]
            else nn.Identity(),
            nn.LayerNorm(dim),
        )
        self.decoder: nn.TransformerDecoder | None = None
        if model["task"] == "classification":
            self.inner, self.output = nn.Linear(dim, dim), nn.Linear(dim, vocab, bias=False)
        else:
            wide = decoder["dim"]
            self.embedding = nn.Embedding(vocab, wide, padding_idx=PAD_ID)
            nn.init.normal_(self.embedding.weight, std=wide**-0.5)
            self.register_buffer("table", sinusoids(wide, model["max_length"]).float())
            writer = nn.TransformerDecoderLayer(
                wide, decoder["heads"], decoder["feed_forward_dim"], self.dropout, batch_first=True, norm_first=True
            )
            self.decoder = nn.TransformerDecoder(writer, decoder["layers"], nn.LayerNorm(wide))
        for part in self.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0  # as ours, so that both use the fused kernel

    def forward(self, images: Tensor, captions: Tensor) -> Tensor:
        """(B, C, height, width), (B, T) -> logits (B, T or 1, V)."""
        tokens = self.maps(images).flatten(2).transpose(1, 2) + self.places
        memory = self.encoder(F.dropout(tokens, self.dropout))
        if self.decoder is None:
            return self.output(torch.tanh(self.inner(memory.mean(1)))).unsqueeze(1)  # type: ignore[no-any-return]
        x = self.embedding(captions) * self.embedding.embedding_dim**0.5 + self.table[: captions.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(captions.shape[1])
        hidden = self.decoder(F.dropout(x, self.dropout), memory, tgt_mask=mask, tgt_is_causal=True)
        return F.linear(hidden, self.embedding.weight)


class Pairs(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Single images, normalised, with the ids of a caption or of a label."""

    def __init__(self, data: Dataset) -> None:
        assert data.train.images is not None
        assert data.preparation is not None
        statistics = data.preparation.statistics
        self.images, self.targets = data.train.images.store, data.train.target
        self.mean, self.deviation = (
            torch.tensor(values)[:, None, None] for values in (statistics.means, statistics.standard_deviations)
        )

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        pixels = torch.from_numpy(self.images.pixels[self.images.rows[row]].copy())
        image = (pixels.permute(2, 0, 1).float() - self.mean) / self.deviation
        return image, torch.from_numpy(self.targets[row].astype("int64"))


def stack_pairs(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Tensor]]:
    """Images (B, C, height, width) and the ids of each."""
    return torch.stack([image for image, _ in pairs]), [ids for _, ids in pairs]


def main(request: dict[str, Any]) -> None:
    torch.manual_seed(SEED)
    data, warmup = load_dataset(Path(request["dataset"])), request["warmup"]
    assert data.preparation is not None
    shape = data.preparation.shape
    model = PlainNetwork(request["model"], (shape.height, shape.width, shape.channels), request["vocab"]).train()
    optimizer = torch.optim.Adam(model.parameters(), 5e-4, betas=(0.9, 0.98), fused=True)
    loader = DataLoader(
        Pairs(data),
        request["images"],
        shuffle=True,
        num_workers=request["workers"],
        collate_fn=stack_pairs,
        drop_last=True,
    )
    labels_only, num_images, start = request["model"]["task"] == "classification", 0, time.perf_counter()
    for step, (images, ids) in zip(range(warmup + request["steps"]), chain.from_iterable(repeat(loader)), strict=False):
        if step == warmup:
            num_images, start = 0, time.perf_counter()
        begin, end = torch.tensor([BOS_ID]), torch.tensor([EOS_ID])
        targets = torch.stack(ids) if labels_only else pad_ids([torch.cat([each, end]) for each in ids])
        inputs = targets if labels_only else pad_ids([torch.cat([begin, each]) for each in ids])
        logits = model(images, inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), ignore_index=PAD_ID, label_smoothing=request["smoothing"])
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        num_images += len(images)
    rate = num_images / (time.perf_counter() - start)
    parameters = sum(each.numel() for each in model.parameters())
    print(json.dumps({"rate": rate, "images": num_images / request["steps"], "parameters": parameters}))


def pad_ids(ids: list[Tensor]) -> Tensor:
    """(B, longest)."""
    return pad_sequence(ids, batch_first=True, padding_value=PAD_ID)


if __name__ == "__main__":
    main(json.load(sys.stdin))
