"""Lines that hold something else than text: pieces and Moses' escapes, as a system keeps them inside, or characters
that nobody sees.
"""

import re
from collections.abc import Mapping, Sequence

from tfm.data.corpora.unseen_characters import UNSEEN_CHARACTERS, UnseenCharacterCounts
from tfm.pipeline.scoring.evaluation.identifiers import identifier_warning

MIN_LINES = 3
MIN_SHARE = 0.05
REMEDIES_BY_FORM: Mapping[re.Pattern[str], str] = {
    re.compile(r"\S@@(?: |$)"): "hold pieces of subword-nmt (@@): join them, as by sed -r 's/(@@ )|(@@ ?$)//g'",
    re.compile("(?:^| )\u2581"): "hold pieces of SentencePiece (\u2581): join them, as by spm_decode",
    re.compile(r"&(?:apos|quot|amp|lt|gt|#(?:124|91|93));"): "hold Moses' escapes (&apos;): detokenize them",
}
"""By what is found in lines, what to do."""


def written_pieces_warning(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    """A warning that a part of the hypotheses is no text; None if they are, or the references are of the same form."""
    for form, remedy in REMEDIES_BY_FORM.items():
        count, reference_count = (
            sum(form.search(line) is not None for line in lines) for lines in (hypotheses, references)
        )
        if count >= max(MIN_LINES, MIN_SHARE * len(hypotheses)) and 2 * reference_count < count:
            return f"{count:,} of {len(hypotheses):,} hypotheses {remedy}; the references do not"
    return None


def unseen_character_warnings(lines: Sequence[str], name: str, others: Sequence[str] = ()) -> list[str]:
    """Warnings of control characters, byte order marks and replacement characters, of each that no other line has.

    Args:
        lines: of one side.
        name: what these are, such as "hypotheses".
        others: lines of the other side.
    """
    counts = UnseenCharacterCounts()
    for _ in counts.count_rows(zip(lines, strict=True)):
        pass
    return [
        count.describe(f"{len(lines):,} {name}", "line", "scored with the text")
        for count in counts.counts
        if count.texts and not any(map(UNSEEN_CHARACTERS[count.kind].search, others))
    ]


def hypothesis_form_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that the lines of hypotheses hold something else than texts: names of utterances, pieces, escapes,
    characters that nobody sees.
    """
    warnings = (identifier_warning(hypotheses, references), written_pieces_warning(hypotheses, references))
    unseen = unseen_character_warnings(hypotheses, "hypotheses", references)
    return [*(warning for warning in warnings if warning is not None), *unseen]
