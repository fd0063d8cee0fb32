"""The words of the built-in corpus `it`: nouns, verbs that go with them, and reasons that are of one of two nouns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tfm.data.synthetic.language import english

Antecedent = Literal["subject", "object"]

# A noun: English, German, which in the singular is the same in nominative and accusative.
# A verb: English base and past, German present and past. A reason: English, German.
ANIMALS = """
dog | der Hund;       bird | der Vogel;   donkey | der Esel;      hamster | der Hamster
cat | die Katze;      mouse | die Maus;   cow | die Kuh;          goat | die Ziege
horse | das Pferd;    sheep | das Schaf;  pig | das Schwein;      pony | das Pony
"""
FOOD = """
fish | der Fisch;     apple | der Apfel;    cake | der Kuchen;    pumpkin | der Kürbis
pear | die Birne;     carrot | die Karotte; sausage | die Wurst;  cherry | die Kirsche
egg | das Ei;         steak | das Steak;    roll | das Brötchen;  sandwich | das Sandwich
"""
TOOLS = """
hammer | der Hammer;  stone | der Stein;    stick | der Stock
saw | die Säge;       needle | die Nadel;   axe | die Axt
knife | das Messer;   sword | das Schwert;  wheel | das Rad
"""
FRAGILE_OBJECTS = """
plate | der Teller;   jug | der Krug;         mirror | der Spiegel
cup | die Tasse;      vase | die Vase;        lamp | die Lampe
glass | das Glas;     window | das Fenster;   picture | das Bild
"""
VEHICLES = """
truck | der Lastwagen;    bus | der Bus;       train | der Zug;         tractor | der Traktor
tram | die Straßenbahn;   ferry | die Fähre;   carriage | die Kutsche;  locomotive | die Lokomotive
car | das Auto;           taxi | das Taxi;     boat | das Boot;         bicycle | das Fahrrad
"""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    english: str
    german: str
    gender: int


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Nouns and verbs that go together, and reasons.

    Args:
        subjects: of the sentence.
        verbs: English present and past, German present and past.
        objects: of the sentence.
        reasons: in English and German, about the subject or about the object.
    """

    subjects: tuple[Noun, ...]
    verbs: tuple[tuple[str, str, str, str], ...]  # English present and past, German present and past
    objects: tuple[Noun, ...]
    reasons: dict[Antecedent, tuple[tuple[str, str], ...]]


def parse_cell_pairs(table: str) -> Iterator[tuple[str, str]]:
    for cell in table.replace("\n", ";").split(";"):
        if cell.strip():
            left_text, _, right_text = cell.partition("|")
            yield left_text.strip(), right_text.strip()


def _parse_nouns(table: str) -> tuple[Noun, ...]:
    rows = [(word, *german.split()) for word, german in parse_cell_pairs(table)]
    return tuple(Noun(word, noun, ("der", "die", "das").index(article)) for word, article, noun in rows)


def _parse_verbs(table: str) -> tuple[tuple[str, str, str, str], ...]:
    rows = [(*words.split(), *german.split()) for words, german in parse_cell_pairs(table)]
    return tuple((english.add_s_ending(base), past, present, german_past) for base, past, present, german_past in rows)


def _make_scenario(subjects: str, verbs: str, objects: str, subject_reasons: str, object_reasons: str) -> Scenario:
    reasons: dict[Antecedent, tuple[tuple[str, str], ...]]
    reasons = {"subject": tuple(parse_cell_pairs(subject_reasons)), "object": tuple(parse_cell_pairs(object_reasons))}
    return Scenario(_parse_nouns(subjects), _parse_verbs(verbs), _parse_nouns(objects), reasons)


# Where both come from one table, the noun does not tell which of the two it is: its place does.
SCENARIOS = (
    _make_scenario(
        ANIMALS,
        "eat ate | frisst fraß; steal stole | stiehlt stahl; find found | findet fand; "
        "hide hid | versteckt versteckte; swallow swallowed | verschluckt verschluckte; smell smelled | riecht roch",
        FOOD,
        "hungry | hungrig; greedy | gierig; curious | neugierig; clever | klug; young | jung; brave | mutig",
        "fresh | frisch; sweet | süß; tasty | lecker; soft | weich; salty | salzig; delicious | köstlich",
    ),
    _make_scenario(
        ANIMALS,
        "chase chased | jagt jagte; bite bit | beißt biss; frighten frightened | erschreckt erschreckte; "
        "push pushed | schubst schubste; save saved | rettet rettete; warn warned | warnt warnte",
        ANIMALS,
        "angry | wütend; hungry | hungrig; brave | mutig; clever | klug; curious | neugierig; wild | wild",
        "weak | schwach; slow | langsam; lame | lahm; frightened | ängstlich; shy | scheu; lazy | faul",
    ),
    _make_scenario(
        TOOLS,
        "damage damaged | beschädigt beschädigte; destroy destroyed | zerstört zerstörte; "
        "scratch scratched | zerkratzt zerkratzte; hit hit | trifft traf; break broke | zerbricht zerbrach",
        FRAGILE_OBJECTS,
        "heavy | schwer; sharp | scharf; hard | hart; pointed | spitz; sturdy | stabil",
        "thin | dünn; fragile | zerbrechlich; brittle | spröde; delicate | empfindlich; weak | schwach",
    ),
    _make_scenario(
        VEHICLES,
        "overtake overtook | überholt überholte; pull pulled | zieht zog; push pushed | schiebt schob; "
        "replace replaced | ersetzt ersetzte; ram rammed | rammt rammte; pass passed | passiert passierte",
        VEHICLES,
        "fast | schnell; strong | stark; powerful | kräftig; reliable | zuverlässig; sturdy | stabil",
        "slow | langsam; broken | kaputt; damaged | beschädigt; rusty | rostig; weak | schwach",
    ),
)
