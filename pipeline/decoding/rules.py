"""What a hypothesis may be, sentence by sentence: shortest and longest length, prefix, and what its length is worth.

Every rule of a sentence follows from that sentence alone, so that a hypothesis does not depend on its batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.config import DecodingConfig
from tokenizer.special import BOS_ID, EOS_ID, PAD_ID

NEVER = float("-inf")


def _none(lengths: Tensor, alpha: float) -> Tensor:
    return torch.ones_like(lengths)


def _average(lengths: Tensor, alpha: float) -> Tensor:
    return lengths**alpha


def _wu(lengths: Tensor, alpha: float) -> Tensor:
    return ((5 + lengths) / 6) ** alpha


LENGTH_NORMS: dict[str, Callable[[Tensor, float], Tensor]] = {"none": _none, "average": _average, "wu": _wu}
"""By what a hypothesis of T tokens (end token included) divides its log-probability to give its score.

none: 1. average: T^alpha. wu: ((5 + T) / 6)^alpha (Wu et al. 2016, eq. 14). None of them falls as T grows.
"""


@dataclass(frozen=True)
class Rules:
    """The rules of B sentences. Held on the CPU: what they forbid at a step is known without asking the device."""

    shortest: Tensor
    """(B,) pieces that must come before the end token."""
    longest: Tensor
    """(B,) pieces after which only the end token may come."""
    prefixes: Tensor
    """(B, P) pieces that the hypothesis begins with, -1 beyond its prefix."""
    divisors: Tensor
    """(longest + 2,) float64: by what a hypothesis of so many tokens divides its log-probability."""

    @classmethod
    def of(
        cls,
        num_source_tokens: Sequence[int],
        config: DecodingConfig,
        max_length: int,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> "Rules":
        """The rules of a batch from its source lengths (end token included) and the model's `max_length`.

        A prefix longer than the sentence's limit moves the limit to its own length. Raises ValueError where it is
        beyond what the model can read, or holds a control token.
        """
        prefixes = [()] * len(num_source_tokens) if prefixes is None else prefixes
        longest = []
        for num_tokens, prefix in zip(num_source_tokens, prefixes, strict=True):
            if len(prefix) >= max_length:
                raise ValueError(f"a prefix of {len(prefix)} pieces; the model reads at most {max_length - 1}")
            if not {PAD_ID, BOS_ID, EOS_ID}.isdisjoint(prefix):
                raise ValueError("a prefix holds a control token")
            wanted = config.max_length or int(config.max_ratio * num_tokens) + 20
            longest.append(max(min(wanted, max_length - 1), len(prefix)))
        limits = torch.tensor(longest, dtype=torch.int64)
        width = max((len(prefix) for prefix in prefixes), default=0)
        table = torch.tensor([[*prefix] + [-1] * (width - len(prefix)) for prefix in prefixes], dtype=torch.int64)
        lengths = torch.arange(max(longest, default=0) + 2, dtype=torch.float64)
        divisors = LENGTH_NORMS[config.length_norm](lengths, config.alpha)
        return cls(limits.clamp(max=config.min_length), limits, table, divisors)

    def select(self, sentences: Tensor) -> "Rules":
        """The rules of some of the sentences; `sentences` (B',) on the CPU."""
        return Rules(self.shortest[sentences], self.longest[sentences], self.prefixes[sentences], self.divisors)

    def part(self, sentences: slice) -> "Rules":
        """The rules of consecutive sentences."""
        return Rules(self.shortest[sentences], self.longest[sentences], self.prefixes[sentences], self.divisors)

    def apply(self, log_probs: Tensor, num_pieces: Tensor) -> None:
        """Give -inf, in place, to what may not follow `num_pieces` (B,) pieces, on the CPU; log_probs (B, W, V).

        What remains is not renormalised: a hypothesis' log-probability is the model's own.
        """
        log_probs[..., PAD_ID] = NEVER
        log_probs[..., BOS_ID] = NEVER
        if self.prefixes.size(1):
            place = num_pieces.clamp(max=self.prefixes.size(1) - 1).unsqueeze(1)
            prefix = self.prefixes.gather(1, place).squeeze(1)
            within = (prefix >= 0) & (num_pieces < self.prefixes.size(1))
            _only(log_probs, within.nonzero().squeeze(1), prefix[within])
        if (early := num_pieces < self.shortest).any():
            log_probs[early.nonzero().squeeze(1).to(log_probs.device), :, EOS_ID] = NEVER
        if (late := num_pieces >= self.longest).any():
            rows = late.nonzero().squeeze(1)
            _only(log_probs, rows, torch.full_like(rows, EOS_ID))


def _only(log_probs: Tensor, sentences: Tensor, tokens: Tensor) -> None:
    """Leave of each of these sentences only one token; sentences and tokens (n,) on the CPU."""
    if not len(sentences):
        return
    sentences, tokens = sentences.to(log_probs.device), tokens.to(log_probs.device)
    kept = log_probs[sentences, :, tokens]
    log_probs[sentences] = NEVER
    log_probs[sentences, :, tokens] = kept
