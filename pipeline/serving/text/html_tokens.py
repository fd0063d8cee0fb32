"""HTML as tokens that joined are the document, byte for byte: what is not translated is handed on as it came."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate, groupby, pairwise
from typing import Literal

import regex

TokenKind = Literal["start", "end", "text", "other"]

_UNCLOSED_MARKUP = regex.compile(r"<[!?/A-Za-z]")
"""The beginning of a tag or comment; one that is in a text has no end."""


@dataclass(frozen=True)
class HtmlToken:
    """A tag, a stretch of text, or anything else (comment, declaration).

    raw: as it stands in the document. name: of a tag, in lower case. attributes: of a start tag.
    """

    kind: TokenKind
    raw: str
    name: str = ""
    attributes: tuple[tuple[str, str | None], ...] = ()

    @property
    def text(self) -> str:
        """The characters that a text stands for."""
        return unescape(self.raw)


class _TokenCollector(HTMLParser):
    """The places where the parts of a document begin: (line, column), kind, name, attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.tokens: list[tuple[tuple[int, int], HtmlToken]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add_token(HtmlToken("start", "", tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._add_token(HtmlToken("end", "", tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        self._add_token(HtmlToken("text", ""))

    def handle_comment(self, data: str) -> None:
        self._add_token(HtmlToken("other", ""))

    def handle_decl(self, decl: str) -> None:
        self._add_token(HtmlToken("other", ""))

    def handle_pi(self, data: str) -> None:
        self._add_token(HtmlToken("other", ""))

    def unknown_decl(self, data: str) -> None:
        self._add_token(HtmlToken("other", ""))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Take `<![` for a comment, as browsers do; the library raises an error."""
        return self.parse_bogus_comment(i)

    def _add_token(self, token: HtmlToken) -> None:
        self.tokens.append((self.getpos(), token))


def tokenize_html(html: str) -> list[HtmlToken]:
    """Return the tokens of a document or fragment, however broken; their `raw` joined is the document."""
    return list(_merge_texts(_iterate_tokens(html)))


def _iterate_tokens(html: str) -> Iterator[HtmlToken]:
    """The tokens, texts in pieces."""
    parser = _TokenCollector()
    parser.feed(html.replace("&", "+"))  # references are read later, and a lone `&` would stop the parser here
    # Not closed: the parser would read each unfinished tag again, which takes minutes for 50,000 of them.
    end = len(html) - len(parser.rawdata)
    lines = [0, *accumulate(len(line) + 1 for line in html.split("\n"))]
    begins = [lines[line - 1] + column for (line, column), _ in parser.tokens]
    yield HtmlToken("other", html[: [*begins, end][0]])
    for (begin, end_of_token), (_, token) in zip(pairwise([*begins, end]), parser.tokens, strict=True):
        yield HtmlToken(token.kind, html[begin:end_of_token], token.name, token.attributes)
    yield HtmlToken("text", html[end:])


def _merge_texts(tokens: Iterator[HtmlToken]) -> Iterator[HtmlToken]:
    """The tokens, neighbouring texts as one: a reference to a character may be in pieces."""
    for is_text, neighbours in groupby(filter(lambda token: token.raw, tokens), lambda token: token.kind == "text"):
        if not is_text:
            yield from neighbours
            continue
        raw = "".join(token.raw for token in neighbours)
        match = _UNCLOSED_MARKUP.search(raw)
        end = match.start() if match else len(raw)
        if end:
            yield HtmlToken("text", raw[:end])
        if match:
            yield HtmlToken("other", raw[end:])
