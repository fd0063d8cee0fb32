"""log p of some texts, of which one is right: after their context, and by themselves.

A language model reads context and choice joined as they are written. Pieces are those of the joined text; scored are
those from the first on at which any choice of the question departs from the pieces of the context. The figure therefore
differs from log p(context and choice) by the same number for all choices of a question, also where the last word of the
context and the first of the choice share a piece. A translation, and a text of a contrast set, is scored whole, with
its end token. A masked language model scores the same pieces, each given all others (`decoding/pseudo_likelihood.py`),
and no end token, which it never has to predict.
"""

from collections.abc import Callable, Iterable, Sequence
from os.path import commonprefix
from typing import Any, TypeAlias
from unicodedata import category

import numpy as np
import numpy.typing as npt
import torch

from tfm.data.errors import DataError, escape_unprintable
from tfm.data.scripts import has_spaceless_script
from tfm.pipeline.decoding.pseudo_likelihood import pseudo_log_likelihoods
from tfm.pipeline.decoding.teacher_forcing import (
    forced_log_probs_by_steps,
    forced_text_log_probs,
    forced_text_log_probs_by_steps,
    target_log_probs,
)
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.alternative_files import AlternativeItem, AlternativeKind, AlternativeSet
from tfm.pipeline.scoring.alternative_scores import InputWarnings, ScoredItem
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import EOS_ID, UNK_ID

REQUESTS_PER_CHUNK = 256  # texts between two moves of the progress bar
Pieces: TypeAlias = tuple[int, ...]
Request: TypeAlias = tuple[Pieces, Pieces]
"""The pieces that are read first, and the pieces after them whose probability is asked for."""


def score_alternatives(
    loaded: LoadedModel, items: AlternativeSet, kind: AlternativeKind, reporter: Reporter
) -> tuple[list[ScoredItem], InputWarnings]:
    """Compute log p of every text of every item, in nats; equal pieces have equal figures.

    A context that is longer than the model reads is cut: for a language model from the left, by as much as the longest
    choice needs; for a translation model at its end, as in translating.

    Args:
        loaded: the model.
        items: the set of items.
        kind: of the items.
        reporter: shows progress.

    Returns:
        The scored items, and problems in reading them.

    Raises:
        DataError: a text has no pieces or is itself too long, with the line; or the model gives texts no probability.
    """
    task = loaded.config.task
    if not (TASK_SPECS[task].writes or TASK_SPECS[task].hides_pieces):
        raise DataError(f"was trained for {task}, and gives texts no probability", file=loaded.folder)
    warnings = InputWarnings()
    build_requests = _make_request_builder(loaded, items, kind, warnings)
    requests = [each for item in items.items for each in build_requests(item)]
    log_probs_by_request = _request_log_probs(loaded, requests, reporter)
    results, start = [], 0
    for item in items.items:
        count = len(item.alternatives)
        log_probs = tuple(log_probs_by_request[each] for each in requests[start : start + count])
        pieces = tuple(len(after) for _, after in requests[start : start + count])
        start += count
        unconditional = None
        if _is_context_part_of_text(loaded, kind):
            unconditional = tuple(log_probs_by_request[each] for each in requests[start : start + count])
            start += count
        results.append(ScoredItem(item, log_probs, pieces, unconditional, is_pseudo=TASK_SPECS[task].hides_pieces))
    return results, warnings


def _is_context_part_of_text(loaded: LoadedModel, kind: AlternativeKind) -> bool:
    """Whether context and text are one text, so that the text can be scored by itself as well."""
    return kind == "choices" and not TASK_SPECS[loaded.config.task].translates


def _make_request_builder(
    loaded: LoadedModel, items: AlternativeSet, kind: AlternativeKind, warnings: InputWarnings
) -> Callable[[AlternativeItem], list[Request]]:
    """Return the function that turns an item of a set into requests to a model."""
    if TASK_SPECS[loaded.config.task].translates:
        return _Seq2SeqRequests(loaded, items.name, warnings).requests
    if TASK_SPECS[loaded.config.task].hides_pieces:
        limit = loaded.model.max_length - 1
        reader = _TextRequests(loaded.source_tokenizer.encode, limit, (), items.name, warnings)
    else:
        prompts = PromptEncoder(loaded)
        reader = _TextRequests(prompts.encode, prompts.context, (EOS_ID,), items.name, warnings)
    return reader.requests_after_context if _is_context_part_of_text(loaded, kind) else reader.requests_of_whole_texts


class _Seq2SeqRequests:
    """Requests of a translation model: source, and target with its end."""

    def __init__(self, loaded: LoadedModel, name: str, warnings: InputWarnings) -> None:
        loaded.check_reads_text("questions and contrast sets are of texts")
        self._loaded, self._name, self._warnings = loaded, name, warnings

    def requests(self, item: AlternativeItem) -> list[Request]:
        limit = self._loaded.model.max_length - 1
        source = self._loaded.source_tokenizer.encode(item.context)
        if not source:
            raise _item_error("a translation model needs a source, and this one has no pieces", self._name, item)
        targets = self._loaded.target_tokenizer.encode_batch(item.alternatives)
        _check_scorable(item, self._name, targets, limit)
        _record_input_warnings(self._warnings, item, cut=len(source) > limit, texts=targets)
        return [(tuple(source[:limit]), (*target, EOS_ID)) for target in targets]


class _TextRequests:
    """Requests of a language model, masked or not.

    Args:
        encode: text to pieces.
        limit: the most pieces that are read at once.
        end: the pieces that end a whole text.
        name: the name of the set.
        warnings: receives problems.
    """

    def __init__(
        self, encode: Callable[[str], list[int]], limit: int, end: Pieces, name: str, warnings: InputWarnings
    ) -> None:
        self._encode, self._limit, self._end = encode, limit, end
        self._name, self._warnings = name, warnings

    def requests_of_whole_texts(self, item: AlternativeItem) -> list[Request]:
        """Each text, with its end where it is predicted, after nothing."""
        if item.context:
            problem = f"a language model has no source, and here is one ({_shorten(item.context)}): leave it out"
            raise _item_error(problem, self._name, item)
        texts = [self._encode(text) for text in item.alternatives]
        _check_scorable(item, self._name, texts, self._limit - len(self._end))
        _record_input_warnings(self._warnings, item, cut=False, texts=texts)
        return [((), (*text, *self._end)) for text in texts]

    def requests_after_context(self, item: AlternativeItem) -> list[Request]:
        """The pieces that each choice adds to the context; then each choice by itself."""
        context_ids = self._encode(item.context)
        wholes = [self._encode(item.context + text) for text in item.alternatives]
        texts_alone = [self._encode(text) for text in item.alternatives]
        start = min(len(commonprefix((context_ids, whole))) for whole in wholes)  # noqa: RUF071 - of ids, not of paths
        continuations = [whole[start:] for whole in wholes]
        for texts in (continuations, texts_alone):
            _check_scorable(item, self._name, texts, self._limit)
        too_many = max(0, max(map(len, wholes)) - self._limit)
        _record_input_warnings(self._warnings, item, cut=too_many > 0, texts=continuations)
        if (joined_word := find_joined_word(item.context, item.alternatives)) is not None:
            self._warnings.word_joins.append(joined_word)
        prefix = tuple(context_ids[too_many:start])
        return [(prefix, tuple(each)) for each in continuations] + [((), tuple(each)) for each in texts_alone]


def _record_input_warnings(
    warnings: InputWarnings, item: AlternativeItem, *, cut: bool, texts: Sequence[Sequence[int]]
) -> None:
    """Note whether the context of an item was cut, and whether one of its texts has an unknown piece."""
    warnings.cut_lines |= {item.line} if cut else set()
    warnings.unknown_lines |= {item.line} if any(UNK_ID in text for text in texts) else set()


def _check_scorable(item: AlternativeItem, name: str, texts: Sequence[Sequence[int]], limit: int) -> None:
    """Raise DataError for a text that has no probability."""
    for text, pieces in zip(item.alternatives, texts, strict=True):
        if not pieces:
            raise _item_error(f"the text {_shorten(text)} has no pieces: it has no probability", name, item)
        if len(pieces) > limit:
            problem = f"the text {_shorten(text)} has {len(pieces)} pieces, and the model reads at most {limit}"
            raise _item_error(problem, name, item)


def _item_error(problem: str, name: str, item: AlternativeItem) -> DataError:
    return DataError(problem, file=name, line=item.line)


def _shorten(text: str) -> str:
    return f'"{escape_unprintable(text[:40])}"'


def find_joined_word(context: str, texts: Sequence[str]) -> str | None:
    """The word that a text makes with the end of its context, in a script with spaces between words; None: none."""
    for text in texts:
        if _is_word_character(context[-1:]) and _is_word_character(text[:1]):
            last_word, first_word = context.split()[-1], text.split()[0]
            if not has_spaceless_script([last_word, first_word]):
                return f"{last_word}{first_word}"[-60:]
    return None


def _is_word_character(character: str) -> bool:
    """Whether a character is a letter, a mark on one, or a number."""
    return bool(character) and category(character)[0] in "LMN"


def _request_log_probs(loaded: LoadedModel, requests: Iterable[Request], reporter: Reporter) -> dict[Request, float]:
    """log p of each request; one that comes twice is scored once. Texts of like length share a batch."""
    score = _make_scorer(loaded)
    distinct_requests = sorted(set(requests), key=lambda each: (len(each[0]) + len(each[1]), each))
    log_probs: dict[Request, float] = {}
    with reporter.bar("scoring", len(distinct_requests), "texts") as bar:
        for first in range(0, len(distinct_requests), REQUESTS_PER_CHUNK):
            chunk = distinct_requests[first : first + REQUESTS_PER_CHUNK]
            log_probs.update(zip(chunk, map(float, score(chunk)), strict=True))
            bar.advance(len(chunk))
    return log_probs


def _make_scorer(loaded: LoadedModel) -> Callable[[Sequence[Request]], npt.NDArray[np.float64]]:
    """Return the function that computes the log-probabilities of some requests with a model."""
    model: Any = loaded.model.eval()
    device: torch.device = next(model.parameters()).device
    by_steps = isinstance(model, Ensemble)
    if TASK_SPECS[loaded.config.task].translates:
        of_pairs = forced_log_probs_by_steps if by_steps else target_log_probs
        return lambda requests: of_pairs(
            model, [source for source, _ in requests], [target[:-1] for _, target in requests], device=device
        )
    if TASK_SPECS[loaded.config.task].hides_pieces:
        return lambda requests: pseudo_log_likelihoods(
            model, [[*before, *after] for before, after in requests], [len(before) for before, _ in requests]
        )
    of_texts = forced_text_log_probs_by_steps if by_steps else forced_text_log_probs
    return lambda requests: of_texts(
        model, [[*before, *after] for before, after in requests], [len(before) for before, _ in requests], device=device
    )
