"""Statistics of heads over a corpus: the positions that each head attends to, and the entropy of its attention.

Legend: H heads · T queries · S keys.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError, format_count
from tfm.pipeline.attention_page.attended import (
    ATTENTION_KIND_TITLES,
    AttendedToken,
    AttentionAxes,
    AttentionKind,
    AttentionTrace,
)
from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
from tfm.pipeline.attention_page.head_report import RELATIVE_POSITIONS, HeadMeasures, HeadReport
from tfm.pipeline.attention_page.head_syntax import SyntaxAccuracyCounts, source_attention_kinds, word_attention
from tfm.pipeline.attention_page.reading import (
    check_has_attention,
    decode_hypotheses,
    generates_target,
    trace_attention,
)
from tfm.pipeline.attention_page.tagged_corpus import TaggedSentence, encode_with_word_indices, read_sentences
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.special import BOS, EOS

CHUNK_SENTENCES = 512
TARGET_TAG = "target"
AttentionShares: TypeAlias = NDArray[np.float64]


def measure_heads(
    loaded: LoadedModel,
    files: Sequence[Path],
    config: DecodingConfig,
    reporter: Reporter,
    wrap_sentences: Callable[[Iterator[TaggedSentence]], Iterator[TaggedSentence]] = iter,
) -> HeadReport:
    """Measure the heads of a model in the sentences of some files; a model that translates says its own translations.

    Sentences are read one by one, so that the share of a sentence does not depend on its neighbors.

    Args:
        loaded: the model, with its tokenizers.
        files: plain text, or CoNLL-U with parts of speech and dependencies.
        config: settings of its own translations.
        reporter: shows progress, and warnings.
        wrap_sentences: gives the sentences on as they are read, such as to count them.

    Raises:
        RecipeError: the model has no attention.
        DataError: no sentence can be read.
    """
    check_has_attention(loaded)
    loaded.check_reads_text("statistics of heads are over sentences")
    if loaded.config.canine is not None:
        raise RecipeError("--head-report: this model attends to rows of characters, which are of no one word")
    sums: defaultdict[tuple[AttentionKind, int | None], HeadStatisticSums] = defaultdict(HeadStatisticSums)
    syntax = SyntaxAccuracyCounts()
    left_out: Counter[str] = Counter()
    num_sentences, sentences = 0, wrap_sentences(read_sentences(files))
    with reporter.bar("reading", None, "sentences") as bar:
        for trace, sentence, words in _trace_sentences(loaded, sentences, config, left_out):
            _add_trace(trace, None if words is None else [sentence.tags[word] for word in words], sums)
            if words is not None and any(each is not None for each in sentence.governors):
                _count_syntax_hits(trace, sentence, words, syntax)
            num_sentences += 1
            bar.advance()
    if left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        reporter.warn(f"left out of {format_count(num_sentences + left_out.total(), 'sentence')}: {reasons}")
    if not num_sentences:
        raise DataError("contains no sentence that the model can read", file=files[0])
    order = list(ATTENTION_KIND_TITLES)
    sorted_keys = sorted(sums, key=lambda key: (order.index(key[0]), key[1] or 0))
    measures = tuple(each for key in sorted_keys for each in sums[key].measures(*key))
    return HeadReport(num_sentences, measures, tuple(syntax.relations()))


def _trace_sentences(
    loaded: LoadedModel, sentences: Iterator[TaggedSentence], config: DecodingConfig, skip_counts: Counter[str]
) -> Iterator[tuple[AttentionTrace, TaggedSentence, list[int] | None]]:
    """Each sentence as the model reads it, with the word of each of its pieces; counts those that it cannot read."""
    limit, tokenizer = loaded.model.max_length - 1, source_tokenizer_of(loaded)
    while chunk := list(islice(sentences, CHUNK_SENTENCES)):
        readable = []
        for sentence, (ids, words) in zip(chunk, encode_with_word_indices(tokenizer, chunk), strict=True):
            if not ids:
                skip_counts["without pieces"] += 1
            elif len(ids) > limit:
                skip_counts[f"longer than the {limit} pieces that the model reads"] += 1
            else:
                readable.append((sentence, ids, words))
        sources = [ids for _, ids, _ in readable]
        targets = decode_hypotheses(loaded, sources, config) if generates_target(loaded) else [None] * len(sources)
        for (sentence, ids, words), target in zip(readable, targets, strict=True):
            yield trace_attention(loaded, sentence.text, ids, target), sentence, words


def _add_trace(
    trace: AttentionTrace,
    tags: Sequence[str] | None,
    sums: Mapping[tuple[AttentionKind, int | None], "HeadStatisticSums"],
) -> None:
    """Add the attention in a sentence; that of attention spread evenly is taken from each kind's first layer."""
    for attention in trace.attentions:
        axes, weights = trace.axes[attention.kind], attention.weights.astype(np.float64)
        of_keys = None if tags is None else tags_of_keys(axes, tags)
        sums[attention.kind, attention.layer].add(weights, axes, of_keys)
        if attention.layer == 1:
            sums[attention.kind, None].add(uniform_attention(weights), axes, of_keys)


def _count_syntax_hits(
    trace: AttentionTrace, sentence: TaggedSentence, words: Sequence[int], syntax: SyntaxAccuracyCounts
) -> None:
    """Add the number of times that the heads of a sentence find its dependencies."""
    kinds = source_attention_kinds(trace.axes)
    if not kinds:
        return
    syntax.count_offset_hits(sentence)
    for layer_attention in trace.attentions:
        if layer_attention.kind in kinds:
            weights = layer_attention.weights.astype(np.float64)
            attention = word_attention(weights, trace.axes[layer_attention.kind], words, len(sentence.tags))
            syntax.count_head_hits(sentence, layer_attention.kind, layer_attention.layer, attention)


def uniform_attention(weights: AttentionShares) -> AttentionShares:
    """Weights (1, T, S) of attention that is spread evenly over the keys to which a query may attend."""
    allowed = (weights > 0).any(0, keepdims=True)
    spread: AttentionShares = allowed / allowed.sum(-1, keepdims=True)
    return spread


def tags_of_keys(axes: AttentionAxes, tags: Sequence[str]) -> list[str] | None:
    """The tag of each key, given those of the source's pieces; None if no key is of the source."""

    def tag_of_key(key: AttendedToken) -> str:
        if key.source_index is not None:
            return tags[key.source_index]
        return key.text if key.text in (BOS, EOS) else TARGET_TAG

    return [tag_of_key(key) for key in axes.keys] if any(key.source_index is not None for key in axes.keys) else None


class HeadStatisticSums:
    """Sums over queries of the statistics of the heads of one attention."""

    def __init__(self) -> None:
        self.queries = 0
        self._sums: defaultdict[str, AttentionShares | float] = defaultdict(float)
        self._tags: defaultdict[str, AttentionShares | float] = defaultdict(float)

    def add(self, weights: AttentionShares, axes: AttentionAxes, tags: Sequence[str] | None) -> None:
        """Add the queries of a sentence.

        Args:
            weights: (H, T, S) of one layer.
            axes: the tokens of queries and keys.
            tags: of each key; None if there are none.
        """
        self.queries += weights.shape[1]
        for name, offset in RELATIVE_POSITIONS.items():
            self._sums[name] += np.trace(weights, offset, axis1=1, axis2=2)
        to_key = weights.sum(1)
        self._sums["separators"] += to_key[:, [key.separates for key in axes.keys]].sum(1)
        self._sums["entropy"] -= (weights * np.log2(np.where(weights > 0, weights, 1))).sum((1, 2))
        self._sums["maximum"] += np.log2((weights > 0).sum(2)).sum(1)
        for tag in dict.fromkeys(tags or ()):
            self._tags[tag] += to_key[:, [each == tag for each in tags or ()]].sum(1)

    def measures(self, kind: AttentionKind, layer: int | None) -> Iterator[HeadMeasures]:
        """The means of each head: sums divided once. layer None: of attention that is spread evenly."""
        sums = {name: np.asarray(total) for name, total in self._sums.items()}
        for head in range(len(sums["entropy"])):
            maximum, entropy = float(sums["maximum"][head]), float(sums["entropy"][head])
            yield HeadMeasures(
                kind,
                layer,
                None if layer is None else head + 1,
                self.queries,
                **{name: float(sums[name][head]) / self.queries for name in (*RELATIVE_POSITIONS, "separators")},
                entropy=entropy / self.queries,
                of_maximum=entropy / maximum if maximum else None,
                tags={tag: float(np.asarray(total)[head]) / self.queries for tag, total in self._tags.items()} or None,
            )
