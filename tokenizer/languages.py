"""Languages that a model translates into: each is a control token, which stands before a source.

The tokens are spelled as OPUS-MT spells them: `>>deu<<`, with the code of ISO 639-3. No text can spell one: as with all
control tokens, a text of these characters is encoded as any other text.
"""

import re
from collections.abc import Iterable

import numpy as np
import tokenizers
from numpy.typing import NDArray

from tfm.tokenizer.sampled import Ints, Keys, Sampler
from tfm.tokenizer.special import LANGUAGE_CODE, token_of
from tfm.tokenizer.words import FlatIds


def add_languages(whole: tokenizers.Tokenizer, languages: Iterable[str]) -> None:
    """Add the tokens of these languages behind all other pieces, in the order of their codes."""
    tokens = [token_of(language) for language in sorted(set(languages))]
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])


def are_codes(named: object) -> bool:
    """Whether something that was read is a list of codes of ISO 639-3, each once."""
    return (
        isinstance(named, list)
        and all(isinstance(each, str) and re.fullmatch(LANGUAGE_CODE, each) for each in named)
        and len({*named}) == len(named)
    )


def languages_of(whole: tokenizers.Tokenizer) -> dict[str, int]:
    """The languages of a tokenizer: their ids by their codes, in the order of the ids."""
    added = sorted(whole.get_added_tokens_decoder().items())
    spelled = (
        (number, re.fullmatch(f">>({LANGUAGE_CODE})<<", token.content)) for number, token in added if token.special
    )
    return {found.group(1): number for number, found in spelled if found is not None}


class AfterLanguage:
    """Draws other pieces (`tokenizer.sampled`) of what comes after the language at the beginning of a row, if one does.

    languages: the ids of all languages.
    """

    def __init__(self, sampler: Sampler, languages: Iterable[int]) -> None:
        self._sampler, self._languages = sampler, [*languages]

    def __call__(self, ids: NDArray[np.int32], lengths: Ints, keys: Keys) -> FlatIds:
        begins = np.cumsum(lengths) - lengths
        led = np.zeros(len(lengths), np.bool_)
        rows = np.flatnonzero(lengths)
        led[rows] = np.isin(ids[begins[rows]], self._languages)
        new, new_lengths = self._sampler(np.delete(ids, begins[led]), lengths - led, keys)
        new_begins = np.cumsum(new_lengths) - new_lengths
        return np.insert(new, new_begins[led], ids[begins[led]]).astype(np.int32), new_lengths + led
