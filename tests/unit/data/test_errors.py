import pytest

from tfm.data.errors import format_count, format_share


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1000, "1,000 lines"), (1001, "1,001 lines")]
)
def test_only_one_thing_is_singular(number: int, said: str) -> None:
    assert format_count(number, "line") == said
    assert format_count(number, "leaf", "leaves") == said.replace("line", "leaf").replace("leafs", "leaves")


@pytest.mark.parametrize(
    ("number", "whole", "said"),
    [
        (1, 1, "1 of 1 line has"),
        (1, 5, "1 of 5 lines has"),
        (0, 5, "0 of 5 lines have"),
        (1200, 2000, "1,200 of 2,000 lines have"),
    ],
)
def test_a_share_has_the_verb_of_its_number(number: int, whole: int, said: str) -> None:
    assert format_share(number, whole, "line", "has", "have") == said
