"""A page as its elements, without a browser."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page by name: `found`, their attributes; `texts`, all text in each of them, with that of the
    elements inside. Refuses tags that do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.texts: dict[str, list[str]] = {}
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.setdefault(tag, []).append(dict(attrs))
        if tag != "meta":
            texts = self.texts.setdefault(tag, [])
            texts.append("")
            self._open.append((tag, len(texts) - 1))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for tag, number in self._open:
            self.texts[tag][number] += data
