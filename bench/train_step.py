"""Target tokens a second in training: ours beside a plain PyTorch loop on the same model and batches.

Usage: python bench/train_step.py [--steps 12] [--rounds 3] [--layers 4] [--dim 128] [--vocab 10000]

Both train an encoder-decoder of the same size with Adam, dropout 0.3 and label smoothing 0.1 on the same
generated batches of about 4,096 padded tokens, in turn (A B A B ...); the medians and their ratio are
printed. The plain loop is what a good tutorial writes: torch.nn.Transformer layers, padded batches, SDPA,
fused Adam, F.cross_entropy.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data.batches import PairBatch, pairs_from_ids
from model.build import build
from model.config import DropoutConfig, ModelConfig, StackConfig
from model.layout import Layout
from model.positions import sinusoids
from pipeline.models import resolve_precision
from pipeline.training.tasks import Translation


class PlainTransformer(nn.Module):
    """torch's own layers over padded batches."""

    table: Tensor

    def __init__(self, vocab: int, dim: int, layers: int, heads: int, inner: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.transformer = nn.Transformer(
            dim, heads, layers, layers, inner, dropout=0.3, batch_first=True, norm_first=True
        )
        for layer in self.transformer.modules():
            if isinstance(layer, nn.MultiheadAttention):
                layer.dropout = 0.0  # as ours, so that both use the fused kernel
        self.register_buffer("table", sinusoids(dim, 256).float())

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.table[: ids.shape[1]]
        return F.dropout(x, 0.3)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            tgt_is_causal=True,
            src_key_padding_mask=source == 0,
            memory_key_padding_mask=source == 0,
        )
        return F.linear(hidden, self.embedding.weight)


def plain_step(model: PlainTransformer, optimizer: torch.optim.Optimizer) -> Callable[[PairBatch, int], None]:
    def step(batch: PairBatch, _: int) -> None:
        source = Layout.of(batch.source_lengths).pad(batch.source)
        layout = Layout.of(batch.target_lengths)
        logits = model(source, layout.pad(batch.target_in))
        labels = layout.pad(batch.target_out)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=0.1)
        loss.backward()
        finish(model, optimizer)

    return step


def our_step(model: nn.Module, optimizer: torch.optim.Optimizer, task: Translation) -> Callable[[PairBatch, int], None]:
    def step(batch: PairBatch, number: int) -> None:
        model.noise.begin(1, number)
        loss = task.loss(model, batch)
        (loss.sum / loss.count).backward()
        finish(model, optimizer)

    return step


def finish(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def make_batches(count: int, vocab: int) -> list[PairBatch]:
    """Batches of about 4,096 padded tokens with the lengths of image captions, a few tokens apart."""
    generator = torch.Generator().manual_seed(1)
    result = []
    for _ in range(count):
        longest = int(torch.randint(9, 24, (), generator=generator))
        lengths = torch.randint(max(3, longest - 2), longest + 1, (2, 4096 // (longest + 1)), generator=generator)
        sides = [[torch.randint(4, vocab, (int(n),), generator=generator).tolist() for n in side] for side in lengths]
        result.append(pairs_from_ids(*sides))
    return result


def main() -> None:
    warnings.filterwarnings("ignore", message="enable_nested_tensor")  # torch's advice for pre-norm inference
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 12), ("rounds", 3), ("layers", 4), ("dim", 128), ("heads", 4), ("inner", 256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--vocab", type=int, default=10_000)
    parser.add_argument("--precision", default="auto", help="of ours: auto, fp32, bf16")
    args = parser.parse_args()
    batches = make_batches(args.steps, args.vocab)
    tokens = sum(batch.num_target_tokens for batch in batches)

    stack = StackConfig(layers=args.layers, dim=args.dim, heads=args.heads, feed_forward_dim=args.inner)
    config = ModelConfig(encoder=stack, decoder=stack, dropout=DropoutConfig(residual=0.3, embedding=0.3))
    dtype = resolve_precision(args.precision, torch.device("cpu"))
    ours = build(config, source_vocab=args.vocab, target_vocab=args.vocab, compute_dtype=dtype).train()
    plain = PlainTransformer(args.vocab, args.dim, args.layers, args.heads, args.inner).train()
    steps = {
        "ours": our_step(ours, torch.optim.Adam(ours.parameters(), 1e-4, fused=True), Translation(0.1)),
        "plain PyTorch": plain_step(plain, torch.optim.Adam(plain.parameters(), 1e-4, fused=True)),
    }
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}, ours multiplies in {dtype}")
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(args.rounds + 1):
        for name, step in steps.items():
            begin = time.perf_counter()
            for number, batch in enumerate(batches):
                step(batch, number)
            if turn:  # the first round warms up
                rates[name].append(tokens / (time.perf_counter() - begin))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, values in rates.items():
        shown = ", ".join(f"{value:,.0f}" for value in values)
        print(f"{name:14} {medians[name]:8,.0f} target tokens/s   (rounds: {shown})")
    print(f"ratio of medians {medians['ours'] / medians['plain PyTorch']:.2f}")


if __name__ == "__main__":
    main()
