"""Who is searched for: some sentences side by side, each in a seat, and the next one where a seat falls free.

A step costs nearly the same for few rows as for many, and sentences end at different steps. So the seats are kept
filled: what remains of a batch need not wait for its longest sentence. One that goes on and on would make all others
attend over as many slots as its own; it is put off, and searched for anew at the end, among its like.
"""

from collections import deque
from typing import Generic

import torch
from torch import Tensor

from tfm.model.layout import Layout
from tfm.pipeline.decoding.constraints.logits_processor import LogitsRules
from tfm.pipeline.decoding.stepper import StateT, Stepper

GROUP = 32
NEVER_AGAIN = 1 << 62


class BatchSlots(Generic[StateT]):
    """B seats, and the model's state of them.

    sentences (B,): who sits there, -1 in a free seat. num_pieces (B,): the length of their hypotheses so far. rules:
    theirs. All on the CPU. state: the model's, of B * W rows; one a seat at the beginning.
    Seats change in groups, an eighth of them at a time: each change copies what the model remembers.
    """

    def __init__(self, stepper: Stepper[StateT], source: Tensor, layout: Layout, rules: LogitsRules, most: int) -> None:
        self._stepper, self._all_rules = stepper, rules
        self._sources = torch.split(source, layout.lengths.tolist())
        self._waiting = deque(range(layout.batch))
        self._read: tuple[list[int], StateT] | None = None  # some sentences, and their state of one row each
        self._num_called = 0  # of these
        # for how many pieces a sentence keeps its seat while others wait or sit
        self._patience = layout.lengths * 3 // 2 + 10
        self._least_patience = int(self._patience.min())
        self._num_free, self._group = 0, min(most, GROUP)
        self.sentences, self.state = self._called(min(most, layout.batch), 1)
        self.num_pieces = torch.zeros_like(self.sentences)
        self._num_read = torch.zeros_like(self.sentences)  # by the seat's rows, also after their sentence has left
        self.rules = rules.select(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def _called(self, count: int, width: int) -> tuple[Tensor, StateT]:
        """The next sentences, at most `count`, and their state of `width` rows each.

        They are read in larger groups: to read few takes nearly as long as to read many.
        """
        if self._read is None:
            group = min(max(count, self._group), len(self._waiting))
            sentences = [self._waiting.popleft() for _ in range(group)]
            sources = [self._sources[sentence] for sentence in sentences]
            layout = Layout.of(torch.tensor([len(source) for source in sources]), sources[0].device)
            self._read, self._num_called = (sentences, self._stepper.start(torch.cat(sources), layout)), 0
        (sentences, state), first = self._read, self._num_called
        self._num_called = last = min(first + count, len(sentences))
        if last == len(sentences):
            self._read = None
        if last - first < len(sentences) or width > 1:
            rows = torch.arange(first, last, device=self._sources[0].device)
            state = state.select(rows.repeat_interleave(width))
        return torch.tensor(sentences[first:last]), state

    def advance(self, done: Tensor) -> int:
        """One piece more; the seats whose sentences are done (B,) fall free. How many do so."""
        self.num_pieces += 1
        self._num_read += 1
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
        if self._is_last() or 8 * self._num_free < len(self):
            return None
        sentences, state = self._called(self._num_free, width)
        new = (self.sentences < 0).nonzero().squeeze(1)[: len(sentences)]
        self._num_free -= len(new)
        self.sentences[new] = sentences
        self.num_pieces[new] = self._num_read[new] = 0
        self.rules = self._all_rules.select(self.sentences.clamp(min=0))
        self.state = self.state.replace(self._rows(new, width), state)
        return new

    def shrink(self, width: int) -> Tensor | None:
        """Take free seats, of `width` rows each, away, if none wait and enough are free. Which seats stay.

        Also if free ones, whose rows are carried along, would go beyond what the model reads.
        """
        if not self._num_free:
            return None
        taken = (self.sentences >= 0).nonzero().squeeze(1)
        unwanted = self._is_last() and 8 * self._num_free >= len(self)
        if not unwanted and not self._outruns():
            return None
        self._num_free = 0
        if len(taken):
            self.state = self.state.select(self._rows(taken, width))
        self.sentences, self.num_pieces = self.sentences[taken], self.num_pieces[taken]
        self._num_read, self.rules = self._num_read[taken], self.rules.select(taken)
        return taken

    def _outruns(self) -> bool:
        """Whether a free seat has read all that the model can read."""
        return bool((self._num_read[self.sentences < 0] >= self._stepper.max_length).any())

    def _is_last(self) -> bool:
        """Whether nobody waits."""
        return not self._waiting and self._read is None

    def _rows(self, seats: Tensor, width: int) -> Tensor:
        """The rows of these seats."""
        rows = seats.unsqueeze(1) * width + torch.arange(width)
        return rows.flatten().to(self._sources[0].device)
