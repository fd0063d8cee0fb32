"""The abilities of each task, in one table: its outputs, the sides it reads, the figures it is judged by.

Other modules look this up here instead of comparing names of tasks. Does not import torch, since recipes and commands
read it too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tfm.pipeline.config import DecodingConfig, EvaluationConfig, EvaluationMetric

if TYPE_CHECKING:
    from tfm.tokenizer.config import LabelKind

DEFAULT_TASK = "translation"
"""The task of a config that names none."""
LOWER_IS_BETTER = frozenset(
    {
        *("loss", "objective", "perplexity", "word_perplexity", "bits_per_character"),
        *("ter", "wer", "cer", "per", "wrong_language"),
    }
)
"""The figures, of whatever task, of which the lower is the better."""

CAPTIONS_ADVICE = "`tfm translate MODEL IMAGES --out DIR` writes captions, which --hypotheses scores"
"""The remedy of `tfm evaluate` of files for a model of images."""


@dataclass(frozen=True)
class ProbabilityRanking:
    """The scoring of a model by the probability that it gives to the texts of a test set.

    unit: the unit that is predicted. unknown: the name of unknown pieces in a signature. long_texts: the treatment of
    a text that is longer than the model reads, if it can be read at all.
    """

    unit: str = "token"
    unknown: str = "unknown"
    long_texts: Literal["cut", "lines-in-windows"] | None = None


@dataclass(frozen=True)
class TaskSpec:
    """The abilities of a task.

    reads: the side of each pair whose texts the task reads (first). figures: those of a test set that stand in a
    comparison, the main one first. translates: whether it says the target of a source in words. labels: one name for a
    line of the source (label), or a name for each of its words (tags), if it gives names; these have a vocabulary of
    their own. writes: whether it writes piece by piece, each from those before it, so that hypotheses are searched for
    or drawn, by one model or several. flat_layout: whether its batches may be laid out flat. within_window: whether it
    predicts words from those around them, as model.word_vectors says, and leaves out unknown words. hides_pieces:
    whether it hides single pieces of a text, and predicts each from all others. hides_spans: whether it hides spans of
    a text, as model.span_corruption says, and predicts them. predicts_per_word: whether its predictions belong to whole
    words, so that training cannot cut them otherwise. metrics: of [evaluation], where a recipe names none; none: the
    defaults there. by_probability: the scoring of a test set without hypotheses. instead: the command to use in place
    of `tfm translate`, for a task that gives none.
    """

    reads: Literal["source", "target"]
    figures: tuple[str, ...]
    translates: bool = False
    labels: "LabelKind | None" = None
    writes: bool = False
    flat_layout: bool = False
    within_window: bool = False
    hides_pieces: bool = False
    hides_spans: bool = False
    predicts_per_word: bool = False
    metrics: tuple[EvaluationMetric, ...] | None = None
    by_probability: ProbabilityRanking = ProbabilityRanking()
    instead: str | None = None

    @property
    def gives_hypotheses(self) -> bool:
        """Whether the task gives an answer for each line of a source: a translation, or labels."""
        return self.translates or self.labels is not None

    @property
    def continues_text(self) -> bool:
        """Whether the task continues a text."""
        return self.writes and not self.translates

    def n_best_problem(self, decoding: DecodingConfig) -> str | None:
        """Why a model of this task cannot give so many; None if it can. A classifier needs no beam."""
        if self.labels is None:
            return decoding.n_best_problem()
        if self.labels == "tags" and decoding.n_best > 1:
            setting = f"decoding.n_best ({decoding.n_best})"
            return f"{setting}: a tagger returns only the most probable tag of each word"
        return None


_LABEL_METRICS: tuple[EvaluationMetric, ...] = ("accuracy", "macro_f1", "exact_match")

TASK_SPECS: Mapping[str, TaskSpec] = {
    "translation": TaskSpec(
        reads="source",
        figures=("bleu", "exact_match"),
        translates=True,
        writes=True,
        flat_layout=True,
    ),
    "language_model": TaskSpec(
        reads="target",
        figures=("perplexity", "word_perplexity", "token_accuracy", "bits_per_character"),
        writes=True,
        flat_layout=True,
        by_probability=ProbabilityRanking(long_texts="lines-in-windows"),
        instead="use `tfm generate`",
    ),
    "masked_language_model": TaskSpec(
        reads="source",
        figures=("perplexity", "token_accuracy"),
        hides_pieces=True,
        by_probability=ProbabilityRanking(unit="chosen-token", unknown="unknown-in-text", long_texts="cut"),
        instead="use `tfm translate MODEL TEXT` with [MASK] in the text, or start another training (--init-from)",
    ),
    "span_corruption": TaskSpec(
        reads="target",
        figures=("perplexity", "token_accuracy"),
        flat_layout=True,
        hides_spans=True,
        by_probability=ProbabilityRanking(unit="hidden-token", unknown="unknown-in-text", long_texts="cut"),
        instead="it is for starting other trainings (--init-from)",
    ),
    "classification": TaskSpec(
        reads="source", figures=("accuracy", "macro_f1"), labels="label", metrics=_LABEL_METRICS
    ),
    "tagging": TaskSpec(
        reads="source",
        figures=("accuracy", "macro_f1"),
        labels="tags",
        predicts_per_word=True,
        metrics=_LABEL_METRICS,
    ),
    "word_vectors": TaskSpec(
        reads="target",
        figures=("perplexity", "token_accuracy", "loss", "objective"),
        within_window=True,
        predicts_per_word=True,
        by_probability=ProbabilityRanking(unit="word", unknown="unknown-left-out"),
        instead="use `tfm embed`",
    ),
}


def select_tasks(predicate: Callable[[TaskSpec], object]) -> tuple[str, ...]:
    """The names of the tasks that can do something, in the order of the table."""
    return tuple(name for name, abilities in TASK_SPECS.items() if predicate(abilities))


def task_evaluation_config(task: str, requested: EvaluationConfig) -> EvaluationConfig:
    """Return the evaluation of a model of this task, from the one that was asked for; the same for a task that is not
    known.

    A task that labels has the metrics for labels, where none were asked for; and a classifier's label is a whole line.
    """
    changes: dict[str, Any] = {}
    abilities = TASK_SPECS.get(task)
    if abilities is not None and abilities.labels == "label" and requested.labels == "auto":
        changes["labels"] = "line"
    if abilities is not None and abilities.metrics is not None and "metrics" not in requested.model_fields_set:
        changes["metrics"] = abilities.metrics
    return requested.model_copy(update=changes)
