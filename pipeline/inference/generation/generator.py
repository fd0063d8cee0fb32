"""Text from a language model: continuations of a prompt."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tfm.data.errors import format_count
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.limits import FORCED_WORDS_NEED_BEAM_MESSAGE, LENGTH_NORMS
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, NextPieces, select_n_best
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.distinct_texts import find_distinct_texts, requires_distinct_texts
from tfm.pipeline.inference.generation.prompt_tokenizer import split_lines
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

DEFAULT_MAX_TOKENS = 256
"""The most pieces of a text, where `decoding.max_length` is not set."""
REPLACEMENT_CHARACTER = "\ufffd"  # the result of decoding a character before its last bytes
BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
"""Pieces of SentencePiece that are a byte: how a run of them is read is known at its end."""


@dataclass(frozen=True)
class GeneratedText:
    """The text after a prompt.

    Args:
        text: the text.
        score: log_prob after length normalization.
        log_prob: sum of the log-probabilities of its tokens, in nats, the end token among them if it has one.
        num_tokens: the number of tokens.
    """

    text: str
    score: float
    log_prob: float
    num_tokens: int


class PromptError(DataError):
    """Error of a prompt that a model cannot read.

    Args:
        problem: a sentence.
        row: the number of the prompt among those given together, from 0.
    """

    def __init__(self, problem: str, row: int) -> None:
        super().__init__(problem)
        self.row = row


class PieceGenerator(Protocol):
    """A language model that writes texts after prompts with some settings."""

    def sample(self, prompts: Sequence[Sequence[int]], samples: Sequence[int], max_pieces: int) -> Iterator[NextPieces]:
        """Yield the pieces of texts that are drawn or the likeliest, as they grow.

        Args:
            prompts: ids of the prompt of each text; all have as many pieces.
            samples: the number of each text among those of its prompt, by which it is drawn.
            max_pieces: the most pieces of a text.
        """

    def search(
        self, prompts: Sequence[Sequence[int]], forced: Sequence[str], config: DecodingConfig, max_pieces: int
    ) -> list[list[Hypothesis]]:
        """Return the `n_best` texts that a beam finds after each prompt, the best first.

        Args:
            prompts: ids of the prompts; all have as many pieces.
            forced: words and phrases that come up in them.
            config: the [decoding] part of a recipe.
            max_pieces: the most pieces of a text.
        """


class TextGenerationModel(Protocol):
    """A language model that encodes prompts and writes; see `PromptTokenizer`."""

    tokenizer: Tokenizer
    continue_past_line_end: bool
    context: int

    def encode(self, text: str) -> list[int]:
        """The pieces of a text."""

    def encode_without_unknown(self, prompt: str) -> list[int]:
        """The pieces of a prompt that the vocabulary can spell."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of pieces."""

    def make_piece_generator(self, config: DecodingConfig) -> PieceGenerator:
        """Return what writes texts with these settings."""


class TextGenerator:
    """A language model that writes text with some settings.

    Args:
        reader: the model, which encodes prompts and writes pieces.
        config: settings of decoding.
        reporter: shows warnings.

    Raises:
        RecipeError: settings do not combine.
    """

    def __init__(self, reader: TextGenerationModel, config: DecodingConfig, reporter: Reporter) -> None:
        if config.strategy == "mbr":
            raise RecipeError('decoding.strategy = "mbr" chooses among translations: here it must be search or sample')
        if config.replace_unknown:
            raise RecipeError("decoding.replace_unknown takes words of a source, and a text that goes on has none")
        if config.shortlist is not None:
            raise RecipeError("decoding.shortlist takes pieces of a source, and a text that goes on has none")
        if config.max_ratio != DecodingConfig.model_fields["max_ratio"].default:
            raise RecipeError(
                "decoding.max_ratio counts pieces of a source, and a text that goes on has none: set "
                "decoding.max_length"
            )
        if config.min_length and reader.continue_past_line_end:
            raise RecipeError(
                "decoding.min_length has no effect on text that continues past line ends: it has decoding.max_length "
                "pieces. Remove it, or give --no-through-ends"
            )
        self._reader, self._config, self._reporter = reader, config, reporter
        self._writer = reader.make_piece_generator(config)
        self.continue_past_line_end = reader.continue_past_line_end
        self.searches = config.strategy == "search" and config.beam > 1
        if (reason := config.n_best_problem()) is not None:
            raise RecipeError(reason)
        if self.searches and reader.continue_past_line_end:
            raise RecipeError(
                "beam search needs an end, but this text continues past line ends: remove --beam, or give "
                "--no-through-ends"
            )

    def decode_encoded_prompt(self, prompt: str) -> str:
        """The prompt as the model reads it."""
        return self._reader.decode(self._reader.encode(prompt))

    def generate_texts(self, prompt: str, forced: Sequence[str] = ()) -> list[GeneratedText]:
        """The `n_best` texts that follow a prompt, best first; `forced`: words and phrases that come up in them."""
        if forced and not self.searches:
            raise RecipeError(FORCED_WORDS_NEED_BEAM_MESSAGE)
        ids = self._encode_checked(prompt)
        return self._search_after([ids], forced)[0] if self.searches else self._generate_after([ids])[0]

    def generate_batch(self, prompts: Sequence[str]) -> Iterator[list[GeneratedText]]:
        """Yield the texts of `generate_texts` for each prompt, in order; those after prompts of as many pieces are
        drawn, or searched for, side by side.

        Raises:
            PromptError: the vocabulary cannot spell a prompt, or there is no room for anything after it; the texts of
                the prompts before it have been yielded.
        """
        encoded, problem = list[list[int]](), None
        for row, prompt in enumerate(prompts):
            try:
                encoded.append(self._encode_checked(prompt))
            except DataError as error:
                problem = PromptError(str(error), row)
                break
        yield from self._search_after(encoded) if self.searches else self._generate_after(encoded)
        if problem is not None:
            raise problem

    def _encode_checked(self, prompt: str) -> list[int]:
        ids = self._reader.encode_without_unknown(prompt)
        self._max_new_pieces(ids)
        return ids

    def _search_after(self, prompts: Sequence[list[int]], forced: Sequence[str] = ()) -> list[list[GeneratedText]]:
        """The texts that a beam finds after each of some prompts."""

        def search(rows: list[int], config: DecodingConfig) -> list[list[GeneratedText]]:
            texts: dict[int, list[GeneratedText]] = {}
            for group in _group_by_length(prompts, rows):
                longest = self._max_new_pieces(prompts[group[0]])
                results = self._writer.search([prompts[row] for row in group], forced, config, longest)
                for row, hypotheses in zip(group, results, strict=True):
                    self._warn_if_truncated(prompts[row], [len(each.ids) for each in hypotheses])
                    texts[row] = self._generated_texts(prompts[row], hypotheses)
            return [texts[row] for row in rows]

        results = search([*range(len(prompts))], self._config)
        return find_distinct_texts(results, self._config, search) if requires_distinct_texts(self._config) else results

    def _generate_after(self, prompts: Sequence[list[int]]) -> list[list[GeneratedText]]:
        """The texts after each of some prompts, not searched for by a beam."""
        num_texts = self._config.n_best if self._config.strategy == "sample" else 1
        hypotheses: list[list[Hypothesis]] = [[] for _ in prompts]
        batch_size = self._config.batch_sentences
        # the texts of one prompt are not parted
        chunk_size = batch_size if num_texts > batch_size else batch_size - batch_size % num_texts
        for group in _group_by_length(prompts, range(len(prompts))):
            texts = [(row, sample) for row in group for sample in range(num_texts)]
            for first in range(0, len(texts), chunk_size):
                rows, samples = zip(*texts[first : first + chunk_size], strict=True)
                new_hypotheses = self._generate_hypotheses([prompts[row] for row in rows], samples)
                for row, hypothesis in zip(rows, new_hypotheses, strict=True):
                    hypotheses[row].append(hypothesis)
        return [
            self._generated_texts(ids, select_n_best(new_hypotheses, num_texts))
            for ids, new_hypotheses in zip(prompts, hypotheses, strict=True)
        ]

    def _generated_texts(self, prompt: list[int], hypotheses: Sequence[Hypothesis]) -> list[GeneratedText]:
        """The texts of hypotheses after a prompt."""
        head, texts = self._reader.decode(prompt), []
        for hypothesis in hypotheses:
            full_text = self._reader.decode([*prompt, *hypothesis.ids])
            text = full_text[len(head) :] if full_text.startswith(head) else self._reader.decode(hypothesis.ids)
            num_tokens = len(hypothesis.ids) if self._reader.continue_past_line_end else hypothesis.num_tokens
            texts.append(GeneratedText(text, hypothesis.score, hypothesis.log_prob, num_tokens))
        return texts

    def stream(self, prompt: str, on_piece: Callable[[int], None] = lambda _: None) -> Iterator[str]:
        """The prompt and one text that follows it, not searched for by a beam, in parts as it is written.

        on_piece: called with each piece, the end token too.
        """
        ids, length = self._reader.encode_without_unknown(prompt), 0
        yield self._reader.decode(ids)
        line = split_lines(ids)[-1]
        emitted = self._reader.tokenizer.decode(line)
        for step in self._sample_pieces([ids], [0]):
            (piece,) = step.pieces or [EOS_ID]
            on_piece(piece)
            is_end = piece == EOS_ID
            line, length = (line, length) if is_end else ([*line, piece], length + 1)
            text = self._reader.tokenizer.decode(line)
            is_incomplete = (
                text.endswith(REPLACEMENT_CHARACTER)
                or BYTE_PIECE.fullmatch(self._reader.tokenizer.piece(piece)) is not None
            )
            if text.startswith(emitted) and (is_end or not is_incomplete):
                yield text[len(emitted) :]
                emitted = text
            if is_end and self._reader.continue_past_line_end:
                yield "\n"
                line, emitted = [], ""
        if (text := self._reader.tokenizer.decode(line)).startswith(emitted):
            yield text[len(emitted) :]
        self._warn_if_truncated(ids, [length])

    def _max_new_pieces(self, prompt: Sequence[int]) -> int:
        """The number of pieces that may follow a prompt. Raises DataError if there is no room for any."""
        max_tokens, room = self._config.max_length or DEFAULT_MAX_TOKENS, self._reader.context - 1 - len(prompt)
        if self._reader.continue_past_line_end or max_tokens <= room:
            return max_tokens
        if room < 1:
            raise DataError(
                f"the prompt has {len(prompt)} pieces, and the model reads {self._reader.context - 1} with what "
                "follows: shorten it, or continue after the ends of lines (--through-ends)"
            )
        return room

    def _sample_pieces(self, prompts: Sequence[Sequence[int]], samples: Sequence[int]) -> Iterator[NextPieces]:
        return self._writer.sample(prompts, samples, self._max_new_pieces(prompts[0]))

    def _generate_hypotheses(self, prompts: Sequence[Sequence[int]], samples: Sequence[int]) -> list[Hypothesis]:
        """The text of each number after each prompt; the prompts have as many pieces."""
        ids: list[list[int]] = [[] for _ in prompts]
        sums = [0.0] * len(ids)
        for step in self._sample_pieces(prompts, samples):
            for text, piece, log_prob in zip(step.texts, step.pieces, step.log_probs, strict=True):
                ids[text].append(piece)
                sums[text] += log_prob
        divisors = LENGTH_NORMS[self._config.length_norm](
            np.array([max(1.0, len(each)) for each in ids]), self._config.alpha
        ).tolist()
        pieces = ids if self._reader.continue_past_line_end else [each[:-1] for each in ids]
        self._warn_if_truncated(prompts[0], [len(each) for each in pieces])
        results = zip(pieces, sums, divisors, strict=True)
        return [Hypothesis(tuple(each), total / norm, total) for each, total, norm in results]

    def _warn_if_truncated(self, prompt: Sequence[int], lengths: Sequence[int]) -> None:
        longest = self._max_new_pieces(prompt)
        if longest < (self._config.max_length or DEFAULT_MAX_TOKENS) and max(lengths) >= longest:
            self._reporter.warn(
                f"output cut after {format_count(longest, 'token')}: with the prompt "
                f"({format_count(len(prompt), 'token')}) it reached the model's maximum length"
            )


def _group_by_length(prompts: Sequence[Sequence[int]], rows: Iterable[int]) -> list[list[int]]:
    """The numbers of prompts of as many pieces, which are decoded side by side, by groups; each in the order given."""
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(len(prompts[row]), []).append(row)
    return [*groups.values()]
