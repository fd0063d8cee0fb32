"""From source ids to hypotheses: sorted by length, searched side by side, given back in order."""

import math
from collections.abc import Callable, Sequence
from itertools import chain

import torch

from model.layout import Layout
from model.linear import products_in
from pipeline.config import DecodingConfig
from pipeline.decoding.beam import beam_search
from pipeline.decoding.greedy import greedy_search
from pipeline.decoding.hypothesis import EMPTY, Hypothesis
from pipeline.decoding.rules import Rules
from pipeline.decoding.steppers import StateT, Stepper
from pipeline.decoding.workers import num_workers, search_all
from pipeline.models import decoding_precision
from tokenizer.special import EOS_ID

SHARE = 1024
"""Sentences that are searched for in one go, of which `batch_sentences` side by side."""


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
    has the empty hypothesis. `prefixes` are ids that each hypothesis begins with. `on_done` is told
    how many more sources are done. The model must be in eval mode.
    """
    found: list[list[Hypothesis]] = [[EMPTY]] * len(sources)
    tell = on_done or (lambda _: None)
    # the longest first: if memory runs out, it does so at once
    order = sorted((row for row, ids in enumerate(sources) if len(ids)), key=lambda row: -len(sources[row]))
    workers = num_workers(device, len(order))
    num_shares = workers * math.ceil(len(order) / (workers * SHARE))
    shares = [order[first::num_shares] for first in range(num_shares)]

    @torch.inference_mode()
    def search(number: int, on_done: Callable[[int], None]) -> list[list[Hypothesis]]:
        batch = [[*sources[row][: stepper.max_length - 1], EOS_ID] for row in shares[number]]
        starts = None if prefixes is None else [prefixes[row] for row in shares[number]]
        return _search(stepper, batch, config, device, starts, on_done)

    with products_in(stepper, decoding_precision(config.precision, device)):
        for number, hypotheses in search_all(search, num_shares, workers, tell):
            for row, each in zip(shares[number], hypotheses, strict=True):
                found[row] = each
    if len(order) < len(sources):
        tell(len(sources) - len(order))
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
    on_done: Callable[[int], None],
) -> list[list[Hypothesis]]:
    lengths = [len(ids) for ids in sources]
    rules = Rules.of(lengths, config, stepper.max_length, prefixes)
    layout = Layout.of(torch.tensor(lengths), device)
    source = torch.tensor(list(chain.from_iterable(sources)), device=device)
    most = config.batch_sentences
    if config.beam == 1:
        return greedy_search(stepper, source, layout, rules, most=most, on_done=on_done)
    return beam_search(
        stepper, source, layout, rules, beam=config.beam, n_best=config.n_best, most=most, on_done=on_done
    )
