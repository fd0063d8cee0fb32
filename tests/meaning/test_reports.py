"""What people read beside the tables: report.html, `tfm compare`, `tfm inspect`. Their figures are the same ones."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm
from tests.meaning.conftest import Case
from tests.meaning.test_scores import NAMES

pytestmark = [pytest.mark.slow, pytest.mark.meaning("scores")]
LABELS = NAMES | {"ter": "TER ↓", "perplexity": "perplexity ↓", "word_perplexity": "perplexity by word ↓"}


def test_the_report_has_the_same_figures(case: Case, record_property: Any) -> None:
    page = (case.run.folder / "scores" / "report.html").read_text("utf-8")
    parts = dict(re.findall(r"<h2>Scores on (\w+)</h2>(.*?)</table>", page, flags=re.DOTALL))
    for test, found in case.run.scores.items():
        cells = re.findall(r"<td>([^<]*)</td><td class=\"number\">([^<]*)</td><td><code>([^<]*)", parts[test])
        shown = {html.unescape(name): (score, html.unescape(signature)) for name, score, signature in cells}
        for name, score in found["metrics"].items():
            if name in LABELS:
                assert shown[LABELS[name]] == (f"{score['score']:.2f}", score["signature"])
                record_property("figures", 1)


def test_compare_shows_the_same_figures(case: Case, record_property: Any) -> None:
    found = json.loads(tfm("compare", case.run.folder, "--json").out)["runs"][0]["figures"]
    for name, score in case.run.scores["test"]["metrics"].items():
        assert found[f"test.{name}"]["value"] == score["score"]
        assert score["signature"] in found[f"test.{name}"]["signature"]
        record_property("figures", 1)
    figures = case.run.json("model/manifest.json")["figures"]
    assert found["valid.loss"]["value"] == figures["validation"]["loss"]
    assert found["updates"]["value"] == figures["updates"]


def test_translations_of_lines_in_another_order(case: Case, tmp_path: Path, record_property: Any) -> None:
    """A line's translation does not depend on the lines beside it, nor on whether it comes from a file or a pipe."""
    lines = case.corpora.sources("valid")
    said = tfm("translate", case.run.folder, "--beam", "1", stdin="".join(line + "\n" for line in reversed(lines)))
    assert said.code == 0, said.err
    assert said.out.removesuffix("\n").split("\n")[::-1] == case.run.lines("translations/again.txt")
    record_property("translations", len(lines))


def test_inspect_tells_how_long_training_took(case: Case) -> None:
    found = json.loads(tfm("inspect", case.run.folder / "model", "--json").out)
    seconds = case.run.json("model/manifest.json")["figures"]["training_seconds"]
    assert seconds >= case.run.metrics("train")[-1]["seconds"]
    assert found["figures"]["training_seconds"] == seconds


@pytest.mark.meaning("relations")
def test_words_that_must_and_may_not_come_up(case: Case, record_property: Any) -> None:
    """In scripts without spaces a word stands between letters; in others between spaces and marks."""
    lines = case.corpora.sources("valid")[:15]
    text = "".join(line + "\n" for line in lines)
    for word in list(case.script.words.values())[1:3]:
        for key in ("forbidden", "forced"):
            asked = ("--beam", "4", "--set", f'decoding.{key}=["{word}"]')
            said = tfm("translate", case.run.folder, *asked, stdin=text)
            assert said.code == 0, said.err
            found = said.out.removesuffix("\n").split("\n")
            assert len(found) == len(lines)
            holding = [line for line in found if (word in line if not case.script.space else word in line.split())]
            if key == "forbidden":
                assert not holding
            else:
                assert all(word in line for line in found)
            record_property("translations", len(found))
