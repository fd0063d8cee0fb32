"""A glossary's terms are found between borders of words, in the case that they ask for."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.pipeline.serving.text.glossary import MAX_GLOSSARY_TERMS, MAX_TERM_CHARS, Glossary, glossary_problem

TERMS = {"dog": "Hund", "hot dog": "Wurst", "Apple": "Äpple", "c++": "C++", "straße": "road", "狗": "dog"}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A dog and a Dog run.", ["Hund"]),
        ("hotdogs dogged dog-house", ["Hund"]),
        ("a HOT  dog,a dog", ["Wurst", "Hund"]),
        ("Apple sells an apple", ["Äpple"]),
        ("an apple", []),
        ("I like C++!", ["C++"]),
        ("STRASSE", ["road"]),
        ("我的狗很好", ["dog"]),
        ("", []),
    ],
)
def test_terms_of_a_sentence(sentence: str, expected: list[str]) -> None:
    assert Glossary(TERMS).target_terms(sentence) == expected


def test_marks_may_be_composed_or_not() -> None:
    assert Glossary({"cafe\u0301": "coffee"}).target_terms("Le café.") == ["coffee"]


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5), st.text(max_size=30))
def test_whatever_the_terms_are_found_ones_are_of_the_glossary(terms: dict[str, str], sentence: str) -> None:
    found = Glossary(terms).target_terms(sentence)
    assert set(found) <= {target.strip() for target in terms.values()}
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        ({"dog": "Hund"}, None),
        ({" ": "Hund"}, "a source term is empty"),
        ({"dog": ""}, "a target term is empty"),
        ({"dog": "x" * (MAX_TERM_CHARS + 1)}, "a target term has 201 characters and may have 200"),
        ({"d\tg": "Hund"}, "a source term has a tab or line break"),
        ({str(n): "x" for n in range(MAX_GLOSSARY_TERMS + 1)}, "has 1001 terms and may have 1000"),
    ],
)
def test_what_is_refused(terms: dict[str, str], problem: str | None) -> None:
    found = glossary_problem(terms)
    assert found == problem if problem is None else problem in str(found)


@pytest.mark.parametrize("case", [str, str.upper, str.title, str.capitalize])
@pytest.mark.parametrize("term", ["straße", "groß", "istanbul", "ŉa", "ﬁne", "été", "ΐx", "և", "ısı"])
def test_a_term_in_small_letters_is_found_in_any_case(term: str, case: Callable[[str], str]) -> None:
    if term == "ısı" and case is not str:
        return  # which Unicode's folding does not find
    assert Glossary({term: "x"}).target_terms(f"a {case(term)}.") == ["x"]


def test_letters_that_only_some_languages_change_the_case_of_are_no_error() -> None:
    assert Glossary({"istanbul": "x"}).target_terms("İSTANBUL") == ["x"]
    assert Glossary({"ı": "x", "i": "y"}).target_terms("I") == ["y"]


def test_of_two_terms_at_one_place_the_one_that_is_spelled_so_counts() -> None:
    assert Glossary({"us": "Anna", "US": "USA"}).target_terms("the US, us") == ["USA", "Anna"]


@pytest.mark.parametrize(
    ("first", "second"), [("a  b", "a b"), ("dog ", "dog"), ("straße", "strasse"), ("é", "e\u0301")]
)
def test_terms_that_are_one_have_one_translation(first: str, second: str) -> None:
    problem = glossary_problem({first: "x", second: "y"})
    assert problem is not None
    assert "are one term with two translations: remove one" in problem
    assert glossary_problem({first: "x", second: "x "}) is None
