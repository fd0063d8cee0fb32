"""The tokenizer of a language model's prompts and texts."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tfm.model.config import ModelConfig
from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown
from tfm.pipeline.errors import DataError
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer


class PromptTokenizer:
    """The tokenizer of a language model, with what the model reads.

    Args:
        config: the [model] part of the model's recipe.
        tokenizer: that of the model.
        max_length: the most pieces that the model reads.
        folder: of the model, for messages.
        continue_past_line_end: whether the next line follows after the end of a line; None: as trained, true if the
            model has learned from running text.

    Raises:
        DataError: the model is no language model.
    """

    def __init__(
        self,
        config: ModelConfig,
        tokenizer: Tokenizer,
        max_length: int,
        folder: Path,
        continue_past_line_end: bool | None,
    ) -> None:
        if not TASK_SPECS[config.task].continues_text:
            remedy = TASK_SPECS[config.task].instead or "use `tfm translate`"
            raise DataError(f"was trained for {config.task}, and is not a language model: {remedy}", file=folder)
        self.tokenizer = tokenizer
        self.continue_past_line_end = (
            config.block is not None if continue_past_line_end is None else continue_past_line_end
        )
        self.context = min(max_length, config.block or max_length)
        """The most pieces that are read at once, the begin token first."""

    def encode(self, text: str) -> list[int]:
        """The pieces of a text, in which lines end with the end token."""
        lines = text.split("\n") if self.continue_past_line_end else [text]
        encoded = self.tokenizer.encode_batch(lines)
        return [piece for number, line in enumerate(encoded) for piece in ([EOS_ID] if number else []) + line]

    def encode_without_unknown(self, prompt: str) -> list[int]:
        """The pieces of a prompt. Raises DataError if the vocabulary cannot spell a part of it."""
        encode_without_unknown(
            self.tokenizer, prompt.split("\n") if self.continue_past_line_end else [prompt], "the prompt"
        )
        return self.encode(prompt)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of pieces, in which an end token is the end of a line."""
        return "\n".join(self.tokenizer.decode_batch(split_lines(ids)))


def split_lines(ids: Sequence[int]) -> list[list[int]]:
    """The pieces of each line, without the end tokens between them."""
    lines: list[list[int]] = [[]]
    for piece in ids:
        if piece == EOS_ID:
            lines.append([])
        else:
            lines[-1].append(piece)
    return lines


def list_rows_by_prompt(samples: Sequence[int]) -> list[range]:
    """The places of the texts of each prompt, which are numbered upwards; `samples` are their numbers."""
    starts = [index for index in range(len(samples)) if index == 0 or samples[index] <= samples[index - 1]]
    return [range(first, end) for first, end in pairwise([*starts, len(samples)])]
