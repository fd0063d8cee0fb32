"""Words that are right, by their number of occurrences in training: translations fail at rare words.

As in compare-mt (Neubig et al. 2019, "compare-mt: A Tool for Holistic Comparison of Language Generation Systems"),
words are put into buckets by their count in the training target text.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import regex

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import TOKENIZER_FOLDER, load_split
from tfm.pipeline.artifacts.artifact import Input, read_artifact
from tfm.pipeline.comparison.differences.breakdowns import Breakdown, BreakdownRow, percentage
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.bleu_tokenizer import MECAB_PACKAGES, choose_tokenizer
from tfm.pipeline.scoring.metrics.tokenization import UnicodeWordTokenizer, make_bleu
from tfm.tokenizer.special import UNK_ID

WordSplitter = Callable[[str], Sequence[str]]
FREQUENCY_BUCKETS = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (10, 99), (100, 999), (1000, None))
"""Counts in training, both ends included: those of compare-mt."""
ROWS_PER_CHUNK = 4096
_LETTER_OR_DIGIT_PATTERN = regex.compile(r"[\p{L}\p{N}]")


def choose_word_splitter(references: Sequence[Sequence[str]]) -> WordSplitter:
    """Return a function that splits texts in the references' language into words, lower-cased, without punctuation.

    MeCab where BLEU chooses it for them; else ROUGE's words, which in scripts without spaces are single characters.
    """
    tokenizer = choose_tokenizer(references).name
    if tokenizer not in MECAB_PACKAGES:
        return UnicodeWordTokenizer().tokenize
    mecab = make_bleu(EvaluationConfig.model_validate({"bleu_tokenize": tokenizer})).tokenizer
    return lambda text: [word for word in mecab(text.lower()).split() if _LETTER_OR_DIGIT_PATTERN.search(word)]


def collect_words(systems: Sequence[Segments], split: WordSplitter) -> set[str]:
    """All words of the first references and of the hypotheses."""
    texts = (text for each in systems for column in (each.references[0], each.hypotheses) for text in column)
    return {word for text in texts for word in split(text)}


def count_training_words(
    dataset: Path, dataset_input: Input, words: Collection[str], split: WordSplitter, reporter: Reporter
) -> tuple[Counter[str], int]:
    """Count some words in the targets of a dataset's training pairs, each pair once.

    Args:
        dataset: the folder of the dataset.
        dataset_input: the dataset as the model's manifest names it.
        words: the words to count.
        split: splits a text into words.
        reporter: shows progress.

    Returns:
        The counts, and the number of the targets' pieces that are unknown to the dataset's tokenizer, whose texts lack
        them.

    Raises:
        DataError: the dataset is damaged, or is not the one that is known.
    """
    train, (_, tokenizer) = read_artifact(
        dataset,
        lambda manifest: (
            load_split(manifest.folder / "train", texts=False),
            load_tokenizer_pair(manifest.folder / TOKENIZER_FOLDER),
        ),
        "preprocess",
        must_match=dataset_input,
    )
    counts: Counter[str] = Counter()
    unknown = 0
    with reporter.bar("counting words of training", len(train), "texts") as bar:
        for start in range(0, len(train), ROWS_PER_CHUNK):
            lists = train.target.to_lists(range(start, min(start + ROWS_PER_CHUNK, len(train))))
            unknown += sum(ids.count(UNK_ID) for ids in lists)
            for text in tokenizer.decode_batch(lists):
                counts.update(word for word in split(text) if word in words)
            bar.advance(len(lists))
    return counts, unknown


def breakdown_by_training_frequency(
    systems: Sequence[Segments], counts: Mapping[str, int], split: WordSplitter
) -> list[Breakdown]:
    """Compute F1, precision and recall of the words in each bucket, in 0..100, against the first reference.

        precision = right / in_hypotheses        recall = right / in_references
        F1 = 2 right / (in_hypotheses + in_references)

    in_hypotheses, in_references: the number of words there; right: words of a hypothesis, each at most as often as the
    reference of its segment has it.

    Args:
        systems: the outputs of systems on the same texts.
        counts: the number of times that each word occurs in training.
        split: splits a text into words.
    """
    tallies = [_count_matches(each, counts, split) for each in systems]
    figures: Mapping[str, Callable[[int, int, int], float | None]] = {
        "F1": lambda right, in_hypotheses, in_references: percentage(2 * right, in_hypotheses + in_references),
        "precision": lambda right, in_hypotheses, in_references: percentage(right, in_hypotheses),
        "recall": lambda right, in_hypotheses, in_references: percentage(right, in_references),
    }
    tables = []
    for figure, compute in figures.items():
        rows = [
            BreakdownRow(_bucket_name(bucket), bucket_tallies[0][2], [compute(*tally) for tally in bucket_tallies])
            for bucket, bucket_tallies in zip(FREQUENCY_BUCKETS, zip(*tallies, strict=True), strict=True)
        ]
        tables.append(
            Breakdown(
                f"{figure} of words by how often training has them", "times in training", "in the references", rows
            )
        )
    return tables


def _count_matches(segments: Segments, counts: Mapping[str, int], split: WordSplitter) -> list[tuple[int, int, int]]:
    """The number of words of each bucket that are right, in the hypotheses, and in the references."""
    right, in_hypotheses, in_references = ([0] * len(FREQUENCY_BUCKETS) for _ in range(3))
    starts = [minimum for minimum, _ in FREQUENCY_BUCKETS]
    for hypothesis, reference in zip(segments.hypotheses, segments.references[0], strict=True):
        hypothesis_words, reference_words = Counter(split(hypothesis)), Counter(split(reference))
        for column, words in (
            (right, hypothesis_words & reference_words),
            (in_hypotheses, hypothesis_words),
            (in_references, reference_words),
        ):
            for word, times in words.items():
                column[bisect_right(starts, counts.get(word, 0)) - 1] += times
    return list(zip(right, in_hypotheses, in_references, strict=True))


def _bucket_name(bucket: tuple[int, int | None]) -> str:
    minimum, maximum = bucket
    return (
        f"{minimum:,}" if maximum == minimum else f"{minimum:,} or more" if maximum is None else f"{minimum}–{maximum}"
    )
