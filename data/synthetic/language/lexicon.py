"""The lexemes of the built-in corpus, read from the tables in words.py. Each is identified by its English dictionary
form."""

from dataclasses import dataclass

from tfm.data.synthetic.language import english, german, words
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    lexeme: str
    english_plural: str
    gender: int
    german: german.DeclensionTable  # singular row and plural row, each by case
    tags: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    lexeme: str
    german: str  # as predicate: teuer
    stem: str  # before endings: teur-
    tags: frozenset[str]  # of the nouns it suits
    quality: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    lexeme: str
    english: tuple[str, str, str, str, str]  # base, third person, past, participle, -ing
    prefix: str
    infinitive: str  # without the prefix
    present: tuple[str, str, str]  # by person
    past: tuple[str, str, str]
    participle: str
    auxiliary: str  # "haben" or "sein" in the perfect
    frame: str  # what follows it: a row of clauses.COMPLEMENTS
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    traits: tuple[str, ...]  # state and moment: no progressive; accident: nobody wants it; or adverbs that suit it
    preposition: tuple[str, str, int] | None = None  # English, German, the case it governs


_GENDERS = {"der": german.MASCULINE, "die": german.FEMININE, "das": german.NEUTER}


def _parse_rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" |")] for line in table.strip().splitlines()]


def _parse_noun(row: list[str]) -> Noun:
    singular, plural = [*row[0].split(), english.add_s_ending(row[0])][:2]
    article, german_singular, german_plural = row[1].split()
    gender, tags = _GENDERS[article], frozenset(row[2].split())
    forms = german.noun_forms(german_singular, german_plural, gender, weak="weak" in tags)
    return Noun(singular, plural, gender, forms, tags)


def _parse_adjective(row: list[str]) -> Adjective:
    predicate, stem = (row[1].split() * 2)[:2]
    return Adjective(row[0], predicate, stem, frozenset(row[2].split()), row[3])


def nouns_with_tags(tags: str) -> tuple[Noun, ...]:
    """The nouns that carry any of `tags`, in the order of the table."""
    requested_tags = set(tags.split())
    return tuple(noun for noun in NOUNS if noun.tags & requested_tags)


def _parse_english_verb_forms(row: str) -> tuple[str, str, str, str, str]:
    """The five forms; a particle follows each of them ("waits for")."""
    forms, _, particle = row.partition(" ~")
    stems, _, ing = forms.partition(" +")
    base, *irregular = stems.split()
    past, participle = irregular or [english.add_ed_ending(base)] * 2
    third = {"have": "has"}.get(base) or english.add_s_ending(base)
    participle_ing = ing or english.add_ing_ending(base)
    first, second, third, fourth, fifth = (
        f"{word} {particle}".strip() for word in (base, third, past, participle, participle_ing)
    )
    return first, second, third, fourth, fifth


def _parse_verb(row: list[str]) -> Verb:
    forms, entry, frame, subjects, objects, *traits = row
    bare = entry.removeprefix("s:")
    name, *governs = frame.split()
    preposition: tuple[str, str, int] | None = None
    if governs:
        preposition = governs[0], governs[1], {"accusative": ACCUSATIVE, "dative": DATIVE}[governs[2]]
    english_forms = _parse_english_verb_forms(forms)
    return Verb(
        " ".join([english_forms[0], *governs[:1]]),
        english_forms,
        *german.parse_verb_forms(bare),
        auxiliary="haben" if bare == entry else "sein",
        frame=name,
        subjects=nouns_with_tags(subjects),
        objects=nouns_with_tags(objects),
        traits=tuple(" ".join(traits).split()),
        preposition=preposition,
    )


NOUNS = tuple(_parse_noun(row) for row in _parse_rows(words.NOUNS))
ADJECTIVES = tuple(_parse_adjective(row) for row in _parse_rows(words.ADJECTIVES))
BE = Verb(
    "be",
    ("be", "is", "was", "been", "being"),
    *("", "sein", ("bin", "ist", "sind"), ("war", "war", "waren"), "gewesen"),
    auxiliary="sein",
    frame="predicate",
    subjects=nouns_with_tags("person animal thing paper vehicle food building"),
    objects=(),
    traits=("state",),
)

_ALL_VERBS = tuple(_parse_verb(row) for row in _parse_rows(words.VERBS))
WEATHER_VERBS = tuple(verb for verb in _ALL_VERBS if "weather" in verb.traits)
TELLING_VERBS = tuple(verb for verb in _ALL_VERBS if verb.frame in ("that", "whether"))  # with a finite clause
TO_INFINITIVE_VERBS = tuple(verb for verb in _ALL_VERBS if verb.frame == "to")  # with an infinitive clause
VERBS = tuple(verb for verb in _ALL_VERBS if verb not in {*WEATHER_VERBS, *TELLING_VERBS, *TO_INFINITIVE_VERBS})
