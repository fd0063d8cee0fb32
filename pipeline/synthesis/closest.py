"""The closest of several translations to a reference: sequence-level interpolation (Kim and Rush 2016, section 3.3).

y = argmax over the n best t of u(t, r): likely by the teacher, and near to the reference r by the utility u.
"""

from collections.abc import Sequence

from tfm.pipeline.config import MbrUtility
from tfm.pipeline.inference.minimum_bayes_risk.utilities import UTILITIES


def closest_index(translations: Sequence[str], references: Sequence[str], utility: MbrUtility) -> int:
    """Return the place of the translation with the highest utility by the nearest of its references.

    The first of those that are equally close, as it is the most probable.

    Args:
        translations: the best first.
        references: of the same line; at least one.
        utility: its name in `UTILITIES`.
    """
    score = UTILITIES[utility]([*translations, *references])
    reference_indices = range(len(translations), len(translations) + len(references))
    return max(range(len(translations)), key=lambda index: float(score(index, reference_indices).max()))
