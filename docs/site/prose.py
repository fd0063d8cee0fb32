"""Prose and code of a page of Markdown."""

import re
from collections.abc import Iterator

BLOCK = re.compile(r"^(`{3,})[^\0]*?^\1$|^ {4}.*$", re.MULTILINE)


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a page, each with whether it is prose (not a block of code)."""
    end = 0
    for block in BLOCK.finditer(text):
        yield text[end : block.start()], True
        yield block[0], False
        end = block.end()
    yield text[end:], True
