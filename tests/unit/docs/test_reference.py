"""The generated reference: every key of the schema and every command is there, in words that say what it may be."""

import re
from typing import Any

import pytest
import yaml

from docs.site.command_pages import command_pages
from docs.site.key_types import type_text, value_text
from docs.site.key_use import TASKS_BY_TABLE, idle_reasons, since, tasks_of
from docs.site.recipe_keys import recipe_tables
from docs.site.recipe_pages import recipe_pages
from tests.invariants.test_recipe_keys import leaves
from tests.test_docs import COMMANDS, ROOT
from tests.test_pages import named_pages
from tfm.model.config import ModelConfig
from tfm.model.config_fields import SUPPORTED_TASKS
from tfm.pipeline.recipes.messages.other_names import OTHER_NAMES
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.unused_keys.model import MODEL_RULES

CHANGELOG = """
## [Unreleased]
### Added
- `data.shuffle`: in no release yet.
## [0.2.0]
### Added
- `data.limits.max_ratio`, for corpora as `training.ema` has them.
### Changed
- `seed` is another one.
## [0.1.0]
### Added
- `training.ema`, `data.path`.
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return recipe_pages((ROOT / "CHANGELOG.md").read_text("utf-8"))


def test_every_key_has_its_heading_and_says_what_it_is(pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    assert [key for key in leaves(Recipe) if f"### `{key}` {{ #{key} }}" not in text] == []
    for table in recipe_tables():
        for key in table.keys:
            assert key.meaning or "table" in key.type, f"{key.name} has no description"


def test_a_key_is_shown_with_type_default_tasks_and_version(pages: dict[str, str]) -> None:
    part = pages["reference/recipe/model.md"].partition("### `model.canine.upsampling`")[2].partition("###")[0]
    assert "- Type: whole number, at least 1, at most 64\n" in part
    assert "- Default: `4`\n" in part
    assert "- Tasks: `tagging`\n" in part
    assert "- Since: 0.1.0\n" in part


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, "whole number, at least 1, below 9"),
        ({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]}, "number, above 0"),
        ({"anyOf": [{"type": "integer"}, {"const": "auto", "type": "string"}]}, 'whole number or `"auto"`'),
        ({"enum": ["a", "b"], "type": "string"}, 'one of `"a"`, `"b"`'),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, "list of (text), at least 1 of them"),
        ({"type": "array", "prefixItems": [{"type": "number"}] * 2}, "list of 2, each a number"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "a table of NAME = `true` or `false`"),
    ],
)
def test_a_type_is_said_in_words(node: dict[str, Any], text: str) -> None:
    assert type_text(node) == text


def test_a_default_is_written_as_in_a_recipe() -> None:
    assert (
        value_text({"a": True, "b": [1, 0.5], "c": "x", "d": None}) == '{ a = true, b = [1, 0.5], c = "x", d = none }'
    )


def test_the_version_of_a_key_is_the_release_that_added_it() -> None:
    keys = ("data.limits.max_ratio", "training.ema", "seed", "data.shuffle")
    assert [since(key, CHANGELOG) for key in keys] == ["0.2.0", "0.1.0", "0.1.0", "unreleased"]


def test_a_key_names_the_tasks_that_do_not_refuse_it() -> None:
    assert tasks_of("model.pooling") == ("classification",)
    assert tasks_of("decoding.beam") == ("translation",)
    assert "word_vectors" not in tasks_of("model.norm")
    assert len(tasks_of("training.ema")) == 7
    assert any("`tokenizer.kind`" in each for each in idle_reasons("tokenizer.clusters"))


def test_a_key_has_its_names_in_other_toolkits_beside_it() -> None:
    pages = "\n".join(recipe_pages(CHANGELOG).values())
    assert pages.count("- In other toolkits: ") == len(OTHER_NAMES)
    (beam,) = re.findall(r"### `decoding\.beam` .*?(?=\n### )", pages, re.DOTALL)
    assert "- In other toolkits: `beam_size`, `num_beams`" in beam


@pytest.mark.parametrize("table", [table for table in TASKS_BY_TABLE if table.startswith("model.")])
def test_a_table_of_some_tasks_is_refused_by_the_others(table: str) -> None:
    name = table.removeprefix("model.")
    value = {"span_corruption": {"share": 0.4}, "word_vectors": {"window": 2}}.get(name, {})
    if value:  # left aside where a parent recipe has it, and so refused by rules of recipes
        reasons = [rule.reason for rule in MODEL_RULES if table in rule.keys]
        assert len(reasons) == 1
        assert "it is for" in reasons[0]
        return
    others = [(one, task) for one, tasks in SUPPORTED_TASKS.items() for task in tasks]
    others = [(one, task) for one, task in others if task not in TASKS_BY_TABLE[table]]
    assert len(others) > 3
    for architecture, task in others:
        width = {"embedding_dim": 8} if task == "word_vectors" else {}
        with pytest.raises(ValueError, match=name):
            ModelConfig.model_validate({"architecture": architecture, "task": task, name: value, **width})


def test_every_command_has_its_page_with_every_option() -> None:
    pages = command_pages()
    inner = {f"{name}-{one}" for name, group in COMMANDS.items() for one in getattr(group, "commands", {})}
    names = inner | {name for name, command in COMMANDS.items() if not hasattr(command, "commands")}
    assert pages.keys() == {f"reference/commands/{name}.md" for name in (*names, "index")}
    for parameter in COMMANDS["translate"].params:
        assert all(
            f"`{option}" in pages["reference/commands/translate.md"] for option in parameter.opts if option[0] == "-"
        )


def test_every_generated_page_has_its_place_in_the_menu(pages: dict[str, str]) -> None:
    nav = yaml.safe_load((ROOT / "docs" / "site" / "mkdocs.yml").read_text("utf-8"))["nav"]
    generated = {*pages, *command_pages(), "reference/python.md", "reference/README.md"}
    assert {page for page in named_pages(nav) if page.startswith("reference/")} == generated
