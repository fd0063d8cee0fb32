"""The text of segments: what stands between their inline tags, and these if they are kept."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

from tfm.data.errors import DataError
from tfm.data.formats.translations.xml_events import Event, read_events
from tfm.data.lines import MAX_LINE_BYTES

INLINE_ELEMENTS = ("bpt", "ept", "ph", "it", "ut")
"""Elements of TMX and XLIFF whose content is code of the original document, not text."""
LINE_BREAK_PATTERN = re.compile(r"[ \t\r]*\n[ \t\r\n]*")
"""A line break with the white space around it: the layout of a file whose elements are indented."""
MAX_TAGS_PER_SEGMENT = 1 << 20
"""The most tags of a segment: reading more takes longer than anyone waits."""


def read_segments(path: Path, is_segment: Callable[[Event], bool], *, keeps_tags: bool) -> Iterator[Event]:
    """The events of an XML file, with a single one of the kind `segment` for each segment.

    Args:
        path: the file.
        is_segment: whether the beginning of an element is that of a segment.
        keeps_tags: whether elements within a segment are in its text as tags (`<g id="1">text</g>`); else they and the
            codes in them are left out.

    Yields:
        Elements outside of segments that begin and end, and segments with their text.

    Raises:
        DataError: a segment is longer than a line may be, or has too many tags; or as `read_events` does.
    """
    segment: SegmentText | None = None
    depth = 0
    for event in read_events(path):
        if segment is not None and len(event.ancestors) == depth:
            yield Event("segment", event.element, event.ancestors, segment.text)
            segment = None
        elif segment is not None:
            segment.add(event)
        elif event.kind == "start" and is_segment(event):
            segment, depth = SegmentText(path, keeps_tags=keeps_tags), len(event.ancestors)
        elif event.kind != "text":
            yield event


class SegmentText:
    """A segment while it is read."""

    def __init__(self, path: Path, *, keeps_tags: bool):
        self._path = path
        self._keeps_tags = keeps_tags
        self._parts: list[str] = []
        self._size = 0
        self._num_codes = self._num_tags = 0

    def add(self, event: Event) -> None:
        """Add what an event within the segment says."""
        name, attributes = event.element
        if event.kind == "text":
            if self._keeps_tags or not self._num_codes:
                self._write(event.text)
            return
        if name in INLINE_ELEMENTS:
            self._num_codes += 1 if event.kind == "start" else -1
        self._size += len(name)
        self._num_tags += 1
        if self._num_tags > MAX_TAGS_PER_SEGMENT:
            raise DataError(f"has a segment with more than {MAX_TAGS_PER_SEGMENT:,} tags", file=self._path)
        if not self._keeps_tags:
            self._write("")
            return
        tag = "".join([f"<{name}", *(f" {key}={quoteattr(value)}" for key, value in attributes.items())])
        if event.kind == "start":
            self._write(tag + ">")
        elif self._parts[-1] == tag + ">":  # nothing is in it
            self._parts[-1] = tag + "/>"
        else:
            self._write(f"</{name}>")

    @property
    def text(self) -> str:
        """The text so far, on one line: a line break and what it is indented by are a space, at the ends nothing."""
        text = "".join(self._parts)
        if "\n" not in text:
            return text
        first, *others = LINE_BREAK_PATTERN.split(text)
        return " ".join([*([first] if first else []), *others[:-1], *([others[-1]] if others[-1] else [])])

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_LINE_BYTES:
            raise DataError(f"has a segment longer than {MAX_LINE_BYTES:,} characters", file=self._path)
        self._parts.append(text)
