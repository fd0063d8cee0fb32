"""The rules for the hypotheses of each sentence: minimum and maximum length, prefix, forced and forbidden phrases, and
length normalization.

The rules of a sentence depend only on that sentence, so that a hypothesis does not depend on its batch. If two rules
conflict, the first of these wins: prefix, maximum length, forced phrases, bans, minimum length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.lexical import BannedPieces, ForcedPhrases, Pieces
from tfm.pipeline.decoding.limits import LENGTH_NORMS, NEG_INF, SUPPRESSED_TOKENS, max_pieces
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True)
class LogitsProcessor:
    """The rules of B sentences. Held on the CPU: the pieces that they forbid at a step are known without asking the
    device.
    """

    shortest: Tensor
    """(B,) pieces that must come before the end token."""
    longest: Tensor
    """(B,) maximum length: after this many pieces only the end token may follow."""
    prefixes: Tensor
    """(B, P) pieces that the hypothesis begins with, -1 beyond its prefix."""
    divisors: Tensor
    """(longest + 2,) float64: the divisor of the log-probability of a hypothesis of so many tokens."""
    bans: BannedPieces | None = None
    forced: ForcedPhrases | None = None

    @classmethod
    def from_config(
        cls,
        num_source_tokens: Sequence[int],
        config: DecodingConfig,
        max_length: int,
        prefixes: Sequence[Sequence[int]] | None = None,
        *,
        bans: BannedPieces | None = None,
        forced: Sequence[Sequence[Pieces]] | None = None,
        word_continuations: Sequence[int] = (),
    ) -> "LogitsProcessor":
        """Return the rules of a batch.

        A prefix longer than the sentence's limit moves the limit to its own length, and forced phrases move it until
        they have room.

        Args:
            num_source_tokens: source lengths, end token included.
            config: the [decoding] part of a recipe.
            max_length: most tokens that the model reads.
            prefixes: ids with which the hypotheses of each sentence begin; None for none.
            bans: forbidden pieces; None for none.
            forced: forced phrases of each sentence; None for none.
            word_continuations: pieces that continue a word.

        Raises:
            ValueError: a prefix and forced phrases are longer than the model can read, or a prefix holds a control
                token.
        """
        prefixes = [()] * len(num_source_tokens) if prefixes is None else prefixes
        forced = [()] * len(num_source_tokens) if forced is None else forced
        longest = []
        for num_tokens, prefix, phrases in zip(num_source_tokens, prefixes, forced, strict=True):
            num_required = len(prefix) + sum(map(len, set(phrases)))
            if num_required >= max_length:
                description = "a prefix and forced phrases" if phrases else "a prefix"
                raise ValueError(f"{description} of {num_required} pieces; the model reads at most {max_length - 1}")
            if not {PAD_ID, BOS_ID, EOS_ID}.isdisjoint(prefix):
                raise ValueError("a prefix contains a control token")
            longest.append(max(max_pieces(num_tokens, config, max_length), num_required))
        limits = torch.tensor(longest, dtype=torch.int64)
        width = max((len(prefix) for prefix in prefixes), default=0)
        table = torch.tensor([[*prefix] + [-1] * (width - len(prefix)) for prefix in prefixes], dtype=torch.int64)
        lengths = torch.arange(max(longest, default=0) + 2, dtype=torch.float64)
        divisors = LENGTH_NORMS[config.length_norm](lengths, config.alpha)
        return cls(
            limits.clamp(max=config.min_length),
            limits,
            table,
            divisors,
            bans,
            ForcedPhrases.from_phrases(forced, word_continuations),
        )

    def select(self, sentences: Tensor | slice) -> "LogitsProcessor":
        """The rules of some of the sentences; `sentences` (B',) on the CPU, or consecutive ones."""
        limits, prefixes = (self.shortest[sentences], self.longest[sentences]), self.prefixes[sentences]
        forced = None if self.forced is None else self.forced.select(sentences)
        return LogitsProcessor(*limits, prefixes, self.divisors, self.bans, forced)

    def is_inactive(self, num_pieces: Tensor) -> bool:
        """Return whether after so many pieces (B,) nothing is forbidden but the pieces that never come."""
        if self.bans is not None or self.forced is not None or self.prefixes.size(1):
            return False
        return bool(((num_pieces >= self.shortest) & (num_pieces < self.longest)).all())

    def apply(self, log_probs: Tensor, num_pieces: Tensor, pieces: Tensor | None = None) -> None:
        """Give -inf, in place, to every piece that may not come next.

        The remaining log-probabilities are not renormalized: a hypothesis' log-probability is the model's own.

        Args:
            log_probs: (B, W, V), changed.
            num_pieces: (B,), on the CPU: the number of pieces so far.
            pieces: (B, W, T), or (B, T) where W is 1: the pieces so far, and anything behind them; needed by rules
                that look back.
        """
        for token in SUPPRESSED_TOKENS:
            log_probs[..., token] = NEG_INF
        if self.bans is not None or self.forced is not None:
            assert pieces is not None
            self._apply_history_rules(log_probs, num_pieces, pieces if pieces.dim() == 3 else pieces.unsqueeze(1))
        if self.prefixes.size(1):
            _force_token(log_probs, *self._prefix_tokens(num_pieces))
        if (early := num_pieces < self.shortest).any():
            rows = early.nonzero().squeeze(1).to(log_probs.device)
            eos_log_probs = log_probs[rows, :, EOS_ID]
            log_probs[rows, :, EOS_ID] = NEG_INF
            if self.bans is not None or self.forced is not None:  # what has nothing else left may end all the same
                is_blocked = (log_probs[rows] == NEG_INF).all(2)
                log_probs[rows, :, EOS_ID] = eos_log_probs.where(is_blocked, NEG_INF)
        if (is_full := num_pieces >= self.longest).any():
            rows = is_full.nonzero().squeeze(1)
            _force_token(log_probs, rows, torch.full_like(rows, EOS_ID))

    def _prefix_tokens(self, num_pieces: Tensor) -> tuple[Tensor, Tensor]:
        """The sentences whose prefix is not complete, and its next piece."""
        positions = num_pieces.clamp(max=self.prefixes.size(1) - 1).unsqueeze(1)
        prefix = self.prefixes.gather(1, positions).squeeze(1)
        is_incomplete = (prefix >= 0) & (num_pieces < self.prefixes.size(1))
        return is_incomplete.nonzero().squeeze(1), prefix[is_incomplete]

    def _apply_history_rules(self, log_probs: Tensor, num_pieces: Tensor, pieces: Tensor) -> None:
        """Apply forced phrases and bans; pieces (B, W, T).

        No end while a phrase is lacking. If there is no more room than for the missing pieces, or nothing else is
        left, the next piece of the furthest phrase is due, whatever is banned; so is the next one of a prefix.
        """
        is_due = torch.zeros(log_probs.shape[:2], dtype=torch.bool, device=log_probs.device)
        is_lacking, targets = is_due, torch.full_like(is_due, PAD_ID, dtype=torch.int64)
        if self.forced is not None:
            progress = self.forced.progress(num_pieces, pieces)
            room = (self.longest - num_pieces).to(is_due.device).unsqueeze(1)
            is_lacking, targets = progress.lacking > 0, progress.nearest
            is_due = is_lacking & (progress.lacking >= room)
        if self.prefixes.size(1):
            rows, tokens = (each.to(is_due.device) for each in self._prefix_tokens(num_pieces))
            targets[rows], is_due[rows] = tokens.unsqueeze(1), True
        targets = targets.unsqueeze(2)
        target_log_probs = log_probs.gather(2, targets)
        if self.bans is not None:
            self.bans.apply(log_probs, num_pieces, pieces)
        if self.forced is not None:
            log_probs[..., EOS_ID].masked_fill_(is_lacking, NEG_INF)
            self.forced.block_word_continuation(log_probs, progress)
            is_due = is_due | (is_lacking & (log_probs == NEG_INF).all(2))
        log_probs.masked_fill_(is_due.unsqueeze(2), NEG_INF)
        log_probs.scatter_(2, targets, target_log_probs.where(is_due.unsqueeze(2), log_probs.gather(2, targets)))


def _force_token(log_probs: Tensor, sentences: Tensor, tokens: Tensor) -> None:
    """Leave of each of these sentences only one token; sentences and tokens (n,) on the CPU."""
    if not len(sentences):
        return
    sentences, tokens = sentences.to(log_probs.device), tokens.to(log_probs.device)
    token_log_probs = log_probs[sentences, :, tokens]
    log_probs[sentences] = NEG_INF
    log_probs[sentences, :, tokens] = token_log_probs
