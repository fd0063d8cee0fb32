"""Defaults for tasks that label: their targets are names, with their own vocabulary."""

from typing import Any

from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.tokenizer.config import TokenizerConfig

LEGACY_KIND = "word"
"""What recipes said for both."""


def add_names(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, which vocabulary of names its targets have, if its task labels."""
    model = raw.get("model")
    task = model.get("task") if isinstance(model, dict) else None
    abilities = ABILITIES.get(task) if isinstance(task, str) else None
    if abilities is None or abilities.labels is None:
        return
    tokenizer = raw.setdefault("tokenizer", {})
    if not isinstance(tokenizer, dict):
        return
    tokenizer.setdefault("shared", False)
    if tokenizer["shared"] is False and tokenizer.get("target_kind", "none") in ("none", LEGACY_KIND):
        tokenizer["target_kind"] = abilities.labels


def check_names(task: str, tokenizer: TokenizerConfig) -> None:
    """Raise ValueError where a recipe says that names are something else."""
    names = ABILITIES[task].labels
    if names is None or tokenizer.target_kind == names:
        return
    why = f'model.task = "{task}": labels are names, in a vocabulary of their own'
    if tokenizer.shared:
        raise ValueError(f"{why}: omit tokenizer.shared, or set it to false")
    raise ValueError(
        f'{why}, never split or normalised: omit tokenizer.target_kind, which is then "{names}", not '
        f'"{tokenizer.target_kind}"'
    )
