"""Names, numbers, adverbs and modal verbs of the built-in corpus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal verb or the future.

    Args:
        english: base and third person.
        german: by person.
        auxiliary: whether English inverts it (can) or asks with do (want to).
        past: whether the form is past.
        german_negated: by person, where it is another verb: must not, darf nicht.
    """

    english: tuple[str, str]  # base, third person
    german: tuple[str, str, str]  # by person
    auxiliary: bool
    past: bool = False
    german_negated: tuple[str, str, str] | None = None  # must not: darf nicht


@dataclass(frozen=True, slots=True)
class BilingualWords:
    """An expression that never changes, in both languages."""

    english: str = ""
    german: str = ""


NAMES = ("Anna", "Emma", "Maria", "Sophie", "Paul", "Peter", "Martin", "Daniel")

CAN = Modal(("can", "can"), ("kann", "kann", "können"), auxiliary=True)
COULD = Modal(("could", "could"), ("konnte", "konnte", "konnten"), auxiliary=True, past=True)
MAY = Modal(("may", "may"), ("darf", "darf", "dürfen"), auxiliary=True)
MUST = Modal(("must", "must"), ("muss", "muss", "müssen"), auxiliary=True, german_negated=MAY.german)
SHOULD = Modal(("should", "should"), ("sollte", "sollte", "sollten"), auxiliary=True)
WILL = Modal(("will", "will"), ("werde", "wird", "werden"), auxiliary=True)
WANT = Modal(("want to", "wants to"), ("will", "will", "wollen"), auxiliary=False)
WANTED = Modal(("want to", "wanted to"), ("wollte", "wollte", "wollten"), auxiliary=False, past=True)
HAD_TO = Modal(("have to", "had to"), ("musste", "musste", "mussten"), auxiliary=False, past=True)

FREQUENCY_ADVERBS = (
    BilingualWords("often", "oft"),
    BilingualWords("always", "immer"),
    BilingualWords("sometimes", "manchmal"),
    BilingualWords("rarely", "selten"),
    BilingualWords("never", "nie"),
)
PERFECT_ADVERBS = (
    BilingualWords("already", "schon"),
    BilingualWords("already", "schon"),
    BilingualWords("often", "oft"),
    BilingualWords("never", "nie"),
)
MANNER_ADVERBS = {
    "speed": (BilingualWords("quickly", "schnell"), BilingualWords("slowly", "langsam")),
    "voice": (BilingualWords("loudly", "laut"), BilingualWords("quietly", "leise")),
    "care": (BilingualWords("carefully", "vorsichtig"),),
}

TODAY, TOMORROW = BilingualWords("today", "heute"), BilingualWords("tomorrow", "morgen")
_DAYS = tuple(
    BilingualWords(f"on {day}", f"am {tag}")
    for day, tag in (
        ("Monday", "Montag"),
        ("Tuesday", "Dienstag"),
        ("Wednesday", "Mittwoch"),
        ("Thursday", "Donnerstag"),
        ("Friday", "Freitag"),
        ("Saturday", "Samstag"),
        ("Sunday", "Sonntag"),
    )
)
_ENGLISH_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_GERMAN_NUMBERS = "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
NUMBERS = tuple(map(BilingualWords, _ENGLISH_NUMBERS, _GERMAN_NUMBERS))
_CLOCK_TIMES = tuple(BilingualWords(f"at {number.english} o'clock", f"um {number.german} Uhr") for number in NUMBERS)
_EVERY_DAY = (BilingualWords("every day", "jeden Tag"), BilingualWords("every evening", "jeden Abend"))
_SOON = BilingualWords("soon", "bald")
POSITIVE_ONLY_TIME_ADVERBS = (*_EVERY_DAY, _SOON)  # "not every day" would deny only the time

# Expressions of time that go with a tense.
TIME_ADVERBS_BY_TENSE = {
    "present": _EVERY_DAY * 5 + _CLOCK_TIMES,
    "progressive": (TODAY, BilingualWords("now", "jetzt")),
    "past": (BilingualWords("yesterday", "gestern"), BilingualWords("last week", "letzte Woche")) * 4
    + _DAYS
    + _CLOCK_TIMES,
    "perfect": (TODAY,),
    "coming": (TODAY, TOMORROW, _SOON, BilingualWords("next week", "nächste Woche")) * 3 + _DAYS + _CLOCK_TIMES,
}

_TENS = ("twenty", "zwanzig"), ("thirty", "dreißig"), ("forty", "vierzig"), ("fifty", "fünfzig"), ("sixty", "sechzig")
LARGE_NUMBERS = tuple(
    BilingualWords(f"{ten}-{unit.english}", f"{unit.german}und{zehn}") if unit.english else BilingualWords(ten, zehn)
    for ten, zehn in _TENS
    for unit in (BilingualWords(), *NUMBERS[:9])
)
