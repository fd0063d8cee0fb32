"""Beam search that sentences can join and leave at any step, for a server.

It is the search of `beam.py`, of which `n_best` is 1, over a batch that never ends. Each sentence is encoded by itself,
and all that a step computes of a row is computed from that row alone: with a model whose products do the same whatever
the number of rows (`row_invariance.py`), a hypothesis is the same bit by bit whichever sentences are beside it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm.model.layers.linear import Linear
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfLogits, RowSelection
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import LENGTH_NORMS, NEG_INF, max_pieces
from tfm.pipeline.decoding.search.beams import Beams, Flags, Ids, eos_mask, top_unfinished_indices
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, select_n_best
from tfm.pipeline.decoding.search.top_k import best_continuations
from tfm.pipeline.decoding.shortlist_stepper import CandidateUnion, restrict_to_candidates
from tfm.pipeline.errors import DataError
from tfm.tokenizer.special import EOS_ID

NO_LIMIT = 1 << 62
MIN_SLOTS = 2
"""A state of one sentence cannot be selected twice, so that it could not grow: beside one there is a free slot."""
IDLE_SOURCE = (EOS_ID,)
"""The source of a slot that no sentence has yet."""
FinishedSearch = tuple[Hashable, Hypothesis | DataError]
"""A sentence's key, and its best hypothesis; an error where the model gives no finite probabilities."""


class ContinuousBeamSearch:
    """The sentences that are searched for side by side, each in a slot of W rows, and their hypotheses.

    Args:
        stepper: the model.
        config: settings of the search: its beam, lengths and length norm. Nothing is forced or forbidden.
        max_sentences: the most sentences at a time.
        read: reads a source by itself, sooner than the model does; None: there is no other way.
    """

    def __init__(
        self,
        stepper: Any,
        config: DecodingConfig,
        max_sentences: int,
        read: Callable[[Sequence[int]], Any] | None = None,
    ) -> None:
        self._stepper, self._config, self.max_sentences = stepper, config, max_sentences
        self._read_source = read or self._encode_copies
        lengths = np.arange(stepper.max_length + 2, dtype=np.float64)
        self._norms = LENGTH_NORMS[config.length_norm](lengths, config.alpha)
        self._candidates: dict[Hashable, CandidateUnion] = {}
        self._queue: dict[Hashable, Sequence[int]] = {}
        self._keys: list[Hashable | None] = []
        self._hypotheses: dict[Hashable, list[Hypothesis]] = {}
        self._state: Any = None
        self._beams = self._empty_beams(0)
        self._num_pieces = self._num_read = self._longest = np.zeros(0, np.int64)

    def __len__(self) -> int:
        """The number of sentences that wait or are searched for."""
        return len(self._queue) + len(self._hypotheses)

    def add(self, key: Hashable, source: Sequence[int], candidates: CandidateUnion | None = None) -> None:
        """Let a sentence join at the next step.

        Args:
            key: by which it is known.
            source: its ids, end token included.
            candidates: the pieces of a shortlist that may come in its translation; None: all may.
        """
        self._queue[key] = source
        if candidates is not None:
            self._candidates[key] = candidates

    def remove(self, key: Hashable) -> None:
        """Free the slot of a sentence that nobody waits for any more."""
        self._queue.pop(key, None)
        self._candidates.pop(key, None)
        if self._hypotheses.pop(key, None) is not None:
            self._release_slots(np.array([each == key for each in self._keys]))

    @torch.inference_mode()
    def step(self) -> list[FinishedSearch]:
        """Let waiting sentences join, extend every hypothesis by a piece, and return the sentences that are done."""
        self._remove_free_slots()
        while self._queue and len(self._hypotheses) < self.max_sentences:
            key = next(iter(self._queue))
            self._admit(key, self._queue.pop(key))
        return self._extend_beams() if self._hypotheses else []

    def _admit(self, key: Hashable, source: Sequence[int]) -> None:
        """Read a source, and give it a free slot, or a new one."""
        if not self._keys:
            rows = torch.arange(MIN_SLOTS).repeat_interleave(self._config.beam)
            self._state = self._encode_copies(IDLE_SOURCE, MIN_SLOTS).select(rows)
            self._add_slots(MIN_SLOTS)
        if None not in self._keys:
            rows = torch.arange(len(self._keys) * self._config.beam)
            self._state = self._state.select(torch.cat([rows, self._rows_of_slot(0)]))
            self._add_slots(1)
        slot = self._keys.index(None)
        self._state = self._state.replace(self._rows_of_slot(slot), self._initial_state(source))
        longest = max_pieces(len(source), self._config, self._stepper.max_length)
        self._keys[slot], self._hypotheses[key] = key, []
        self._num_pieces[slot] = self._num_read[slot] = 0
        self._longest[slot] = longest
        self._beams.reset_slots(np.array([slot]), self._norms[[longest + 1]])

    def _initial_state(self, source: Sequence[int]) -> Any:
        """The state of a source of which nothing is written, of W rows."""
        return self._read_source(source).select(torch.zeros(self._config.beam, dtype=torch.long))

    def _encode_copies(self, source: Sequence[int], count: int = 1) -> Any:
        """The state of so many copies of a source, as the model itself reads it, of one row each."""
        ids, lengths = torch.tensor([*source] * count), torch.tensor([len(source)] * count)
        return self._stepper.start(ids, self._stepper.source_layout(ids, lengths))

    def _rows_of_slot(self, slot: int) -> Tensor:
        """The rows of a slot (W,)."""
        return torch.arange(slot * self._config.beam, (slot + 1) * self._config.beam)

    def _add_slots(self, count: int) -> None:
        """Make room for more sentences in all that is kept of each beside the state."""
        new_beams, old_beams = self._empty_beams(count), self._beams
        missing = old_beams.pieces.shape[2] - new_beams.pieces.shape[2]
        new_beams.pieces = np.pad(new_beams.pieces, ((0, 0), (0, 0), (0, missing)))
        array_pairs = zip(vars(old_beams).values(), vars(new_beams).values(), strict=True)
        self._beams = Beams(*map(np.concatenate, array_pairs))
        self._keys += [None] * count
        self._num_pieces, self._num_read, self._longest = (
            np.pad(counts, (0, count)) for counts in (self._num_pieces, self._num_read, self._longest)
        )

    def _empty_beams(self, count: int) -> Beams:
        """The beams of so many free slots."""
        width = self._config.beam
        return Beams(
            tokens=np.zeros((count, width), np.int64),
            pieces=np.zeros((count, width, 0), np.int64),
            sums=np.full((count, width), NEG_INF),
            num_finished=np.zeros(count, np.int64),
            best=np.full((count, 1), NEG_INF),
            bound=np.ones(count),
        )

    def _extend_beams(self) -> list[FinishedSearch]:
        """A step of `beam_search`, over all slots."""
        beams, width, num_pieces = self._beams, self._config.beam, self._num_pieces
        predict, self._state = self._stepper.step(torch.from_numpy(beams.tokens.ravel()), self._state)
        values, parents, tokens = self._best_continuations(predict)
        divisors = self._norms[num_pieces + 1]
        is_eos = eos_mask(values, tokens)
        finished = is_eos[:, :width]
        if finished.any():
            beams.record_finished(finished, values[:, :width] / divisors[:, None])
            self._collect_finished_hypotheses(finished, values, parents)
        rows, survivors = np.arange(len(is_eos))[:, None], top_unfinished_indices(is_eos, width)
        parents = parents[rows, survivors]
        extended_beams = beams.extend(values[rows, survivors], parents, tokens[rows, survivors], num_pieces)
        done_mask = extended_beams.done_mask(divisors, width, extended_beams.sums[:, 0])
        parent_rows = (parents + width * rows).ravel()
        if (parent_rows != np.arange(len(parent_rows))).any():
            self._state = self._state.select(torch.from_numpy(parent_rows))
        self._beams = extended_beams
        self._num_pieces, self._num_read = num_pieces + 1, self._num_read + 1
        answers = self._pop_finished_searches(done_mask)
        self._num_pieces[[key is None for key in self._keys]] = 0
        return answers

    def _best_continuations(self, predict: LogProbFn) -> tuple[Any, Ids, Ids]:
        """Values, parents and tokens (B, 2 W) of possible continuations, best first.

        The continuations of a sentence that has reached its limit, or has candidates, are computed apart: the way to
        them is another one, which no neighbour is to take.
        """
        sums, num_pieces = torch.from_numpy(self._beams.sums), torch.from_numpy(self._num_pieces)
        limits, width = self._num_pieces >= self._longest, self._config.beam
        occupied_slots = [slot for slot, key in enumerate(self._keys) if key is not None]
        restricted_slots = [slot for slot in occupied_slots if limits[slot] or self._keys[slot] in self._candidates]
        if len(restricted_slots) < len(occupied_slots):
            unlimited_rules = self._make_logits_processor(np.full_like(self._longest, NO_LIMIT))
            candidates = best_continuations(predict, unlimited_rules, num_pieces, None, sums, width)
        else:
            values, zeros = sums.new_full((len(sums), 2 * width), NEG_INF), num_pieces.new_zeros(len(sums), 2 * width)
            candidates = values, zeros, zeros.clone()
        for slot in restricted_slots:
            slot_slice, rows = slice(slot, slot + 1), slice(slot * width, (slot + 1) * width)
            restricted_predict = _select_predictions(predict, rows, self._candidates.get(self._keys[slot]))
            rules = self._make_logits_processor(self._longest[slot_slice])
            slot_candidates = best_continuations(
                restricted_predict, rules, num_pieces[slot_slice], None, sums[slot_slice], width
            )
            for batch_part, slot_part in zip(candidates, slot_candidates, strict=True):
                batch_part[slot_slice] = slot_part
        return candidates[0].numpy(), candidates[1].numpy(), candidates[2].numpy()

    def _make_logits_processor(self, longest: Ids) -> LogitsProcessor:
        """The rules of sentences whose hypotheses have these most pieces (B,), and are free else."""
        limits, no_pieces = torch.from_numpy(longest), torch.zeros(len(longest), 0, dtype=torch.long)
        return LogitsProcessor(torch.zeros_like(limits), limits, no_pieces, torch.from_numpy(self._norms))

    def _collect_finished_hypotheses(self, finished: Flags, values: Any, parents: Ids) -> None:
        """Keep the hypotheses that end here, finished (B, W)."""
        for slot, rank in zip(*finished.nonzero(), strict=True):
            if (key := self._keys[slot]) is not None:
                length, log_prob = int(self._num_pieces[slot]), float(values[slot, rank])
                ids = tuple(self._beams.pieces[slot, parents[slot, rank], :length].tolist())
                self._hypotheses[key].append(Hypothesis(ids, log_prob / float(self._norms[length + 1]), log_prob))

    def _pop_finished_searches(self, done_mask: Flags) -> list[FinishedSearch]:
        """Free the slots of the sentences that are done (B,), and return these."""
        answers: list[FinishedSearch] = []
        for slot in np.flatnonzero(done_mask):
            if (key := self._keys[slot]) is not None:
                self._candidates.pop(key, None)
                try:
                    answers.append((key, select_n_best(self._hypotheses.pop(key), 1)[0]))
                except DataError as error:
                    answers.append((key, error))
        is_occupied = np.array([key is not None for key in self._keys])
        self._release_slots(done_mask & is_occupied)
        return answers

    def _release_slots(self, slots: Flags) -> None:
        """Free slots, a mask (B,). Their rows are computed on, until others take them or they are removed."""
        for slot in np.flatnonzero(slots):
            self._keys[slot] = None
        self._beams.sums[slots] = NEG_INF

    def _remove_free_slots(self) -> None:
        """Remove free slots that no sentence waits for, if they are many, or have read all that the model reads."""
        if not self._hypotheses:
            self._state, self._keys, self._beams = None, [], self._empty_beams(0)
            self._num_pieces = self._num_read = self._longest = np.zeros(0, np.int64)
            return
        is_occupied = np.array([key is not None for key in self._keys])
        num_spare = int((~is_occupied).sum()) - len(self._queue)
        is_worn = ~is_occupied & (self._num_read >= self._stepper.max_length - 1)
        if not is_worn.any() and (4 * num_spare < len(is_occupied) or len(is_occupied) == MIN_SLOTS):
            return
        slots = np.sort(np.argsort(~is_occupied, kind="stable")[: max(MIN_SLOTS, int(is_occupied.sum()))])
        rows = slots[:, None] * self._config.beam + np.arange(self._config.beam)
        self._state = self._state.select(torch.from_numpy(rows.ravel()))
        self._beams, self._keys = self._beams.select(slots), [self._keys[slot] for slot in slots]
        self._num_pieces, self._num_read = self._num_pieces[slots], self._num_read[slots]
        self._longest = self._longest[slots]
        for slot in np.flatnonzero(is_worn[slots]):
            self._state = self._state.replace(self._rows_of_slot(int(slot)), self._initial_state(IDLE_SOURCE))
            self._num_read[slot] = 0


def _select_predictions(predict: LogProbFn, rows: slice, candidates: CandidateUnion | None) -> LogProbFn:
    """Return the `LogProbFn` of some rows, counted from 0 on, by which a search goes on that has no others.

    Args:
        predict: of all rows.
        rows: those of a sentence.
        candidates: the pieces that may come in it; None: all may.
    """

    def predict_rows(selection: RowSelection) -> Tensor:
        assert isinstance(selection, slice)
        return predict(slice(rows.start + selection.start, rows.start + selection.stop))

    if candidates is None:
        return predict_rows
    sentences = torch.zeros(rows.stop - rows.start, dtype=torch.long)
    if isinstance(predict, LogProbsOfLogits) and isinstance(predict.output, Linear) and predict.hidden is not None:
        # a copy: a product may depend on where its operands are in memory
        hidden = predict.hidden[rows].clone()
        return restrict_to_candidates(replace(predict, hidden=hidden), candidates, sentences)
    return restrict_to_candidates(predict_rows, candidates, sentences)
