"""Probability of the right language, by py3langid (Lui and Baldwin 2012); 0 where another language is likelier.

OpusFilter's LangidFilter is the same, but rounds to two digits. An empty side has the probability 1.
"""

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

import numpy as np

from tfm.data.errors import format_names
from tfm.pipeline.cleaning.rules.packages import missing_package_error
from tfm.pipeline.cleaning.rules.texts.config import LanguageConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column
from tfm.pipeline.errors import RecipeError


@cache
def _load_identifier(langid: Any) -> Any:
    """The identifier of all languages; read once, which takes a second."""
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def make_language_measure(config: LanguageConfig) -> Callable[[TextPairBatch], Floats]:
    """Return the function that gives (n, 1) the probability of the right language, of the side where it is less.

    Raises:
        DataError: py3langid is not installed.
        RecipeError: it does not know a language.
    """
    try:
        from py3langid import langid
    except ImportError:
        raise missing_package_error("language", "py3langid") from None
    identifier = copy(_load_identifier(langid))  # its set of languages is this rule's alone
    codes = [code for code in (config.source, config.target) if code is not None]
    for code in (*codes, *config.languages):
        if code not in identifier.labels:
            supported_codes = format_names(sorted(identifier.labels), max_chars=1000)
            raise RecipeError(
                f'clean.language: py3langid does not know the language "{code}"; it knows {supported_codes}'
            )
    identifier.set_languages(sorted({*codes, *config.languages}) if config.languages else None)

    def probability(text: str, code: str) -> float:
        if not text:
            return 1.0
        label, confidence = identifier.classify(text)
        return float(confidence) if label == code else 0.0

    def measure(pairs: TextPairBatch) -> Floats:
        scores = np.ones(len(pairs))
        for side, code in ((pairs.source, config.source), (pairs.target, config.target)):
            if code is not None and (side is pairs.target or pairs.has_source):
                scores = np.minimum(scores, [probability(text, code) for text in side.texts])
        return as_column(scores)

    return measure
