"""Texts of a request to translations: cut into sentences, asked for, and put together again."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.serving.catalog import UNKNOWN_LANGUAGE, ServedModel
from tfm.pipeline.serving.dispatch.answer_cache import AnswerCache
from tfm.pipeline.serving.dispatch.dispatcher import Dispatcher
from tfm.pipeline.serving.dispatch.errors import QueryProblem, QueueFullError, WorkerFailure
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.problems import bad_request, queue_full, request_timeout, server_fault
from tfm.pipeline.serving.text.alignment import Alignment
from tfm.pipeline.serving.text.glossary import Glossary
from tfm.pipeline.serving.text.html_document import HtmlSegments, split_html
from tfm.pipeline.serving.text.segments import SegmentBorders, TextSegments
from tfm.pipeline.serving.text.sentences import split_text

MIN_CHARS_TO_SPLIT_IN_THREAD = 2_000
"""From this length on a text is split in a thread, so that the event loop does not wait."""
MIN_BEAM_OF_GLOSSARY = 2
"""The least beam width with which terms can be forced."""
SECONDS_TO_RETRY = 2
MAX_LETTER_PIECES = 5_000
"""Pieces of requests by which a shortlist is judged, at most: the sentences after them are not counted."""


@dataclass(frozen=True)
class TranslatedText:
    """The translation of a text, and others that are less likely.

    Args:
        text: the best translation.
        alternatives: the others, the best first.
        borders: of the sentences of a plain text, and of their best translations.
    """

    text: str
    alternatives: tuple[str, ...] = ()
    borders: tuple[SegmentBorders, ...] = ()


@dataclass(frozen=True)
class ServedDirection:
    """A model with the languages of a request.

    Args:
        model: the model.
        source: the language of the texts, by the model's own code.
        target: that of the translations.
    """

    model: ServedModel
    source: str
    target: str

    def query(self, sentence: str, beam: int, n_best: int, required_terms: Sequence[str]) -> Query:
        """The query for a sentence.

        Args:
            sentence: the sentence.
            beam: hypotheses kept at each step.
            n_best: number of translations.
            required_terms: terms that these contain.
        """
        return Query(
            self.model.version.key,
            "translate",
            sentence,
            beam=max(beam, n_best, MIN_BEAM_OF_GLOSSARY if required_terms else 1),
            n_best=n_best,
            forced=tuple(required_terms),
            **self._language_arguments(),
        )

    def alignment_query(self, sentence: str, translation: str) -> Query:
        """The query for the alignment of a sentence and its translation."""
        return Query(self.model.version.key, "align", sentence, target=translation, **self._language_arguments())

    def _language_arguments(self) -> dict[str, Any]:
        """The languages that the model is told."""
        target = self.target if self.model.version.has_languages else None
        return {"to": target, "source_language": self.source if self.model.has_source_language else None}


class TranslationService:
    """The translation of the texts of requests.

    Args:
        dispatcher: the queue.
        limits: of the server.
        cache: the answers that are kept.
        warn: logs what the operator should look at.
        replace_unknown: whether unknown words are replaced by words of the source, where a model writes words.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        limits: Limits,
        cache: AnswerCache,
        warn: Callable[[str], None],
        *,
        replace_unknown: bool = False,
    ) -> None:
        self._dispatcher, self._limits, self._cache = dispatcher, limits, cache
        self._warn, self._replace_unknown = warn, replace_unknown
        self._counts_by_version: dict[str, SourceProblems] = {}
        self._judged_versions: set[str] = set()

    async def translate(
        self,
        texts: Sequence[str],
        direction: ServedDirection,
        *,
        beam: int,
        alternatives: int,
        glossary: Mapping[str, str],
        is_html: bool = False,
    ) -> list[TranslatedText]:
        """Translate texts sentence by sentence; the text between sentences is unchanged.

        Args:
            texts: the texts.
            direction: the model and the languages.
            beam: hypotheses kept at each step.
            alternatives: number of further translations of each text.
            glossary: target terms by source terms.
            is_html: whether the texts are HTML, whose tags stay at their words.

        Raises:
            Problem: the server does not take it, or cannot do it in time.
        """
        with errors_as_problems(self._limits.seconds):
            async with asyncio.timeout(self._limits.seconds):  # of all that a request asks for, one after another
                return await self._translate(texts, direction, beam, alternatives, glossary, is_html=is_html)

    async def _translate(
        self,
        texts: Sequence[str],
        direction: ServedDirection,
        beam: int,
        alternatives: int,
        glossary: Mapping[str, str],
        *,
        is_html: bool,
    ) -> list[TranslatedText]:
        """Translate as `translate` does, without a time limit."""
        terms = Glossary(glossary) if glossary else None

        def make_query(sentence: str) -> Query:
            forced = terms.target_terms(sentence) if terms is not None else ()
            query = direction.query(sentence, beam, alternatives + 1, forced)
            return replace(query, replace_unknown=self._replace_unknown)

        segments = [await self._split(text, direction, is_html) for text in texts]
        self._judge_shortlist(direction.model, [sentence for each in segments for sentence in each.sources])
        queries = [[make_query(sentence) for sentence in each.sources] for each in segments]
        answers = await self.ask([each for group in queries for each in group])
        translations_by_rank = [_ranked_translations([answers[each] for each in group]) for group in queries]
        joined_texts = [
            await self._join(text_segments, group, direction)
            for text_segments, group in zip(segments, translations_by_rank, strict=True)
        ]
        results = []
        for text_segments, texts, translations in zip(segments, joined_texts, translations_by_rank, strict=True):
            best, *alternative_texts = dict.fromkeys(texts)
            borders = (
                text_segments.borders(translations[0])
                if isinstance(text_segments, TextSegments) and translations
                else ()
            )
            results.append(TranslatedText(best, tuple(alternative_texts), tuple(borders)))
        return results

    async def ask(self, queries: Sequence[Query]) -> dict[Query, Any]:
        """Ask each query once, as far as its answer is not known. Raises Problem if there is no answer."""
        answers = {query: self._cache.get(query) for query in dict.fromkeys(queries)}
        new_queries = [query for query, answer in answers.items() if answer is None]
        if len(new_queries) > self._limits.sentences:
            limit = self._limits.sentences
            raise bad_request(f"the texts have {len(new_queries)} sentences and may have {limit}: send them in parts")
        for query, answer in zip(
            new_queries, await ask_all(self._dispatcher, new_queries, self._limits.seconds), strict=True
        ):
            answers[query] = answer
            self._cache.put(query, answer)
        return answers

    def _judge_shortlist(self, model: ServedModel, sentences: Sequence[str]) -> None:
        """Warn once of a model's shortlist that does not know the pieces of what is asked for, as `tfm translate`."""
        key = model.version.key
        if model.shortlist is None or key in self._judged_versions:
            return
        counts = self._counts_by_version.setdefault(key, SourceProblems())
        for sentence in sentences:
            if counts.letter_pieces >= MAX_LETTER_PIECES:
                break
            counts.count_unlinked_pieces(model.tokenizer, [model.tokenizer.encode(sentence)], model.shortlist)
        messages = counts.warnings(model.max_length)
        for text in messages:
            self._warn(f"{model.name}: {text}")
        if messages or counts.letter_pieces >= MAX_LETTER_PIECES:
            self._judged_versions.add(key)

    async def _split(self, text: str, direction: ServedDirection, is_html: bool) -> TextSegments | HtmlSegments:
        language = None if direction.source == UNKNOWN_LANGUAGE else direction.source
        split = partial(split_html if is_html else split_text, text, language, fits=direction.model.fits)
        return split() if len(text) < MIN_CHARS_TO_SPLIT_IN_THREAD else await asyncio.to_thread(split)

    async def _join(
        self,
        segments: TextSegments | HtmlSegments,
        translations_by_rank: Sequence[Sequence[str]],
        direction: ServedDirection,
    ) -> list[str]:
        """The texts in which the translations of each rank stand; in HTML with the tags at their words."""
        if isinstance(segments, TextSegments):
            return [segments.join(translations) for translations in translations_by_rank]
        texts, alignment_by_query = [], dict[Query, Alignment | None]()
        for translations in translations_by_rank:
            queries = {
                index: direction.alignment_query(segments.sources[index], translations[index])
                for index in segments.indices_with_markup
                if translations[index]
            }
            new_queries = [query for query in dict.fromkeys(queries.values()) if query not in alignment_by_query]
            alignment_by_query.update(
                zip(new_queries, await ask_all(self._dispatcher, new_queries, self._limits.seconds), strict=True)
            )
            alignments = {
                index: each for index, query in queries.items() if (each := alignment_by_query[query]) is not None
            }
            texts.append(await asyncio.to_thread(segments.join, translations, alignments))
        return texts


@contextmanager
def errors_as_problems(seconds: float) -> Iterator[None]:
    """Turn the errors of the queue into problems of a request while the body runs; seconds: the most that is waited."""
    try:
        yield
    except QueueFullError:
        raise queue_full(SECONDS_TO_RETRY) from None
    except QueryProblem as problem:
        raise bad_request(str(problem)) from None
    except WorkerFailure as fault:
        raise server_fault(str(fault)) from None
    except TimeoutError:
        raise request_timeout(seconds) from None


async def ask_all(dispatcher: Dispatcher, queries: Sequence[Query], seconds: float) -> list[Any]:
    """Ask queries of one request.

    Args:
        dispatcher: the queue.
        queries: the queries.
        seconds: the most that is waited.

    Raises:
        Problem: there is no answer.
    """
    if not queries:
        return []
    with errors_as_problems(seconds):
        return await dispatcher.ask(queries, seconds)


def _ranked_translations(answers: Sequence[Sequence[tuple[str, float, float, int]]]) -> list[list[str]]:
    """The translations of all sentences by rank; a sentence with fewer alternatives has its last one again."""
    num_ranks = max((len(each) for each in answers), default=1)
    return [[each[min(rank, len(each) - 1)][0] for each in answers] for rank in range(num_ranks)]
