import pytest

from tfm.data.errors import format_count


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1000, "1,000 lines"), (1001, "1,001 lines")]
)
def test_only_one_thing_is_singular(number: int, said: str) -> None:
    assert format_count(number, "line") == said
    assert format_count(number, "leaf", "leaves") == said.replace("line", "leaf").replace("leafs", "leaves")
