"""The chance that people agree with a difference of a metric, the name of an external one understood."""

from tfm.pipeline.scoring.metrics.external import CUT
from tfm.pipeline.significance.agreement_with_people import Agreement, agreement_with_people

COMET22 = "wmt22-comet-da"


def people_agree(metric: str, signature: str, difference: float) -> Agreement | None:
    """`agreement_with_people` of a metric of the test set; None where there is no difference to agree with.

    COMET is known by its model, in its name or its command: docs/external/comet_scores.py takes that
    model where it is given no other. It prints 0..1, as COMET does.
    """
    if not difference:
        return None
    command = next((part for part in signature.split("|") if part.startswith("command:")), "")
    if not command:
        return agreement_with_people(metric, difference)
    usual = "comet_scores.py" in command and "--model" not in command and not command.endswith(CUT)
    if usual or COMET22 in f"{metric} {command}":
        return agreement_with_people("comet22", 100 * difference)
    return None
