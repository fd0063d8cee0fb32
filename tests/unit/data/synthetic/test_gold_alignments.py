"""Gold alignments of the built-in grammar: pairs aligned by hand, and laws that hold for every sentence."""

import pytest

from tfm.data.synthetic import grammar, registry
from tfm.data.synthetic.gold_alignments.links import align_grammar_sentences, best_matching

BY_HAND = {
    ("The woman does not buy a book.", "Die Frau kauft kein Buch."): ("0-0 1-1 4-2 3-3 6-4", "2-2 5-3"),
    ("Does the man call the child?", "Ruft der Mann das Kind an?"): ("3-0 1-1 2-2 4-3 5-4 3-5", "0-0 0-5"),
    ("In the garden there are three cats.", "Im Garten sind drei Katzen."): ("0-0 2-1 4-2 5-3 6-4", "1-0 3-2"),
    ("The baker's old dog sleeps.", "Der alte Hund des Bäckers schläft."): ("0-3 1-4 2-1 3-2 4-5", "1-0"),
    ("Our mother's mother sings.", "Die Mutter unserer Mutter singt."): ("0-2 1-3 2-1 3-4", "1-0"),
    ("The man for whom they wait is sick.", "Der Mann, auf den sie warten, ist krank."): (
        "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7",
        "",
    ),
    ("She is waking up at five o'clock.", "Sie wacht um fünf Uhr auf."): ("0-0 2-1 4-2 5-3 6-4 3-5", "1-1 3-1 2-5"),
    ("They want to look at the house.", "Sie wollen das Haus ansehen."): ("0-0 1-1 3-4 5-2 6-3", "2-1 4-4"),
    ("Anna goes to the market in order to buy eggs.", "Anna geht zum Markt, um Eier zu kaufen."): (
        "0-0 1-1 2-2 4-3 6-4 9-5 7-6 8-7",
        "3-2 5-4",
    ),
    ("The boy who sees the young king knows me.", "Der Junge, der den jungen König sieht, kennt mich."): (
        "0-0 1-1 2-2 3-6 4-3 5-4 6-5 7-7 8-8",
        "",
    ),
    ("My sister's father sang, and a sister sang.", "Der Vater meiner Schwester sang, und eine Schwester sang."): (
        "0-2 1-3 2-1 3-4 4-5 5-6 6-7 7-8",
        "1-0",
    ),
    ("Her neighbor's neighbors repaired the clock.", "Die Nachbarn ihres Nachbarn reparierten die Uhr."): (
        "0-2 1-3 2-1 3-4 4-5 5-6",
        "1-0",
    ),
    (
        "Next week all teachers must listen to the kings next to the new school.",
        "Nächste Woche müssen alle Lehrer den Königen neben der neuen Schule zuhören.",
    ): ("0-0 1-1 2-3 3-4 4-2 5-11 7-5 8-6 9-7 11-8 12-9 13-10", "6-11 10-7"),
    ("The boy is going in order to repair this clock.", "Der Junge geht, um diese Uhr zu reparieren."): (
        "0-0 1-1 3-2 5-3 6-6 7-7 8-4 9-5",
        "2-2 4-3",
    ),
    ("You cannot sleep next to the car.", "Sie können nicht neben dem Auto schlafen."): (
        "0-0 1-1 1-2 2-6 3-3 5-4 6-5",
        "4-3",
    ),
}
"""By pair, the sure links, and the possible ones beside them, in Pharaoh's form."""


@pytest.mark.parametrize("texts", BY_HAND, ids=lambda texts: texts[0])
def test_links_are_those_made_by_hand(texts: tuple[str, str]) -> None:
    sure, possible = (
        {(int(a), int(b)) for a, _, b in (x.partition("-") for x in row.split())} for row in BY_HAND[texts]
    )
    found = align_grammar_sentences(*texts)
    assert found.sure == sure
    assert found.possible == sure | possible


@pytest.mark.parametrize("split", grammar.SPLITS)
def test_every_word_has_a_link(split: str) -> None:
    """Each word of both sides has a link, each German word at most one sure link, and sure links are possible."""
    for english, german in grammar.generate(split, 150, registry.SEED):
        found = align_grammar_sentences(english, german)
        assert {source for source, _ in found.possible} == set(range(len(english.split())))
        assert {target for _, target in found.possible} == set(range(len(german.split())))
        assert len({target for _, target in found.sure}) == len(found.sure)
        assert found.sure <= found.possible


@pytest.mark.slow
@pytest.mark.parametrize("split", grammar.SPLITS)
def test_every_word_of_many_sentences_has_a_link(split: str) -> None:
    for english, german in grammar.generate(split, 20_000, 7):
        align_grammar_sentences(english, german)


def test_other_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="no link of the, zebra"):
        align_grammar_sentences("The zebra sleeps.", "Der Hund schläft.")


def test_matching_crosses_as_little_as_it_can() -> None:
    edges = {(0, 0), (0, 5), (4, 0), (4, 5)}
    assert best_matching(edges) == {(0, 0), (4, 5)}
    assert best_matching(edges - {(4, 5)}) == {(0, 5), (4, 0)}
