"""The chance that people agree with a difference of a metric, the name of an external one understood."""

from collections.abc import Mapping, Sequence

from tfm.pipeline.scoring.metrics.external.scores import ELLIPSIS
from tfm.pipeline.significance.human_agreement_table import Agreement, agreement_with_people

COMET22_NAME = "wmt22-comet-da"
AGREEMENT_TABLE_SIGNATURES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "bleu": {
        "nrefs": ("1",),
        "case": ("mixed",),
        "eff": ("no",),
        "tok": ("13a", "zh", "ja-mecab", "ko-mecab"),
        "smooth": ("exp",),
    },
    "chrf": {"nrefs": ("1",), "case": ("mixed",), "eff": ("yes",), "nc": ("6",), "nw": ("0",), "space": ("no",)},
}
"""The table's own definitions, by the key of a part of the signature.

The definitions are sacrebleu's settings, with its choice of tokenizers for the languages of the table, beside one
reference.
"""
TEXT_SIGNATURE_PARTS = ("version", "source", "reference", "texts")
"""Parts of a signature that name the texts, or the program, but not the definition."""
NOISE_SIGNATURE_PARTS = ("noise", "noise-seed")
"""Parts of a signature that name texts with typing errors, of which the table knows nothing."""


def look_up_human_agreement(metric: str, signature: str, difference: float) -> Agreement | None:
    """Look up `agreement_with_people` of a metric of the test set.

    COMET is known by its model, in its name or its command: docs/external/comet_scores.py takes that model by default,
    and prints 0..1, as COMET does.

    Args:
        metric: the name of the metric.
        signature: of the score.
        difference: between the scores of two systems.

    Returns:
        The agreement; None without a difference, or where the table was made for another definition of the metric.
    """
    if not difference:
        return None
    command = next((part for part in signature.split("|") if part.startswith("command:")), "")
    if not command:
        return agreement_with_people(metric, difference) if _has_agreement_table_settings(metric, signature) else None
    if any(part.partition(":")[0] in NOISE_SIGNATURE_PARTS for part in signature.split("|")):
        return None
    is_default_comet = "comet_scores.py" in command and "--model" not in command and not command.endswith(ELLIPSIS)
    if is_default_comet or COMET22_NAME in f"{metric} {command}":
        return agreement_with_people("comet22", 100 * difference)
    return None


def _has_agreement_table_settings(metric: str, signature: str) -> bool:
    """Whether a metric was computed as for the table: by sacrebleu's settings, of the text as it is."""
    required_parts = AGREEMENT_TABLE_SIGNATURES.get(metric)
    parts = [part.partition(":") for part in signature.split("|") if part.partition(":")[0] not in TEXT_SIGNATURE_PARTS]
    if required_parts is None:
        return False
    mecab = ("ja-mecab-", "ko-mecab-")  # before their versions
    return all(
        value in required_parts.get(key, ()) or (key == "tok" and value.startswith(mecab)) for key, _, value in parts
    )
