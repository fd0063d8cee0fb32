"""A small language model in numpy, with the text it reads and what it predicts after a prompt, without torch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tfm.model.config import ModelConfig
from tfm.model.numpy_inference.decoder_only import DecoderOnly
from tfm.model.numpy_inference.weights import UnsupportedModelError, build_decoder_only_network, is_language_model
from tfm.pipeline.artifacts.manifest import Manifest, read_artifact
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.numpy_streaming import PromptedNetwork, generate_stream
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, NextPieces
from tfm.pipeline.decoding.search.numpy_beam_search import is_unconstrained, search_sentence
from tfm.pipeline.inference.generation.generator import DEFAULT_MAX_TOKENS
from tfm.pipeline.inference.generation.prompt_tokenizer import PromptTokenizer, list_rows_by_prompt
from tfm.pipeline.model_io.numpy_model import fits_numpy_inference, read_model_parts
from tfm.tokenizer.special import BOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

MAX_NUMPY_TEXTS = 8
"""The most texts, or hypotheses, after one prompt: with more, torch gains the time that it takes to load it."""
MAX_NUMPY_PIECES = 1 << 12
"""The most pieces of the texts after several prompts, for the same reason."""


class NumpyPromptEncoder(PromptTokenizer):
    """A language model in numpy and the text it reads; the rest as `PromptTokenizer`."""

    def __init__(
        self,
        network: DecoderOnly,
        config: ModelConfig,
        tokenizer: Tokenizer,
        folder: Path,
        continue_past_line_end: bool | None,
    ) -> None:
        super().__init__(config, tokenizer, network.max_length, folder, continue_past_line_end)
        self.network = network

    def make_piece_generator(self, config: DecodingConfig) -> "NumpyPieceGenerator":
        """Return the generator of texts with settings that `supports_numpy_generation` accepts."""
        return NumpyPieceGenerator(self, config)


class NumpyPieceGenerator:
    """A language model in numpy that writes texts after prompts with some settings."""

    def __init__(self, reader: NumpyPromptEncoder, config: DecodingConfig) -> None:
        self._reader, self._config = reader, config

    def sample(self, prompts: Sequence[Sequence[int]], samples: Sequence[int], max_pieces: int) -> Iterator[NextPieces]:
        """Yield the pieces of texts that are not searched for; see `PieceGenerator`."""
        for rows in list_rows_by_prompt(samples):  # rows of other prompts would change the last digits
            steps = generate_stream(
                self._reader.network,
                prompts[rows[0]],
                [samples[row] for row in rows],
                self._config,
                longest=max_pieces,
                context=self._reader.context,
                continue_past_line_end=self._reader.continue_past_line_end,
            )
            for step in steps:
                yield replace(step, texts=[rows[text] for text in step.texts])

    def search(
        self, prompts: Sequence[Sequence[int]], forced: Sequence[str], config: DecodingConfig, max_pieces: int
    ) -> list[list[Hypothesis]]:
        """Return the texts that a beam finds after each prompt; see `PieceGenerator`. No words are forced."""
        assert not forced
        config = config.model_copy(update={"max_length": max_pieces})
        with np.errstate(all="ignore"):  # what is not finite is found in the end, and is an error
            networks = [PromptedNetwork(self._reader.network, prompt) for prompt in prompts]
            return [search_sentence(network, [BOS_ID], config) for network in networks]


def supports_numpy_generation(config: DecodingConfig, num_prompts: int = 1) -> bool:
    """Return whether numpy writes texts with these settings after so many prompts: few, and limited in their length
    alone.
    """
    num_texts = config.n_best if config.strategy == "sample" else config.beam
    num_pieces = num_prompts * num_texts * (config.max_length or DEFAULT_MAX_TOKENS)
    return (
        is_unconstrained(config)
        and num_texts <= MAX_NUMPY_TEXTS
        and (num_prompts <= 1 or num_pieces <= MAX_NUMPY_PIECES)
        and config.n_best_problem() is None
    )


def load_small_language_model(folder: Path, continue_past_line_end: bool | None) -> NumpyPromptEncoder | None:
    """Load the language model in a folder, verified, if it can write without torch.

    Args:
        folder: of the model.
        continue_past_line_end: whether the next line follows after the end of a line; None: as trained.

    Returns:
        The model; None if torch is needed for it, or to report a problem with it.

    Raises:
        DataError: the folder is no model of tfm.
    """
    if not fits_numpy_inference(folder):
        return None

    def read_model(manifest: Manifest) -> NumpyPromptEncoder | None:
        try:
            parts = read_model_parts(manifest, is_language_model)
            tokenizer = parts.target_tokenizer
            network = build_decoder_only_network(parts.config, parts.weights, vocab=tokenizer.vocab_size)
        except UnsupportedModelError:
            return None
        return NumpyPromptEncoder(network, parts.config, tokenizer, manifest.path, continue_past_line_end)

    return read_artifact(folder, read_model, "train")
