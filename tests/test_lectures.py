"""docs/lectures/: every figure of a page is that of its claim's data, every picture is drawn from them, and all that a
page tells to run is there."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.claims.claim import CLAIMS_FOLDER, render_svg, round_numbers
from bench.claims.registry import CLAIMS
from tests.test_docs import ROOT

PAGES = sorted((ROOT / "docs" / "lectures").glob("*.md"))
TEXTS = {page: page.read_text("utf-8") for page in PAGES}
MEASURED = sorted(file.stem for file in CLAIMS_FOLDER.glob("*.json"))
COMMAND = re.compile(r"^ {4}python -m bench claim ([a-z-]+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """The part of a page, from heading to heading, that has the command of each claim."""
    found: dict[str, str] = {}
    for text in TEXTS.values():
        for part in re.split(r"^#+ ", text, flags=re.MULTILINE):
            for name in COMMAND.findall(part):
                assert name not in found, f"{name} has two sections"
                found[name] = part
    return found


def document(name: str) -> Any:
    return json.loads((CLAIMS_FOLDER / f"{name}.json").read_text("utf-8"))


def labels_of(svg: str) -> list[str]:
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def test_every_claim_was_measured_and_has_its_section() -> None:
    assert MEASURED
    assert [*sorted(sections())] == MEASURED
    assert {*MEASURED} <= {*CLAIMS}


@pytest.mark.parametrize("name", MEASURED)
def test_figures_are_those_of_the_data(name: str) -> None:
    kept = document(name)
    assert kept["figures"] == CLAIMS[name].figures(kept["found"])
    assert kept["sentence"] == CLAIMS[name].sentence
    assert round_numbers(kept["found"]) == kept["found"]


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.few(2)
def test_the_picture_is_drawn_from_the_data(name: str) -> None:
    drawn = render_svg(CLAIMS[name], document(name)["found"])
    kept = (CLAIMS_FOLDER / f"{name}.svg").read_text("utf-8")
    assert labels_of(drawn) == labels_of(kept)


@pytest.mark.parametrize("name", MEASURED)
def test_a_section_quotes_its_figures_and_shows_its_picture(name: str) -> None:
    part, figures = sections()[name], document(name)["figures"]
    assert f"](../images/claims/{name}.svg)" in part
    quoted = re.findall(r"\*\*([^*]*\d[^*]*)\*\*", part)
    assert len(quoted) >= 2
    assert [each for each in quoted if " ".join(each.split()) not in figures.values()] == []
    plain = re.sub(r"\*\*.*?\*\*", "", part, flags=re.DOTALL)
    assert not re.search(r"\d %", plain), "a share that was measured is bold, and in the claim's figures"


def test_every_page_of_a_course_is_linked_in_order() -> None:
    linked = re.findall(r"\]\(([a-z-]+\.md)\)", TEXTS[ROOT / "docs" / "lectures" / "README.md"])
    assert sorted({*linked, "README.md"}) == sorted(page.name for page in PAGES)
    assert "docs/lectures/" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_recipes_that_a_page_names_are_there(page: Path) -> None:
    for name in re.findall(r"recipes/[\w/-]+\.toml", TEXTS[page]):
        assert (ROOT / name).exists(), name


EXERCISES = TEXTS[ROOT / "docs" / "lectures" / "exercises.md"]


def test_ten_tasks_have_their_answers_folded() -> None:
    tasks = re.split(r"^(?=\*\*\d+\. )", EXERCISES, flags=re.MULTILINE)[1:]
    assert [int(re.findall(r"\d+", task)[0]) for task in tasks] == [*range(1, 11)]
    for task in tasks:
        assert task.count("<details><summary>Answer</summary>") == task.count("</details>") == 1
        assert re.search(r"^ {4}\w|^```python", task.partition("<summary>")[2], re.MULTILINE), "a command, or Python"


def test_what_attention_gives_in_the_first_tasks_is_in_their_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for snippet in re.findall(r"```python\n(.*?)```", EXERCISES, re.DOTALL):
        if "attention(" in snippet:
            exec(snippet, {})
    printed = re.findall(r"0\.\d+", capsys.readouterr().out)
    assert len(printed) > 12
    assert [each for each in printed if each not in EXERCISES] == []


def test_each_variant_stands_once_on_the_page_of_parts() -> None:
    text = (ROOT / "docs" / "models" / "parts.md").read_text("utf-8")
    last_cells = re.findall(r"\| ([^|]+) \|$", text, re.MULTILINE)
    named = [name for cell in last_cells for name in re.findall(r"`([a-z-]+)`", cell)]
    variants = {file.stem for file in (ROOT / "recipes" / "variants").glob("*.toml")}
    assert sorted(named) == sorted(variants - {"base"})
