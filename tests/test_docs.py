"""What README.md and docs/ say and can be tried: commands parse, recipes, options and keys exist, snippets are recipes,
and errors read as they are shown."""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.user import tfm
from tfm.cli.app import app
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.messages.error_messages import field_at
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.tuning.search import open_search

ROOT = Path(__file__).parent.parent
TOP = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS: Mapping[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
UNFINISHED = ("MissingParameter", "BadOptionUsage")  # a command that is named in a sentence
SECTIONS = "|".join(name for name in Recipe.model_fields if name not in ("name", "seed"))
KEY = re.compile(rf"(?<![\w./-])((?:{SECTIONS})(?:\.[a-z_0-9]++)++)(?![\w/(*-]|\.[A-Z])")
WRITTEN = ("translate.py", "generate.py", "label.py")  # by `tfm export`, into the folder of a model
NO_KEYS = (
    "tokenizer.model",
    "data.py",
    "model.py",
    "model.md",
    "model.safetensors",
    "tokenizer.json",
    "model.bin",
    "model.onnx",
)


def name_of(page: Path) -> str:
    """The path of a page, from the top or within docs/."""
    return str(page.relative_to(ROOT)).removeprefix("docs/")


def commands(page: Path) -> Iterator[str]:
    """The commands of a page, each on one line: those that stand in blocks, and those that stand in text."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for found in re.findall(r"^ {4,}(?:\$ )?(?:echo .* \| )?((?:tfm|make) .*)", text, re.MULTILINE):
        yield re.split(r"\s+#\s", found)[0].strip()
    yield from (found.strip() for found in re.findall(r"`((?:tfm|make) [^`]+)`", text))


def words_of(command: str) -> list[str]:
    """The words of a command without what the shell does with its streams."""
    return shlex.split(re.split(r" [<>|] | > | \d?>&\d", command)[0])


def command_of(line: str) -> tuple[str, Any, list[str]]:
    """The command of a line, its name and its words; that of `tfm judge make` is make, of judge."""
    _, name, *words = words_of(line)
    assert name in COMMANDS, line
    command = COMMANDS[name]
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command, name, words = inner[words[0]], f"{name} {words[0]}", words[1:]
    return name, command, words


ALL = [(name_of(page), command) for page in PAGES for command in dict.fromkeys(commands(page))]
TFM = [each for each in ALL if each[1].startswith("tfm ") and not re.search(r"\.\.\.|…|\[|\| |^tfm -", each[1])]
SYNOPSES = [each for each in ALL if each[1].startswith("tfm ") and each not in TFM]


FILES_AT_THE_TOP = {
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff"),
    *("Makefile", "pyproject.toml", "constraints.txt"),
}


@cache
def python_paths() -> frozenset[str]:
    """Every Python file of ours, and every folder that holds one, by its path from the top."""
    files = [
        path.relative_to(ROOT)
        for top in ("cli", "pipeline", "model", "data", "tokenizer", "bench", "docs", "tests")
        for path in (ROOT / top).rglob("*.py")
    ]
    return frozenset(str(path) for path in files) | {str(path.parent) for path in files}


def test_there_is_something_to_hold() -> None:
    assert len(TFM) > 40
    assert {name for name, _ in TFM} > {"README.md", "recipes.md", "models/images.md", "decoding/generation.md"}


@pytest.mark.parametrize(("page", "command"), TFM, ids=[f"{page}: {command}" for page, command in TFM])
def test_a_command_is_one_of_ours_with_its_options(page: str, command: str) -> None:
    name, stage, words = command_of(command)
    options = {option for parameter in stage.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word):
            assert word.partition("=")[0] in (*options, "--help"), command
    if {"--help", "--version"} & {*words} or not words:
        return
    try:
        stage.make_context(name, ["1" if word == "N" else word for word in words])
    except Exception as error:
        if type(error).__name__ not in UNFINISHED:
            raise


@pytest.mark.parametrize(("page", "command"), TFM, ids=[f"{page}: {command}" for page, command in TFM])
def test_recipes_of_a_command_are_there_and_take_what_it_sets(page: str, command: str) -> None:
    words = words_of(command)
    sets = [after for word, after in zip(words, words[1:], strict=False) if word == "--set"]
    named = [word for word in words if word.startswith("recipes/") and word.endswith(".toml")]
    for pattern in named:
        files = sorted(ROOT.glob(pattern))
        assert files, f"{page}: {pattern}"
        if words[1] in ("run", "recipe") and len(files) == 1:
            load_recipe(files[0], sets)
    for setting in sets:
        key = tuple(setting.partition("=")[0].split("."))
        assert re.fullmatch(r"[a-z.]*\.\.\.", setting) or field_at(Recipe, key) is not None, f"{page}: {setting}"


@pytest.mark.parametrize(("page", "command"), SYNOPSES, ids=[f"{page}: {command}" for page, command in SYNOPSES])
def test_a_synopsis_names_options_that_there_are(page: str, command: str) -> None:
    name = command.split()[1]
    known = [option for each in COMMANDS.values() for parameter in each.params for option in parameter.opts]
    if name in COMMANDS:
        stage = COMMANDS[name]
        stage = getattr(stage, "commands", {}).get(command.split()[2], stage)
        known = [option for parameter in stage.params for option in parameter.opts]
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", command):
        assert option in (*known, "--help", "--version", "--debug"), f"{page}: {command}"


def goals_of_make() -> set[str]:
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    return {line.partition(":")[0] for line in lines if re.match(r"[a-z-]+:", line)}


def test_goals_of_make_are_there() -> None:
    goals = goals_of_make()
    named = [each for each in ALL if each[1].startswith("make ")]
    assert named
    for page, command in named:
        for word in words_of(command)[1:]:
            recipe = word.partition("=")[2]
            assert word in goals or "=" in word, f"{page}: {command}"
            assert not recipe.startswith("recipes/") or (ROOT / recipe).exists(), f"{page}: {command}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_keys_that_a_page_names_are_keys_of_recipes(page: Path) -> None:
    named = {key for code in re.findall(r"`([^`\n]+)`", page.read_text("utf-8")) for key in KEY.findall(code)}
    for key in sorted(named - {*NO_KEYS}):
        parts = tuple(part for part in key.split(".") if not part.isdigit())
        assert field_at(Recipe, parts) is not None or parts[:2] == ("data", "tests"), f"{name_of(page)}: {key}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "bench" / "README.md"], ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    ours = [f"/{each}" for each in python_paths()]
    for file in re.findall(r"(?<![\w./-])[\w./-]+\.py\b", page.read_text("utf-8")):
        is_ours = any(each.endswith(f"/{file.lstrip('./')}") for each in ours)
        assert is_ours or file.removeprefix("out/") in WRITTEN, f"{name_of(page)}: {file}"


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page: its headings, as code hosts and the site write them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```[^\0]*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE), re.MULTILINE
    )
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "") for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md", ROOT / "bench" / "README.md"], ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text("utf-8")):
        target = page.parent / link if link else page
        assert target.exists() or re.match(r"(\.\./)*reference/", link), f"{name_of(page)}: {link}"
        if anchor and target.suffix == ".md" and target.exists():
            assert anchor in anchors_of(target), f"{name_of(page)}: {link}#{anchor}"


def test_what_contributing_says_to_copy_and_to_change_is_there() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
    paths = re.findall(r"`((?:[\w.-]+/)+(?:[\w.-]+)?)`", text)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    tables = re.findall(r"`(\w+)`(?: there)?,? (?:in|of) `([\w/]+\.py)`", text)
    assert len(tables) > 8
    assert [each for each in tables if not re.search(rf"\b{each[0]}\b", (ROOT / each[1]).read_text("utf-8"))] == []


def test_what_github_runs_is_there() -> None:
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text("utf-8")
    suites = re.findall(r"suite: \[(.*)\]", text)[0].split(", ")
    goals = {*re.findall(r"make ([\w-]+)", text), *suites}
    assert goals == {"check", "docs", "test", "test-slow", "test-faults", "test-meaning", "test-random"}
    assert goals <= goals_of_make()
    oldest = re.findall(r'python: \["([\d.]+)"', text)[0]
    assert project()["requires-python"] == f">={oldest}"


def test_the_citation_is_of_this_version() -> None:
    lines = dict(
        line.split(": ", 1) for line in (ROOT / "CITATION.cff").read_text("utf-8").splitlines() if ": " in line
    )
    assert [lines["title"]] == list(project()["scripts"])
    assert (lines["version"], lines["license"]) == (project()["version"], project()["license"])
    assert lines["abstract"] == project()["description"]
    archived = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    assert (archived["version"], archived["license"]) == (lines["version"], lines["license"])
    assert archived["description"] == lines["abstract"]
    assert [each["name"] for each in archived["creators"]] == [lines["  - name"]]
    assert archived["keywords"] == re.findall(r"^  - (?!name)(.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)


def project() -> Mapping[str, Any]:
    """What pyproject.toml says of the project."""
    found: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_the_map_has_every_folder() -> None:
    """The tree of CONTRIBUTING.md, each line's place read from its indentation."""
    tree = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## The map")[2].split("```")[1]
    places: list[str] = []
    named = set()
    for line in tree.strip().splitlines():
        bars, name = re.fullmatch(r"([│├└─ ]*)(\S+).*", line).groups()  # type: ignore[union-attr]
        places[len(bars) // 4 :] = [name.rstrip("/,")]
        named.add("/".join(places))
    ours = {each for each in python_paths() if each.split("/")[0] not in ("bench", "docs", "tests")}
    folders = {each for each in ours if not each.endswith(".py") and "language" not in each}
    assert folders - named == set()
    assert {each for each in named if "/" in each} - ours == set()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone: what is tracked is unknown")
def test_nothing_strays_at_the_top() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    strays = {name for name in tracked if name and "/" not in name and not name.startswith(".")} - FILES_AT_THE_TOP
    assert strays == set()


def snippets() -> Iterator[tuple[str, str]]:
    """The parts of recipes that pages show."""
    for page in PAGES:
        text = page.read_text("utf-8")
        yield from ((name_of(page), found) for found in re.findall(r"```toml\n(.*?)```", text, re.DOTALL))
        for block in re.findall(r"((?:^ {4}.*\n|^\n)+)", text, re.MULTILINE):
            if re.match(rf"\n* {{4}}\[\[?({SECTIONS})", block):
                yield name_of(page), re.sub(r"^ {4}", "", block, flags=re.MULTILINE)


@pytest.mark.parametrize(("page", "snippet"), list(snippets()), ids=lambda each: each[:30])
def test_a_snippet_is_part_of_a_recipe(tmp_path: Path, page: str, snippet: str) -> None:
    content = tomllib.loads(snippet)
    (tmp_path / "base.toml").write_text('[data]\npath = "corpus"\n')
    data = content.get("data", {})
    head = "" if {"path", "train"} & data.keys() or "extends" in content else 'extends = "base.toml"\n'
    if "search" in content:
        (tmp_path / "demo-base.toml").write_text('[data]\npath = "corpus"\n')
        (tmp_path / "snippet.toml").write_text(snippet)
        open_search(tmp_path / "snippet.toml", root=tmp_path)
    else:
        (tmp_path / "snippet.toml").write_text(head + snippet)
        load_recipe(tmp_path / "snippet.toml")


SHOWN = {
    "tokenizer.vocab_sise": ("tokenizer.vocab_sise = 1", ()),
    'tokenizer.kind = "bpee"': ('tokenizer.kind = "bpee"', ()),
    "--set model.encoder.heads=3": ("", ("model.encoder.heads=3",)),
    'model.norm = "post" has no effect': ('model = { norm = "post", architecture = "recurrent" }', ()),
}
"""Errors of docs/recipes.md, by what they hold: the recipe, and what is set."""


@pytest.mark.parametrize("part", SHOWN)
def test_an_error_reads_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    text, sets = SHOWN[part]
    monkeypatch.chdir(tmp_path)
    Path("recipes").mkdir()
    Path("recipes/mine.toml").write_text(f'data.path = "corpus"\n{text}\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(Path("recipes/mine.toml"), sets)
    assert f"    {caught.value}\n" in (ROOT / "docs" / "recipes.md").read_text("utf-8")


@pytest.mark.parametrize("command", ["tfm recipe recipes/demo.toml", "tfm recipe --schema"])
def test_what_costs_nothing_runs(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    assert command in [each for _, each in TFM]
    monkeypatch.chdir(ROOT)
    assert tfm(*words_of(command)[1:]).code == 0


def test_each_recipe_has_its_line_in_the_readme_of_recipes() -> None:
    text = (ROOT / "recipes" / "README.md").read_text("utf-8")
    linked = {*re.findall(r"\]\(([^)]+\.toml)\)", text)}
    there = {file.name for file in (ROOT / "recipes").glob("*.toml")}
    assert linked == there
