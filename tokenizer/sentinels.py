"""Sentinels: control tokens that stand for hidden spans of a text (Raffel et al. 2020, section 3.1.4).

Spelled as in T5: `<extra_id_0>`, `<extra_id_1>`, ... No text can spell one: as with all control tokens, a text of these
characters is encoded as any other text.
"""

import re

import tokenizers

from tfm.tokenizer.special import SENTINEL_PATTERN, sentinel


def add_sentinels(backend: tokenizers.Tokenizer, count: int) -> None:
    """Add sentinels after all other pieces, in the order of their numbers."""
    tokens = [sentinel(number) for number in range(count)]
    backend.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])


def sentinel_ids(backend: tokenizers.Tokenizer) -> tuple[int, ...]:
    """The ids of a tokenizer's sentinels, in the order of their numbers, which need not be that of the ids."""
    spellings = (
        (number, re.fullmatch(SENTINEL_PATTERN, token.content))
        for number, token in backend.get_added_tokens_decoder().items()
        if token.special
    )
    ids_by_number = sorted((int(spelling.group(1)), number) for number, spelling in spellings if spelling is not None)
    return tuple(number for _, number in ids_by_number)
