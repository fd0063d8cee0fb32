"""Markdown of code hosts as mkdocs reads it; they differ in a few places."""

import re

from latex2mathml.converter import convert

from docs.site.prose import parts

CODE = re.compile(r"(`[^`\n]+`)")
MATH = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


def as_in_mkdocs(text: str) -> str:
    """The text of a page, changed where mkdocs would read it otherwise than code hosts do."""
    return "".join(_prose(part) if is_prose else part for part, is_prose in parts(text))


def _prose(text: str) -> str:
    text = text.replace("<details>", '<details markdown="1">')
    text = text.replace("] [", r"] \[")  # two brackets in a formula are no link by reference
    text = MATH.sub(lambda formula: convert(" ".join(formula[1].split()), display="block"), text)
    return re.sub(r"^\|.*$", lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), text, flags=re.M)
