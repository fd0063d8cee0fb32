"""Pages of the reference: every key of a recipe, generated from its schema."""

import re
from collections.abc import Iterator
from itertools import groupby

from docs.site.key_use import idle_reasons, since, tasks_of
from docs.site.recipe_keys import ITEMS, RecipeKey, RecipeTable, recipe_tables
from tfm.pipeline.recipes.messages.other_names import OTHER_NAMES
from tfm.pipeline.tasks.abilities import TASK_SPECS

FOLDER = "reference/recipe"
SECTIONS = {
    "clean": "Rules that training pairs pass before a tokenizer is learned.",
    "tokenizer": "Text to pieces.",
    "data": "Corpora, splits, limits and batches.",
    "model": "Networks.",
    "training": "Updates, validation and what is kept.",
    "decoding": "The search for hypotheses.",
    "evaluation": "Scores.",
}
MAX_DEFAULT_CHARACTERS = 200


def recipe_pages(changelog: str) -> dict[str, str]:
    """The pages by path in the site: one a part of a recipe, and one that lists them."""
    tables = {section: list(some) for section, some in groupby(recipe_tables(), lambda table: table.section)}
    pages = {f"{FOLDER}/index.md": _index_page(tables, changelog)}
    for section, some in tables.items():
        if section:
            pages[f"{FOLDER}/{section}.md"] = _section_page(section, some, changelog)
    return pages


def _index_page(tables: dict[str, list[RecipeTable]], changelog: str) -> str:
    lines = [
        "# Keys of a recipe\n",
        "A recipe is a TOML file. Every key has a default, but for those that are said to be required. A key that has",
        "no effect with the other values of a recipe is refused, with the reason. `tfm recipe FILE` prints a recipe",
        "with every default filled in, `tfm recipe --schema` the JSON schema that these pages are generated from.\n",
        "With a task that is not among the *tasks* of a key, the key is refused. Other values may exclude it too; the",
        'error then names them. `none` in a recipe is the text `"none"`.\n',
        "| part | | keys |",
        "|---|---|---|",
    ]
    for section, meaning in SECTIONS.items():
        count = sum(len(table.keys) for table in tables[section])
        lines.append(f"| [\\[{section}\\]]({section}.md) | {meaning} | {count} |")
    lines.append("\n## Above all parts\n")
    top = (key for table in tables[""] for key in table.keys if key.name not in SECTIONS)
    return "\n".join([*lines, *(line for key in top for line in _key_lines(key, changelog))])


def _section_page(section: str, tables: list[RecipeTable], changelog: str) -> str:
    lines = [f"# [{section}]\n"]
    for table in tables:
        name = table.name.removesuffix(ITEMS)
        if name != section:
            lines.append(f"## {f'[[{name}]]' if table.name.endswith(ITEMS) else f'[{name}]'} {{ #{name}-table }}\n")
        lines.append(f"{_as_prose(table.meaning)}\n")
        if table.also_at:
            lines.append(f"Tables of {' and '.join(f'`{each}`' for each in table.also_at)} have the same keys.\n")
        for key in table.keys:
            lines += _key_lines(key, changelog)
    return "\n".join(lines)


def _key_lines(key: RecipeKey, changelog: str) -> Iterator[str]:
    """A heading that a link can lead to, what the key may be, and what it is for."""
    plain = key.name.replace(ITEMS, "")
    yield f"### `{plain}` {{ #{plain} }}\n"
    tasks = tasks_of(plain)
    facts = [
        ("Type", key.type),
        ("Default", _default_text(key)),
        ("Tasks", "all" if len(tasks) == len(TASK_SPECS) else ", ".join(f"`{task}`" for task in tasks)),
        ("Since", since(plain, changelog)),
    ]
    if plain in OTHER_NAMES:
        facts.append(("In other toolkits", ", ".join(f"`{name}`" for name in OTHER_NAMES[plain].split())))
    if key.meaning:
        yield f"{_as_prose(key.meaning)}\n"
    facts += [("No effect with some values of", _as_prose(each)) for each in idle_reasons(plain)]
    yield "".join(f"- {name}{'' if name.endswith('of') else ':'} {text}\n" for name, text in facts)


def _default_text(key: RecipeKey) -> str:
    if key.default is None:
        return "in the text above" if "default:" in key.meaning else "none: it is required"
    if key.type == "a table":
        return "none" if key.default == "none" else f"its own defaults, [below](#{key.name}-table)"
    return f"`{key.default}`"


def _as_prose(text: str) -> str:
    """A description as Markdown: what could be mistaken for markup is escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    escaped = [part if part.startswith("`") else re.sub(r"([\\*_<\[\]])", r"\\\1", part) for part in parts]
    prose = "".join(escaped)
    return prose[:1].upper() + prose[1:]
