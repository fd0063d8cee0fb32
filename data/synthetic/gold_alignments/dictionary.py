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
    """All German forms of a verb, with and without its prefix."""
    forms = {*verb.present, *verb.past, verb.infinitive}
    joined = {verb.prefix + form for form in forms}
    return {*forms, *joined, verb.participle, f"{verb.prefix}zu{verb.infinitive}"}


def _build_dictionary_and_verbs() -> tuple[Dictionary, frozenset[str]]:
    """The dictionary of words that are translated one by one, and the set of its verbs."""
    translations: defaultdict[str, set[str]] = defaultdict(set)
    verbs: set[str] = set()
    for noun in lexicon.NOUNS:
        translations[noun.lexeme].update(noun.german[0])
        translations[noun.english_plural].update(noun.german[1])
        translations[f"{noun.lexeme}'s"].add(noun.german[0][GENITIVE])
    for adjective in lexicon.ADJECTIVES:
        translations[adjective.lexeme].update(
            [adjective.german, *(adjective.stem + each for each in ADJECTIVE_ENDINGS)]
        )
    for verb in (
        *lexicon.VERBS,
        *lexicon.WEATHER_VERBS,
        *lexicon.TELLING_VERBS,
        *lexicon.TO_INFINITIVE_VERBS,
    ):
        for form in verb.english:
            translations[form.split()[0]] |= _german_verb_forms(verb)
            verbs.add(form.split()[0])
    for form in BE_FORMS:
        translations[form].update((*BE.present, *BE.past))
    for form in ("have", "has"):  # of the perfect
        translations[form].update(("habe", "hat", "haben", *BE.present))
    for modal in _expressions_of_type(Modal):
        for words in (*modal.english, *(("cannot",) if modal is expressions.CAN else ())):
            translations[words.split()[0]].update(modal.german, modal.german_negated or ())
            verbs.add(words.split()[0])
    for name in expressions.NAMES:
        translations[name], translations[f"{name}'s"] = {name}, {f"{name}s"}
    single = [each for each in _expressions_of_type(BilingualWords) if " " not in each.english + each.german]
    for each in (*single, *expressions.NUMBERS[1:], *expressions.LARGE_NUMBERS):
        translations[each.english].add(each.german)
    for adverbs in (expressions.FREQUENCY_ADVERBS, expressions.PERFECT_ADVERBS, *expressions.MANNER_ADVERBS.values()):
        for each in adverbs:
            translations[each.english].add(each.german)
    for times in expressions.TIME_ADVERBS_BY_TENSE.values():
        for each in times:
            english, german = each.english.split(), each.german.split()
            if len(english) == len(german) < 3 and german[-1] != "uhr":
                for source, target in zip(english, german, strict=True):
                    if source not in ("every", "on"):
                        translations[source].add(target)
    for conjunction in CONJUNCTIONS:
        translations[conjunction.english].add(conjunction.german)
    for row in _OTHER_WORDS.replace("\n", "|").split("|"):
        if row.strip():
            source, *targets = row.split()
            translations[source].update(targets)
    translations.pop("", None)
    return {
        source.lower(): frozenset(lower_german(target) for target in targets)
        for source, targets in translations.items()
    }, frozenset(verbs | {"cost", "costs"})


def _expressions_of_type(kind: type[T]) -> list[T]:
    """The named expressions of the grammar, of one type."""
    return [each for each in vars(expressions).values() if isinstance(each, kind)]


def _build_determiner_dictionary() -> Dictionary:
    """All forms of the determiners, except numbers."""
    translations: defaultdict[str, set[str]] = defaultdict(set)
    for each in (value for value in vars(determiners).values() if isinstance(value, Determiner) and not value.negative):
        for word in each.english:
            translations[word].update(form for row in each.german for form in row)
    for each in determiners.POSSESSIVE_PRONOUN_DETERMINERS:
        translations[each.english[0]].update(form for row in each.german for form in row)
    translations["an"] = translations["a"]
    translations["many"].add("viele")  # how many: wie viele
    translations["whose"] = {"dessen", "deren"}
    translations.pop("", None)
    return {source: frozenset(target.lower() for target in targets) for source, targets in translations.items()}


def _build_pronoun_dictionary() -> Dictionary:
    translations: defaultdict[str, set[str]] = defaultdict(set)
    for each in phrases.PRONOUNS:
        translations[each.subject.lower()].add(each.german[0].lower())
        translations[each.object.lower()].update(form.lower() for form in each.german[1:])
    translations["it"].add("es")
    translations["who"].add("wer")
    return {source: frozenset(targets) for source, targets in translations.items()}


def build_verb_particles() -> dict[str, set[tuple[str, str]]]:
    """By the first word of an English verb, pairs of its English particle and its German prefix, "" for none."""
    particles_by_verb: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for verb in lexicon.VERBS:
        for form in verb.english:
            first, _, particle = form.partition(" ")
            particles_by_verb[first].add((particle, verb.prefix))
    return dict(particles_by_verb)


def lower_german(word: str) -> str:
    """Return a German word in lower case, unless only its capital distinguishes a noun: "der Junge", "junge"."""
    return word if word in NOUNS_LIKE_ADJECTIVES else word.lower()


def split_english(text: str) -> list[str]:
    """Words in lower case, without final punctuation marks."""
    return [each.lower().rstrip(PUNCTUATION_MARKS) for each in text.split(" ")]


def split_german(text: str) -> list[str]:
    """Words without final punctuation marks, in lower case as far as `lower_german` allows."""
    first, *other_words = (each.rstrip(PUNCTUATION_MARKS) for each in text.split(" "))
    return [first.lower(), *map(lower_german, other_words)]


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
