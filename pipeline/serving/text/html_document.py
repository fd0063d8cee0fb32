"""The sentences of an HTML document, and the document with translations of them in their places."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

from tfm.pipeline.serving.text.alignment import Alignment, align_words
from tfm.pipeline.serving.text.html_runs import VERBATIM_UNIT_CHARACTER, TextRun, read_text_runs
from tfm.pipeline.serving.text.inline_markup import InlineMarkup, InlineTag, build_markup_tree
from tfm.pipeline.serving.text.markup_placement import MarkupPlacement
from tfm.pipeline.serving.text.segments import needs_space
from tfm.pipeline.serving.text.sentences import split_text


@dataclass(frozen=True)
class HtmlSentence:
    """A sentence with the markup in it.

    source: the text that is translated, on one line. raw: as it stands in the document. markup: at characters of
    `source`. follows: whether the sentence before ends where this one begins, without a space. is_cut: whether a longer
    sentence was cut at its end.
    """

    source: str
    raw: str
    markup: tuple[InlineMarkup, ...]
    follows: bool
    is_cut: bool


@dataclass(frozen=True)
class HtmlSegments:
    """A document as its sentences and all that stands before, between and after them.

    sentences: to be translated. separators: one more than sentences: markup and white space.
    """

    sentences: tuple[HtmlSentence, ...]
    separators: tuple[str, ...]

    @property
    def sources(self) -> list[str]:
        """The sentences as a model reads them."""
        return [sentence.source for sentence in self.sentences]

    @property
    def indices_of_cut_sentences(self) -> frozenset[int]:
        """The places of the sentences that end where a longer one was cut, since no model reads it whole."""
        return frozenset(index for index, sentence in enumerate(self.sentences) if sentence.is_cut)

    @property
    def indices_with_markup(self) -> list[int]:
        """The places of the sentences with markup inside, which an alignment helps to place."""
        return [index for index, sentence in enumerate(self.sentences) if sentence.markup]

    def join(self, translations: Sequence[str], alignments: Mapping[int, Alignment] | None = None) -> str:
        """Return the document with the translations in place of the sentences, which themselves give it again.

        Args:
            translations: one of each sentence.
            alignments: of sentences with markup, by place; without, words are taken to stand in the source's order.

        Raises:
            ValueError: there are more or fewer translations than sentences.
        """
        texts = [self.separators[0]]
        previous, is_changed = "", False
        for index, (sentence, translation) in enumerate(zip(self.sentences, translations, strict=True)):
            changes = translation != sentence.source
            if sentence.follows and (changes or is_changed) and needs_space(previous, translation):
                texts[-1] = " " + texts[-1]
            alignment = (alignments or {}).get(index)
            texts += [_render_translation(sentence, translation, alignment) if changes else sentence.raw]
            texts.append(self.separators[index + 1])
            previous, is_changed = translation, changes
        return "".join(texts)


def split_html(html: str, language: str | None, *, fits: Callable[[str], bool] | None = None) -> HtmlSegments:
    """Split the text of a document or fragment into sentences.

    Tags within a line, such as `<b>`, split no sentence; those of paragraphs, cells, lines and the like do. Scripts,
    styles, code, comments and elements with `translate="no"` are kept, and so are all attributes.

    Args:
        html: the document, however broken.
        language: ISO 639 code of its text; None: not known.
        fits: whether a model reads a sentence whole.
    """
    sentences: list[HtmlSentence] = []
    separators = [""]
    for run in read_text_runs(html):
        for part in [run] if isinstance(run, str) else _split_run(run, language, fits):
            if isinstance(part, str):
                separators[-1] += part
            else:
                sentences.append(part)
                separators.append("")
    return HtmlSegments(tuple(sentences), tuple(separators))


def _render_translation(sentence: HtmlSentence, translation: str, alignment: Alignment | None) -> str:
    """A translation with the markup of its sentence."""
    if not sentence.markup:
        return escape(translation, quote=False)
    words = align_words(sentence.source, translation, alignment)
    return MarkupPlacement(sentence.source, words, is_aligned=alignment is not None).render(sentence.markup)


def _split_run(run: TextRun, language: str | None, fits: Callable[[str], bool] | None) -> Iterator[HtmlSentence | str]:
    """Split a run into sentences and the text between them."""
    longest = max((tag.text for tag in run.tags if tag.kind == "unit"), key=len, default="")
    fits_whole = None if fits is None else lambda text: fits(text.replace(VERBATIM_UNIT_CHARACTER, longest))
    segments = split_text(run.text_without_line_breaks, language, fits=fits_whole)
    spans, sentence_end = [], 0
    for index, (separator, sentence) in enumerate(zip(segments.separators, segments.sentences, strict=False)):
        start = sentence_end + len(separator)
        sentence_end = start + len(sentence)
        if any(character.isalnum() for character in sentence):
            spans.append((start, sentence_end, index in segments.indices_of_cut_sentences))
    partners, position, tag = _match_crossing_tags(run.tags), 0, 0
    for number, (start, end, is_cut) in enumerate(spans):
        next_start = spans[number + 1][0] if number + 1 < len(spans) else len(run.text)
        gaps = run.text[position:start], run.text[end:next_start]
        bounds = position + len(gaps[0].rstrip()), next_start - len(gaps[1].lstrip())
        first, last = _sentence_tag_range(run.tags, partners, tag, (start, end), bounds)
        yield run.raw_html(position, start, run.tags[tag:first])
        follows = number > 0 and start == position
        yield _make_sentence(run, (start, end), run.tags[first:last], follows, is_cut)
        position, tag = end, last
    yield run.raw_html(position, len(run.text), run.tags[tag:])


def _sentence_tag_range(
    tags: Sequence[InlineTag],
    partners: Mapping[int, int],
    first_free_tag: int,
    span: tuple[int, int],
    surrounding_span: tuple[int, int],
) -> tuple[int, int]:
    """The numbers of the first tag of a sentence, and of the one after its last.

    Args:
        tags: of the run.
        partners: of the tags, by number.
        first_free_tag: the first tag that is not of a sentence before.
        span: of the sentence.
        surrounding_span: its span with the white space around it.
    """
    start, end = span

    def is_inside(number: int) -> bool:
        tag = tags[number]
        if tag.kind == "unit":
            return start <= tag.position < end
        if start < tag.position < end:
            return True
        partner = partners.get(number)
        if partner is None or partner < first_free_tag:
            return False
        if tag.kind == "open":
            return surrounding_span[0] <= tag.position <= start < tags[partner].position < end
        return surrounding_span[1] >= tag.position >= end > tags[partner].position > start

    indices = []
    for number in range(first_free_tag, len(tags)):
        if tags[number].position > surrounding_span[1]:
            break
        if is_inside(number):
            indices.append(number)
    if indices:
        return indices[0], indices[-1] + 1
    next_tag = next((number for number in range(first_free_tag, len(tags)) if tags[number].position > start), len(tags))
    return next_tag, next_tag


def _match_crossing_tags(tags: Sequence[InlineTag]) -> dict[int, int]:
    """The partner of each tag of a run that has one, whatever crosses it."""
    partners: dict[int, int] = {}
    open_tags: list[int] = []
    names: Counter[str] = Counter()
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            open_tags.append(number)
            names[tag.name] += 1
        elif tag.kind == "close" and names[tag.name]:
            while tags[first := open_tags.pop()].name != tag.name:
                names[tags[first].name] -= 1
            names[tag.name] -= 1
            partners[first], partners[number] = number, first
    return partners


def _make_sentence(
    run: TextRun, span: tuple[int, int], tags: Sequence[InlineTag], follows: bool, is_cut: bool
) -> HtmlSentence:
    """A sentence of a run: white space as one space, units as their text."""
    start, end = span
    units = {tag.position: tag.text for tag in tags if tag.kind == "unit" and start <= tag.position < end}
    offsets, source = [], ""
    for index in range(start, end):
        offsets.append(len(source))
        character = units.get(index, run.text[index])
        if not character.isspace():
            source += character
        elif not source.endswith(" "):
            source += " "
    offsets.append(len(source))

    def move_tag_to_source(tag: InlineTag) -> InlineTag:
        """The tag at its place in the source; a unit between sentences is not read."""
        kind = "point" if tag.kind == "unit" and tag.position not in units else tag.kind
        return replace(tag, position=offsets[min(max(tag.position, start), end) - start], kind=kind)

    spans = [(offsets[index - start], offsets[index - start + 1]) for index in units]
    return HtmlSentence(
        source,
        run.raw_html(start, end, tags),
        build_markup_tree(list(map(move_tag_to_source, tags)), spans),
        follows,
        is_cut,
    )
