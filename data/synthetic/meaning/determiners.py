"""The words before nouns in the built-in corpus `languages`: their forms in English and German."""

from collections.abc import Mapping

from tfm.data.synthetic.language import expressions, german, phrases
from tfm.data.synthetic.language.phrases import Determiner

_NUMBERS = {
    number.english: determiner for number, determiner in zip(expressions.NUMBERS[1:], phrases.NUMBERS, strict=True)
}

DETERMINERS: Mapping[str, Determiner] = {
    "the": phrases.THE,
    "a": phrases.A,
    "this": phrases.THIS,
    "my": phrases.POSSESSIVE_PRONOUN_DETERMINERS[0],
    "our": Determiner(("our", "our"), german.decline_like_ein("unser"), german.MIXED_ENDINGS, owner=True),
    "two": _NUMBERS["two"],
    "three": _NUMBERS["three"],
    "many": phrases.MANY,
}
