"""The Transformer of Vaswani et al. 2017 with norms before its sublayers, in float64, one sentence at a time, from the
published weights alone. No batch, no cache, no mask but the triangle. Nothing of `tfm` is imported here."""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

BOS, EOS, UNK = "<s>", "</s>", "<unk>"
NEVER = ("<pad>", "<s>")  # what no hypothesis holds


class Plain:
    """A published model/ folder of the same width on both sides, read by hand.

    dtype: float64, or float32 to see how far rounding goes in a plain pass.
    """

    embedding = "source_embedding"

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float64) -> None:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        assert (config["norm"], config["positions"], config["tie"]) == ("pre", "sinusoidal", "all")
        assert (config["activation"], config["normalization"]) == ("relu", "layer")
        self.heads, self.dim = config["decoder"]["heads"], config["decoder"]["dim"]
        self.layers = config["encoder"]["layers"], config["decoder"]["layers"]
        self.weights = {name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def id(self, name: str) -> int:
        found = self.tokenizer.token_to_id(name)
        assert found is not None, name
        return int(found)

    @property
    def table(self) -> Tensor:
        return self.weights[f"{self.embedding}.table.weight"]

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x: Tensor, name: str) -> Tensor:
        mean = x.mean(1, keepdim=True)
        variance = ((x - mean) ** 2).mean(1, keepdim=True)
        return (x - mean) / (variance + 1e-5).sqrt() * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def embed(self, ids: list[int]) -> Tensor:
        rows = self.table[ids] * math.sqrt(self.dim)
        for place in range(len(ids)):
            for column in range(self.dim):
                angle = place / 10000 ** (column // 2 * 2 / self.dim)
                rows[place, column] += math.cos(angle) if column % 2 else math.sin(angle)
        return rows

    def attend(self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> Tensor:
        """softmax(q k^T / sqrt(width)) v, head by head."""
        found = []
        for q, k, v in zip(*(each.chunk(self.heads, 1) for each in (query, key, value)), strict=True):
            logits = q @ k.T / math.sqrt(q.shape[1])
            if causal:
                logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -math.inf)
            found.append(logits.softmax(1) @ v)
        return torch.cat(found, 1)

    def feed_forward(self, x: Tensor, name: str) -> Tensor:
        inner = self.linear(self.norm(x, f"{name}.around_feed_forward.norm"), f"{name}.feed_forward.inner")
        return x + self.linear(inner.clamp(min=0), f"{name}.feed_forward.outer")

    def self_attention(self, x: Tensor, name: str, *, causal: bool) -> Tensor:
        normed = self.norm(x, f"{name}.around_attention.norm")
        parts = self.linear(normed, f"{name}.attention.query_key_value").chunk(3, 1)
        return x + self.linear(self.attend(*parts, causal=causal), f"{name}.attention.output")

    def encode(self, source: list[int]) -> Tensor:
        x = self.embed([*source, self.id(EOS)])
        for number in range(self.layers[0]):
            x = self.feed_forward(self.self_attention(x, f"encoder.{number}", causal=False), f"encoder.{number}")
        return self.norm(x, "encoder_norm")

    def decode(self, memory: Tensor, target: list[int]) -> Tensor:
        """log p of what follows each of: the begin token, each piece of the target (n + 1, V)."""
        x = self.embed([self.id(BOS), *target])
        for number in range(self.layers[1]):
            name = f"decoder.{number}"
            x = self.self_attention(x, name, causal=True)
            query = self.linear(self.norm(x, f"{name}.around_cross_attention.norm"), f"{name}.cross_attention.query")
            key, value = self.linear(memory, f"{name}.cross_attention.key_value").chunk(2, 1)
            seen = self.attend(query, key, value, causal=False)
            x = self.feed_forward(x + self.linear(seen, f"{name}.cross_attention.output"), name)
        return (self.norm(x, "decoder_norm") @ self.table.T).log_softmax(1)

    def forced(self, source: str, target: str) -> tuple[float, int, int]:
        """log p(target, end | source), how many of its tokens are the likeliest, and how many there are."""
        wanted = [*self.ids(target), self.id(EOS)]
        log_probs = self.decode(self.encode(self.ids(source)), wanted[:-1])
        right = int((log_probs.argmax(1) == torch.tensor(wanted)).sum())
        return float(sum(log_probs[place, token] for place, token in enumerate(wanted))), right, len(wanted)

    def greedy(self, source: str, max_length: int) -> tuple[list[int], float]:
        """The likeliest piece again and again, and by how much the closest choice was won."""
        memory, found, margin = self.encode(self.ids(source)), [], math.inf
        for _ in range(max_length):
            log_probs = self.decode(memory, found)[-1]
            log_probs[[self.id(name) for name in NEVER]] = -math.inf
            best = log_probs.topk(2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            if int(best.indices[0]) == self.id(EOS):
                break
            found.append(int(best.indices[0]))
        return found, margin


class PlainLanguageModel(Plain):
    """A decoder alone: each piece from those before it."""

    embedding = "embedding"

    def tokens(self, wanted: list[int]) -> tuple[list[float], list[bool]]:
        """Of each of some tokens, read after the begin token: its log-probability, and whether it is the likeliest."""
        x = self.embed([self.id(BOS), *wanted[:-1]])
        for number in range(self.layers[1]):
            name = f"layers.{number}"
            x = self.feed_forward(self.self_attention(x, name, causal=True), name)
        log_probs = (self.norm(x, "norm") @ self.table.T).log_softmax(1)
        right = (log_probs.argmax(1) == torch.tensor(wanted)).tolist()
        return [float(log_probs[place, token]) for place, token in enumerate(wanted)], right

    def line(self, text: str) -> tuple[float, int, int]:
        """log p(text, end), how many of its tokens are the likeliest, and how many there are."""
        log_probs, right = self.tokens([*self.ids(text), self.id(EOS)])
        return float(sum(log_probs)), sum(right), len(right)

    def strided(self, tokens: list[int], window: int, stride: int) -> list[float]:
        """The log-probability of each token of a text in windows, each a pass of its own: a window begins at every
        multiple of the stride, and a token counts in the first that holds it."""
        found: list[float] = []
        for start in range(0, len(tokens), stride):
            log_probs, _ = self.tokens(tokens[start : start + window])
            found += log_probs[len(found) - start :]
            if start + window >= len(tokens):
                break
        assert len(found) == len(tokens)
        return found
