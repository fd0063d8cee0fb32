"""Signatures of figures: which of their parts must agree where figures are compared, or a mean is taken of them."""

from collections.abc import Sequence

LANGUAGE_MODEL_METRICS = ("bits_per_character", "word_perplexity")
"""Figures by units of the text itself, so that models with other pieces compare: the first `unit` and `count` of their
signature are the text's, the rest of these, and the vocabulary, are the pieces'."""
HYPOTHESIS_SIGNATURE_PARTS = {"accuracy": "count", "macro_f1": "labels"}
"""Parts of signatures that depend on the output; figures that differ in them compare: labels that one system alone
gives, or gives too many of."""


def comparable_parts(figure: str, signature: str) -> tuple[str, ...]:
    """The parts of a figure's signature that must agree where it is compared."""
    excluded_key = HYPOTHESIS_SIGNATURE_PARTS.get(figure)
    parts = tuple(part for part in signature.split("|") if part.partition(":")[0] != excluded_key)
    if figure not in LANGUAGE_MODEL_METRICS:
        return parts
    by_key: dict[str, str] = {}
    for part in parts:
        by_key.setdefault(part.partition(":")[0], part)
    by_key.pop("vocab", None)
    return tuple(by_key.values())


def describe_signature_difference(first_parts: Sequence[str], second_parts: Sequence[str]) -> str:
    """Return the parts in which two signatures differ, in words."""
    return f"{_list_differences(first_parts, second_parts)} instead of {_list_differences(second_parts, first_parts)}"


def _list_differences(parts: Sequence[str], other_parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part not in other_parts) or "nothing"
