"""Rules on the pieces of a hypothesis: n-gram blocking, forbidden phrases, forced phrases.

A phrase is a sequence of pieces, as the tokenizer splits it (`phrases.py`).
Legend: B sentences · W hypotheses a sentence · T pieces · V vocabulary · P forbidden phrases · C forced phrases of a
sentence · L pieces of the longest phrase.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.pipeline.decoding.limits import NEG_INF
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID

WILDCARD = -1
NO_MATCH = -2
AFTER_WORD_ID = -3
Pieces = tuple[int, ...]


@dataclass(frozen=True)
class BannedPieces:
    """Pieces that may not follow others, in whichever sentence. PAD stands for none: it may never come anyway."""

    ngram: int | None
    """N-gram blocking: no n pieces in a row occur twice."""
    prompt: Tensor
    """(T',) the pieces before every hypothesis, such as a prompt."""
    contexts: Tensor
    """(P, L - 1) the phrases without their last pieces, to the right, WILDCARD to their left."""
    ends: Tensor
    """(P,) their last pieces."""
    after_words: Tensor
    """The pieces that AFTER_WORD_ID stands for."""
    canonical_ids: Tensor
    """(V,) for each piece the first that stands for the same text, by which phrases are looked for; or none."""

    @classmethod
    def from_config(
        cls,
        ngram: int | None,
        phrases: Sequence[Pieces] = (),
        prompt: Sequence[int] = (),
        after_words: Sequence[int] = (),
        canonical_ids: Sequence[int] = (),
    ) -> "BannedPieces | None":
        """Return the bans of a configuration; None if nothing is banned.

        A phrase that begins with BOS is banned at the beginning of a text or line, one that begins with AFTER_WORD_ID
        after each piece of `after_words`.

        Args:
            ngram: length of the n-grams that may not repeat; None for no such rule.
            phrases: the forbidden phrases.
            prompt: pieces that stand before each hypothesis.
            after_words: pieces after which a word may have ended.
            canonical_ids: for each piece, the first with its text; all pieces of a phrase but the last are compared
                by it.
        """
        if ngram is None and not phrases:
            return None
        longest = max((len(phrase) for phrase in phrases), default=1)
        rows = [[*[WILDCARD] * (longest - len(phrase)), *phrase] for phrase in phrases]
        table = torch.tensor(rows, dtype=torch.int64).view(len(rows), longest)
        first, marks, canonical = (
            torch.tensor(each, dtype=torch.int64) for each in (prompt, after_words, canonical_ids)
        )
        return cls(ngram, first, _canonicalize_pieces(table[:, :-1], canonical), table[:, -1], marks, canonical)

    def apply(self, log_probs: Tensor, num_pieces: Tensor, pieces: Tensor) -> None:
        """Give -inf, in place, to every piece that would complete a ban.

        Args:
            log_probs: (B, W, V), changed.
            num_pieces: (B,), on the CPU: the number of pieces so far.
            pieces: (B, W, T), the first `num_pieces` of which are there.
        """
        device, num_before = pieces.device, len(self.prompt)
        longest = int(num_pieces.max())
        prompt = self.prompt.to(device).expand(*pieces.shape[:2], -1)
        history = torch.cat([prompt, pieces[..., :longest]], 2)
        lengths = num_pieces.to(device) + num_before
        if self.ngram is not None and history.shape[2] >= self.ngram:
            _ban_tokens(log_probs, *self._ngram_last_tokens(history, lengths, self.ngram))
        if len(self.ends):
            _ban_tokens(log_probs, *self._phrase_last_tokens(history, lengths))

    def _ngram_last_tokens(self, history: Tensor, lengths: Tensor, ngram: int) -> tuple[Tensor, Tensor]:
        """The last piece of each n-gram there is (B, W, T - n + 1), and whether its others are the last pieces now."""
        windows = history.unfold(2, ngram, 1)
        positions = lengths.unsqueeze(1) - (ngram - 1) + torch.arange(ngram - 1, device=history.device)
        last = history.gather(2, positions.clamp(min=0).unsqueeze(1).expand(-1, history.shape[1], -1))
        is_within = torch.arange(ngram - 1, history.shape[2], device=history.device) < lengths.unsqueeze(1)
        return windows[..., -1], (windows[..., :-1] == last.unsqueeze(2)).all(-1) & is_within.unsqueeze(1)

    def _phrase_last_tokens(self, history: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The last piece of each phrase (B, W, P), and whether its others are the last pieces now."""
        contexts, ends = self.contexts.to(history.device), self.ends.to(history.device)
        width = contexts.shape[1]
        history = history.masked_fill(history == EOS_ID, BOS_ID)  # in running text another line begins there
        padded = F.pad(F.pad(history, (1, 0), value=BOS_ID), (width, 0), value=NO_MATCH)
        is_within = torch.arange(padded.shape[2], device=history.device) < (lengths + width + 1).unsqueeze(1)
        is_visible = is_within.unsqueeze(1) & (padded != NO_MATCH)
        if not (contexts == UNK_ID).any() and not (ends == UNK_ID).any():
            is_visible &= padded != UNK_ID  # which is in no text
        order = is_visible.to(torch.uint8).sort(dim=2, stable=True).indices[..., -width:] if width else padded[..., :0]
        last = _canonicalize_pieces(
            padded.where(is_visible, NO_MATCH).gather(2, order), self.canonical_ids.to(history.device)
        ).unsqueeze(2)
        fits = (contexts == last) | (contexts == WILDCARD)
        if len(self.after_words):
            fits |= (contexts == AFTER_WORD_ID) & torch.isin(last, self.after_words.to(last.device))
        return ends.expand(*history.shape[:2], -1), fits.all(-1)


def _canonicalize_pieces(pieces: Tensor, canonical_ids: Tensor) -> Tensor:
    """The pieces, each by the first that stands for the same text; numbers that are no piece stay as they are."""
    return torch.where(pieces >= 0, canonical_ids[pieces.clamp(min=0)], pieces) if len(canonical_ids) else pieces


def _ban_tokens(log_probs: Tensor, tokens: Tensor, is_banned: Tensor) -> None:
    log_probs.scatter_(2, tokens.where(is_banned, PAD_ID), NEG_INF)


@dataclass(frozen=True)
class ConstraintProgress:
    """Progress of Q hypotheses of each of B sentences with the C phrases of their sentence."""

    lacking: Tensor
    """(B, Q) the number of pieces of forced phrases that are still missing."""
    remaining: Tensor
    """(B, Q) the same, less those of the furthest one that are already there."""
    following: Tensor
    """(B, Q, C) the next piece of each phrase that is not complete, PAD for the others."""
    nearest: Tensor
    """(B, Q) of these that of the furthest phrase."""
    just_met: Tensor
    """(B, Q) whether the last piece completed a phrase for the first time."""


@dataclass(frozen=True)
class ForcedPhrases:
    """The phrases that must come up, sentence by sentence. One is met when its pieces stand in a row somewhere; where
    they do so for the first time their last word is not gone on with, so that it stays that word."""

    phrases: Tensor
    """(B, C, L) WILDCARD beyond each phrase."""
    lengths: Tensor
    """(B, C) their pieces, 0 where there is no phrase."""
    continuing: Tensor
    """Pieces that continue the word before them."""

    @classmethod
    def from_phrases(
        cls, phrases: Sequence[Sequence[Pieces]], word_continuations: Sequence[int] = ()
    ) -> "ForcedPhrases | None":
        """Return the forced phrases of each sentence, each counted once; None if there are none."""
        distinct_phrases = [list(dict.fromkeys(sentence_phrases)) for sentence_phrases in phrases]
        max_phrases = max(map(len, distinct_phrases), default=0)
        if not max_phrases:
            return None
        longest = max(len(phrase) for sentence_phrases in distinct_phrases for phrase in sentence_phrases)
        table = torch.full((len(distinct_phrases), max_phrases, longest), WILDCARD)
        lengths = torch.zeros(len(distinct_phrases), max_phrases, dtype=torch.int64)
        for row, sentence_phrases in enumerate(distinct_phrases):
            for column, phrase in enumerate(sentence_phrases):
                table[row, column, : len(phrase)] = torch.tensor(phrase)
                lengths[row, column] = len(phrase)
        return cls(table, lengths, torch.tensor(word_continuations, dtype=torch.int64))

    def select(self, sentences: Tensor | slice) -> "ForcedPhrases":
        """Return the phrases of some of the sentences."""
        return ForcedPhrases(self.phrases[sentences], self.lengths[sentences], self.continuing)

    def block_word_continuation(self, log_probs: Tensor, progress: ConstraintProgress) -> None:
        """Give -inf, in place, to pieces that would extend the last word of a phrase just completed."""
        is_continuation = torch.zeros(log_probs.shape[2], dtype=torch.bool).index_fill_(0, self.continuing, True)
        log_probs.masked_fill_(progress.just_met.unsqueeze(2) & is_continuation.to(log_probs.device), NEG_INF)

    def progress(self, num_pieces: Tensor, pieces: Tensor) -> ConstraintProgress:
        """Return the progress of hypotheses of pieces (B, Q, T), of which the first `num_pieces` (B,), on the CPU, are
        there.
        """
        device = pieces.device
        phrases, lengths = self.phrases.to(device), self.lengths.to(device)
        history, num_read = pieces[..., : int(num_pieces.max())], num_pieces.to(device)
        hits = self._phrase_start_mask(history, num_read, phrases, lengths)
        is_unmet = ~hits.any(3)
        positions = (num_read.unsqueeze(1) - lengths).clamp(min=0)[:, None, :, None].expand(*hits.shape[:3], 1)
        just_met = hits.gather(3, positions).squeeze(3) & (hits.sum(3) == 1) & (lengths > 0).unsqueeze(1)
        depths = self._matched_prefix_lengths(history, num_read, phrases, lengths).masked_fill(~is_unmet, 0)
        num_missing_pieces = (lengths.unsqueeze(1) * is_unmet).sum(2)
        following = phrases.unsqueeze(1).expand(*depths.shape, -1).gather(3, depths.unsqueeze(3)).squeeze(3)
        following = following.where(is_unmet, PAD_ID)
        # the first of those that are furthest, since max does not promise which of several it takes
        order = torch.where(is_unmet, depths, -1).sort(dim=2, descending=True, stable=True).indices
        nearest = following.gather(2, order[..., :1]).squeeze(2)
        return ConstraintProgress(
            num_missing_pieces, num_missing_pieces - depths.amax(2), following, nearest, just_met.any(2)
        )

    @staticmethod
    def _phrase_start_mask(history: Tensor, num_read: Tensor, phrases: Tensor, lengths: Tensor) -> Tensor:
        """Return a mask (B, Q, C, T + 1) of the pieces at which each phrase begins."""
        width = phrases.shape[2]
        windows = F.pad(history, (0, width), value=NO_MATCH).unfold(2, width, 1).unsqueeze(2)
        expected = phrases[:, None, :, None]
        ends = torch.arange(windows.shape[3], device=num_read.device) + lengths.unsqueeze(2)  # (B, C, T + 1)
        is_within = ends <= num_read[:, None, None]
        return ((windows == expected) | (expected == WILDCARD)).all(-1) & is_within.unsqueeze(1)

    @staticmethod
    def _matched_prefix_lengths(history: Tensor, num_read: Tensor, phrases: Tensor, lengths: Tensor) -> Tensor:
        """Return (B, Q, C) the number of first pieces of each phrase, not all, that are the last of a hypothesis."""
        width = phrases.shape[2]
        padded = F.pad(history, (width, 0), value=NO_MATCH)
        positions = num_read.unsqueeze(1) + torch.arange(width, device=num_read.device)
        last = padded.gather(2, positions.unsqueeze(1).expand(-1, history.shape[1], -1)).unsqueeze(2)
        depths = torch.zeros(*history.shape[:2], phrases.shape[1], dtype=torch.int64, device=history.device)
        for depth in range(1, width):
            is_match = (last[..., width - depth :] == phrases[:, None, :, :depth]).all(-1)
            depths = torch.where(is_match & (depth < lengths).unsqueeze(1), depth, depths)
        return depths
