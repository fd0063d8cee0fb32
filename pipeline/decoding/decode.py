"""From source ids to hypotheses: sorted by length, searched in batches, given back in order."""

from collections.abc import Callable, Sequence
from itertools import chain

import torch

from model.layout import Layout
from pipeline.config import DecodingConfig
from pipeline.decoding.beam import beam_search
from pipeline.decoding.greedy import greedy_search
from pipeline.decoding.hypothesis import EMPTY, Hypothesis
from pipeline.decoding.rules import Rules
from pipeline.decoding.steppers import StateT, Stepper
from tokenizer.special import EOS_ID


def decode(
    stepper: Stepper[StateT],
    sources: Sequence[Sequence[int]],
    config: DecodingConfig,
    *,
    device: torch.device | str = "cpu",
    prefixes: Sequence[Sequence[int]] | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `config.n_best` hypotheses of each source, best first, in the order of the sources.

    Sources are ids without end token; one longer than the model reads is cut (`is_too_long` tells), one without pieces
    has the empty hypothesis. `prefixes` are ids that each hypothesis begins with. `on_done` is told after each batch
    how many sources it has finished. The model must be in eval mode.
    """
    found: list[list[Hypothesis]] = [[EMPTY]] * len(sources)
    # the longest first: if memory runs out, it does so at once
    order = sorted((row for row, ids in enumerate(sources) if len(ids)), key=lambda row: -len(sources[row]))
    with torch.inference_mode():
        for first in range(0, len(order), config.batch_sentences):
            rows = order[first : first + config.batch_sentences]
            batch = [[*sources[row][: stepper.max_length - 1], EOS_ID] for row in rows]
            starts = None if prefixes is None else [prefixes[row] for row in rows]
            for row, hypotheses in zip(rows, _search(stepper, batch, config, device, starts), strict=True):
                found[row] = hypotheses
            if on_done is not None:
                on_done(len(rows))
    if on_done is not None and len(order) < len(sources):
        on_done(len(sources) - len(order))
    return found


def is_too_long(source: Sequence[int], stepper: Stepper[StateT]) -> bool:
    """Whether `decode` cuts this source (ids without end token)."""
    return len(source) > stepper.max_length - 1


def _search(
    stepper: Stepper[StateT],
    sources: list[list[int]],
    config: DecodingConfig,
    device: torch.device | str,
    prefixes: list[Sequence[int]] | None,
) -> list[list[Hypothesis]]:
    lengths = [len(ids) for ids in sources]
    rules = Rules.of(lengths, config, stepper.max_length, prefixes)
    layout = Layout.of(torch.tensor(lengths, device=device))
    source = torch.tensor(list(chain.from_iterable(sources)), device=device)
    if config.beam == 1:
        return greedy_search(stepper, source, layout, rules)
    return beam_search(stepper, source, layout, rules, beam=config.beam, n_best=config.n_best)
