"""The features of a translation y of a source x that noisy-channel reranking adds up (Yee et al. 2019, section 3):

    direct          log p(y | x)    by the model that wrote it
    channel         log p(x | y)    by a model of the other direction
    language_model  log p(y)        by a language model
    length          tokens of y, as the model counts them that wrote it

Legend: N translations · F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.alignment.direction import is_of_other_direction
from tfm.pipeline.decoding.teacher_forcing import forced_text_log_probs, target_log_probs
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.reranking.lists import NBestList
from tfm.pipeline.reranking.weights import FEATURE_NAMES
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import EOS_ID

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureScorer:
    """The models whose probabilities are features.

    Args:
        channel: translates in the other direction; None: its feature is 0.
        language_model: of the target's language; None: its feature is 0.
    """

    channel: LoadedModel | None
    language_model: LoadedModel | None

    @classmethod
    def load(cls, channel: Path | None, language_model: Path | None, device: str = "auto") -> "FeatureScorer":
        """Load the models in some folders. Raises DataError if a model does other work."""
        return cls(
            _load_feature_model(channel, device, "translates"),
            _load_feature_model(language_model, device, "continues_text"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The features that are not always 0."""
        missing = {name for name in ("channel", "language_model") if getattr(self, name) is None}
        return tuple(name for name in FEATURE_NAMES if name not in missing)

    @property
    def fingerprints(self) -> dict[str, str]:
        """The models, by the feature that they give."""
        models = {name: getattr(self, name) for name in ("channel", "language_model")}
        return {name: each.artifact.fingerprint for name, each in models.items() if each is not None and each.artifact}

    def channel_direction_problem(self, lists: Sequence[NBestList]) -> str | None:
        """Return why the channel model is of the lists' own direction, as it seems; None if it is not.

        It is where the model finds translations likelier, given their sources, than sources given their translations.

        Args:
            lists: the first ones, of which the best translations are read.
        """
        pairs = [(each.translations[0].text, each.source) for each in lists if each.translations[0].text]
        if self.channel is None or not is_of_other_direction(self.channel, pairs):
            return None
        return "--channel finds translations likelier than their sources: is it the model of the other direction?"

    def score(self, lists: Sequence[NBestList]) -> Floats:
        """(N, F) the features of all translations of some lists, list after list; columns as FEATURES has them."""
        pairs = [(each.source, translation) for each in lists for translation in each.translations]
        lines = [each.line for each in lists for _ in each.translations]
        columns = {
            "direct": np.array([translation.log_prob for _, translation in pairs], np.float64),
            "channel": self._channel_log_probs([(source, translation.text) for source, translation in pairs], lines),
            "language_model": self._language_model_log_probs([translation.text for _, translation in pairs], lines),
            "length": np.array([translation.num_tokens for _, translation in pairs], np.float64),
        }
        return np.stack([columns[name] for name in FEATURE_NAMES], 1)

    def _channel_log_probs(self, pairs: Sequence[tuple[str, str]], lines: Sequence[int]) -> Floats:
        """(N,) log p(source | translation); 0 where the source is longer than the model reads, for all of a list."""
        scores = np.zeros(len(pairs))
        if self.channel is None:
            return scores
        model = self.channel.model
        targets = self.channel.target_tokenizer.encode_batch([source for source, _ in pairs])
        rows = [row for row, ids in enumerate(targets) if len(ids) <= model.max_length - 1]
        if rows:
            sources = self.channel.source_tokenizer.encode_batch([pairs[row][1] for row in rows])
            _check_readable(sources, [lines[row] for row in rows], model.max_length - 1, self.channel)
            device = next(model.parameters()).device
            scores[rows] = target_log_probs(model, sources, [targets[row] for row in rows], device=device)
        return scores

    def _language_model_log_probs(self, texts: Sequence[str], lines: Sequence[int]) -> Floats:
        """(N,) log p(translation), its end included."""
        if self.language_model is None or not texts:
            return np.zeros(len(texts))
        model = self.language_model.model
        ids = [[*each, EOS_ID] for each in self.language_model.target_tokenizer.encode_batch(texts)]
        _check_readable(ids, lines, model.max_length, self.language_model)
        device = next(model.parameters()).device
        return forced_text_log_probs(model, ids, [0] * len(ids), device=device)


def _check_readable(
    translations: Sequence[Sequence[int]], lines: Sequence[int], limit: int, loaded: LoadedModel
) -> None:
    """Raise DataError, with the line of its list, if a translation has more ids than a model reads."""
    lengths = [len(ids) for ids in translations]
    if (longest := max(lengths)) > limit:
        line = lines[lengths.index(longest)]
        problem = f"reads {limit} tokens, and a translation of line {line} has {longest}"
        raise DataError(f"{problem}: translate with a lower --max-length", file=loaded.folder)


def _load_feature_model(folder: Path | None, device: str, ability: str) -> LoadedModel | None:
    if folder is None:
        return None
    loaded = load_model(resolve_model_folder(folder), device)
    loaded.check_reads_text("give a model of texts")
    if not getattr(TASK_SPECS[loaded.config.task], ability):
        model_kind = {"translates": "a translation model", "continues_text": "a language model"}[ability]
        raise DataError(f"was trained for {loaded.config.task}, and {model_kind} is wanted", file=loaded.folder)
    loaded.check_has_one_direction()
    loaded.model.eval()
    return loaded
