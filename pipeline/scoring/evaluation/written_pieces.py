"""Lines that hold something else than text: pieces and Moses' escapes, as a system keeps them inside, or characters
that nobody sees.
"""

import re
from collections.abc import Mapping, Sequence

from tfm.pipeline.scoring.evaluation.identifiers import identifier_warning

MIN_LINES = 3
MIN_SHARE = 0.05
REMEDIES_BY_FORM: Mapping[re.Pattern[str], str] = {
    re.compile(r"\S@@(?: |$)"): "hold pieces of subword-nmt (@@): join them, as by sed -r 's/(@@ )|(@@ ?$)//g'",
    re.compile("(?:^| )\u2581"): "hold pieces of SentencePiece (\u2581): join them, as by spm_decode",
    re.compile(r"&(?:apos|quot|amp|lt|gt|#(?:124|91|93));"): "hold Moses' escapes (&apos;): detokenize them",
}
"""By what is found in lines, what to do."""
UNSEEN_CHARACTERS: Mapping[re.Pattern[str], str] = {
    re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]"): (
        r"control characters ({}), scored with the text: remove them by perl -CSD -pe 's/(?![\t\n])\p{{Cc}}//g' FILE"
    ),
    re.compile(
        "\ufeff"
    ): r"byte order marks ({}), scored with the text: remove them, as by sed 's/\xef\xbb\xbf//g' FILE",
    re.compile(
        "\ufffd"
    ): "replacement characters ({}), as where text was decoded by a wrong encoding: decode it anew by its own",
}
"""By what is found in lines, what that is and what to do."""


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
    warnings = []
    for pattern, problem in UNSEEN_CHARACTERS.items():
        found = [(number, match[0]) for number, line in enumerate(lines, 1) if (match := pattern.search(line))]
        if found and not any(map(pattern.search, others)):
            place = f"U+{ord(found[0][1]):04X}, the first in line {found[0][0]:,}"
            warnings.append(f"{len(found):,} of {len(lines):,} {name} have {problem.format(place)}")
    return warnings


def hypothesis_form_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that the lines of hypotheses hold something else than texts: names of utterances, pieces, escapes,
    characters that nobody sees.
    """
    warnings = (identifier_warning(hypotheses, references), written_pieces_warning(hypotheses, references))
    unseen = unseen_character_warnings(hypotheses, "hypotheses", references)
    return [*(warning for warning in warnings if warning is not None), *unseen]
