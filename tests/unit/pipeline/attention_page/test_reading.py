"""A sentence as a model read it: its tokens, its weights, the page and the picture of them."""

import base64
import hashlib
import io
import json
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import finfo, float32, float64

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.config import SUPPORTED_TASKS, Architecture
from tfm.pipeline.attention_page.attended import (
    ATTENTION_KIND_TITLES,
    AttendedToken,
    AttentionAxes,
    AttentionTrace,
    LayerAttention,
    trace_as_json,
)
from tfm.pipeline.attention_page.forward_passes import FORWARD_SPECS, make_token
from tfm.pipeline.attention_page.head_report import HeadMeasures, HeadReport
from tfm.pipeline.attention_page.page import render_attention_page
from tfm.pipeline.attention_page.picture import AttentionView, choose_view, draw_picture, view_title, view_weights
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError, escape_unprintable
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, UNK_ID
from tfm.tokenizer.train import train

GREEDY = DecodingConfig(beam=1, max_length=9)
SENTENCE = "a dog sleeps ."
ONE_TEXT: dict[str, dict[str, Any]] = {
    "language model": {"architecture": "decoder_only", "task": "language_model"},
    "tagger": {"architecture": "encoder_only", "task": "tagging"},
    "after a begin token": {"architecture": "encoder_only", "task": "classification", "begin_token": True},
}
NASTY = [
    "</script>",
    "<!--",
    "<script",
    "]]>",
    '"',
    "'",
    "\\",
    "&lt;",
    "${a}",
    "$title",
    "\u2028",
    "\u2029",
    "\0",
    "\r",
]
texts = st.lists(st.sampled_from([*NASTY, "\u202e", "\ud800", "ä", " ", "dog"]) | st.text(max_size=3)).map("".join)


def handmade(
    weights: np.ndarray | None = None, text: str = "dog", source: str = "", target: str = ""
) -> AttentionTrace:
    """Cross-attention of one layer over equally many tokens on both sides."""
    found = np.eye(3, dtype=np.float32)[None] if weights is None else weights
    tokens = tuple(AttendedToken(escape_unprintable(f"{text}{i}"), False, i) for i in range(found.shape[2]))
    axes = AttentionAxes(tokens[: found.shape[1]], tokens, ("",) * found.shape[1])
    return AttentionTrace(source, target, {"cross": axes}, (LayerAttention("cross_attention", "cross", 1, found),))


class Page(HTMLParser):
    """What a browser sees: the tags, their attributes, and the text of each by its class, id or tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: defaultdict[str, str] = defaultdict(str)
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append(dict(attrs).get("id") or dict(attrs).get("class") or tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts[self._open[-1] if self._open else ""] += data


def data_of(page: Page) -> Any:
    return json.loads(page.texts["data"])


@pytest.mark.parametrize("architecture", sorted({*get_args(Architecture)} - {*FORWARD_SPECS}))
def test_an_architecture_that_is_not_read_has_no_attention(architecture: Architecture) -> None:
    loaded = tiny_model(architecture=architecture, task=SUPPORTED_TASKS[architecture][0], positions="none")
    with pytest.raises(RecipeError, match="has no attention"):
        trace_text(loaded, SENTENCE, None, GREEDY)


@pytest.mark.parametrize("positions", ["sinusoidal", "shaw"])
def test_a_translation_has_three_kinds_of_attention(positions: str) -> None:
    loaded = tiny_model(positions=positions, dtype=float64)
    read = trace_text(loaded, SENTENCE, None, GREEDY)
    ((translation,),) = translate_lines(loaded, [SENTENCE], GREEDY, reporter=NullReporter())
    assert read.target == translation.text
    assert [(each.kind, each.layer) for each in read.attentions] == [
        (kind, n) for kind in ATTENTION_KIND_TITLES for n in (1, 2)
    ]
    source = [*loaded.source_tokenizer.encode(SENTENCE), EOS_ID]
    assert [each.source_index for each in read.axes["encoder"].keys] == [*range(len(source) - 1), None]
    assert read.axes["cross"].keys == read.axes["encoder"].keys == read.axes["encoder"].queries
    heard, said = read.axes["decoder"].queries, read.axes["cross"].queries
    assert (heard[0].text, said[-1].text) == ("<s>", "</s>")
    assert heard[1:] == said[:-1]
    assert read.axes["decoder"].notes == tuple(f"then says {each.text}" for each in said)
    for each in read.attentions:
        axes = read.axes[each.kind]
        assert each.weights.shape == (2, len(axes.queries), len(axes.keys))
        np.testing.assert_allclose(each.weights.sum(2, dtype=np.float64), 1, rtol=finfo(float32).eps)


def test_it_can_be_made_to_say_something() -> None:
    read = trace_text(tiny_model(), SENTENCE, "the cat", GREEDY)
    assert read.target == "the cat"
    assert "".join(each.text for each in read.axes["cross"].queries) == "␣the␣cat</s>"


@pytest.mark.parametrize("kind", ["bahdanau", "luong"])
def test_a_recurrent_model_aligns(kind: str) -> None:
    loaded = tiny_model(architecture="recurrent", positions="none", recurrent={"attention": kind})
    read = trace_text(loaded, SENTENCE, "the cat sleeps", GREEDY)
    (found,) = read.attentions
    assert (found.kind, list(read.axes)) == ("cross", ["cross"])
    assert found.weights.shape[1:] == (len(read.axes["cross"].queries), len(read.axes["cross"].keys))


def test_a_decoder_only_model_reads_source_and_target_in_one() -> None:
    read = trace_text(tiny_model(architecture="decoder_only"), "a dog", "the cat", GREEDY)
    shown = "".join(each.text for each in read.axes["decoder"].queries)
    assert shown == "␣a␣dog</s><s>␣the␣cat"
    assert [each.kind for each in read.attentions] == ["decoder", "decoder"]
    assert not np.triu(read.attentions[0].weights[0], 1).any()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("language model", "<s>␣a␣dog"),
        ("tagger", "␣a␣dog</s>"),
        ("after a begin token", "<s>␣a␣dog</s>"),
    ],
)
def test_other_models_read_one_text(name: str, shown: str) -> None:
    loaded = tiny_model(**ONE_TEXT[name])
    read = trace_text(loaded, "a dog", None, GREEDY)
    ((kind, axes),) = read.axes.items()
    assert "".join(each.text for each in axes.queries) == shown
    assert read.target is None
    assert all(each.kind == kind and each.weights.shape[1] == len(axes.queries) for each in read.attentions)
    with pytest.raises(RecipeError, match=r"--target: this model .* reads one text"):
        trace_text(loaded, "a dog", "the cat", GREEDY)


def test_a_language_model_reads_by_the_tokenizer_of_the_target() -> None:
    loaded = tiny_model(**ONE_TEXT["language model"])
    other = train(["x y z"], TokenizerConfig(kind="char", vocab_size=9, min_frequency=1))
    read = trace_text(replace(loaded, source_tokenizer=other), "a dog", None, GREEDY)
    assert read == replace(trace_text(loaded, "a dog", None, GREEDY), attentions=read.attentions)


def test_what_cannot_be_shown_is_refused() -> None:
    loaded = tiny_model(max_length=6)
    with pytest.raises(DataError, match="'  ' has no pieces"):
        trace_text(loaded, "  ", None, GREEDY)
    with pytest.raises(DataError, match="has 9 pieces and the model reads at most 5: 'a a a"):
        trace_text(loaded, "a " * 9, None, GREEDY)
    with pytest.raises(DataError, match="reads at most 5: 'dog dog"):
        trace_text(loaded, "a", "dog " * 9, GREEDY)
    with pytest.raises(RecipeError, match=r"tiny: this model has no attention \(architecture recurrent\)"):
        trace_text(tiny_model(architecture="recurrent", positions="none"), "a dog", None, GREEDY)


def test_tokens_show_their_spaces_and_what_separates() -> None:
    tokenizer = train(TEXTS, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    assert [make_token(tokenizer, number).text for number in tokenizer.encode("a , dog")][:2] == ["␣a", "␣,"]
    marks = [make_token(tokenizer, number).separates for number in tokenizer.encode("a , .")]
    assert marks == [False, True, True]
    assert [make_token(tokenizer, n).separates for n in (BOS_ID, EOS_ID, UNK_ID)] == [True, True, False]
    assert [make_token(tokenizer, n).text for n in (BOS_ID, EOS_ID, UNK_ID)] == ["<s>", "</s>", "<unk>"]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "char", "byte", "word"])
def test_no_token_is_invisible(kind: str) -> None:
    tokenizer = train([*TEXTS, "ä\u200b€ \u2028x"], TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1))  # type: ignore[arg-type]
    shown = [make_token(tokenizer, number).text for number in range(tokenizer.vocab_size)]
    assert all(text and text.isprintable() and text.strip() == text and " " not in text for text in shown)


def test_json_holds_all_weights() -> None:
    read = trace_text(tiny_model(), SENTENCE, None, GREEDY)
    found = json.loads(json.dumps(trace_as_json(read), allow_nan=False))
    assert [each["name"] for each in found["attentions"]][:3] == [
        "encoder.0.attention",
        "encoder.1.attention",
        "decoder.0.attention",
    ]
    for each, attention in zip(found["attentions"], read.attentions, strict=True):
        assert (np.array(each["weights"], np.float32) == attention.weights).all()
        assert len(found["tokens"][each["kind"]]["keys"]) == attention.weights.shape[2]


def test_a_view_is_of_files_hint() -> None:
    read = trace_text(tiny_model(), SENTENCE, None, GREEDY)
    assert choose_view(read) == AttentionView("cross", None, None)
    assert choose_view(read, "decoder", 2, 1) == AttentionView("decoder", 2, 1)
    one = handmade()
    assert choose_view(one) == AttentionView("cross", 1, 1)
    assert view_title(one, choose_view(one)) == "cross-attention"
    for asked, problem in (
        (("word", None, None), "--kind word: this model has encoder, decoder, cross"),
        ((None, 3, None), "--layer 3: the cross-attention has layers 1 to 2"),
        ((None, 0, None), "--layer 0"),
        ((None, 2, 3), "--head 3: the cross-attention has heads 1 to 2"),
        ((None, None, 1), "--head 1: give the layer too"),
    ):
        with pytest.raises(RecipeError, match=problem):
            choose_view(read, *asked)


def test_a_view_without_a_head_is_the_mean() -> None:
    read = trace_text(tiny_model(), SENTENCE, None, GREEDY)
    first, second = (each.weights for each in read.layers("cross"))
    np.testing.assert_array_equal(view_weights(read, AttentionView("cross", 2, 1)), second[0])
    np.testing.assert_allclose(view_weights(read, AttentionView("cross", 1, None)), first.mean(0), rtol=1e-6)
    np.testing.assert_allclose(
        view_weights(read, AttentionView("cross", None, None)), (first.mean(0) + second.mean(0)) / 2, 1e-6
    )
    assert view_title(read, AttentionView("cross", None, None)) == "cross-attention, mean of 4 heads of 2 layers"
    assert view_title(read, AttentionView("cross", 2, None)) == "cross-attention, layer 2, mean of 2 heads"
    assert view_title(read, AttentionView("cross", 2, 1)) == "cross-attention, layer 2, head 1"


def test_the_picture_is_white_where_attention_is() -> None:
    from matplotlib.image import imread

    def pixels(read: AttentionTrace) -> np.ndarray:
        return imread(io.BytesIO(draw_picture(read, choose_view(read))))[..., 0]

    dark, diagonal = pixels(handmade(np.zeros((1, 3, 3), np.float32))), pixels(handmade())
    black = dark == 0
    cells = np.argwhere(black & (diagonal == 1))
    rows, columns = (np.unique(np.digitize(each, np.linspace(each.min(), each.max() + 1, 4))) for each in cells.T)
    assert dark.shape == diagonal.shape
    assert len(rows) == len(columns) == 3
    assert 0.25 < len(cells) / black.sum() < 0.4  # three cells of nine
    assert np.corrcoef(cells.T)[0, 1] > 0.8  # downwards to the right


def test_the_picture_takes_any_text_and_is_the_same_again() -> None:
    read = handmade(text="$\\frac{x$ 犬")
    assert draw_picture(read, choose_view(read)) == draw_picture(read, choose_view(read))


def test_the_page_says_all_that_was_read() -> None:
    read = trace_text(tiny_model(), SENTENCE, None, GREEDY)
    text = render_attention_page("Attention", read, choose_view(read, "decoder", 2, 1), None)
    page = Page(text)
    data = data_of(page)
    assert data["start"] == {"kind": 1, "layer": 1, "head": 0}
    assert [each["name"] for each in data["kinds"]] == list(ATTENTION_KIND_TITLES.values())
    for kind, each in zip(ATTENTION_KIND_TITLES, data["kinds"], strict=True):
        assert each["keys"] == [key.text for key in read.axes[kind].keys]
        for layer, attention in zip(each["layers"], read.layers(kind), strict=True):
            found = np.array(layer).reshape(attention.weights.shape)
            assert np.abs(found - 1000 * attention.weights).max() <= 0.501
    assert page.texts["span"] == f"{SENTENCE}→ {read.target}"


def test_the_page_needs_nothing_else_and_runs_its_own_script_alone() -> None:
    page = Page(render_attention_page("t", handmade(), None, None))
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href", "style") or name.startswith("on")]
    policy = dict(page.attributes)["content"]
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(page.texts["script"].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


@given(texts, texts, texts, texts)
@pytest.mark.slow
def test_text_on_the_page_is_text(title: str, source: str, target: str, piece: str) -> None:
    plain = Page(render_attention_page("t", handmade(), None, None))
    text = render_attention_page(title, handmade(text=piece, source=source, target=target), None, None)
    page = Page(text)
    text.encode("utf-8")
    assert page.tags == plain.tags
    assert page.texts["title"] == page.texts["h1"] == escape_unprintable(title)
    assert page.texts["span"] == "".join([escape_unprintable(source), "→ ", escape_unprintable(target)])
    assert data_of(page)["kinds"][0]["keys"] == [escape_unprintable(f"{piece}{i}") for i in range(3)]


def test_the_head_report_is_on_the_page_by_itself_too() -> None:
    measure = HeadMeasures("encoder", 1, 2, 5, 0.25, 0.5, 0.125, 0.0, 1.5, 0.75, {"<NOUN>": 0.5})
    page = Page(render_attention_page("t", None, None, HeadReport(3, (measure,))))
    assert page.tags.count("table") == 2
    assert "script" not in page.tags
    assert [page.texts["number"].count(cell) for cell in ("25.0", "1.50", "75.0", "<NOUN>")] == [1, 1, 1, 1]
