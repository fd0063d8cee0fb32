"""Check that a recipe's rules have texts to look at, and both sides where they compare them."""

from tfm.data.config import DataConfig
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS

MODEL_RULES = ("mutual_information", "cross_entropy")
"""Rules by a forward and a backward translation model."""
TWO_SIDED_RULES = ("ratio", "copies", "numbers", "markup", "punctuation", *MODEL_RULES)
"""Rules that compare the two sides, and say nothing of texts without a source."""


def check_clean(clean: CleanConfig | None, data: DataConfig, task: str) -> None:
    """Raise ValueError for [clean] of what is no text, and for a rule that has no effect on texts without a source.

    Args:
        clean: the [clean] part of a recipe, if it has one.
        data: the [data] part.
        task: of the model.
    """
    if clean is None:
        return
    if data.images is not None:
        raise ValueError("[clean] is for texts, and the corpora are images: remove it")
    if TASK_SPECS[task].labels is not None:
        raise ValueError(f'[clean] is for texts, and the targets of model.task = "{task}" are names: remove it')
    if data.path is not None:
        has_source = data.source is not None and data.source != data.target
    else:
        has_source = any(each.has_source and not each.is_one_text for each in data.train)
    if not has_source:
        for name in TWO_SIDED_RULES:
            if name in clean.model_fields_set and getattr(clean, name) is not None:
                raise ValueError(f"clean.{name} compares source and target, and these texts have no source: remove it")
        for name in ("script", "language"):
            rule = getattr(clean, name)
            if rule is not None and rule.source is not None:
                raise ValueError(f"clean.{name}.source: these texts have no source, they are targets: remove it")
        if clean.duplicates is not None and clean.duplicates.sides == "source":
            raise ValueError('clean.duplicates.sides = "source": these texts have no source, they are targets')
        if clean.overlap is not None and clean.overlap.sides == "both":
            raise ValueError('clean.overlap.sides = "both": these texts have no source')
    if len({corpus.languages for corpus in data.train}) > 1:
        for name in ("script", "language", *MODEL_RULES):
            if getattr(clean, name) is not None:
                raise ValueError(f"clean.{name}: the training corpora have several languages, and it knows one pair")
