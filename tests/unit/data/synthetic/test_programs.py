"""Programs run by Python print what their targets say, are of the length and nesting asked for, purely, over disjoint
splits."""

import io
import re
from contextlib import redirect_stdout
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tfm.data.errors import DataError
from tfm.data.synthetic import programs as module
from tfm.data.synthetic.programs import LINE_END, OPERATIONS, PROGRAM_GENERATORS, generate_additions, generate_programs
from tfm.data.synthetic.string_tasks import split_of
from tfm.pipeline.recipes.recipe import load_recipe

SHAPES = [(1, 1), (2, 3), (4, 3), (9, 6), (25, 2)]


def printed(program: str) -> str:
    """What a program prints; it has no builtin but those that programs may use."""
    out = io.StringIO()
    with redirect_stdout(out):
        exec(program.replace(LINE_END, "\n"), {"__builtins__": {"print": print, "range": range}})
    return out.getvalue()


@pytest.mark.parametrize(("length", "nesting"), SHAPES)
def test_a_target_is_what_python_prints(length: int, nesting: int) -> None:
    for source, target in generate_programs("train", 300, 1, length=length, nesting=nesting, mix=False):
        assert printed(source) == target + "\n"


def test_a_sum_is_what_python_prints_and_its_numbers_have_the_length() -> None:
    for source, target in generate_additions("test", 300, 1, length=9, mix=False):
        assert printed(source) == target + "\n"
        assert re.fullmatch(r"print\([1-9][0-9]{8}\+[1-9][0-9]{8}\)", source)


def test_every_operation_comes_up_and_nothing_else() -> None:
    found = [source for source, _ in generate_programs("train", 2000, 1, length=3, nesting=1, mix=False)]
    number, name = "[1-9][0-9]{0,2}", "[a-wyz]"
    small = "([1-9]|1[0-2])"
    kinds = [
        rf"print\(\({number}\+{number}\)\)",
        rf"print\(\({number}-{number}\)\)",
        rf"print\(\(({number}\*{small}|{small}\*{number})\)\)",
        rf"print\(\({number} if {number}[<>]{number} else {number}\)\)",
        rf"({name})={number};print\(\1\)",
        rf"({name})={number};for x in range\({small}\):\1\+={number};print\(\1\)",
    ]
    counts = [sum(bool(re.fullmatch(kind, source)) for source in found) for kind in kinds]
    assert sum(counts) == len(found)
    assert len(counts) == len(OPERATIONS)
    assert min(counts) > len(found) / 12


def test_a_program_has_at_most_as_many_operations_as_its_nesting_and_some_have_all() -> None:
    # A loop is counted by the assignment before it.
    operation = re.compile(r"(?<=[0-9a-z)])[+*-](?!=)| if |\b[a-z]=")
    counts = [
        len(operation.findall(source))
        for source, _ in generate_programs("train", 500, 1, length=2, nesting=3, mix=False)
    ]
    assert set(counts) == {1, 2, 3}


def test_no_name_is_given_twice() -> None:
    for source, _ in generate_programs("train", 200, 1, length=1, nesting=20, mix=False):
        names = re.findall(r"(?:^|;)([a-z])=", source)
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "generate",
    [
        partial(generate_programs, length=3, nesting=2, mix=False),
        partial(generate_programs, length=3, nesting=2, mix=True),
    ],
    ids=["whole", "mixed"],
)
def test_programs_are_pure_and_a_longer_run_begins_alike(generate: partial) -> None:  # type: ignore[type-arg]
    once = list(generate("train", 200, 1))
    assert list(islice(generate("train", 5000, 1), 200)) == once
    assert list(generate("train", 200, 2)) != once


def test_other_lengths_and_nestings_are_other_programs() -> None:
    shapes = [(3, 2, False), (3, 2, True), (3, 1, False), (2, 2, False)]
    made = [tuple(generate_programs("train", 50, 1, length=a, nesting=b, mix=c)) for a, b, c in shapes]
    assert len(set(made)) == len(shapes)


def test_splits_share_no_program_whatever_the_length_and_nesting() -> None:
    def sources(split: str) -> list[str]:
        pairs = [
            *generate_programs(split, 1000, 1, length=1, nesting=2, mix=False),
            *generate_programs(split, 1000, 1, length=2, nesting=2, mix=True),
            *generate_additions(split, 5, 1, length=1, mix=False),
        ]
        return [source for source, _ in pairs]

    found = {split: set(sources(split)) for split in ("train", "valid", "test")}
    assert all(split_of(source) == split for split, each in found.items() for source in each)
    assert len(set().union(*found.values())) == sum(map(len, found.values()))
    once = [source for source, _ in generate_programs("valid", 1000, 1, length=1, nesting=2, mix=False)]
    assert len(set(once)) == len(once)


def test_mixed_draws_every_length_and_nesting_up_to_the_largest() -> None:
    sums = [source for source, _ in generate_additions("train", 900, 1, length=4, mix=True)]
    lengths = {(len(a), len(b)) for a, b in (source[6:-1].split("+") for source in sums)}
    assert lengths == {(digits, digits) for digits in (1, 2, 3, 4)}
    whole, mixed = (
        [len(source) for source, _ in generate_programs("train", 500, 1, length=4, nesting=3, mix=mix)]
        for mix in (False, True)
    )
    assert max(mixed) > 60
    assert sum(mixed) < 0.9 * sum(whole)


def test_more_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DRAWS_WITHOUT_NEW", 2000)
    with pytest.raises(DataError, match=r"hardly more than \d\d different .* test split, and 1,000 are wanted"):
        list(generate_additions("test", 1000, 1, length=1, mix=False))


@pytest.mark.parametrize("name", PROGRAM_GENERATORS)
def test_refuses_a_split_it_does_not_have(name: str) -> None:
    parameters = {"length": 1, "mix": False} | ({"nesting": 1} if name == "programs" else {})
    with pytest.raises(DataError, match="no split 'dev'; choose one of train, valid, test"):
        next(PROGRAM_GENERATORS[name]("dev", 1, 1, **parameters))


def test_the_combined_recipe_is_half_mixed_but_for_its_first_epoch() -> None:
    recipe = load_recipe(Path(__file__).parents[4] / "recipes" / "execute-combined.toml")
    for epoch in range(1, 12):
        there = [each for each in recipe.data.train if each.epochs is None or each.epochs[0] <= epoch <= each.epochs[1]]
        rows = {each.mix: each.weight * (each.size or 0) for each in there}
        assert len(there) == 2
        assert rows[True] / sum(rows.values()) == pytest.approx(2 / 3 if epoch == 1 else 1 / 2)
