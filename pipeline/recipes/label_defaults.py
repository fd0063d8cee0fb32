"""Defaults for tasks that label: their targets are names, with their own vocabulary."""

from typing import Any

from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training_config import ALWAYS_MEASURED_FIGURES, TrainingConfig
from tfm.tokenizer.config import TokenizerConfig

LEGACY_TOKENIZER_KIND = "word"
"""The value that older recipes set for both sides."""


def set_label_tokenizer(raw: dict[str, Any]) -> None:
    """Say in a recipe, as it was read, which vocabulary of names its targets have, if its task labels."""
    model = raw.get("model")
    task = model.get("task") if isinstance(model, dict) else None
    abilities = TASK_SPECS.get(task) if isinstance(task, str) else None
    if abilities is None or abilities.labels is None:
        return
    tokenizer = raw.setdefault("tokenizer", {})
    if not isinstance(tokenizer, dict):
        return
    tokenizer.setdefault("shared", False)
    if tokenizer["shared"] is False and tokenizer.get("target_kind", "none") in ("none", LEGACY_TOKENIZER_KIND):
        tokenizer["target_kind"] = abilities.labels


def check_label_tokenizer(task: str, tokenizer: TokenizerConfig) -> None:
    """Raise ValueError if a recipe gives labels another tokenizer than one of names."""
    names = TASK_SPECS[task].labels
    if names is None or tokenizer.target_kind == names:
        return
    explanation = f'model.task = "{task}": labels are names, in a vocabulary of their own'
    if tokenizer.shared:
        raise ValueError(f"{explanation}: remove tokenizer.shared, or set it to false")
    raise ValueError(
        f'{explanation}, never split or normalised: remove tokenizer.target_kind, which is then "{names}", not '
        f'"{tokenizer.target_kind}"'
    )


LABEL_VALIDATION_METRICS = ("macro_f1", "entity_f1", "exact_match")
"""Scores of labels that validation can compute."""


def no_score_reason(task: str, training: TrainingConfig) -> str | None:
    """Why validation of a task has not the scores that the recipe asks for; None if it has."""
    abilities = TASK_SPECS[task]
    if abilities.translates:
        return None
    requests: dict[str, str] = {f"validation.metrics: {name}": name for name in training.validation.metrics or ()}
    if (metric := training.early_stopping.metric) not in ALWAYS_MEASURED_FIGURES:
        requests[f'early_stopping.metric = "{metric}"'] = metric
    for request, name in requests.items():
        if abilities.labels is None or name == "bleu":
            return f'{request}: there are no translations with model.task = "{task}"'
        if name not in LABEL_VALIDATION_METRICS:
            names = " or ".join(LABEL_VALIDATION_METRICS)
            return f'{request} is of texts, and model.task = "{task}" gives labels: {names} is of labels'
    return None
