"""HTML: every tag stays, nested as it was, whatever is translated how; what is no text is left alone."""

import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sentencex")

from tfm.pipeline.serving.text.alignment import Alignment, find_words
from tfm.pipeline.serving.text.html_document import HtmlSegments, split_html
from tfm.pipeline.serving.text.html_runs import VOID_TAGS
from tfm.pipeline.serving.text.html_tokens import tokenize_html

WORDS = st.sampled_from("dog Dr. runs, x &amp; &lt;b&gt; a&nbsp;b é 犬。 Stop. Why? 3.5 &#65; \n &copy".split(" "))
INLINE = st.sampled_from(("b", "i", "a", "span", "em", "x-y"))
BLOCK = st.sampled_from(("p", "div", "li", "td", "h1", "pre"))
ALONE = st.sampled_from(
    (
        *("<br>", "<img src='a>b' alt=\"x &amp; y\">", "<!-- <b> -->", "<wbr/>", "<hr>", "<?x y?>"),
        *("<script>if (a<b) '<b>x. y</b>'</script>", "<style>p > a {}</style>", "<code>x &lt; <u>1</u></code>"),
        *(
            "<span translate=no>Acme Corp.</span>",
            '<b class="notranslate k">x <i>y</i></b>',
            "<textarea>a. b</textarea>",
        ),
    )
)
ATTRIBUTES = st.sampled_from(("", " class=a", ' href="x?a=1&amp;b=2"', " title='A dog. A cat.'", " data-x"))


def element(names: st.SearchStrategy[str], content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda name, more, text: f"<{name}{more}>{text}</{name}>", names, ATTRIBUTES, content)


def sequence(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    glue = st.sampled_from((" ", "", "\n"))
    return st.lists(st.tuples(parts, glue).map("".join), max_size=4).map("".join)


FLOWING = st.recursive(WORDS | ALONE, lambda inner: sequence(inner | element(INLINE, sequence(inner))), max_leaves=10)
DOCUMENTS = sequence(FLOWING | element(BLOCK, sequence(FLOWING)) | element(BLOCK, element(BLOCK, FLOWING)))
SOUP = st.lists(
    st.sampled_from(("<b>", "</b>", "<i x=1>", "</i>", "<p>", "</p>", "<div>", "</div>", "<", "&", "</", "<!--", "-->"))
    | WORDS
    | ALONE
    | st.text(max_size=3)
).map("".join)
SEEDS = st.integers(0, 2**32)


def markup(html: str) -> list[str]:
    return [token.raw for token in tokenize_html(html) if token.kind != "text"]


def paths(html: str) -> Counter[tuple[str, ...]] | None:
    """Each tag with those around it; None where they are not nested."""
    found: Counter[tuple[str, ...]] = Counter()
    opened: list[str] = []
    for token in tokenize_html(html):
        if token.kind == "end":
            if not opened or not opened.pop().startswith(f"<{token.name}"):
                return None
        elif token.kind != "text":
            found[(*opened, token.raw)] += 1
            if token.kind == "start" and token.name not in VOID_TAGS:
                opened.append(token.raw)
    return None if opened else found


def translated(segments: HtmlSegments, seed: int) -> tuple[list[str], dict[int, Alignment]]:
    """Translations with more, fewer and other words, and alignments that may be any."""
    draw = random.Random(seed)
    texts, alignments = [], {}
    for place, source in enumerate(segments.sources):
        words = source.split()
        draw.shuffle(words)
        words = [
            *words[: draw.randrange(len(words) + 1)],
            *draw.choices(("neu", "<i>", "&amp;", "。"), k=draw.randrange(4)),
        ]
        texts.append(" ".join(words))
        weights = (
            np.random.default_rng(seed).exponential(size=(len(find_words(texts[-1])), len(find_words(source)))) ** 3
        )
        if draw.random() < 0.7:
            alignments[place] = Alignment(tuple(find_words(source)), tuple(find_words(texts[-1])), weights)
    return texts, alignments


@given(DOCUMENTS | SOUP)
def test_sentences_themselves_give_the_document_again(html: str) -> None:
    segments = split_html(html, "en")
    again = segments.join(segments.sources)
    assert "".join(again.split()) == "".join(html.split())
    assert Counter(markup(again)) == Counter(markup(html))


@given(SOUP)
def test_tokens_joined_are_the_document(html: str) -> None:
    assert "".join(token.raw for token in tokenize_html(html)) == html


@given(DOCUMENTS, SEEDS)
def test_a_translation_has_the_same_tags_within_the_same_tags(html: str, seed: int) -> None:
    segments = split_html(html, "en")
    again = segments.join(*translated(segments, seed))
    assert Counter(markup(again)) == Counter(markup(html))
    assert paths(html) is not None
    assert paths(again) == paths(html)


@given(SOUP, SEEDS)
def test_of_broken_html_no_tag_is_lost_or_made(html: str, seed: int) -> None:
    segments = split_html(html, "en")
    assert Counter(markup(segments.join(*translated(segments, seed)))) == Counter(markup(html))


@given(DOCUMENTS | SOUP, SEEDS)
def test_all_of_a_translation_is_there_as_text(html: str, seed: int) -> None:
    segments = split_html(html, "en")
    texts, _ = translated(segments, seed)
    shown = iter("".join(token.text for token in tokenize_html(segments.join(texts)) if token.kind == "text"))
    assert all(character in shown for text in texts for character in text if not character.isspace())


@pytest.mark.parametrize(
    ("html", "sources"),
    [
        ("A <b>re<i>d</i></b> house. <i>It <u>is. Or</u></i> not?", ["A red house.", "It is.", "Or not?"]),
        ("<ul><li>Save<li>Open file</ul>", ["Save", "Open file"]),
        ("one<br>two", ["one", "two"]),
        ("a\n  dog\n\nruns", ["a dog runs"]),
        ("<pre>one\ntwo</pre>", ["one", "two"]),
        ("Fish &amp; chips &lt;3&nbsp;km", ["Fish & chips <3 km"]),
        ("Use <code>x.y</code> now.", ["Use x.y now."]),
        ("<code>x</code> <span translate='no'>y</span>", []),
        ("<p translate=no>A.</p><script>'B'</script><style>C</style><!-- D -->", []),
        ("a <a href='x", ["a"]),
    ],
)
def test_sentences_of_html(html: str, sources: list[str]) -> None:
    assert split_html(html, "en").sources == sources


def aligned(source: str, target: str, *links: tuple[int, int]) -> Alignment:
    """Words of the source, by number, with those of the target."""
    spans, places = find_words(source), find_words(target)
    weights = np.zeros((len(places), len(spans)))
    for word, place in links:
        weights[place, word] = 1
    return Alignment(tuple(spans), tuple(places), weights)


@pytest.mark.parametrize(
    ("html", "translation", "links", "expected"),
    [
        (
            "The <b>red</b> house is <i>very <u>big</u></i>.",
            "La maison rouge est très grande.",
            [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4), (5, 5), (6, 6)],
            "La maison <b>rouge</b> est <i>très <u>grande</u></i>.",
        ),
        ("<b>I</b> <i>sleep</i>", "dormo io", [(0, 1), (1, 0)], "<i>dormo</i> <b>io</b>"),
        ("I <b>gave up</b> it", "Ich gab es auf", [(0, 0), (1, 1), (3, 2), (2, 3)], "Ich <b>gab</b> es auf"),
        ("a <b>dog</b>!", "<Hund>", [(1, 1)], "&lt;<b>Hund</b>&gt;"),
        ("un<b>believ</b>able", "unglaublich", [(0, 0)], "<b>unglaublich</b>"),
        ("See <code>a.b()</code> now", "Jetzt a.b() sehen", [(0, 4), (4, 0)], "Jetzt <code>a.b()</code> sehen"),
        ("See <code>cat</code> now", "Jetzt Katze sehen", [(0, 2), (1, 1), (2, 0)], "Jetzt <code>cat</code> sehen"),
        ("one <img src=x> two", "zwei eins", [(0, 0), (1, 1)], "zwei <img src=x>eins"),
        ("<b>a <i>b</b> c</i>", "x y z", [(0, 2), (1, 1), (2, 0)], "<b><i>x y z</b></i>"),
        ("<b>one two", "eins zwei", [(0, 0), (1, 1)], "<b>eins zwei"),
        ("<b>one</b> <i>two</i> three", "", [], "<b></b><i></i>"),
    ],
)
def test_tags_follow_their_words(html: str, translation: str, links: list[tuple[int, int]], expected: str) -> None:
    segments = split_html(html, "en")
    (source,) = segments.sources
    assert segments.join([translation], {0: aligned(source, translation, *links)}) == expected


def test_without_an_alignment_words_keep_their_order_and_names_are_found() -> None:
    segments = split_html("<b>The</b> old man met <i>Anna</i>", "en")
    assert segments.join(["<em>Anna</em> traf der Mann"]).count("<i>Anna</i>") == 1
    assert segments.join(["Der alte Mann traf Eva"]) == "<b>Der</b> alte Mann traf <i>Eva</i>"
    segments = split_html("Do the boys <b>sing</b>?", "en")
    assert segments.join(["Singen sie?"]) == "Singen <b>sie</b>?"  # rather a wrong word than a mark


def test_sentences_that_run_together_get_a_space() -> None:
    segments = split_html("<p>今日は。<b>元気ですか。</b></p>", "ja")
    assert segments.join(["Hello.", "Are you well?"]) == "<p>Hello. <b>Are you well?</b></p>"


def test_a_long_sentence_is_cut_and_keeps_its_tags() -> None:
    segments = split_html("<b>one two, three</b> four", "en", fits=lambda text: len(text.split()) < 3)
    assert segments.sources == ["one two,", "three four"]
    assert segments.indices_of_cut_sentences == {0}
    assert segments.join(["eins zwei,", "drei vier"]) == "<b>eins zwei, drei</b> vier"


@pytest.mark.parametrize(
    "part", ["<", "<a ", "<a b='", "<b>", "<b>x", "</b>", "<!--", "&#", "&", "<b>x</b> ", "<i></b>"]
)
def test_hostile_html_takes_no_longer_than_its_length(part: str) -> None:
    html = part * (5_000 // len(part))
    start = time.perf_counter()
    segments = split_html(html, "en", fits=lambda text: len(text) < 400)
    again = segments.join([source.upper() for source in segments.sources])
    assert time.perf_counter() - start < 5
    assert Counter(markup(again)) == Counter(markup(html))
