"""Who is searched for: some sentences side by side, each in a seat, and the next one where a seat falls free.

A step costs nearly the same for few rows as for many, and sentences end at different steps. So the seats are kept
filled: what remains of a batch need not wait for its longest sentence. One that goes on and on would make all others
attend over as many slots as its own; it is put off, and searched for anew at the end, among its like.
"""

from collections import deque
from typing import Generic

import torch
from torch import Tensor

from model.layout import Layout
from pipeline.decoding.rules import Rules
from pipeline.decoding.steppers import StateT, Stepper

NEVER_AGAIN = 1 << 62


class Seats(Generic[StateT]):
    """B seats, and the model's state of them.

    sentences (B,): who sits there, -1 in a free seat. num_pieces (B,): the length of their hypotheses so far. rules:
    theirs. All on the CPU. state: the model's, of B * W rows; one a seat at the beginning.
    Seats change in groups, an eighth of them at a time: each change copies what the model remembers.
    """

    def __init__(self, stepper: Stepper[StateT], source: Tensor, layout: Layout, rules: Rules, most: int) -> None:
        self._stepper, self._all_rules = stepper, rules
        self._sources = torch.split(source, layout.lengths.tolist())
        self._waiting = deque(range(layout.batch))
        # for how many pieces a sentence keeps its seat while others wait or sit
        self._patience = layout.lengths * 3 // 2 + 10
        self._least_patience = int(self._patience.min())
        self._num_free = 0
        self.sentences = self._called(min(most, layout.batch))
        self.num_pieces = torch.zeros_like(self.sentences)
        self.rules = rules.select(self.sentences)
        self.state = self._read(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def _called(self, count: int) -> Tensor:
        """The next sentences."""
        return torch.tensor([self._waiting.popleft() for _ in range(count)], dtype=torch.int64)

    def _read(self, sentences: Tensor) -> StateT:
        """The state of these sentences, one row each."""
        sources = [self._sources[sentence] for sentence in sentences.tolist()]
        lengths = torch.tensor([len(source) for source in sources])
        return self._stepper.start(torch.cat(sources), Layout.of(lengths, sources[0].device))

    def advance(self, done: Tensor) -> int:
        """One piece more; the seats whose sentences are done (B,) fall free. How many do so."""
        self.num_pieces += 1
        num_leaving = self._leave(done & (self.sentences >= 0)) if done.any() else 0
        if self._num_free:
            self.num_pieces[self.sentences < 0] = 0
        return num_leaving

    def _leave(self, seats: Tensor) -> int:
        """Free these seats (B,), which are taken. How many they are."""
        self.sentences[seats] = -1
        num_leaving = int(seats.sum())
        self._num_free += num_leaving
        return num_leaving

    def put_off(self) -> tuple[list[int], Tensor] | None:
        """Who must leave for a while, and from which seats."""
        if len(self) == 1 or int(self.num_pieces.max()) <= self._least_patience:
            return None
        late = (self.sentences >= 0) & (self.num_pieces > self._patience[self.sentences])
        if not late.any() or int(late.sum()) + self._num_free == len(self):  # none else is here
            return None
        sentences = self.sentences[late].tolist()
        self._waiting.extend(sentences)
        self._patience[sentences] = NEVER_AGAIN
        self._leave(late)
        return sentences, late.nonzero().squeeze(1)

    def fill(self, width: int) -> Tensor | None:
        """Give free seats, of `width` rows each, to the next ones, if some wait and enough are free. Which seats."""
        if not self._waiting or 8 * self._num_free < len(self):
            return None
        new = (self.sentences < 0).nonzero().squeeze(1)[: len(self._waiting)]
        self._num_free -= len(new)
        self.sentences[new] = self._called(len(new))
        self.num_pieces[new] = 0
        self.rules = self._all_rules.select(self.sentences.clamp(min=0))
        state = self._read(self.sentences[new])
        rows = self._rows(new, width)
        if width > 1:
            state = state.select(torch.arange(len(new), device=rows.device).repeat_interleave(width))
        self.state = self.state.replace(rows, state)
        return new

    def shrink(self, width: int) -> Tensor | None:
        """Take free seats, of `width` rows each, away, if none wait and enough are free. Which seats stay."""
        if self._waiting or not self._num_free or 8 * self._num_free < len(self):
            return None
        taken = (self.sentences >= 0).nonzero().squeeze(1)
        self._num_free = 0
        if len(taken):
            self.state = self.state.select(self._rows(taken, width))
        self.sentences, self.num_pieces = self.sentences[taken], self.num_pieces[taken]
        self.rules = self.rules.select(taken)
        return taken

    def _rows(self, seats: Tensor, width: int) -> Tensor:
        """The rows of these seats."""
        rows = seats.unsqueeze(1) * width + torch.arange(width)
        return rows.flatten().to(self._sources[0].device)
