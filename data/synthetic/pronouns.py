"""The built-in corpus `it`: the German pronoun takes the gender of a noun before it, and only the reason tells which.

    The cat ate the fish because it was hungry. - Die Katze fraß den Fisch, weil sie hungrig war.
    The cat ate the fish because it was fresh.  - Die Katze fraß den Fisch, weil er frisch war.

Reasons such as hungry or sharp are of the subject of the sentence, fresh or thin of its object. The split
"combinations" has the sentences whose two nouns no other split has together, in either order. Each sentence comes with
the two translations that have a wrong pronoun: a contrast set (Rios et al. 2017, Müller et al. 2018).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from tfm.data.errors import DataError
from tfm.data.synthetic.language import english
from tfm.data.synthetic.language.german import (
    ACCUSATIVE,
    DEFINITE_ARTICLE,
    NOMINATIVE,
    DeclensionTable,
    decline_like_dieser,
    decline_like_ein,
)
from tfm.data.synthetic.language.phrases import SeededRandom
from tfm.data.synthetic.pronoun_scenarios import SCENARIOS, Antecedent, Noun, parse_cell_pairs
from tfm.data.synthetic.string_tasks import split_of

SPLITS = ("train", "valid", "test", "combinations")
PRONOUNS = ("er", "sie", "es")  # by gender: masculine, feminine, neuter
HELD_OUT_SHARE = 0.2
PLACES = """
in the garden | im Garten;         in the kitchen | in der Küche;     in the house | im Haus
at the market | auf dem Markt;     behind the church | hinter der Kirche
at the station | am Bahnhof;       under the bridge | unter der Brücke
in front of the hotel | vor dem Hotel
"""


@dataclass(frozen=True, slots=True)
class ContrastExample:
    """A sentence, its translation, and the two translations with a wrong pronoun.

    Args:
        english: the sentence.
        german: its translation.
        wrong: the translations with a wrong pronoun.
        subject: the noun that is the subject.
        object: the noun that is the object.
        antecedent: the noun that "it" stands for, `subject` or `object`.
        same_gender: whether the two nouns share one, so that the pronoun is the same for both.
    """

    english: str
    german: str
    wrong: tuple[str, str]
    subject: str
    object: str
    antecedent: Antecedent
    same_gender: bool

    @property
    def category(self) -> str:
        """The gender that the pronoun takes: that of the subject, of the object, or of either, since they share it."""
        return "same gender" if self.same_gender else self.antecedent


class ParsedWord(NamedTuple):
    """A word of a sentence, with its punctuation.

    Args:
        text: the word.
        tag: its part of speech.
        governor: the word that it depends on, from 0; None for the root.
        relation: the kind of the dependency.
    """

    text: str
    tag: str
    governor: int | None = None
    relation: str = "_"


def parse_example(example: ContrastExample) -> list[ParsedWord]:
    """The words of an English sentence; because, it, be and the reason depend on the antecedent of "it"."""
    texts = example.english.split()
    pronoun_index, noun_index = texts.index("it"), 1 if example.antecedent == "subject" else 4
    place_words, degree_words = texts[5 : pronoun_index - 1], texts[pronoun_index + 2 : -1]
    place_tags = [*["ADP"] * (len(place_words) - 2), "DET", "NOUN"] if place_words else []
    tags = [
        "DET",
        "NOUN",
        "VERB",
        "DET",
        "NOUN",
        *place_tags,
        "SCONJ",
        "PRON",
        "AUX",
        *["ADV"] * len(degree_words),
        "ADJ",
    ]
    relations = {pronoun_index - 1: "because", pronoun_index: "it", pronoun_index + 1: "be", len(texts) - 1: "reason"}
    return [
        ParsedWord(text, tag, noun_index, relations[number]) if number in relations else ParsedWord(text, tag)
        for number, (text, tag) in enumerate(zip(texts, tags, strict=True))
    ]


DETERMINERS: tuple[tuple[str, DeclensionTable], ...] = (
    *(("the", DEFINITE_ARTICLE),) * 3,
    ("a", decline_like_ein("ein")),
    ("this", decline_like_dieser("dies")),
    ("my", decline_like_ein("mein")),
    ("our", decline_like_ein("unser")),
)
LOCATION_PHRASES = (("", ""),) * 8 + tuple((f" {there}", f" {dort}") for there, dort in parse_cell_pairs(PLACES))
DEGREE_ADVERBS = (("", ""),) * 3 + (("very ", "sehr "), ("so ", "so "), ("quite ", "ziemlich "))


def is_held_out(first_noun: str, second_noun: str) -> bool:
    """Whether two English nouns, in either order, occur together only in the split "combinations"."""
    pair = " and ".join(sorted((first_noun, second_noun)))
    return int.from_bytes(blake2b(pair.encode(), digest_size=8).digest(), "big") < HELD_OUT_SHARE * 2**64


def generate_examples(split: str, size: int, seed: int) -> Iterator[ContrastExample]:
    """Yield different sentences, a pure function of the arguments; a longer run begins alike.

    Args:
        split: one of SPLITS.
        size: the number of sentences.
        seed: of the draws.

    Raises:
        DataError: there is no such split.
    """
    if split not in SPLITS:
        raise DataError(f"the built-in corpus `it` has no split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = SeededRandom(f"it {split} {seed}")
    seen: set[str] = set()
    while len(seen) < size:
        example = _draw_example(draw)
        held_out = is_held_out(example.subject, example.object)
        example_split = "combinations" if held_out else split_of(example.english)
        if example_split == split and example.english not in seen:
            seen.add(example.english)
            yield example


def generate(split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs of English and German of `examples`.

    Args:
        split: one of SPLITS.
        size: the number of pairs.
        seed: of the draws.
    """
    for example in generate_examples(split, size, seed):
        yield example.english, example.german


def _draw_example(draw: SeededRandom) -> ContrastExample:
    """One sentence, with a reason as often about its subject as about its object."""
    scene = draw.choice(SCENARIOS)
    subject = object_ = draw.choice(scene.subjects)
    while object_.english == subject.english:
        object_ = draw.choice(scene.objects)
    present, past, german_present, german_past = draw.choice(scene.verbs)
    verb, be, german_verb, german_be = present, "is", german_present, "ist"
    if draw.chance(0.5):
        verb, be, german_verb, german_be = past, "was", german_past, "war"
    antecedent: Antecedent = "subject" if draw.chance(0.5) else "object"
    reason, german_reason = draw.choice(scene.reasons[antecedent])
    place, german_place = draw.choice(LOCATION_PHRASES)
    degree, german_degree = draw.choice(DEGREE_ADVERBS)
    english_subject, german_subject = _draw_bilingual_noun_phrase(draw, subject, NOMINATIVE)
    english_object, german_object = _draw_bilingual_noun_phrase(draw, object_, ACCUSATIVE)
    by_pronoun = [
        _capitalize(
            f"{german_subject} {german_verb} {german_object}{german_place}, "
            f"weil {pronoun} {german_degree}{german_reason} {german_be}."
        )
        for pronoun in PRONOUNS
    ]
    right = by_pronoun.pop((subject if antecedent == "subject" else object_).gender)
    first_wrong, second_wrong = by_pronoun
    return ContrastExample(
        _capitalize(f"{english_subject} {verb} {english_object}{place} because it {be} {degree}{reason}."),
        right,
        (first_wrong, second_wrong),
        subject.english,
        object_.english,
        antecedent,
        subject.gender == object_.gender,
    )


def _draw_bilingual_noun_phrase(draw: SeededRandom, noun: Noun, case: int) -> tuple[str, str]:
    """A noun in the singular with an article or the like, in both languages."""
    word, table = draw.choice(DETERMINERS)
    english_determiner = english.indefinite_article(noun.english) if word == "a" else word
    return f"{english_determiner} {noun.english}", f"{table[noun.gender][case]} {noun.german}"


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]
