"""The words before nouns in the built-in corpus `languages`: their forms in English and German."""

from collections.abc import Mapping

from tfm.data.synthetic.language import determiners, expressions, german
from tfm.data.synthetic.language.determiners import Determiner

_NUMBERS = {
    number.english: determiner for number, determiner in zip(expressions.NUMBERS[1:], determiners.NUMBERS, strict=True)
}

DETERMINERS: Mapping[str, Determiner] = {
    "the": determiners.THE,
    "a": determiners.A,
    "this": determiners.THIS,
    "my": determiners.POSSESSIVE_PRONOUN_DETERMINERS[0],
    "our": Determiner(("our", "our"), german.decline_like_ein("unser"), german.MIXED_ENDINGS, owner=True),
    "two": _NUMBERS["two"],
    "three": _NUMBERS["three"],
    "many": determiners.MANY,
}
