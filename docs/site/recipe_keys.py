"""The tables and keys of a recipe, read from its JSON schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from docs.site.key_types import item_name, table_name, type_text, value_text
from tfm.pipeline.recipes.recipe import Recipe

ITEMS = "[]"
"""The ending of the key of a list, where its tables are meant."""


@dataclass(frozen=True)
class RecipeKey:
    """A key of a recipe. default: as a recipe has it; none where it must be given."""

    name: str
    type: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class RecipeTable:
    """A table of a recipe with its keys. name: empty for the keys above all tables. items: of the list that its tables
    are in, by the other keys that have such tables too."""

    name: str
    meaning: str
    keys: tuple[RecipeKey, ...]
    also_at: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The part of a recipe that the table is in."""
        return self.name.partition(".")[0].removesuffix(ITEMS)


def recipe_tables() -> list[RecipeTable]:
    """All tables of a recipe, in the order of its schema; tables of a list once."""
    schema = Recipe.model_json_schema()
    return list(_tables("", "", schema, schema["$defs"], {}))


def _tables(
    name: str, meaning: str, node: Mapping[str, Any], definitions: Mapping[str, Any], lists: dict[str, list[str]]
) -> Iterator[RecipeTable]:
    """A table, and those in it. lists: by definition, the keys of lists of such tables; filled here."""
    keys, below = [], []
    for key, field in node["properties"].items():
        full = f"{name}.{key}".lstrip(".")
        keys.append(_key(full, field, key in node.get("required", ())))
        table, item = table_name(field), item_name(field)
        if table is not None:
            below.append((full, field.get("description", ""), definitions[table], lists))
        elif item is not None:
            first = item not in lists
            lists.setdefault(item, []).append(full)
            if first:
                below.append((f"{full}{ITEMS}", "", definitions[item], lists))
    text = "\n\n".join(each for each in (node.get("description", "") if name else "", meaning) if each)
    places = next((places for places in lists.values() if f"{places[0]}{ITEMS}" == name), [])
    inside = [each for one in below for each in _tables(one[0], one[1], one[2], definitions, one[3])]
    yield RecipeTable(name, text, tuple(keys), tuple(places[1:]))
    yield from inside


def _key(name: str, field: Mapping[str, Any], required: bool) -> RecipeKey:
    default = None if required else value_text(field.get("default", {} if field.get("type") == "object" else None))
    return RecipeKey(name, type_text(field), default, field.get("description", ""))
