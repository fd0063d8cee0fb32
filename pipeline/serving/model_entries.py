"""Options of the command line that are of single models: NAME=SOURCE:TARGET, NAME=FOLDER."""

from collections.abc import Sequence
from pathlib import Path

from tfm.pipeline.errors import RecipeError


def _split_entry(text: str, names: Sequence[str]) -> tuple[str, str]:
    """The name and the value of NAME=VALUE; a name may have a = itself, as in lr=0.1."""
    first, _, _ = text.partition("=")
    name = max((each for each in names if text.startswith(f"{each}=")), key=len, default=first)
    return name, text[len(name) + 1 :]


def parse_direction_entries(texts: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return source and target by model of NAME=SOURCE:TARGET; names: of all models. Raises RecipeError for others."""
    directions: dict[str, tuple[str, str]] = {}
    for text in texts:
        name, pair = _split_entry(text, names)
        source, _, target = pair.partition(":")
        if not (name and source and target):
            raise RecipeError(f"--languages {text}: write NAME=SOURCE:TARGET, as in de=en:de")
        if name in directions:
            raise RecipeError(
                f"--languages {text}: {name} has {':'.join(directions[name])} already: remove one of the two"
            )
        directions[name] = source, target
    return directions


def parse_shortlist_entries(texts: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Return folders by model of NAME=FOLDER; names: of all models. Raises RecipeError for others."""
    shortlists: dict[str, Path] = {}
    for text in texts:
        name, folder = _split_entry(text, names)
        if not (name and folder):
            raise RecipeError(f"--shortlist {text}: write NAME=DIR, as in de=runs/de/shortlist")
        if name in shortlists:
            raise RecipeError(f"--shortlist {text}: {name} has {shortlists[name]} already: remove one of the two")
        shortlists[name] = Path(folder)
    return shortlists
