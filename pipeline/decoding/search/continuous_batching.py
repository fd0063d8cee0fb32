"""Continuous batching: some sentences are searched side by side, each in a slot; a free slot takes the next one.

A step costs nearly the same for few rows as for many, and sentences end at different steps. The slots are therefore
kept filled: the rest of a batch does not wait for its longest sentence. A sentence that does not end would make all
others attend over as many positions as its own; it is put off, and searched again at the end, with others of its kind.
"""

from collections import deque
from typing import Generic

import torch
from torch import Tensor

from tfm.model.layout import Layout
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.stepper import StateT, Stepper

SENTENCES_PER_GROUP = 32
NO_LIMIT = 1 << 62


class BatchSlots(Generic[StateT]):
    """B slots of a batch, and the model's state for them.

    sentences (B,): the sentence in each slot, -1 in a free slot. num_pieces (B,): the length of its hypotheses so far.
    rules: of these sentences. All on the CPU. state: the model's, of B * W rows; one row a slot at the beginning.
    Slots change in groups, an eighth of them at a time: each change copies the model's state.

    Args:
        stepper: the model.
        source: ids (N,), or images (B, ...).
        layout: the layout of the source.
        rules: the rules of all sentences.
        batch_size: the most slots.
    """

    def __init__(
        self, stepper: Stepper[StateT], source: Tensor, layout: Layout, rules: LogitsProcessor, batch_size: int
    ) -> None:
        self._stepper, self._all_rules = stepper, rules
        self._sources = torch.split(source, layout.lengths.tolist() if source.dim() == 1 else 1)
        self._queue = deque(range(layout.batch))
        self._read_group: tuple[list[int], StateT] | None = None  # some sentences, and their state of one row each
        self._num_called = 0  # of these
        # for how many pieces a sentence keeps its slot while there are others
        self._max_steps = layout.lengths * 3 // 2 + 10
        self._least_patience = int(self._max_steps.min())
        self._num_free, self._group = 0, min(batch_size, SENTENCES_PER_GROUP)
        self.sentences, self.state = self._encode_group(min(batch_size, layout.batch), 1)
        self.num_pieces = torch.zeros_like(self.sentences)
        self._num_read = torch.zeros_like(self.sentences)  # by the rows of each slot, also after its sentence has left
        self.rules = rules.select(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def _encode_group(self, count: int, width: int) -> tuple[Tensor, StateT]:
        """Return the next sentences, at most `count`, and their state of `width` rows each.

        Sentences are encoded in larger groups: to encode few takes nearly as long as to encode many.
        """
        if self._read_group is None:
            group = min(max(count, self._group), len(self._queue))
            sentences = [self._queue.popleft() for _ in range(group)]
            sources = [self._sources[sentence] for sentence in sentences]
            source = torch.cat(sources)
            layout = self._stepper.source_layout(source, torch.tensor([len(source) for source in sources]))
            self._read_group, self._num_called = (sentences, self._stepper.start(source, layout)), 0
        (sentences, state), first = self._read_group, self._num_called
        self._num_called = last = min(first + count, len(sentences))
        if last == len(sentences):
            self._read_group = None
        if last - first < len(sentences) or width > 1:
            rows = torch.arange(first, last, device=self._sources[0].device)
            state = state.select(rows.repeat_interleave(width))
        return torch.tensor(sentences[first:last]), state

    def advance(self, is_done: Tensor) -> int:
        """Count one piece more, and free the slots whose sentences are done (B,); return their number."""
        self.num_pieces += 1
        self._num_read += 1
        num_leaving = self._release_slots(is_done & (self.sentences >= 0)) if is_done.any() else 0
        if self._num_free:
            self.num_pieces[self.sentences < 0] = 0
        return num_leaving

    def _release_slots(self, slots: Tensor) -> int:
        """Free these slots (B,), which are taken. Returns how many they are."""
        self.sentences[slots] = -1
        num_leaving = int(slots.sum())
        self._num_free += num_leaving
        return num_leaving

    def defer_long_sequences(self) -> tuple[list[int], Tensor] | None:
        """The sentences that are put off, and their slots; None if there are none."""
        if len(self) == 1 or int(self.num_pieces.max()) <= self._least_patience:
            return None
        is_deferred = (self.sentences >= 0) & (self.num_pieces > self._max_steps[self.sentences])
        # unless no other sentence is in the batch
        if not is_deferred.any() or int(is_deferred.sum()) + self._num_free == len(self):
            return None
        sentences = self.sentences[is_deferred].tolist()
        self._queue.extend(sentences)
        self._max_steps[sentences] = NO_LIMIT
        self._release_slots(is_deferred)
        return sentences, is_deferred.nonzero().squeeze(1)

    def fill(self, width: int) -> Tensor | None:
        """Give free slots, of `width` rows each, to waiting sentences, if enough are free. Returns which slots."""
        if self._is_queue_empty() or 8 * self._num_free < len(self):
            return None
        sentences, state = self._encode_group(self._num_free, width)
        new = (self.sentences < 0).nonzero().squeeze(1)[: len(sentences)]
        self._num_free -= len(new)
        self.sentences[new] = sentences
        self.num_pieces[new] = self._num_read[new] = 0
        self.rules = self._all_rules.select(self.sentences.clamp(min=0))
        self.state = self.state.replace(self._select_rows(new, width), state)
        return new

    def shrink(self, width: int) -> Tensor | None:
        """Remove free slots, of `width` rows each, if no sentence waits and enough slots are free. Returns which stay.

        Also if the rows of a free slot, which every step extends, would become longer than the model reads.
        """
        if not self._num_free:
            return None
        occupied_slots = (self.sentences >= 0).nonzero().squeeze(1)
        has_surplus = self._is_queue_empty() and 8 * self._num_free >= len(self)
        if not has_surplus and not self._exceeds_max_length():
            return None
        self._num_free = 0
        if len(occupied_slots):
            self.state = self.state.select(self._select_rows(occupied_slots, width))
        self.sentences, self.num_pieces = self.sentences[occupied_slots], self.num_pieces[occupied_slots]
        self._num_read, self.rules = self._num_read[occupied_slots], self.rules.select(occupied_slots)
        return occupied_slots

    def _exceeds_max_length(self) -> bool:
        """Return whether a free slot has read all that the model can read."""
        return bool((self._num_read[self.sentences < 0] >= self._stepper.max_length).any())

    def _is_queue_empty(self) -> bool:
        """Return whether no sentence waits."""
        return not self._queue and self._read_group is None

    def _select_rows(self, slots: Tensor, width: int) -> Tensor:
        """The rows of these slots."""
        rows = slots.unsqueeze(1) * width + torch.arange(width)
        return rows.flatten().to(self._sources[0].device)
