"""The messages between a server and its decoding processes: plain values alone, which any process can read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

QueryKind = Literal["translate", "generate", "label", "attend", "align", "describe"]
"""translate a sentence, go on with a prompt, label a text, show attention, align a translation, describe an image."""


@dataclass(frozen=True)
class ShortlistVersion:
    """A shortlist of a model's vocabulary as it was published at some time.

    Args:
        folder: of the shortlist.
        fingerprint: of the artifact.
    """

    folder: Path
    fingerprint: str


@dataclass(frozen=True)
class ModelVersion:
    """A model as it was published at some time.

    Args:
        name: by which it is asked for.
        folder: of the model.
        fingerprint: of the artifact.
        task: that it was trained for.
        reads_images: whether its sources are images.
        has_languages: whether it has to be told the language of the answer.
        shortlist: of the pieces that its translations are made of; None: all may come.
    """

    name: str
    folder: Path
    fingerprint: str
    task: str
    reads_images: bool = False
    has_languages: bool = False
    shortlist: ShortlistVersion | None = None

    @property
    def key(self) -> str:
        """The name and the version, as answers are kept by."""
        key = f"{self.name}@{self.fingerprint}"
        return key if self.shortlist is None else f"{key}+{self.shortlist.fingerprint}"


@dataclass(frozen=True)
class Query:
    """A piece of work that is done at once: a sentence, a prompt, an image.

    Args:
        model: the key of the model's version.
        kind: what is to be done.
        text: the sentence, prompt or text.
        beam: hypotheses kept at each step.
        n_best: number of answers.
        to: the language of the answer, of a model of several.
        source_language: the language of the text, for a model that is told it.
        forced: words and phrases that the answer contains.
        replace_unknown: whether unknown words are replaced by words of the text, of a model with a vocabulary of words.
        target: the text whose attention or alignment is asked for; None: the model's own.
        image: the bytes of an image file.
        sampling: settings of a completion: max_length, temperature, top_p, seed.
    """

    model: str
    kind: QueryKind
    text: str
    beam: int = 5
    n_best: int = 1
    to: str | None = None
    source_language: str | None = None
    forced: tuple[str, ...] = ()
    replace_unknown: bool = False
    target: str | None = None
    image: bytes | None = field(default=None, repr=False)
    sampling: tuple[tuple[str, float | int], ...] = ()


@dataclass(frozen=True)
class LoadModel:
    """Load a version of a model beside, or in place of, others of its name."""

    version: ModelVersion


@dataclass(frozen=True)
class UnloadModel:
    """Forget a version of a model once nothing is asked of it any more."""

    key: str


@dataclass(frozen=True)
class CancelQuery:
    """Free the slot of a query that nobody waits for any more."""

    number: int


@dataclass(frozen=True)
class QueryBatch:
    """Queries with their numbers."""

    queries: tuple[tuple[int, Query], ...]


@dataclass(frozen=True)
class LoadResult:
    """A version has been loaded, or not: `problem` says why."""

    key: str
    problem: str | None = None


@dataclass(frozen=True)
class AnswerPart:
    """A further part of the text that answers a query."""

    number: int
    text: str


@dataclass(frozen=True)
class Answer:
    """The answer to a query: a value, or the reason why there is none."""

    number: int
    value: Any = None
    problem: str | None = None
    is_fault: bool = False
    """Whether the reason is a fault of the server, not of the query."""
