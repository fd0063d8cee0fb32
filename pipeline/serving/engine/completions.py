"""Texts of a language model after prompts, part by part as they are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.generation.generator import DEFAULT_MAX_TOKENS, TextGenerationModel, TextGenerator
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.tokenizer.special import EOS_ID


@dataclass
class PieceCount:
    """The pieces that a text has so far, and whether it has ended by itself."""

    continue_past_line_end: bool
    pieces: int = 0
    has_ended: bool = False

    def count_piece(self, piece: int) -> None:
        """Count a piece."""
        if piece == EOS_ID and not self.continue_past_line_end:
            self.has_ended = True
        else:
            self.pieces += 1


class CompletionStreamer:
    """The texts of one language model.

    Args:
        reader: the model, with what it reads.
    """

    def __init__(self, reader: TextGenerationModel) -> None:
        self._reader = reader

    def stream_completion(self, query: Query) -> Iterator[Any]:
        """Yield the parts of a text after a prompt, then how it ended: {"finish", "prompt_tokens", "tokens"}.

        Raises:
            DataError: the model cannot spell the prompt, or has no room for anything behind it.
        """
        config = DecodingConfig.model_validate({"strategy": "sample", **dict(query.sampling)})
        generator, count = (
            TextGenerator(self._reader, config, NullReporter()),
            PieceCount(self._reader.continue_past_line_end),
        )
        num_prompt = len(self._reader.encode_without_unknown(query.text))
        parts = generator.stream(query.text, count.count_piece)
        next(parts)  # the prompt
        yield from parts
        room = self._reader.context - 1 - num_prompt
        longest = config.max_length or DEFAULT_MAX_TOKENS
        longest = longest if count.continue_past_line_end else min(longest, room)  # there the end token can but follow
        finish = "stop" if count.has_ended and count.pieces < longest else "length"
        yield {"finish": finish, "prompt_tokens": num_prompt, "tokens": count.pieces}
