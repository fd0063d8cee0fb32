"""Of a task that labels, what a recipe need not say: its targets are names, with a vocabulary of their own."""

from typing import Any

from tfm.tokenizer.config import LabelKind, TokenizerConfig

NAMES: dict[str, LabelKind] = {"classification": "label", "tagging": "tags"}
FORMERLY = "word"
"""What recipes said for both."""


def add_names(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, which vocabulary of names its targets have, if its task labels."""
    model = raw.get("model")
    task = model.get("task") if isinstance(model, dict) else None
    if not isinstance(task, str) or task not in NAMES:
        return
    tokenizer = raw.setdefault("tokenizer", {})
    if not isinstance(tokenizer, dict):
        return
    tokenizer.setdefault("shared", False)
    if tokenizer["shared"] is False and tokenizer.get("target_kind", "none") in ("none", FORMERLY):
        tokenizer["target_kind"] = NAMES[task]


def check_names(task: str, tokenizer: TokenizerConfig) -> None:
    """Raise ValueError where a recipe says that names are something else."""
    if task not in NAMES or tokenizer.target_kind == NAMES[task]:
        return
    why = f'model.task = "{task}": labels are names, in a vocabulary of their own'
    if tokenizer.shared:
        raise ValueError(f"{why}: leave tokenizer.shared out, or set it to false")
    raise ValueError(
        f'{why}, never cut or normalised: leave tokenizer.target_kind out, which is then "{NAMES[task]}", not '
        f'"{tokenizer.target_kind}"'
    )
