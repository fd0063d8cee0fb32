"""HTML as runs of text that flow, with the markup in them, and all else that stands between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape

import regex

from tfm.pipeline.serving.text.html_tokens import HtmlToken, tokenize_html
from tfm.pipeline.serving.text.inline_markup import InlineTag, TagKind

BLOCK_TAGS = frozenset(
    (
        "address article aside base blockquote body br button caption center col colgroup datalist dd details dialog "
        "dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr "
        "html legend li link main menu meta nav nobr ol optgroup option p param pre search section select summary "
        "table tbody td tfoot th thead title tr track ul"
    ).split()
)
"""Elements whose tags end a sentence; all others stand within a line."""
VOID_TAGS = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
"""Elements without an end tag (HTML, 13.1.2)."""
VERBATIM_TAGS = frozenset(
    (
        "applet audio canvas code iframe kbd map math noembed noframes noscript object picture plaintext samp script "
        "style svg template textarea tt var video xmp"
    ).split()
)
"""Elements that are kept whole: programs, styles, code, pictures."""
INLINE_VERBATIM_TAGS = frozenset(("code", "kbd", "samp", "tt", "var"))
"""The ones of them that are part of a sentence."""
MAX_VERBATIM_UNIT_CHARS = 60
"""The longest text that is kept and yet read as a part of its sentence."""
VERBATIM_UNIT_CHARACTER = "\N{OBJECT REPLACEMENT CHARACTER}"

_CHARACTER_REFERENCE = regex.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
_HTML_SPACE = regex.compile(r"[\t\n\f\r ]")


@dataclass(frozen=True)
class TextRun:
    """Text that flows, such as a paragraph's.

    text: its characters, one for a unit. tags: in order. raw_characters: by place, those that are written otherwise in
    the document. is_preformatted: whether line breaks in it are shown.
    """

    text: str
    tags: tuple[InlineTag, ...]
    raw_characters: dict[int, str]
    is_preformatted: bool

    def raw_html(self, start: int, end: int, tags: Sequence[InlineTag]) -> str:
        """The document between two characters, with these of the tags."""
        parts = []
        for tag in tags:
            position = min(max(tag.position, start), end)
            parts += [*self._raw_characters(start, position), tag.raw]
            start = position
        return "".join([*parts, *self._raw_characters(start, end)])

    def _raw_characters(self, start: int, end: int) -> Iterator[str]:
        return (self.raw_characters.get(index, self.text[index]) for index in range(start, end))

    @property
    def text_without_line_breaks(self) -> str:
        """The text for splitting: a line break in it is a space, unless it is shown."""
        return self.text if self.is_preformatted else _HTML_SPACE.sub(" ", self.text)


class _RunBuilder:
    """Collects a run."""

    def __init__(self) -> None:
        self.length, self.texts, self.tags = 0, list[str](), list[InlineTag]()
        self.raw_characters: dict[int, str] = {}

    def add_text(self, raw: str) -> None:
        """Add text with references to characters."""
        position = 0
        for reference in _CHARACTER_REFERENCE.finditer(raw):
            self._add_characters(raw[position : reference.start()])
            if characters := unescape(reference.group()):
                self.raw_characters[self.length] = reference.group()
                self.raw_characters.update({self.length + more: "" for more in range(1, len(characters))})
                self._add_characters(characters)
            else:
                self.tags.append(InlineTag(self.length, "point", reference.group()))
            position = reference.end()
        self._add_characters(raw[position:])

    def add_verbatim_unit(self, raw: str, text: str) -> None:
        """Add what is kept and read."""
        self.tags.append(InlineTag(self.length, "unit", raw, text=text))
        self.raw_characters[self.length] = ""
        self._add_characters(VERBATIM_UNIT_CHARACTER)

    def add_tag(self, token: HtmlToken) -> None:
        """Add a tag within a line."""
        is_alone = token.kind == "start" and (token.name in VOID_TAGS or token.raw.endswith("/>"))
        kind: TagKind = "point" if is_alone or token.kind == "other" else "open" if token.kind == "start" else "close"
        self.tags.append(InlineTag(self.length, kind, token.raw, token.name))

    def build(self, is_preformatted: bool) -> TextRun:
        """The run so far."""
        return TextRun("".join(self.texts), tuple(self.tags), self.raw_characters, is_preformatted)

    def _add_characters(self, characters: str) -> None:
        self.texts.append(characters)
        self.length += len(characters)


def read_text_runs(html: str) -> Iterator[TextRun | str]:
    """Yield the runs of a document or fragment, and the unchanged text between them."""
    tokens = tokenize_html(html)
    builder, depth, index = _RunBuilder(), 0, 0
    while index < len(tokens):
        token = tokens[index]
        end = _index_after_verbatim(tokens, index)
        markup = "".join(each.raw for each in tokens[index:end])
        if token.name in BLOCK_TAGS:
            yield builder.build(depth > 0)
            builder = _RunBuilder()
            yield markup
            if token.name == "pre" and end == index + 1:
                depth = max(depth + (1 if token.kind == "start" else -1), 0)
        elif end > index + 1:
            text = " ".join("".join(each.text for each in tokens[index:end] if each.kind == "text").split())
            is_read = token.name in INLINE_VERBATIM_TAGS or token.name not in VERBATIM_TAGS
            if is_read and 0 < len(text) <= MAX_VERBATIM_UNIT_CHARS:
                builder.add_verbatim_unit(markup, text)
            else:
                builder.tags.append(InlineTag(builder.length, "point", markup))
        elif token.kind == "text":
            builder.add_text(token.raw)
        else:
            builder.add_tag(token)
        index = end
    yield builder.build(depth > 0)


def _index_after_verbatim(tokens: Sequence[HtmlToken], index: int) -> int:
    """The number of the token after an element that is kept whole; after the token, of any other."""
    token = tokens[index]
    if token.kind != "start" or token.name in VOID_TAGS or not is_verbatim(token):
        return index + 1
    if token.raw.endswith("/>") and token.name in ("svg", "math"):
        return index + 1
    depth = 0
    for number in range(index, len(tokens)):
        candidate = tokens[number]
        if candidate.name == token.name:
            depth += 1 if candidate.kind == "start" else -1
        if depth == 0:
            return number + 1
    return len(tokens)


def is_verbatim(token: HtmlToken) -> bool:
    """Whether the element of a start tag is not to be translated."""
    attributes = dict(token.attributes)
    classes = (attributes.get("class") or "").split()
    return (
        token.name in VERBATIM_TAGS
        or (attributes.get("translate") or "").strip().lower() == "no"
        or "notranslate" in classes
        or "skiptranslate" in classes
    )
