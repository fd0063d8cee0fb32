"""The page's files keep to the server's policy, and to one another, which no browser has to tell."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[5] / "pipeline" / "serving" / "page"
SCRIPTS = sorted(PAGE.glob("*.js"))
INDEX = (PAGE / "index.html").read_text("utf-8")
TEXT_AS_MARKUP = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.srcdoc|createContextual"
)


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            self.inline.append(data)


ELEMENTS = Elements(INDEX)
IDS = [attributes["id"] for _, attributes in ELEMENTS.found if "id" in attributes]


def test_nothing_is_inline_that_the_policy_forbids() -> None:
    assert ELEMENTS.inline == []
    names = [name for _, attributes in ELEMENTS.found for name in attributes]
    assert [name for name in names if name == "style" or name.startswith("on")] == []


def test_what_the_page_names_is_there_and_its_own() -> None:
    links = [attributes[key] for _, attributes in ELEMENTS.found for key in ("src", "href") if key in attributes]
    assert "static/main.js" in links
    for link in links:
        assert link is not None
        assert link in ("docs", "#main") or (PAGE / link.removeprefix("static/")).is_file(), link


@pytest.mark.parametrize("file", [*SCRIPTS, PAGE / "page.css", PAGE / "docs.css"], ids=lambda file: file.name)
def test_no_file_names_another_host_or_makes_markup_of_text(file: Path) -> None:
    text = file.read_text("utf-8")
    assert re.findall(r"https?://|//[a-z]+\.", text) == []
    assert re.findall(TEXT_AS_MARKUP, text) == []
    assert "@import" not in text


def test_ids_are_unique_and_those_that_scripts_look_for_exist() -> None:
    assert [each for each, count in Counter(IDS).items() if count > 1] == []
    for file in SCRIPTS:
        asked = set(re.findall(r'find\("([^"]+)"\)', file.read_text("utf-8")))
        assert asked - set(IDS) == set(), file.name


def test_each_import_is_of_something_exported() -> None:
    exported = {
        file.name: set(re.findall(r"^export (?:async )?(?:const|class|function\*?) (\w+)", text, re.MULTILINE))
        for file in SCRIPTS
        if (text := file.read_text("utf-8"))
    }
    num_imports = 0
    for file in SCRIPTS:
        for names, source in re.findall(
            r'^import \{([^}]*)\} from "\./([^"]+)";', file.read_text("utf-8"), re.MULTILINE
        ):
            num_imports += 1
            wanted = {name.strip() for name in names.split(",") if name.strip()}
            assert wanted <= exported[source], f"{file.name}: {wanted - exported[source]}"
    assert num_imports > 15


def test_every_field_has_a_label() -> None:
    labelled = {attributes.get("for") for tag, attributes in ELEMENTS.found if tag == "label"}
    for tag, attributes in ELEMENTS.found:
        if tag == "textarea":
            assert attributes["id"] in labelled
        if tag == "button":
            assert attributes.get("type") == "button"
