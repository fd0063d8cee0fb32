"""A language model in torch, with the text it reads and what it predicts after a prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from tfm.data.errors import format_count
from tfm.model.layers.linear import inference_precision
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, NextPieces
from tfm.pipeline.decoding.streaming import PromptedStepper, generate_stream
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation.prompt_tokenizer import PromptTokenizer, list_rows_by_prompt
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.devices import decoding_precision


class PromptEncoder(PromptTokenizer):
    """A language model and the text it reads; the rest as `PromptTokenizer`."""

    def __init__(self, loaded: LoadedModel, *, continue_past_line_end: bool | None = None) -> None:
        model: Any = loaded.model
        super().__init__(
            loaded.config,
            loaded.target_tokenizer,
            getattr(model, "max_length", 0),
            loaded.folder,
            continue_past_line_end,
        )
        self.model: Any = model.eval()
        self.device: torch.device = next(self.model.parameters()).device

    def make_piece_generator(self, config: DecodingConfig) -> "TorchPieceGenerator":
        """Return what writes texts with these settings. Raises DataError for phrases that cannot be looked for."""
        return TorchPieceGenerator(self, config)


class TorchPieceGenerator:
    """A language model in torch that writes texts after prompts with some settings."""

    def __init__(self, reader: PromptEncoder, config: DecodingConfig) -> None:
        self._reader, self._config = reader, config
        self._phrases = PhraseConstraints.from_config(reader.tokenizer, config, 1)

    def sample(self, prompts: Sequence[Sequence[int]], samples: Sequence[int], max_pieces: int) -> Iterator[NextPieces]:
        """Yield the pieces of texts that are not searched for; see `PieceGenerator`."""
        reader, config = self._reader, self._config
        groups = [range(len(prompts))]
        if self._phrases.banned_pieces(config.no_repeat_ngram) is not None:  # these look at the prompt
            groups = list_rows_by_prompt(samples)
        with inference_precision(reader.model, decoding_precision(config.precision, reader.device)):
            for rows in groups:
                prompt = prompts[rows[0]]
                steps = generate_stream(
                    reader.model,
                    [prompts[row] for row in rows],
                    [samples[row] for row in rows],
                    config,
                    longest=max_pieces,
                    context=reader.context,
                    continue_past_line_end=reader.continue_past_line_end,
                    bans=replace(self._phrases, prompt=prompt).banned_pieces(config.no_repeat_ngram),
                    device=reader.device,
                )
                for step in steps:
                    yield replace(step, texts=[rows[text] for text in step.texts])

    def search(
        self, prompts: Sequence[Sequence[int]], forced: Sequence[str], config: DecodingConfig, max_pieces: int
    ) -> list[list[Hypothesis]]:
        """Return the texts that a beam finds after each prompt; see `PieceGenerator`."""
        reader = self._reader
        constraints = (
            PhraseConstraints.from_config(reader.tokenizer, config, 1, forced=[forced]) if forced else self._phrases
        )
        num_forced = sum(len(phrase) for phrases in constraints.forced or () for phrase in set(phrases))
        if num_forced > reader.context - 1 - len(prompts[0]):
            raise DataError(
                f"there is no room for the {format_count(num_forced, 'piece')} of the forced words after the prompt"
            )
        looks_at_prompt = constraints.banned_pieces(config.no_repeat_ngram) is not None or num_forced > 0
        # a full batch takes in no further prompts: to make room for them it would put off, and begin anew, long texts
        size = 1 if looks_at_prompt else config.batch_sentences
        hypotheses: list[list[Hypothesis]] = []
        with inference_precision(reader.model, decoding_precision(config.precision, reader.device)):
            for first in range(0, len(prompts), size):
                group = prompts[first : first + size]
                hypotheses += decode(
                    PromptedStepper(reader.model, group),
                    [[number] for number in range(len(group))],
                    config.model_copy(update={"max_length": max_pieces}),
                    device=reader.device,
                    phrases=replace(constraints, prompt=group[0]),
                )
        return hypotheses
