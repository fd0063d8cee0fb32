"""Text from a language model: continuations of a prompt, and the probability of given continuations."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os.path import commonprefix
from typing import Any

import torch

from tfm.data.errors import format_count
from tfm.model.layers.linear import inference_precision
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.phrases import FORCED_NEED_A_BEAM, Phrases
from tfm.pipeline.decoding.constraints.spelling import encode_spelled
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.limits import LENGTH_NORMS
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, best_first
from tfm.pipeline.decoding.streaming import NextPieces, PromptedStepper, generate_stream, prefill
from tfm.pipeline.decoding.teacher_forcing import stepped_log_probs
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.distinct_texts import distinct_texts, keeps_distinct
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.devices import decoding_precision
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

DEFAULT_MAX_TOKENS = 256
"""The most pieces of a text, where `decoding.max_length` is not set."""
PROMPTS_PER_BATCH = 64
REPLACEMENT_CHARACTER = "\ufffd"  # what a character is decoded to of which some bytes are yet to come
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


class PromptEncoder:
    """A language model and the text it reads.

    through_ends: after the end of a line the next one follows, as in running text; by default where the model has
    learned from that. context: so many pieces are read at once, the begin token first. Raises DataError where the model
    is none of language.
    """

    def __init__(self, loaded: LoadedModel, *, through_ends: bool | None = None) -> None:
        if not ABILITIES[loaded.config.task].generates:
            raise DataError(f"was trained for {loaded.config.task}, and is not a language model", file=loaded.folder)
        self.model: Any = loaded.model.eval()
        self.tokenizer: Tokenizer = loaded.target_tokenizer
        self.through_ends = loaded.config.block is not None if through_ends is None else through_ends
        self.context: int = min(self.model.max_length, loaded.config.block or self.model.max_length)
        self.device: torch.device = next(self.model.parameters()).device

    def encode(self, text: str) -> list[int]:
        """The pieces of a text, in which lines end with the end token."""
        lines = text.split("\n") if self.through_ends else [text]
        encoded = self.tokenizer.encode_batch(lines)
        return [piece for number, line in enumerate(encoded) for piece in ([EOS_ID] if number else []) + line]

    def encode_spelled(self, prompt: str) -> list[int]:
        """The pieces of a prompt. Raises DataError where the vocabulary cannot spell a part of it."""
        encode_spelled(self.tokenizer, prompt.split("\n") if self.through_ends else [prompt], "the prompt")
        return self.encode(prompt)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of pieces, in which an end token is the end of a line."""
        return "\n".join(self.tokenizer.decode_batch(_split_lines(ids)))


class TextGenerator:
    """A language model that writes text with some settings.

    Args:
        reader: the model, which encodes prompts.
        config: settings of decoding.
        reporter: shows warnings.

    Raises:
        RecipeError: settings do not combine.
    """

    def __init__(self, reader: PromptEncoder, config: DecodingConfig, reporter: Reporter) -> None:
        self._reader, self._config, self._reporter = reader, config, reporter
        self._phrases = Phrases.from_config(reader.tokenizer, config, 1)
        self.through_ends = reader.through_ends
        self.searches = config.strategy == "search" and config.beam > 1
        if (reason := config.n_best_problem()) is not None:
            raise RecipeError(reason)
        if self.searches and reader.through_ends:
            raise RecipeError(
                "beam search needs an end, but this text continues past line ends. Use sampling "
                '(decoding.strategy = "sample"), or --no-through-ends'
            )

    def prompt_text(self, prompt: str) -> str:
        """The prompt as the model reads it."""
        return self._reader.decode(self._reader.encode(prompt))

    def texts(self, prompt: str, forced: Sequence[str] = ()) -> list[GeneratedText]:
        """The `n_best` texts that follow a prompt, best first; `forced`: words and phrases that come up in them."""
        if forced and not self.searches:
            raise RecipeError(FORCED_NEED_A_BEAM)
        ids = self._reader.encode_spelled(prompt)
        if not self.searches:
            return self._generated_texts(ids, self._write_all(ids))

        def search(rows: list[int], config: DecodingConfig) -> list[list[GeneratedText]]:
            return [self._generated_texts(ids, self._search_texts(ids, forced, config))]

        found = search([0], self._config)
        return (distinct_texts(found, self._config, search) if keeps_distinct(self._config) else found)[0]

    def _generated_texts(self, prompt: list[int], hypotheses: Sequence[Hypothesis]) -> list[GeneratedText]:
        """The texts of hypotheses after a prompt."""
        head, found = self._reader.decode(prompt), []
        for each in hypotheses:
            whole = self._reader.decode([*prompt, *each.ids])
            text = whole[len(head) :] if whole.startswith(head) else self._reader.decode(each.ids)
            num_tokens = len(each.ids) if self._reader.through_ends else each.num_tokens
            found.append(GeneratedText(text, each.score, each.log_prob, num_tokens))
        return found

    def stream(self, prompt: str) -> Iterator[str]:
        """The prompt and one text that follows it, not searched for by a beam, in parts as it is written."""
        ids, length = self._reader.encode_spelled(prompt), 0
        yield self._reader.decode(ids)
        line = _split_lines(ids)[-1]
        said = self._reader.tokenizer.decode(line)
        for written in self._sample_texts(ids, 1):
            (piece,) = written.pieces or [EOS_ID]
            ends = piece == EOS_ID
            line, length = (line, length) if ends else ([*line, piece], length + 1)
            text = self._reader.tokenizer.decode(line)
            goes_on = (
                text.endswith(REPLACEMENT_CHARACTER)
                or BYTE_PIECE.fullmatch(self._reader.tokenizer.piece(piece)) is not None
            )
            if text.startswith(said) and (ends or not goes_on):
                yield text[len(said) :]
                said = text
            if ends and self._reader.through_ends:
                yield "\n"
                line, said = [], ""
        if (text := self._reader.tokenizer.decode(line)).startswith(said):
            yield text[len(said) :]
        self._warn_if_cut(ids, [length])

    def _max_new_pieces(self, prompt: Sequence[int]) -> int:
        """The number of pieces that may follow a prompt. Raises DataError where there is no room for any."""
        wanted, room = self._config.max_length or DEFAULT_MAX_TOKENS, self._reader.context - 1 - len(prompt)
        if self._reader.through_ends or wanted <= room:
            return wanted
        if room < 1:
            raise DataError(
                f"the prompt has {len(prompt)} pieces, and the model reads {self._reader.context - 1} with what "
                "follows: shorten it, or continue after the ends of lines (--through-ends)"
            )
        return room

    def _sample_texts(self, prompt: Sequence[int], num_texts: int) -> Iterator[NextPieces]:
        reader, config = self._reader, self._config
        with inference_precision(reader.model, decoding_precision(config.precision, reader.device)):
            yield from generate_stream(
                reader.model,
                prompt,
                config.model_copy(update={"n_best": num_texts}),
                longest=self._max_new_pieces(prompt),
                context=reader.context,
                through_ends=reader.through_ends,
                bans=replace(self._phrases, before=prompt).bans(config.no_repeat_ngram),
                device=reader.device,
            )

    def _write_all(self, prompt: Sequence[int]) -> list[Hypothesis]:
        num_texts = self._config.n_best if self._config.strategy == "sample" else 1
        ids: list[list[int]] = [[] for _ in range(num_texts)]
        sums = [0.0] * num_texts
        for written in self._sample_texts(prompt, num_texts):
            for text, piece, log_prob in zip(written.texts, written.pieces, written.log_probs, strict=True):
                ids[text].append(piece)
                sums[text] += log_prob
        divisors = LENGTH_NORMS[self._config.length_norm](
            torch.tensor([max(1, len(each)) for each in ids], dtype=torch.float64), self._config.alpha
        ).tolist()
        kept = ids if self._reader.through_ends else [each[:-1] for each in ids]
        self._warn_if_cut(prompt, [len(each) for each in kept])
        found = zip(kept, sums, divisors, strict=True)
        return best_first([Hypothesis(tuple(each), total / norm, total) for each, total, norm in found], num_texts)

    def _search_texts(self, prompt: Sequence[int], forced: Sequence[str], config: DecodingConfig) -> list[Hypothesis]:
        reader, longest = self._reader, self._max_new_pieces(prompt)
        wanted = Phrases.from_config(reader.tokenizer, config, 1, forced=[forced]) if forced else self._phrases
        needed = sum(len(phrase) for phrases in wanted.forced or () for phrase in set(phrases))
        if needed > reader.context - 1 - len(prompt):
            raise DataError(
                f"there is no room for the {format_count(needed, 'piece')} of the forced words after the prompt"
            )
        with inference_precision(reader.model, decoding_precision(config.precision, reader.device)):
            (found,) = decode(
                PromptedStepper(reader.model, prompt),
                [[BOS_ID]],
                config.model_copy(update={"max_length": longest}),
                device=reader.device,
                phrases=replace(wanted, before=prompt),
            )
        self._warn_if_cut(prompt, [len(each.ids) for each in found])
        return found

    def _warn_if_cut(self, prompt: Sequence[int], lengths: Sequence[int]) -> None:
        longest = self._max_new_pieces(prompt)
        if longest < (self._config.max_length or DEFAULT_MAX_TOKENS) and max(lengths) >= longest:
            self._reporter.warn(
                f"output cut after {format_count(longest, 'token')}: with the prompt "
                f"({format_count(len(prompt), 'token')}) it reached the model's maximum length"
            )


def score_continuations(
    loaded: LoadedModel, prompt: str, choices: Sequence[str], *, through_ends: bool | None = None
) -> list[Continuation]:
    """Score each text after a prompt: the sum over its tokens of log p(token | all before it).

    Prompt and choice are joined as they stand, and the pieces that the choice adds to those of the prompt are scored,
    without an end token. If running text is longer than the model reads at once, the prompt's beginning is left out,
    equally much for all choices.

    Args:
        loaded: the language model.
        prompt: the beginning of the text.
        choices: the texts after it.
        through_ends: whether text goes on after the end of a line; None: as trained.

    Returns:
        The continuations, the most probable first.

    Raises:
        DataError: a choice adds nothing, or is too long.
    """
    reader = PromptEncoder(loaded, through_ends=through_ends)
    own = reader.encode(prompt)
    wholes = [reader.encode(prompt + choice) for choice in choices]
    starts = [len(commonprefix((own, whole))) for whole in wholes]  # noqa: RUF071 - of ids, not of paths
    for choice, start, whole in zip(choices, starts, wholes, strict=True):
        if start == len(whole):
            raise DataError(f'the choice "{choice[:40]}" adds no piece to the prompt')
    longest = max(map(len, wholes), default=0)
    too_many = max(0, longest - reader.context)
    if too_many and (not reader.through_ends or too_many > min(starts)):
        raise DataError(f"prompt and choice have {longest} pieces, and the model reads {reader.context}: shorten them")
    found: dict[int, list[float]] = {}
    for start, same in groupby(sorted(range(len(choices)), key=starts.__getitem__), key=starts.__getitem__):
        numbers = list(same)
        for first in range(0, len(numbers), PROMPTS_PER_BATCH):
            some = numbers[first : first + PROMPTS_PER_BATCH]
            shown = [BOS_ID, *wholes[some[0]][too_many:start]]
            found.update(zip(some, _score_targets(reader, shown, [wholes[each][start:] for each in some]), strict=True))
    scored = [Continuation(choice, sum(found[number]), len(found[number])) for number, choice in enumerate(choices)]
    return sorted(scored, key=lambda each: -each.log_prob)


@torch.inference_mode()
def _score_targets(reader: PromptEncoder, shown: list[int], targets: list[list[int]]) -> list[list[float]]:
    pieces = torch.tensor([shown] * len(targets), device=reader.device)
    return stepped_log_probs(reader.model, prefill(reader.model, pieces), pieces[:, -1], targets)


def _split_lines(ids: Sequence[int]) -> list[list[int]]:
    lines: list[list[int]] = [[]]
    for piece in ids:
        if piece == EOS_ID:
            lines.append([])
        else:
            lines[-1].append(piece)
    return lines
