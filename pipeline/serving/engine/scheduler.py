"""The queries of a decoding process: which of them goes on next, a step at a time.

A step of each search, the next part of each text, one computation by itself: so a long text holds up no short one for
longer than a step.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.serving.dispatch.messages import (
    Answer,
    AnswerPart,
    CancelQuery,
    LoadModel,
    LoadResult,
    Query,
    QueryBatch,
    UnloadModel,
)
from tfm.pipeline.serving.engine.work import BeamSearchJob, Network

if TYPE_CHECKING:
    from tfm.pipeline.decoding.search.continuous_beam_search import ContinuousBeamSearch

MAX_SENTENCES_PER_SEARCH = 64
"""The most sentences that one search has side by side."""
NOT_LOADED_MESSAGE = "this version of the model is not loaded"
Message = LoadModel | UnloadModel | QueryBatch | CancelQuery
Reply = LoadResult | AnswerPart | Answer


class Scheduler:
    """All that a process has to do.

    Args:
        load: loads a version of a model. Raises TfmError for one that cannot be.
    """

    def __init__(self, load: Callable[[Any], Network]) -> None:
        self._load = load
        self._networks: dict[str, Network] = {}
        self._searches: dict[tuple[str, int], ContinuousBeamSearch] = {}
        self._sentences: dict[int, tuple[tuple[str, int], BeamSearchJob]] = {}
        self._streams: dict[int, tuple[str, Iterator[Any]]] = {}
        self._computations: deque[tuple[int, str, Callable[[], Any]]] = deque()
        self._unwanted: set[str] = set()

    def is_idle(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self._sentences or self._streams or self._computations)

    def receive(self, message: Message) -> list[Reply]:
        """Take a message; return what is to be replied at once."""
        if isinstance(message, LoadModel):
            return [self._load_version(message)]
        if isinstance(message, UnloadModel):
            self._unwanted.add(message.key)
            self._delete_unused_versions()
            return []
        if isinstance(message, CancelQuery):
            self._cancel_query(message.number)
            return []
        return [reply for number, query in message.queries for reply in self._begin_query(number, query)]

    def advance_one_step(self) -> list[Reply]:
        """Let everything go on by a step; return the answers, and parts of answers, that there are then."""
        replies: list[Reply] = []
        for group, search in list(self._searches.items()):
            if len(search):
                replies += self._step_search(group, search)
        for number in list(self._streams):
            replies += self._compute_next_part(number)
        if self._computations:
            number, _, compute = self._computations.popleft()
            replies.append(_compute_answer(number, compute))
        if self._unwanted:
            self._delete_unused_versions()
        return replies

    def _load_version(self, message: LoadModel) -> LoadResult:
        key = message.version.key
        try:
            self._networks[key] = self._load(message.version)
        except (TfmError, OSError, RuntimeError, MemoryError) as error:
            return LoadResult(key, str(error) or type(error).__name__)
        return LoadResult(key)

    def _begin_query(self, query_id: int, query: Query) -> list[Reply]:
        network = self._networks.get(query.model)
        if network is None:
            return [Answer(query_id, problem=NOT_LOADED_MESSAGE, is_fault=True)]
        try:
            work = network.make_work(query)
        except TfmError as error:
            return [Answer(query_id, problem=str(error))]
        except Exception as error:
            return [_make_fault_answer(query_id, error)]
        if isinstance(work, BeamSearchJob):
            group = query.model, work.beam
            self._get_or_make_search(group, network).add(query_id, work.source, work.candidates)
            self._sentences[query_id] = group, work
        elif isinstance(work, Iterator):
            self._streams[query_id] = query.model, work
        else:
            self._computations.append((query_id, query.model, work))
        return []

    def _get_or_make_search(self, group: tuple[str, int], network: Network) -> "ContinuousBeamSearch":
        """The search of a model's sentences with a beam."""
        if group not in self._searches:
            from tfm.pipeline.decoding.search.continuous_beam_search import ContinuousBeamSearch  # needs torch

            config = DecodingConfig(beam=group[1])
            search = ContinuousBeamSearch(network.stepper, config, MAX_SENTENCES_PER_SEARCH, network.read_source)
            self._searches[group] = search
        return self._searches[group]

    def _step_search(self, group: tuple[str, int], search: "ContinuousBeamSearch") -> list[Reply]:
        """A step of a search. If it fails, all its sentences do."""
        try:
            answers = search.step()
        except Exception as error:
            failed_numbers = [
                number for number, (sentence_group, _) in self._sentences.items() if sentence_group == group
            ]
            del self._searches[group]
            for number in failed_numbers:
                del self._sentences[number]
            return [_make_fault_answer(number, error) for number in failed_numbers]
        replies: list[Reply] = []
        for key, hypothesis in answers:
            assert isinstance(key, int)
            _, sentence = self._sentences.pop(key)
            if isinstance(hypothesis, DataError):
                replies.append(Answer(key, problem=str(hypothesis), is_fault=True))
            else:
                replies.append(Answer(key, sentence.answer(hypothesis)))
        return replies

    def _compute_next_part(self, query_id: int) -> list[Reply]:
        """The next part of a text; the last one is the answer."""
        _, parts = self._streams[query_id]
        try:
            part = next(parts)
        except TfmError as error:
            reply: Reply = Answer(query_id, problem=str(error))
        except Exception as error:
            reply = _make_fault_answer(query_id, error)
        else:
            if part is None:
                return []
            if isinstance(part, str):
                return [AnswerPart(query_id, part)]
            reply = Answer(query_id, part)
        del self._streams[query_id]
        return [reply]

    def _cancel_query(self, query_id: int) -> None:
        if query_id in self._sentences:
            group, _ = self._sentences.pop(query_id)
            self._searches[group].remove(query_id)
        self._streams.pop(query_id, None)
        self._computations = deque(each for each in self._computations if each[0] != query_id)

    def _delete_unused_versions(self) -> None:
        """Free the memory of versions that nothing is asked of any more."""
        busy = {group[0] for group, _ in self._sentences.values()} | {key for key, _ in self._streams.values()}
        busy |= {key for _, key, _ in self._computations}
        for key in self._unwanted - busy:
            self._networks.pop(key, None)
            self._searches = {group: search for group, search in self._searches.items() if group[0] != key}
        self._unwanted &= busy


def _compute_answer(query_id: int, compute: Callable[[], Any]) -> Answer:
    """The answer that a computation gives."""
    try:
        return Answer(query_id, compute())
    except TfmError as error:
        return Answer(query_id, problem=str(error))
    except Exception as error:
        return _make_fault_answer(query_id, error)


def _make_fault_answer(query_id: int, error: Exception) -> Answer:
    """The answer where the server itself has failed. The text of an error may hold that of a query: it is left out."""
    return Answer(query_id, problem=f"the server failed at this ({type(error).__name__})", is_fault=True)
