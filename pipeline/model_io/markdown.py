"""Text of unknown origin inside the Markdown and the YAML of a model card: it stays text, on one line."""

import json
import re

from tfm.data.errors import escape_unprintable

MAX_TEXT_LENGTH = 200
_MARKUP_PATTERN = re.compile(r"([\\`*_{}\[\]()#+!|~$^=])")
_LINK_PATTERN = re.compile(r"(?i)(https?|ftp|mailto|www)(?=[:.])")


def escape_markdown(text: str) -> str:
    """The text as a paragraph or a cell of a table shows it: no markup, HTML, link or line break."""
    plain = _to_single_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP_PATTERN.sub(
        r"\\\1", _LINK_PATTERN.sub(lambda link: f"{link[0][0]}&#{ord(link[0][1])};{link[0][2:]}", plain)
    )


def code_span(text: str) -> str:
    """The text as code inside a line or a cell of a table."""
    plain = _to_single_line(text).replace("`", "'").replace("|", r"\|")
    return f"`{plain or ' '}`"


def to_yaml_value(value: object) -> str:
    """A value as YAML, on one line: JSON, whose strings hold nothing that YAML reads otherwise."""
    return json.dumps(_replace_unprintable(value), ensure_ascii=False, allow_nan=False)


def _replace_unprintable(value: object) -> object:
    if isinstance(value, str):
        return escape_unprintable(value)
    if isinstance(value, dict):
        return {escape_unprintable(str(key)): _replace_unprintable(each) for key, each in value.items()}
    return [_replace_unprintable(each) for each in value] if isinstance(value, (list, tuple)) else value


def _to_single_line(text: str) -> str:
    plain = escape_unprintable(" ".join(text.split()))
    return plain if len(plain) <= MAX_TEXT_LENGTH else f"{plain[:MAX_TEXT_LENGTH]}..."
