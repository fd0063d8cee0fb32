"""English word forms for the built-in corpus: plurals, verb endings, a or an."""

_VOWELS = "aeiou"
_SIBILANTS = ("s", "x", "ch", "sh", "o")


def add_s_ending(word: str) -> str:
    """The regular plural of a noun, and equally the third person singular of a verb: box, boxes."""
    if word.endswith(_SIBILANTS):
        return word + "es"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def add_ed_ending(base: str) -> str:
    """The regular past: work, worked; love, loved; try, tried."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + "ed"


def add_ing_ending(base: str) -> str:
    """The present participle of a verb that doubles no letter: see, seeing; write, writing; lie, lying."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + "ing"


def indefinite_article(word: str) -> str:
    """The indefinite article before `word` (the lexicon holds no 'hour' and no 'university')."""
    return "an" if word[0] in _VOWELS else "a"
