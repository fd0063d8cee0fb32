"""What may not change a score of a file: the order of lines, a line written twice, a reference given twice, case."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm, write_lines
from tests.meaning.scripts import SCRIPTS, Script
from tests.meaning.test_plain_scores import noisy

pytestmark = [pytest.mark.slow, pytest.mark.meaning("relations")]
CASED = {name: script for name, script in SCRIPTS.items() if script.cased}


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request: pytest.FixtureRequest) -> Script:
    return request.param  # type: ignore[no-any-return]


def scored(folder: Path, hypotheses: Sequence[str], *references: Sequence[str], words: Sequence[str] = ()) -> Any:
    """The metrics of lines, as numbers."""
    columns = [write_lines(folder / f"reference-{number}", each) for number, each in enumerate(references)]
    given = [word for file in columns for word in ("--reference", file)]
    said = tfm("evaluate", "--hypotheses", write_lines(folder / "hypotheses", hypotheses), *given, *words, "--json")
    assert said.code == 0, said.err
    return {name: each["score"] for name, each in json.loads(said.out)["metrics"].items()}


def test_the_order_of_the_lines(script: Script, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(script, 5)
    rows = random.Random(1).sample(range(len(references)), len(references))
    found = scored(tmp_path, hypotheses, references)
    assert scored(tmp_path, [hypotheses[row] for row in rows], [references[row] for row in rows]) == pytest.approx(
        found
    )
    record_property("scores", len(found))


def test_a_test_set_twice_as_long(script: Script, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(script, 6)
    found = scored(tmp_path, hypotheses, references)
    assert scored(tmp_path, hypotheses * 2, references * 2) == pytest.approx(found)
    record_property("scores", len(found))


def test_a_reference_given_twice_and_references_in_another_order(
    script: Script, tmp_path: Path, record_property: Any
) -> None:
    hypotheses, references = noisy(script, 7)
    others = noisy(script, 7)[0]
    one, two = scored(tmp_path, hypotheses, references), scored(tmp_path, hypotheses, references, references)
    assert two == pytest.approx(one)
    # TER of an empty reference has no length to divide by: each segment keeps its own
    others = [other or reference for other, reference in zip(others, references, strict=True)]
    one, two = scored(tmp_path, hypotheses, references, others), scored(tmp_path, hypotheses, others, references)
    assert two == pytest.approx(one)
    record_property("scores", 2 * len(one))


@pytest.mark.parametrize("name", CASED)
def test_case_folded_on_both_sides(name: str, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(CASED[name], 8)
    hypotheses = [text.upper() if number % 3 == 0 else text for number, text in enumerate(hypotheses)]
    asked = scored(tmp_path, hypotheses, references, words=("--lowercase",))
    folded = scored(tmp_path, [text.lower() for text in hypotheses], [text.lower() for text in references])
    for metric in ("exact_match", "bleu", "chrf"):
        assert asked[metric] == pytest.approx(folded[metric]), metric
    assert asked["exact_match"] > scored(tmp_path, hypotheses, references)["exact_match"]
    record_property("scores", 3)


def test_capitals_of_the_beginning_alone(tmp_path: Path) -> None:
    """Where both sides have the same capitals, folding both changes no exact match."""
    for script in CASED.values():
        hypotheses, references = noisy(script, 9)
        folded = ([text.lower() for text in column] for column in (hypotheses, references))
        exact = [scored(tmp_path, *columns)["exact_match"] for columns in ((hypotheses, references), folded)]
        assert exact[0] == exact[1] > 0


def test_white_space_at_the_ends(script: Script, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(script, 10)
    found = scored(tmp_path, hypotheses, references)
    spaced = scored(tmp_path, [f" {text}  " for text in hypotheses], references)
    assert spaced == pytest.approx(found)
    record_property("scores", len(found))
