"""The lower-cased words of the built-in grammar, and the German words by which each English word can be translated.

Determiners, pronouns and prepositions are apart: what they translate depends on the words beside them.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

from tfm.data.synthetic.language import determiners, expressions, lexicon, phrases
from tfm.data.synthetic.language.determiners import Determiner
from tfm.data.synthetic.language.expressions import BilingualWords, Modal
from tfm.data.synthetic.language.german import GENITIVE
from tfm.data.synthetic.language.lexicon import BE, Verb
from tfm.data.synthetic.language.subordinate import CONJUNCTIONS

T = TypeVar("T")
Dictionary = Mapping[str, frozenset[str]]
"""By English word, the German words."""

PUNCTUATION_MARKS = ".,?"
ADJECTIVE_ENDINGS = ("", "e", "em", "en", "er", "es")
GERMAN_VERB_PREFIXES = {verb.prefix for verb in lexicon.VERBS if verb.prefix}
CONTRACTIONS = {"am": "an", "im": "in", "vom": "von", "zum": "zu", "zur": "zu", "ins": "in"}
BE_FORMS = ("am", "is", "are", "was", "were")
DO_FORMS = ("do", "does", "did")
ENGLISH_RELATIVE_PRONOUNS = ("who", "whom", "that", "which")
GERMAN_RELATIVE_PRONOUNS = ("der", "die", "das", "den", "dem", "denen")
PREPOSITIONS: Mapping[str, tuple[str, ...]] = {
    "in": ("in",),
    "into": ("in",),
    "to": ("zu",),
    "from": ("aus",),
    "on": ("auf", "an"),
    "at": ("auf", "an", "um"),
    "under": ("unter",),
    "behind": ("hinter",),
    "for": ("auf",),
    "with": ("mit",),
    "of": ("von",),
    "about": ("über",),
}
PHRASAL_PREPOSITIONS = {("next", "to"): ("neben", 0), ("in", "front", "of"): ("vor", 1)}
"""Prepositions of several English words: the German one, and the place of the word that it translates."""
_OTHER_WORDS = """
day tag | evening abend | week woche | last letzte | years jahre | euros euro | and und | but aber | as so wie
that dass | whether ob | what was | whom wen wem | where wo wohin | when wann | why warum | how wie | order um
cost kosten | costs kostet | it es
"""


NOUNS_LIKE_ADJECTIVES = frozenset(
    form
    for noun in lexicon.NOUNS
    for row in noun.german
    for form in row
    if form.lower() in {adjective.stem + ending for adjective in lexicon.ADJECTIVES for ending in ADJECTIVE_ENDINGS}
)


def _german_verb_forms(verb: Verb) -> set[str]:
    """All German words that a verb can be, the prefix with it or apart."""
    forms = {*verb.present, *verb.past, verb.infinitive}
    joined = {verb.prefix + form for form in forms}
    return {*forms, *joined, verb.participle, f"{verb.prefix}zu{verb.infinitive}"}


def _build_dictionary_and_verbs() -> tuple[Dictionary, frozenset[str]]:
    """The dictionary of words with a translation of their own, and which of its words are verbs."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    verbs: set[str] = set()
    for noun in lexicon.NOUNS:
        found[noun.lexeme].update(noun.german[0])
        found[noun.english_plural].update(noun.german[1])
        found[f"{noun.lexeme}'s"].add(noun.german[0][GENITIVE])
    for adjective in lexicon.ADJECTIVES:
        found[adjective.lexeme].update([adjective.german, *(adjective.stem + each for each in ADJECTIVE_ENDINGS)])
    for verb in (
        *lexicon.VERBS,
        *lexicon.WEATHER_VERBS,
        *lexicon.TELLING_VERBS,
        *lexicon.TO_INFINITIVE_VERBS,
    ):
        for form in verb.english:
            found[form.split()[0]] |= _german_verb_forms(verb)
            verbs.add(form.split()[0])
    for form in BE_FORMS:
        found[form].update((*BE.present, *BE.past))
    for form in ("have", "has"):  # of the perfect
        found[form].update(("habe", "hat", "haben", *BE.present))
    for modal in _expressions_of_type(Modal):
        for words in (*modal.english, *(("cannot",) if modal is expressions.CAN else ())):
            found[words.split()[0]].update(modal.german, modal.german_negated or ())
            verbs.add(words.split()[0])
    for name in expressions.NAMES:
        found[name], found[f"{name}'s"] = {name}, {f"{name}s"}
    single = [each for each in _expressions_of_type(BilingualWords) if " " not in each.english + each.german]
    for each in (*single, *expressions.NUMBERS[1:], *expressions.LARGE_NUMBERS):
        found[each.english].add(each.german)
    for adverbs in (expressions.FREQUENCY_ADVERBS, expressions.PERFECT_ADVERBS, *expressions.MANNER_ADVERBS.values()):
        for each in adverbs:
            found[each.english].add(each.german)
    for times in expressions.TIME_ADVERBS_BY_TENSE.values():
        for each in times:
            english, german = each.english.split(), each.german.split()
            if len(english) == len(german) < 3 and german[-1] != "uhr":
                for source, target in zip(english, german, strict=True):
                    if source not in ("every", "on"):
                        found[source].add(target)
    for conjunction in CONJUNCTIONS:
        found[conjunction.english].add(conjunction.german)
    for row in _OTHER_WORDS.replace("\n", "|").split("|"):
        if row.strip():
            source, *targets = row.split()
            found[source].update(targets)
    found.pop("", None)
    return {
        source.lower(): frozenset(lower_german(target) for target in targets) for source, targets in found.items()
    }, frozenset(verbs | {"cost", "costs"})


def _expressions_of_type(kind: type[T]) -> list[T]:
    """The expressions of the grammar that have a name of their own."""
    return [each for each in vars(expressions).values() if isinstance(each, kind)]


def _build_determiner_dictionary() -> Dictionary:
    """All forms of the determiners, the numbers apart."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in (value for value in vars(determiners).values() if isinstance(value, Determiner) and not value.negative):
        for word in each.english:
            found[word].update(form for row in each.german for form in row)
    for each in determiners.POSSESSIVE_PRONOUN_DETERMINERS:
        found[each.english[0]].update(form for row in each.german for form in row)
    found["an"] = found["a"]
    found["many"].add("viele")  # how many: wie viele
    found["whose"] = {"dessen", "deren"}
    found.pop("", None)
    return {source: frozenset(target.lower() for target in targets) for source, targets in found.items()}


def _build_pronoun_dictionary() -> Dictionary:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in phrases.PRONOUNS:
        found[each.subject.lower()].add(each.german[0].lower())
        found[each.object.lower()].update(form.lower() for form in each.german[1:])
    found["it"].add("es")
    found["who"].add("wer")
    return {source: frozenset(targets) for source, targets in found.items()}


def build_verb_particles() -> dict[str, set[tuple[str, str]]]:
    """By the first word of an English verb, pairs of its English particle and its German prefix, "" for none."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for verb in lexicon.VERBS:
        for form in verb.english:
            first, _, particle = form.partition(" ")
            found[first].add((particle, verb.prefix))
    return dict(found)


def lower_german(word: str) -> str:
    """Return a German word without its capital, unless the capital alone tells the noun: "der Junge", "junge"."""
    return word if word in NOUNS_LIKE_ADJECTIVES else word.lower()


def split_english(text: str) -> list[str]:
    """Words without capitals and without the marks that end them."""
    return [each.lower().rstrip(PUNCTUATION_MARKS) for each in text.split(" ")]


def split_german(text: str) -> list[str]:
    """Words without the marks that end them, and without capitals but those that `lower_german` leaves."""
    first, *others = (each.rstrip(PUNCTUATION_MARKS) for each in text.split(" "))
    return [first.lower(), *map(lower_german, others)]


WORDS, VERBS = _build_dictionary_and_verbs()
DETERMINERS = _build_determiner_dictionary()
PRONOUNS = _build_pronoun_dictionary()
VERB_PARTICLES = build_verb_particles()
NUMBERS = frozenset(each.english for each in expressions.NUMBERS)
GERMAN_NUMBERS = frozenset(each.german for each in expressions.NUMBERS)
ADJECTIVES = frozenset(each.lexeme for each in lexicon.ADJECTIVES)
ING_FORMS = frozenset(
    verb.english[4].split()[0]
    for verb in (*lexicon.VERBS, *lexicon.WEATHER_VERBS, *lexicon.TELLING_VERBS, *lexicon.TO_INFINITIVE_VERBS)
)
NOMINALS = frozenset(
    word.lower()
    for word in (
        *(form for noun in lexicon.NOUNS for form in (noun.lexeme, noun.english_plural, f"{noun.lexeme}'s")),
        *expressions.NAMES,
        *(f"{name}'s" for name in expressions.NAMES),
        *("day", "evening", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    )
)
"""Words before which a determiner or a preposition may stand."""
