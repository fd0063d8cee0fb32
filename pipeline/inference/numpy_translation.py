"""A few lines to translations or labels without torch, which takes longer to load than they take: by numpy."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from tfm.data.arrays import Ints
from tfm.model.config import ModelConfig
from tfm.model.numpy_inference.transformer import Transformer
from tfm.model.numpy_inference.weights import (
    UnsupportedModelError,
    build_encoder_only_network,
    build_network,
    is_label_model,
    is_supported,
)
from tfm.pipeline.artifacts.manifest import Input, Manifest, read_artifact
from tfm.pipeline.config import DecodingConfig, GuidedAlignmentConfig
from tfm.pipeline.decoding.search.hypothesis import Hypothesis
from tfm.pipeline.decoding.search.numpy_beam_search import is_basic_search, search_candidates
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.inference.distinct_texts import find_distinct_texts, requires_distinct_texts
from tfm.pipeline.inference.label_sources import is_tagging_task
from tfm.pipeline.inference.numpy_labels import NumpyLabeller, supports_numpy_labelling
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.inference.translation_records import EMPTY_TRANSLATION, Translation, join_to_one_line
from tfm.pipeline.model_io.language_selection import tokenizer_for_languages
from tfm.pipeline.model_io.model_folder import read_guided_alignment
from tfm.pipeline.model_io.numpy_model import fits_numpy_inference, read_model_parts
from tfm.pipeline.model_io.shortlist_folder import read_shortlist
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel

MAX_NUMPY_LINES = 8
"""The most lines that are translated one by one faster than torch is loaded."""
MAX_SOURCE_CHARS = 1 << 12
"""The most characters of these lines together, since each step copies all of every hypothesis."""
SentenceSearch = Callable[[Transformer, Sequence[int], DecodingConfig, Ints | None], list[Hypothesis]]
"""(network, source ids with their end token, settings, the pieces that may come or None) -> hypotheses, best first."""


@dataclass(frozen=True)
class NumpyModel:
    """A model in numpy with its tokenizers.

    Args:
        network: the network.
        source_tokenizer: of the source.
        target_tokenizer: of the target.
        search: finds the hypotheses of ids, end token included, with the network.
        guided: how a head was trained to align; None if none was.
        shortlist: of the pieces that translations are made of; None: all may come.
    """

    network: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    search: SentenceSearch = search_candidates
    guided: GuidedAlignmentConfig | None = None
    shortlist: Shortlist | None = None

    def translate(
        self, lines: list[str], config: DecodingConfig, source_problems: SourceProblems
    ) -> Iterator[list[Translation]]:
        """Translate lines with numpy alone.

        Args:
            lines: the texts.
            config: settings of decoding.
            source_problems: counts the lines that are cut, and unknown pieces.

        Yields:
            The `config.n_best` translations of each line, the best first.
        """
        limit = self.network.max_length - 1
        encoded = self.source_tokenizer.encode_batch(lines)
        source_problems.count_unknown_pieces(self.source_tokenizer, lines, encoded)
        source_problems.count_unlinked_pieces(self.source_tokenizer, encoded, self.shortlist)
        for ids in encoded:
            source_problems.count_too_long([len(ids) > limit])
            if not ids:
                yield [EMPTY_TRANSLATION]
                continue
            yield self._translate_line([*ids[:limit], EOS_ID], config)

    def candidates(self, source: Sequence[int]) -> Ints | None:
        """Return the pieces that may come in the translation of ids, end token included; None: all may."""
        return None if self.shortlist is None else self.shortlist.candidates(source)

    def _translate_line(self, source: list[int], config: DecodingConfig) -> list[Translation]:
        """The best translations of ids, end token included."""
        candidates = self.candidates(source)

        def search(rows: list[int], config: DecodingConfig) -> list[list[Translation]]:
            with np.errstate(all="ignore"):  # what is not finite is found in the end, and is an error
                hypotheses = self.search(self.network, source, config, candidates)
            texts = self.target_tokenizer.decode_batch([list(each.ids) for each in hypotheses])
            pairs = zip(texts, hypotheses, strict=True)
            return [[Translation(join_to_one_line(text), x.score, x.log_prob, x.num_tokens) for text, x in pairs]]

        translations = search([0], config)
        return (find_distinct_texts(translations, config, search) if requires_distinct_texts(config) else translations)[
            0
        ]


def load_small_model(
    folder: Path,
    config: DecodingConfig,
    to: str | None = None,
    source_language: str | None = None,
    *,
    must_match: Input | None = None,
    shortlist_must_match: Input | None = None,
) -> NumpyModel | NumpyLabeller | None:
    """Load the model in a folder, verified, if it can translate, or label, without torch.

    Args:
        folder: of the model.
        config: settings of decoding.
        to: the language, of a model of several.
        source_language: the language of the texts, for a model that is told it.
        must_match: the model as it was seen before, which must not have been replaced since.
        shortlist_must_match: the same of the shortlist that the settings name.

    Returns:
        The model; None if torch is needed for it, for the settings, or to report a problem with it.

    Raises:
        DataError: the folder is no model of tfm, or was replaced, or the model does not have the languages, or the
            shortlist is none of its vocabularies.
    """
    if not fits_numpy_inference(folder):
        return None

    def is_supported_by_numpy(model_config: ModelConfig) -> bool:
        if is_label_model(model_config):
            return supports_numpy_labelling(config, tags=is_tagging_task(model_config.task))
        return is_supported(model_config) and is_basic_search(config)

    def read_model(manifest: Manifest) -> NumpyModel | NumpyLabeller | None:
        try:
            parts = read_model_parts(manifest, is_supported_by_numpy)
            network_config, source, target = parts.config, parts.source_tokenizer, parts.target_tokenizer
            sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
            if is_label_model(network_config):
                labels = build_encoder_only_network(network_config, parts.weights, **sizes)
                return NumpyLabeller(labels, source, target, is_tagging_task(network_config.task))
            network = build_network(network_config, parts.weights, **sizes)
            guided = read_guided_alignment(manifest.config)
        except (UnsupportedModelError, ValidationError):
            return None
        source_tokenizer = tokenizer_for_languages(source, network_config.languages, to, source_language, manifest.path)
        shortlist = None
        if config.shortlist is not None:
            shortlist = read_shortlist(Path(config.shortlist), source, target, must_match=shortlist_must_match)
        return NumpyModel(network, source_tokenizer, target, guided=guided, shortlist=shortlist)

    return read_artifact(folder, read_model, "train", must_match=must_match)


def translate_stream(
    load_small: Callable[[], NumpyModel | NumpyLabeller | None],
    load: "Callable[[], LoadedModel]",
    lines: Iterable[str],
    config: DecodingConfig,
    *,
    reporter: Reporter,
    ready: Callable[[], bool] | None = None,
) -> Iterator[list[Translation]]:
    """Translate lines as `translate_lines` does, by the small model while few lines are waiting.

    Problems with a model are reported before a line is waited for.

    Args:
        load_small: loads the small model; None if there is none.
        load: loads the model.
        lines: the texts.
        config: settings of decoding.
        reporter: shows progress, and warnings.
        ready: whether the next line can be read without waiting for it.

    Yields:
        The translations of each line, the best first.
    """
    lines, problems = iter(lines), SourceProblems()
    rows = _read_waiting_lines(lines, None) if ready is None else []
    model = load_small() if not rows or _is_small_batch(rows) else None
    if model is not None and ready is not None:
        rows = _read_waiting_lines(lines, ready)
    while model is not None and _is_small_batch(rows):
        yield from model.translate(rows, config, problems)
        rows = _read_waiting_lines(lines, ready)
    if model is None or rows:
        queue = deque(rows)
        is_ready = None if ready is None else lambda: bool(queue) or ready()
        remaining_lines = chain(_pop_rows(queue), lines)
        yield from translate_lines(
            load(), remaining_lines, config, reporter=reporter, ready=is_ready, earlier_problems=problems
        )
    else:
        problems.warn(reporter, model.network.max_length - 1)


def _is_small_batch(rows: list[str]) -> bool:
    """Whether the small model translates these lines."""
    return 0 < len(rows) <= MAX_NUMPY_LINES and sum(map(len, rows)) <= MAX_SOURCE_CHARS


def _pop_rows(rows: deque[str]) -> Iterator[str]:
    """Yield the rows, and remove each from the list when it is given."""
    while rows:
        yield rows.popleft()


def _read_waiting_lines(lines: Iterator[str], ready: Callable[[], bool] | None) -> list[str]:
    """The lines that can be read at once, as long as they are few."""
    rows = list(islice(lines, 1))
    while _is_small_batch(rows) and (ready is None or ready()):
        following = next(lines, None)
        if following is None:
            break
        rows.append(following)
    return rows
