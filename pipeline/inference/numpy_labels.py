"""A few lines to labels without torch, by a network in numpy."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfm.model.numpy_inference.encoder_only import EncoderOnly
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.inference.label_sources import LabelSource, encode_sources
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation import labels_to_translations
from tfm.pipeline.inference.translation_records import Translation
from tfm.tokenizer.special import EOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

ScoredLabels = tuple[list[int], float]
"""Ids of labels, and the log-probability of all of them."""


def supports_numpy_labelling(config: DecodingConfig, *, tags: bool) -> bool:
    """Return whether these settings are ones of labels: one tagging of each line, or `n_best` labels, unsearched."""
    return config.model_fields_set <= {"n_best"} and (config.n_best == 1 or not tags)


@dataclass(frozen=True)
class NumpyLabeller:
    """A classifier or tagger in numpy with its tokenizers.

    Args:
        network: the network.
        source_tokenizer: of the source.
        target_tokenizer: of the labels.
        tags: whether each word gets a label, not the line.
    """

    network: EncoderOnly
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    tags: bool

    def translate(
        self, lines: list[str], config: DecodingConfig, source_problems: SourceProblems
    ) -> Iterator[list[Translation]]:
        """Label lines with numpy alone, as `labelling.label` does.

        Args:
            lines: the texts.
            config: `n_best` is read.
            source_problems: counts the lines that are cut, and unknown pieces.

        Yields:
            The likeliest labels of each line, or its likeliest tags.
        """
        limit = self.network.max_length - 1
        for source in encode_sources(self.source_tokenizer, lines, limit, source_problems, by_word=self.tags):
            predictions = self._predict(source, config.n_best) if source.ids else [([], 0.0)]
            check_not_nan(np.array([log_prob for _, log_prob in predictions]))
            texts = self.target_tokenizer.decode_batch([ids for ids, _ in predictions])
            yield labels_to_translations(
                [(text, log_prob, len(ids)) for text, (ids, log_prob) in zip(texts, predictions, strict=True)]
            )

    def _predict(self, source: LabelSource, n_best: int) -> list[ScoredLabels]:
        log_probs = self.network(np.array([*source.ids, EOS_ID]))[:, len(SPECIAL_TOKENS) :]
        if self.tags:
            sizes = np.array(source.sizes or (), np.int64)
            rows = log_probs[np.cumsum(sizes) - sizes]  # the first pieces of the words
            best = rows.argmax(-1)
            return [((best + len(SPECIAL_TOKENS)).tolist(), float(rows.max(-1).sum()))]
        order = np.argsort(-log_probs[0], kind="stable")[:n_best]
        return [([int(label) + len(SPECIAL_TOKENS)], float(log_probs[0, label])) for label in order]
