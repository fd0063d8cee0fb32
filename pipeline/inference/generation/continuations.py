"""The probability of given continuations of a prompt, by a language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix

import torch

from tfm.data.errors import format_share
from tfm.pipeline.decoding.streaming import prefill
from tfm.pipeline.decoding.teacher_forcing import stepped_log_probs
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import BOS_ID, UNK_ID

PROMPTS_PER_BATCH = 64


@dataclass(frozen=True)
class Continuation:
    """A text that may follow a prompt.

    Args:
        text: the text.
        log_prob: sum of the log-probabilities of its tokens, in nats.
        num_tokens: the number of tokens.
    """

    text: str
    log_prob: float
    num_tokens: int

    @property
    def log_prob_per_token(self) -> float:
        """The mean log-probability of its tokens."""
        return self.log_prob / self.num_tokens


def score_continuations(
    loaded: LoadedModel, prompt: str, choices: Sequence[str], *, continue_past_line_end: bool | None = None
) -> list[Continuation]:
    """Score each text after a prompt: the sum over its tokens of log p(token | all before it).

    Prompt and choice are joined as they stand, and the pieces are scored that follow those which the prompt and all
    choices have in common, without an end token: where a choice changes the last pieces of the prompt, these count for
    every choice. If running text is longer than the model reads at once, the prompt's beginning is left out, equally
    much for all choices.

    Args:
        loaded: the language model.
        prompt: the beginning of the text.
        choices: the texts after it.
        continue_past_line_end: whether text goes on after the end of a line; None: as trained.

    Returns:
        The continuations, the most probable first.

    Raises:
        DataError: a choice adds nothing, or is too long.
    """
    reader = PromptEncoder(loaded, continue_past_line_end=continue_past_line_end)
    prompt_ids = reader.encode(prompt)
    sequences = [reader.encode(prompt + choice) for choice in choices]
    starts = [len(commonprefix((prompt_ids, sequence))) for sequence in sequences]  # noqa: RUF071 - of ids, not of paths
    for choice, num_common, sequence in zip(choices, starts, sequences, strict=True):
        if num_common == len(sequence):
            raise DataError(f'the choice "{choice[:40]}" adds no piece to the prompt')
    longest = max(map(len, sequences), default=0)
    too_many, start = max(0, longest - reader.context), min(starts, default=0)
    if too_many and (not reader.continue_past_line_end or too_many > start):
        raise DataError(f"prompt and choice have {longest} pieces, and the model reads {reader.context}: shorten them")
    context = [BOS_ID, *prompt_ids[too_many:start]]
    log_probs: list[list[float]] = []
    for first in range(0, len(choices), PROMPTS_PER_BATCH):
        batch = sequences[first : first + PROMPTS_PER_BATCH]
        log_probs += _score_targets(reader, context, [sequence[start:] for sequence in batch])
    continuations = [
        Continuation(choice, sum(piece_log_probs), len(piece_log_probs))
        for choice, piece_log_probs in zip(choices, log_probs, strict=True)
    ]
    return sorted(continuations, key=lambda each: -each.log_prob)


def unknown_choices_warning(loaded: LoadedModel, choices: Sequence[str]) -> str | None:
    """The warning of choices that have the probability of what the vocabulary lacks; None if there are none."""
    encoded = loaded.target_tokenizer.encode_batch(list(choices))
    lines = [number for number, ids in enumerate(encoded, 1) if UNK_ID in ids]
    if not lines:
        return None
    have = format_share(len(lines), len(choices), "choice", "has", "have")
    return (
        f"{have} pieces that the model's vocabulary lacks (the first in line {lines[0]}), and the probability of any "
        "such piece: do not compare them with the others"
    )


@torch.inference_mode()
def _score_targets(encoder: PromptEncoder, prompt_ids: list[int], targets: list[list[int]]) -> list[list[float]]:
    pieces = torch.tensor([prompt_ids] * len(targets), device=encoder.device)
    return stepped_log_probs(encoder.model, prefill(encoder.model, pieces), pieces[:, -1], targets)
