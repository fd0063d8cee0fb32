"""CIDEr-D of ten scripts a second time, by plain code of the paper's equations, as a user gets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm, write_lines
from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import tokens_of_words
from tests.meaning.scripts import SCRIPTS, Script
from tests.meaning.test_plain_scores import noisy

pytestmark = [pytest.mark.slow, pytest.mark.meaning("scores")]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_cider_d_of_one_reference_and_of_up_to_three(script: Script, tmp_path: Path, record_property: Any) -> None:
    hypotheses, references = noisy(script, 11)
    others = [line if number % 3 else "" for number, line in enumerate(noisy(script, 12)[0])]
    shuffled = [line if number % 2 else " " for number, line in enumerate(references[::-1])]
    for columns in ([references], [references, others, shuffled]):
        files = [write_lines(tmp_path / f"reference-{number}", each) for number, each in enumerate(columns)]
        named = [word for file in files for word in ("--reference", file)]
        given = write_lines(tmp_path / "hypotheses", hypotheses)
        said = tfm("evaluate", "--hypotheses", given, *named, "--metric", "cider_d", "--json")
        assert said.code == 0, said.err
        found = json.loads(said.out)["metrics"]["cider_d"]
        documents = [[tokens_of_words(each) for each in segment] for segment in zip(*columns, strict=True)]
        values = plain.cider_d([*map(tokens_of_words, hypotheses)], documents)
        assert found["score"] == pytest.approx(sum(values) / len(values), abs=1e-9)
        assert f"|documents:{len(references)}|" in found["signature"]
        assert 0 < found["score"] < 10
        record_property("figures", 1)
