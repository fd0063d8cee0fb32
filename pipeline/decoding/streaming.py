"""A language model that reads a prompt and generates its continuation, piece by piece.

Legend: B texts in parallel · T pieces read so far, the begin token first · V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.model.layers.log_probs import LogProbFn
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.compiled_streaming import generate_compiled_stream
from tfm.pipeline.decoding.constraints.lexical import BannedPieces
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import NEG_INF
from tfm.pipeline.decoding.search.greedy import TokenSelector, select_likeliest
from tfm.pipeline.decoding.search.hypothesis import NON_FINITE_MESSAGE, NextPieces
from tfm.pipeline.decoding.search.numpy_sampling import sampling_key
from tfm.pipeline.decoding.search.sampling import TokenSampler
from tfm.pipeline.decoding.stepper import LanguageModel, StateT
from tfm.tokenizer.special import BOS_ID, EOS_ID


@dataclass(frozen=True)
class PromptedState(Generic[StateT]):
    """The model's state of R texts, and the last pieces (R,) of their prompts, with which they begin."""

    of_model: StateT
    last_pieces: Tensor

    def select(self, rows: Tensor) -> "PromptedState[StateT]":
        """The state of some rows; see `DecodingState`."""
        return PromptedState(self.of_model.select(rows), self.last_pieces[rows])

    def replace(self, rows: Tensor, other: "PromptedState[StateT]") -> "PromptedState[StateT]":
        """The state in which some rows are those of another; see `DecodingState`."""
        last_pieces = self.last_pieces.index_copy(0, rows, other.last_pieces)
        return PromptedState(self.of_model.replace(rows, other.of_model), last_pieces)


class PromptedStepper(Generic[StateT]):
    """A language model that has read prompts, as a `Stepper` of what follows them.

    Args:
        model: the language model.
        prompts: ids of one or more prompts; all have as many pieces. A source is the number of its prompt, from 0; with
            one prompt it is not looked at.
    """

    def __init__(self, model: LanguageModel[StateT], prompts: Sequence[Sequence[int]]) -> None:
        self._model, self._prompts = model, torch.tensor([[BOS_ID, *prompt] for prompt in prompts])
        self.max_length = model.max_length - len(prompts[0])

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources of these lengths (B,)."""
        return Layout.from_lengths(lengths, source.device)

    def start(self, source: Tensor, layout: Layout) -> PromptedState[StateT]:
        """The state in which all of the prompts is read but their last pieces."""
        if len(self._prompts) == 1:
            prompts = self._prompts.expand(layout.batch, -1)
        else:
            prompts = self._prompts[source.view(layout.batch, -1)[:, 0].cpu()]
        prompts = prompts.to(source.device)
        return PromptedState(prefill(self._model, prompts), prompts[:, -1])

    def step(self, tokens: Tensor, state: PromptedState[StateT]) -> tuple[LogProbFn, PromptedState[StateT]]:
        """A text begins with the last piece of its prompt, not with the begin token."""
        last_pieces = state.last_pieces
        predict, of_model = self._model.step(torch.where(tokens == BOS_ID, last_pieces, tokens), state.of_model)
        return predict, PromptedState(of_model, last_pieces)


def prefill(model: LanguageModel[StateT], pieces: Tensor) -> StateT:
    """The state that has read all of texts (B, T) but their last pieces, which are for the next step."""
    batch, length = pieces.shape
    if length == 1:
        return model.empty_state(batch, pieces.device)
    layout = Layout.from_lengths(torch.full((batch,), length - 1), pieces.device)
    return model.start(pieces[:, :-1].flatten(), layout)


def truncate_context(pieces: Tensor, context: int) -> Tensor:
    """Return the part of texts (B, T) that a model that reads `context` pieces at once is shown: if they are
    longer, the begin token and their last context / 2 pieces, which leaves as much room for the continuation.
    """
    if pieces.shape[1] <= context:
        return pieces
    return torch.cat([pieces[:, :1], pieces[:, -(context // 2) :]], 1)


@torch.inference_mode()
def generate_stream(
    model: LanguageModel[StateT],
    prompts: Sequence[Sequence[int]],
    samples: Sequence[int],
    config: DecodingConfig,
    *,
    longest: int,
    context: int,
    continue_past_line_end: bool,
    bans: BannedPieces | None,
    device: torch.device,
) -> Iterator[NextPieces]:
    """Yield, as they grow, texts that continue prompts, of the likeliest pieces or of pieces drawn.

    A text ends with its end token, which comes after `longest` pieces at the latest, or where bans leave no piece that
    may come.

    Args:
        model: the language model.
        prompts: ids of the prompt of each text; all have as many pieces.
        samples: the number of each text among those of its prompt, by which it is drawn.
        config: the [decoding] part of a recipe.
        longest: the most pieces of a text.
        context: the most pieces that the model reads; with `continue_past_line_end` text goes on from their last half.
        continue_past_line_end: whether the end token is a piece like others; a text ends after `longest` pieces.
        bans: forbidden pieces, after these prompts; None for none.
        device: device of the model.
    """
    if bans is None and device.type == "cpu":
        compiled = generate_compiled_stream(
            model,
            prompts,
            samples,
            config,
            longest=longest,
            context=context,
            continue_past_line_end=continue_past_line_end,
        )
        if compiled is not None:
            yield from compiled
            return
    limits = {"max_length": longest + 1, "min_length": 0} if continue_past_line_end else {"max_length": longest}
    rules = LogitsProcessor.from_config([1] * len(prompts), config.model_copy(update=limits), longest + 2, bans=bans)
    choose, texts = _token_selector(config, prompts, samples), torch.arange(len(prompts))
    pieces = torch.tensor([[BOS_ID, *prompt] for prompt in prompts], device=device)
    window = truncate_context(pieces, context)
    state, num_read = prefill(model, window), window.shape[1] - 1
    for length in range(longest if continue_past_line_end else longest + 1):
        if num_read == context:
            window = truncate_context(pieces, context)
            state, num_read = prefill(model, window), window.shape[1] - 1
        predict, state = model.step(pieces[:, -1], state)
        log_probs, num_read = predict(slice(None)), num_read + 1
        num_pieces = torch.full_like(texts, length)
        rules.apply(log_probs.unsqueeze(1), num_pieces, pieces[:, 1 + len(prompts[0]) :])
        values, tokens = choose(log_probs, texts, num_pieces)
        blocked = (values == NEG_INF) if bans is not None else torch.zeros_like(values, dtype=torch.bool)
        if not (values.isfinite() | blocked).all():
            raise DataError(NON_FINITE_MESSAGE)
        has_output = (~blocked).cpu()
        yield NextPieces(texts[has_output].tolist(), tokens[~blocked].tolist(), values[~blocked].tolist())
        pieces = torch.cat([pieces, tokens.unsqueeze(1)], 1)
        active = ~blocked if continue_past_line_end else ~blocked & (tokens != EOS_ID)
        if not active.all():
            rows = active.nonzero().squeeze(1)
            if not len(rows):
                return
            state, pieces, texts = state.select(rows), pieces[rows], texts[rows.cpu()]
            rules = rules.select(rows.cpu())


def _token_selector(config: DecodingConfig, prompts: Sequence[Sequence[int]], samples: Sequence[int]) -> TokenSelector:
    if config.strategy == "search":
        return select_likeliest
    return TokenSampler(
        config,
        [sampling_key(config.seed, [BOS_ID, *each], sample) for each, sample in zip(prompts, samples, strict=True)],
    )
