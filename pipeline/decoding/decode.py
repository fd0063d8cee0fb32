"""Decoding of sources to hypotheses: sorted by length, searched or sampled in batches, returned in order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from tfm.data.images.row_images import RowImages
from tfm.model.cpu_kernels.dispatch import use_compiled_kernels
from tfm.model.fused.decoder_step import fuse_if_supported
from tfm.model.layers.linear import inference_precision, linear_layers
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.search.beam import beam_search
from tfm.pipeline.decoding.search.fused_greedy import fused_greedy_search
from tfm.pipeline.decoding.search.greedy import single_hypothesis_search
from tfm.pipeline.decoding.search.hypothesis import EMPTY_HYPOTHESIS, Hypothesis, select_n_best
from tfm.pipeline.decoding.search.numpy_sampling import sampling_key
from tfm.pipeline.decoding.search.sampling import TokenSampler
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.decoding.shortlist_stepper import ShortlistStepper
from tfm.pipeline.decoding.sources import ImageSources, TextSources
from tfm.pipeline.decoding.stepper import StateT, Stepper
from tfm.pipeline.decoding.workers import num_workers, search_all_shards
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.devices import decoding_precision
from tfm.pipeline.runtime.out_of_memory import raise_oom_as_data_error

SHARD_SENTENCES = 1024
"""Sentences that are searched for in one go, of which `batch_sentences` side by side."""
MIN_SENTENCES_TO_COMPILE = 200
"""With fewer, compiled loops gain less time than it takes to load them; but one at a time they are asked for, and in
bf16 they round otherwise than torch's operations do, so that texts would depend on how many there are."""
NO_PHRASES = PhraseConstraints()
SHORTLIST_MESSAGE = (
    "decoding.shortlist takes pieces of a source's text, and may lack those of a prefix or forced word: remove it, or "
    "them"
)


def decode(
    stepper: Stepper[StateT],
    sources: Sequence[Sequence[int]] | RowImages,
    config: DecodingConfig,
    *,
    device: torch.device | str = "cpu",
    prefixes: Sequence[Sequence[int]] | None = None,
    phrases: PhraseConstraints = NO_PHRASES,
    shortlist: Shortlist | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """Return the `config.n_best` hypotheses of each source, best first, in the order of the sources.

    The model must be in eval mode. A source longer than the model reads is cut (`is_source_truncated`); one without
    pieces has the empty hypothesis.

    Args:
        stepper: the model.
        sources: images, or ids without end token.
        config: the [decoding] part of a recipe.
        device: device of the model.
        prefixes: ids with which the hypotheses of each source begin; None for none.
        phrases: forced and forbidden phrases.
        shortlist: of the pieces that may come; None: all may.
        on_done: called with the number of further sources that are done.

    Raises:
        RecipeError: more hypotheses are asked for than the beam has, or a shortlist is given with what it may lack.
    """
    if (reason := _settings_problem(config, sources, prefixes, phrases, shortlist)) is not None:
        raise RecipeError(reason)
    model_sources = (
        ImageSources(sources, stepper.max_length)
        if isinstance(sources, RowImages)
        else TextSources(sources, stepper.max_length)
    )
    all_hypotheses: list[list[Hypothesis]] = [[EMPTY_HYPOTHESIS]] * len(sources)
    report_done = on_done or (lambda _: None)
    order = model_sources.longest_first()  # if memory runs out, it does so at once
    is_single_greedy = config.batch_sentences == 1 and config.beam == 1  # for which there is a loop of its own
    workers = num_workers(device, len(order))
    # the loop for one sentence keeps its own memory: a single process gains nothing by starting first
    num_processes = 0 if is_single_greedy and workers == 1 else workers
    shards = _split_into_shards(order, max(1, workers))
    bans = phrases.banned_pieces(config.no_repeat_ngram)

    @torch.inference_mode()
    def search(number: int, on_done: Callable[[int], None]) -> list[list[Hypothesis]]:
        rows = shards[number]
        starts = None if prefixes is None else [prefixes[row] for row in rows]
        rules = LogitsProcessor.from_config(
            model_sources.lengths(rows),
            config,
            stepper.max_length,
            starts,
            bans=bans,
            forced=None if phrases.forced is None else [phrases.forced[row] for row in rows],
            word_continuations=phrases.continuing,
        )
        steps = stepper if is_single_greedy else fuse_if_supported(stepper)
        return STRATEGIES[config.strategy](
            _DecodeShard(steps, model_sources, rows, rules, config, torch.device(device), on_done, shortlist)
        )

    worth_compiling = (
        config.precision == "bf16" or config.batch_sentences == 1 or len(order) >= MIN_SENTENCES_TO_COMPILE
    )
    with (
        raise_oom_as_data_error(
            lambda: "decoding does not fit in memory; lower decoding.batch_sentences, or OMP_NUM_THREADS"
        ),
        inference_precision(stepper, decoding_precision(config.precision, device)),
        use_compiled_kernels(worth_compiling and torch.device(device).type == "cpu"),
    ):
        for layer in linear_layers(stepper) if workers else []:
            layer.pack_weight_if_supported()
        for number, hypotheses in search_all_shards(search, len(shards), num_processes, report_done):
            for row, sentence_hypotheses in zip(shards[number], hypotheses, strict=True):
                all_hypotheses[row] = sentence_hypotheses
    if len(order) < len(sources):
        report_done(len(sources) - len(order))
    return all_hypotheses


def _settings_problem(
    config: DecodingConfig,
    sources: Sequence[Sequence[int]] | RowImages,
    prefixes: Sequence[Sequence[int]] | None,
    phrases: PhraseConstraints,
    shortlist: Shortlist | None,
) -> str | None:
    """The reason why these sources cannot be decoded with these settings; None if they can."""
    if (reason := config.n_best_problem()) is not None:
        return reason
    if config.strategy == "mbr":
        return 'decoding.strategy = "mbr" chooses among translations: here it must be search or sample'
    if shortlist is not None and (prefixes is not None or phrases.forced is not None or isinstance(sources, RowImages)):
        return SHORTLIST_MESSAGE
    return None


def _split_into_shards(order: list[int], num_parallel: int) -> list[list[int]]:
    """Deal rows out in turn, so that all shards have sources of every length; as many shards for each process."""
    num_shards = num_parallel * math.ceil(len(order) / (num_parallel * SHARD_SENTENCES))
    return [order[first::num_shards] for first in range(num_shards)]


def is_source_truncated(source: Sequence[int], stepper: Stepper[StateT]) -> bool:
    """Return whether `decode` cuts this source (ids without end token)."""
    return len(source) > stepper.max_length - 1


@dataclass(frozen=True)
class _DecodeShard:
    """Sources that are decoded in one go, by their rows, and the settings."""

    stepper: Any
    sources: TextSources | ImageSources
    rows: list[int]
    rules: LogitsProcessor
    config: DecodingConfig
    device: torch.device
    on_done: Callable[[int], None]
    shortlist: Shortlist | None = None

    @property
    def steps(self) -> Any:
        """The model, held to the shortlist if there is one."""
        return self.stepper if self.shortlist is None else ShortlistStepper(self.stepper, self.shortlist)

    def load_source(self) -> tuple[Tensor, Layout]:
        """The ids (N,) or images (B, ...), and their layout."""
        source, lengths = self.sources.load_batch(self.rows, self.device)
        return source, self.stepper.source_layout(source, lengths)


def _search_shard(shard: _DecodeShard) -> list[list[Hypothesis]]:
    """The most probable hypotheses that a beam finds."""
    config, batch_size = shard.config, shard.config.batch_sentences
    if config.beam == 1 and shard.rules.forced is None:
        if batch_size == 1 and isinstance(shard.sources, TextSources):
            texts = shard.sources.source_ids(shard.rows)
            if (
                hypotheses := fused_greedy_search(shard.stepper, texts, shard.rules, shard.on_done, shard.shortlist)
            ) is not None:
                return hypotheses
        return single_hypothesis_search(
            shard.steps, *shard.load_source(), shard.rules, batch_size=batch_size, on_done=shard.on_done
        )
    return beam_search(
        shard.steps,
        *shard.load_source(),
        shard.rules,
        beam=config.beam,
        n_best=config.n_best,
        batch_size=batch_size,
        on_done=shard.on_done,
    )


def _sample_shard(shard: _DecodeShard) -> list[list[Hypothesis]]:
    """Sampled hypotheses: `n_best` of each sentence, in parallel."""
    config, times, total_done = shard.config, shard.config.n_best, 0
    keys = [
        sampling_key(config.seed, key, sample)
        for key in shard.sources.sampling_key_sources(shard.rows)
        for sample in range(times)
    ]
    rules = shard.rules.select(torch.arange(len(shard.rows)).repeat_interleave(times))
    repeated_shard = replace(shard, rows=[row for row in shard.rows for _ in range(times)])

    def on_done(num_done: int) -> None:
        nonlocal total_done
        previous_total, total_done = total_done, total_done + num_done
        if total_done // times > previous_total // times:
            shard.on_done(total_done // times - previous_total // times)

    results = single_hypothesis_search(
        shard.steps,
        *repeated_shard.load_source(),
        rules,
        choose=TokenSampler(config, keys),
        batch_size=config.batch_sentences * times,
        on_done=on_done,
    )
    samples = list(chain.from_iterable(results))
    return [select_n_best(samples[first : first + times], times) for first in range(0, len(samples), times)]


STRATEGIES: dict[str, Callable[[_DecodeShard], list[list[Hypothesis]]]] = {
    "search": _search_shard,
    "sample": _sample_shard,
}
"""By name: the search for the hypotheses of some sources."""
