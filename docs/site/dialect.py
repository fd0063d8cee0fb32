"""Markdown of code hosts as mkdocs reads it; they differ in a few places."""

import re
from collections.abc import Iterator

from latex2mathml.converter import convert

BLOCK = re.compile(r"^(`{3,})[^\0]*?^\1$|^ {4}.*$", re.MULTILINE)
CODE = re.compile(r"(`[^`\n]+`)")
MATH = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


def as_in_mkdocs(text: str) -> str:
    """The text of a page, changed where mkdocs would read it otherwise than code hosts do."""
    return "".join(_prose(part) if is_prose else part for part, is_prose in parts(text))


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a page, each with whether it is prose (not a block of code)."""
    end = 0
    for block in BLOCK.finditer(text):
        yield text[end : block.start()], True
        yield block[0], False
        end = block.end()
    yield text[end:], True


def _prose(text: str) -> str:
    text = text.replace("<details>", '<details markdown="1">')
    text = text.replace("] [", r"] \[")  # two brackets in a formula are no link by reference
    text = MATH.sub(lambda formula: convert(" ".join(formula[1].split()), display="block"), text)
    return re.sub(r"^\|.*$", lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), text, flags=re.M)
