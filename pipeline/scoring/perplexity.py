"""Perplexity of references under a model: how probable it finds the correct answer, by teacher forcing."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from tfm.data.dataset.directions import Direction
from tfm.data.errors import DataError, format_count
from tfm.data.images.row_images import RowImages
from tfm.pipeline.decoding.teacher_forcing import forced_log_probs_by_steps, target_log_probs
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.metrics.references import num_references_signature
from tfm.pipeline.scoring.metrics.score import Score, exp_or_inf
from tfm.pipeline.scoring.segment_scores import Likelihoods
from tfm.pipeline.scoring.text_counts import CharacterCounts, num_words, warn_of_unknown_pieces
from tfm.tokenizer.special import UNK_ID

_CHUNK_TEXTS = 256  # pairs between two moves of the progress bar


class SourceReferencePair(NamedTuple):
    """A source and one of its references.

    Args:
        row: the segment, from 0.
        source: ids without end token.
        target: ids without end token.
        text: the reference.
    """

    row: int
    source: list[int]
    target: list[int]
    text: str

    @property
    def num_pieces(self) -> int:
        """Predictions: the pieces of the reference and its end token."""
        return len(self.target) + 1

    @property
    def num_words(self) -> int:
        return num_words(self.text)


@dataclass(frozen=True)
class LikelihoodCounts:
    """Numbers of units by which the log probability of a corpus is divided.

    Args:
        num_references: lists of references.
        num_segments: scored pairs: one end token each.
        num_tokens: pieces and end tokens.
        num_unknown: unknown pieces.
        num_words: stretches without white space.
        characters: of the references.
        num_empty: references that are left out, as they hold no piece.
        num_long: references that are left out, as they exceed the model's length.
    """

    num_references: str
    num_segments: int  # scored pairs: one end token each
    num_tokens: int  # pieces and end tokens
    num_unknown: int
    num_words: int  # stretches without white space
    characters: CharacterCounts
    num_empty: int = 0  # references that are left out, as they hold no piece
    num_long: int = 0  # references that are left out, as they exceed the model's length


def perplexity_scores(log_prob: float, counts: LikelihoodCounts, vocab_size: int) -> dict[str, Score]:
    """Compute exp(-log p / tokens), exp(-log p / words) and -log2 p / characters, from one sum over the corpus.

    The end token is a token, but no word and no character. By word and by character, models of different vocabularies
    compare.

    Args:
        log_prob: the natural logarithm of the probability of all references, each with its end token.
        counts: the numbers of units.
        vocab_size: the number of pieces, for the signature.
    """
    shared = f"nrefs:{counts.num_references}|vocab:{vocab_size}|segments:{counts.num_segments}"
    if counts.num_unknown:
        shared += f"|unknown:{counts.num_unknown}"
    if counts.num_empty:
        shared += f"|left-out-empty:{counts.num_empty}"
    if counts.num_long:
        shared += f"|left-out-long:{counts.num_long}"
    return {
        "perplexity": Score(
            exp_or_inf(-log_prob / counts.num_tokens), f"unit:token|count:{counts.num_tokens}|end:counted|{shared}"
        ),
        "word_perplexity": Score(
            exp_or_inf(-log_prob / counts.num_words), f"unit:word|count:{counts.num_words}|end:scored-only|{shared}"
        ),
        "bits_per_character": Score(
            -log_prob / math.log(2) / counts.characters.num_characters,
            f"{counts.characters.signature}|end:scored-only|{shared}",
        ),
    }


def _source_ids(loaded: LoadedModel, sources: Sequence[str], directions: Sequence[Direction]) -> list[list[int]]:
    loaded.check_reads_text("perplexity of captions needs the images")
    if not directions:
        return loaded.source_tokenizer.encode_batch(sources)
    rest = iter(sources)
    return [
        ids
        for direction in directions
        for ids in loaded.for_direction(direction).source_tokenizer.encode_batch(list(islice(rest, direction.rows)))
    ]


def perplexity(
    loaded: LoadedModel,
    sources: Sequence[str] | RowImages,
    references: Sequence[Sequence[str]],
    *,
    reporter: Reporter,
    directions: Sequence[Direction] = (),
) -> tuple[dict[str, Score], Likelihoods]:
    """Compute the perplexity of all references: by token, by word, and in bits a character.

    A source beyond the model's length is cut, as in translating. A reference without a piece or beyond the model's
    length has no perplexity: it is left out, and the signature counts it.

    Args:
        loaded: the model.
        sources: texts or images, one for each segment.
        references: one or more lists as long.
        reporter: shows progress, and warnings.
        directions: the languages of the sources, row by row, for a model of several.

    Returns:
        The scores, and the log-probabilities of which they are sums.

    Raises:
        DataError: no reference is left.
    """
    limit = loaded.model.max_length - 1  # one row is the end token's
    images = sources if isinstance(sources, RowImages) else None
    source_ids = [[]] * len(sources) if isinstance(sources, RowImages) else _source_ids(loaded, sources, directions)
    pairs: list[SourceReferencePair] = []
    num_empty = num_long = 0
    for reference in references:
        targets = loaded.target_tokenizer.encode_batch(reference)
        for row, (source, target, text) in enumerate(zip(source_ids, targets, reference, strict=True)):
            # a text of control characters alone may have pieces, but no word to divide by
            if not target or not num_words(text):
                num_empty += 1
            elif len(target) > limit:
                num_long += 1
            else:
                pairs.append(SourceReferencePair(row, source, target, text))
    if not pairs:
        raise DataError(
            f"no reference has a perplexity: empty are {num_empty}, longer than the model's {limit} pieces {num_long}"
        )
    # an empty reference among others is a missing one
    num_without = sum(not any(map(num_words, segment)) for segment in zip(*references, strict=True))
    _warn_of_skipped_references(num_without, num_long, limit, reporter)
    counts = LikelihoodCounts(
        num_references=num_references_signature(references),
        num_segments=len(pairs),
        num_tokens=sum(pair.num_pieces for pair in pairs),
        num_unknown=sum(pair.target.count(UNK_ID) for pair in pairs),
        num_words=sum(pair.num_words for pair in pairs),
        characters=CharacterCounts.count_texts((pair.text for pair in pairs), loaded.target_tokenizer),
        num_empty=num_empty,
        num_long=num_long,
    )
    num_pieces = counts.num_tokens - counts.num_segments
    warn_of_unknown_pieces("the references", counts.num_unknown, num_pieces, reporter)
    likelihoods = _sum_by_segment(len(sources), _log_probs(loaded, pairs, images, reporter))
    return perplexity_scores(likelihoods.total, counts, loaded.target_tokenizer.vocab_size), likelihoods


def _sum_by_segment(count: int, log_prob_by_pair: Iterable[tuple[SourceReferencePair, float]]) -> Likelihoods:
    """The log probabilities of the pairs of each of `count` segments, added up."""
    log_probs_by_segment: list[list[float]] = [[] for _ in range(count)]
    pieces, words = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for pair, log_prob in log_prob_by_pair:
        log_probs_by_segment[pair.row].append(log_prob)
        pieces[pair.row] += pair.num_pieces
        words[pair.row] += pair.num_words
    sums = (math.fsum(each) if each else math.nan for each in log_probs_by_segment)
    return Likelihoods(np.fromiter(sums, np.float64, count), pieces, words)


def _log_probs(
    loaded: LoadedModel, pairs: Iterable[SourceReferencePair], images: RowImages | None, reporter: Reporter
) -> Iterator[tuple[SourceReferencePair, float]]:
    """log p(target, end | source) of each pair; sentences of like length share a batch."""
    device = next(loaded.model.parameters()).device
    score = forced_log_probs_by_steps if isinstance(loaded.model, Ensemble) else target_log_probs
    pairs = sorted(pairs, key=lambda pair: (len(pair.target), len(pair.source)))
    with reporter.bar("perplexity", len(pairs), "segments") as bar:
        for start in range(0, len(pairs), _CHUNK_TEXTS):
            chunk = pairs[start : start + _CHUNK_TEXTS]
            texts, targets = [pair.source for pair in chunk], [pair.target for pair in chunk]
            sources = texts if images is None else images.select_rows(np.array([pair.row for pair in chunk]))
            sums = score(loaded.model, sources, targets, device=device)
            yield from zip(chunk, map(float, sums), strict=True)
            bar.advance(len(chunk))


def _warn_of_skipped_references(num_empty: int, num_long: int, limit: int, reporter: Reporter) -> None:
    if num_empty:
        verb = "is" if num_empty == 1 else "are"
        reporter.warn(f"{format_count(num_empty, 'empty reference')} {verb} omitted from the perplexity")
    if num_long:
        verb = "is" if num_long == 1 else "are"
        reporter.warn(
            f"{format_count(num_long, 'reference')} of more than {limit} pieces {verb} omitted from the perplexity"
        )
