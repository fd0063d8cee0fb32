"""Lines that are nearly JSON, as programs write objects: each kind with what makes JSON Lines of it."""

import json
import re
from collections.abc import Mapping

RECORD_SEPARATOR = "\x1e"
"""Before each object of a sequence of JSON texts (RFC 7464)."""
SINGLE_QUOTES_REMEDY = (
    "names are not in double quotation marks, as Python and JavaScript write objects: write them by json.dumps or "
    "JSON.stringify"
)
REMEDIES_BY_LINE: Mapping[re.Pattern[str], str] = {
    re.compile(r".*\}\s*,\s*", re.DOTALL): "a comma ends the line: cut those, as by sed 's/,[[:space:]]*$//' FILE",
    re.compile(rf"{RECORD_SEPARATOR}.*"): "a record separator begins the line: cut those, as by tr -d '\\036' < FILE",
    re.compile("\ufeff.*"): (
        "a byte order mark begins the line, as in joined files: cut those, as by sed 's/^\\xef\\xbb\\xbf//' FILE"
    ),
    re.compile(r"\s*[\[{]\s*u?'.*|\s*\{\s*\w+\s*:.*"): SINGLE_QUOTES_REMEDY,
    re.compile(r"\s*(//|/\*|#).*"): "JSON has no comments: remove them",
    re.compile(
        r"\s*((var|let|const)\s+)?[\w.]+\s*=\s*[\[{].*"
    ): "it is a program of JavaScript: keep what is behind the = and before the ;",
    re.compile(r".*,\s*[}\]]\s*"): "a comma stands before a closing bracket: remove it",
}
"""Remedies by a pattern of all of a line."""


def syntax_remedy(line: str, error: Exception, *, is_first: bool) -> str:
    """The remedy for a line that is no JSON, to be added to the error; empty if nothing is known of it.

    Args:
        line: the line.
        error: that of the decoder.
        is_first: whether it is the first of its file.
    """
    for pattern, remedy in REMEDIES_BY_LINE.items():
        if pattern.fullmatch(line):
            return f"; {remedy}"
    if not isinstance(error, json.JSONDecodeError):
        return ""
    if error.msg == "Extra data" and line[error.pos : error.pos + 1] in ("{", "["):
        return "; if a line has several objects, put each on one, as by jq -c . FILE"
    if is_first and error.pos >= len(line.rstrip()):
        return "; if objects go over several lines, put each on one, as by jq -c . FILE"
    return ""
