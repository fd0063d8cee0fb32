"""A model in Python: what it refuses, what it leaves alone, and figures computed anew."""

import html
import random
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.layout import Layout
from tfm.pipeline.api.loading import load
from tfm.pipeline.api.logged import LoggingReporter
from tfm.pipeline.api.methods import TASKS_WITH_METHOD
from tfm.pipeline.api.model import Model
from tfm.pipeline.api.run import read_run
from tfm.pipeline.api.settings import DecodingOptions
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.special import BOS_ID, EOS_ID

ENCODER = {"architecture": "encoder_only"}
DECODER = {"architecture": "decoder_only"}
CAN = {
    "translation": ({}, "translate(), score(), embed(), encode(), attend()"),
    "language_model": (DECODER, "generate(), score(), embed(), encode(), attend()"),
    "masked_language_model": (ENCODER, "fill(), embed(), encode(), attend()"),
    "classification": (ENCODER, "classify(), embed(), encode(), attend()"),
    "tagging": (ENCODER, "tag(), embed(), encode(), attend()"),
    "word_vectors": ({"architecture": "cbow"}, "embed()"),
}


def model_of(task="translation", **changes):
    return Model(tiny_model(task=task, **CAN[task][0], **changes), NullReporter())


@pytest.fixture(scope="module")
def model():
    return model_of(dtype=torch.float64)


@pytest.mark.parametrize("task", CAN)
def test_what_a_task_cannot_do_is_refused_in_one_line(task):
    able = re.findall(r"\w+(?=\(\))", CAN[task][1])
    one = model_of(task)
    for name in TASKS_WITH_METHOD:
        asked = ("a dog", "a dog") if name == "score" and task == "translation" else ("a dog",)
        if name in able:
            getattr(one, name)(*({"embed": ("dog",), "fill": ("a [MASK]",)}.get(name, asked)))
        else:
            with pytest.raises(DataError) as caught:
                getattr(one, name)(*asked)
            assert str(caught.value) == f"tiny: was trained for {task}: it has no {name}(); it has {CAN[task][1]}"


@pytest.mark.parametrize("task", CAN)
def test_broken_weights_give_no_figure(task):
    """A sum that leaves out what is no number once gave such a model a perplexity of 1."""
    one = model_of(task)
    with torch.no_grad():
        for parameter in one._loaded.model.parameters():
            parameter.fill_(float("nan"))
    for name in re.findall(r"\w+(?=\(\))", CAN[task][1]):
        asked = ("a dog", "a dog") if name == "score" and task == "translation" else ("a dog",)
        with pytest.raises(DataError, match="its weights are broken"):
            getattr(one, name)(*({"embed": ("dog",), "fill": ("a [MASK]",)}.get(name, asked)))
        if name == "classify":
            with pytest.raises(DataError, match="its weights are broken"):
                one.probabilities(["a dog"])


def test_a_model_without_attention_is_refused():
    recurrent = Model(tiny_model(architecture="recurrent", recurrent={"attention": "none"}), NullReporter())
    with pytest.raises(RecipeError, match="has no attention"):
        recurrent.attend("a dog")


def test_the_settings_are_those_of_decoding():
    assert {"beam", *DecodingOptions.__annotations__} == set(DecodingConfig.model_fields)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"beam": 0}, "decoding.beam = 0 must be at least 1"),
        ({"bem": 3}, "decoding.bem is not a key of recipes; did you mean decoding.beam"),
        ({"top_k": 3}, "is for sampling"),
        ({"beam": 3, "strategy": "sample"}, "beam (3) is for searching"),
        ({"n_best": 0}, "decoding.n_best = 0 must be at least 1"),
        ({"n_best": 2}, "n_best (2) has no effect: one text is returned for each; use translations()"),
        ({"to": "deu"}, "was not trained with languages"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(model, settings, problem):
    with pytest.raises((RecipeError, DataError)) as caught:
        model.translate(["a dog"], **settings)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("translations", {"texts": ["a dog"], "n_best": 6}, "decoding.n_best (6) cannot exceed beam (5)"),
        ("translations", {"texts": ["a dog"], "prefixes": "the"}, "prefixes is str: give a list of str"),
        ("translations", {"texts": ["a dog"], "prefixes": [3]}, "prefixes[0] is int: give a str"),
        ("translations", {"texts": ["a dog"], "forced_in_each": "sea"}, "forced_in_each is str"),
        ("translations", {"texts": ["a dog"], "forced_in_each": ["sea"]}, "forced_in_each[0] is str"),
        ("translations", {"texts": ["a dog"], "forced_in_each": [[3]]}, "forced_in_each[0][0] is int: give a str"),
        ("translations", {"texts": ["a dog"], "forced_in_each": [["the\tsea"]]}, "a phrase holds a tab"),
        ("translate", {"texts": ["a dog"], "forced": "sea"}, 'decoding.forced = "sea" must be a list'),
        ("translate", {"texts": ["a dog"], "forbidden": "sea"}, 'decoding.forbidden = "sea" must be a list'),
        ("translate", {"texts": b"a dog"}, "texts is bytes: give a str, or a list of str"),
        ("translate", {"texts": 3}, "texts is int"),
        ("score", {"sources": ["a"], "targets": 3}, "targets is int"),
        ("embed", {"words": "a", "side": "x"}, "side = 'x' is not allowed; it may be 'source' or 'target'"),
        ("neighbours", {"word": "a", "side": "x"}, "side = 'x' is not allowed"),
        ("neighbours", {"word": "a", "count": -1}, "count (-1) must be at least 1"),
        ("neighbours", {"word": "a", "count": 1.5}, "count is float: give a whole number"),
        ("neighbours", {"word": "a", "count": True}, "count is bool: give a whole number"),
        ("translate", {"texts": {"a dog": 1}}, "texts is dict: give a str, or a list of str"),
        ("translate", {"texts": {"a dog"}}, "texts is set: give a str, or a list of str"),
        ("translations", {"texts": ["a dog"], "prefixes": {"a": 1}}, "prefixes is dict: give a list of str"),
        ("neighbours", {"word": ["a"]}, "word is list: give one str"),
        ("fill", {"text": "a dog", "top": 0}, "top (0) must be at least 1"),
        ("fill", {"text": "a dog", "unit": "letter"}, "unit = 'letter' is not allowed; it may be 'piece' or 'word'"),
        ("encode", {"texts": "a dog", "layer": -1}, "layer (-1) must be at least 0"),
        ("encode", {"texts": "a dog", "unit": "row"}, "unit = 'row' is not allowed; it may be 'piece' or 'word'"),
        ("attend", {"source": ["a dog"]}, "source is list: give one str"),
        ("attend", {"source": "a dog", "target": 3}, "target is int: give one str"),
    ],
    ids=str,
)
def test_an_argument_of_another_kind_is_refused_by_its_name(model, name, arguments, problem):
    model = model_of("masked_language_model") if name == "fill" else model
    with pytest.raises((TypeError, RecipeError)) as caught:
        getattr(model, name)(**arguments)
    assert problem in str(caught.value)


TEXT_ARGUMENTS = {
    "translate": ("translation", "texts", ()),
    "translations": ("translation", "texts", ()),
    "classify": ("classification", "texts", ()),
    "probabilities": ("classification", "texts", ()),
    "tag": ("tagging", "texts", ()),
    "fill": ("masked_language_model", "text", ()),
    "generate": ("language_model", "prompts", ()),
    "generations": ("language_model", "prompts", ()),
    "score": ("translation", "targets", ("a dog",)),
    "embed": ("word_vectors", "words", ()),
    "encode": ("translation", "texts", ()),
    "neighbours": ("word_vectors", "word", ()),
    "neighbour_probability": ("word_vectors", "outside", ("dog",)),
    "attend": ("translation", "source", ()),
}
"""A task with each method of `Model`, the name of its argument of texts, and those before that."""


def test_every_method_that_takes_texts_is_in_the_table():
    own = {name for name, each in vars(Model).items() if callable(each) and not name.startswith("_")}
    assert own == set(TEXT_ARGUMENTS)


@pytest.mark.parametrize("name", TEXT_ARGUMENTS)
def test_no_method_takes_another_kind_for_a_text(name):
    task, argument, before = TEXT_ARGUMENTS[name]
    method, is_list = getattr(model_of(task), name), argument.endswith("s")
    wanted = "a str, or a list of str" if is_list else "one str"
    for given in (Path("a.txt"), b"a dog", None, 3, 1.5, {"a dog": 1}):
        kind = type(given).__name__
        if given is None and name == "score":
            continue  # no targets
        with pytest.raises(TypeError) as caught:
            method(*before, given)
        assert str(caught.value).startswith(f"{argument} is {kind}: give {wanted}")
        assert ("Path.read_text()" in str(caught.value)) == isinstance(given, Path)
        with pytest.raises(TypeError) as caught:
            method(*before, ["dog", given])
        named = f"{argument}[1] is {kind}: give a str" if is_list else f"{argument} is list: give one str"
        assert str(caught.value).startswith(named)


@pytest.mark.parametrize("open_folder", [load, read_run])
def test_a_folder_is_a_path(open_folder):
    for given in (b"runs", None, 3, ["runs"]):
        with pytest.raises(TypeError, match=f"^folder is {type(given).__name__}: give a str or a Path$"):
            open_folder(given)
    with pytest.raises(RecipeError, match="folder is empty"):
        open_folder("")


def test_a_device_is_a_name_or_torch_s_object():
    with pytest.raises(TypeError, match="device is int: give one str"):
        load("nowhere", device=0)
    for device in (torch.device("cpu"), torch.device("cpu:0"), "cpu"):
        with pytest.raises(DataError, match="nowhere"):
            load("nowhere", device=device)


def test_the_score_of_no_text_is_refused(model):
    with pytest.raises(DataError, match="score: there are no texts: give one or more"):
        model.score([], [])
    with pytest.raises(DataError, match="score: 0 sources and 1 targets"):
        model.score([], ["a"])


def test_numbers_of_numpy_are_numbers(model):
    for beam, alpha in ((2, 0.5), (np.int64(2), np.float32(0.5)), (np.uint8(2), np.float64(0.5))):
        found = model.translations("a dog", beam=beam, n_best=beam, max_length=beam, alpha=alpha)
        assert len(found[0]) == 2
    word = next(iter(model._words("target").rows))
    assert model.neighbours(word, np.int32(2)) == model.neighbours(word, 2)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"to": "deu"}, "it cannot translate into deu: remove `to`"),
        ({"source_language": "deu"}, "takes no source language: remove `source_language`"),
        ({"beam": 0}, "decoding.beam = 0 must be at least 1"),
    ],
    ids=str,
)
def test_errors_name_parameters_and_no_flags(model, asked, problem):
    with pytest.raises((RecipeError, DataError)) as caught:
        model.translate(["a dog"], **asked)
    assert problem in str(caught.value)
    assert "--" not in str(caught.value)
    assert "flag" not in str(caught.value)


def test_texts_are_strings(model):
    assert model.translate("a dog") == model.translate(["a dog"]) == model.translate(iter(["a dog"]))
    assert model.translate([]) == []
    assert model.translate(["", "a dog", ""])[::2] == ["", ""]
    with pytest.raises(TypeError, match=r"texts\[1\] is NoneType: give a str$"):
        model.translate(["a dog", None])
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        model.score(["a", "b"], ["c"])
    with pytest.raises(RecipeError, match="give sources and targets"):
        model.score(["a"])
    with pytest.raises(RecipeError, match="give no targets"):
        model_of("language_model").score(["a"], ["b"])


def test_scores_are_the_sums_of_the_log_probabilities_of_the_pieces(model):
    """One pair at a time through the network, against batches."""
    sources, targets = [*TEXTS, "a dog"], ["the sea", "the sea is cold , and the snow is cold !", "a", ""]
    found, loaded = model.score(sources, targets), model._loaded
    for row, (source, target) in enumerate(zip(sources, targets[:3], strict=False)):
        read = torch.tensor([*loaded.source_tokenizer.encode(source), EOS_ID])
        said = loaded.target_tokenizer.encode(target)
        layouts = [Layout.from_lengths(torch.tensor([n]), "cpu") for n in (len(read), len(said) + 1)]
        with torch.no_grad():
            hidden = loaded.model(read, layouts[0], torch.tensor([BOS_ID, *said]), layouts[1])
            log_probs = torch.log(torch.softmax(loaded.model.output(hidden), -1))
        wanted = sum(float(log_probs[place, piece]) for place, piece in enumerate([*said, EOS_ID]))
        assert found.log_probs[row] == pytest.approx(wanted, rel=1e-10)
        assert found.num_tokens[row] == len(said) + 1
    assert np.isnan(found.log_probs[3])
    total = found.log_probs[:3].sum() / found.num_tokens.sum()
    assert found.perplexity == pytest.approx(float(np.exp(-total)), rel=1e-12)


def test_vectors_are_rows_of_the_embedding(model):
    table, tokenizer = model._loaded.model.target_embedding.table.weight, model._loaded.target_tokenizer
    (piece,) = tokenizer.encode("dog") if len(tokenizer.encode("dog")) == 1 else tokenizer.encode("a")
    word = tokenizer.surface(piece).strip()
    assert np.array_equal(model.embed([word, word])[1], table[piece].detach().float().numpy())
    assert model.embed([]).shape == (0, 16)
    with pytest.raises(RecipeError, match="no vector for 'a dog'"):
        model.embed(["a dog"])


def test_attention_is_shares_and_shows_itself_in_a_frame(model):
    found = model.attend("a dog runs through the snow .", "the sea")
    assert found.kinds == ["encoder", "decoder", "cross"]
    for kind in found.kinds:
        weights, (queries, keys) = found.weights(kind), found.tokens(kind)
        assert weights.shape == (2, 2, len(queries), len(keys))
        assert np.allclose(weights.sum(-1), 1, atol=1e-6)
    assert np.array_equal(found.weights(), found.weights("cross"))
    frame = re.fullmatch(r'<iframe title="[^"<>]*" sandbox="allow-scripts" srcdoc="([^"]*)" style="[^"]*"></iframe>',
                         found._repr_html_())  # fmt: skip
    assert frame is not None
    assert html.unescape(frame[1]) == found.html()
    with pytest.raises(RecipeError, match="attention 'crossed': this model has encoder"):
        found.weights("crossed")


def test_a_name_and_a_text_that_are_html_stay_in_the_frame():
    hostile = '"><script>alert(1)</script>'
    found = Model(tiny_model(Path(hostile)), NullReporter()).attend(f"a dog {hostile} שלום नमस्ते")
    assert re.fullmatch(r'<iframe( [a-z]+="[^"]*")+></iframe>', found._repr_html_())
    assert "<script>alert" not in found.html()


def test_what_is_the_user_s_stays_as_it_was(model):
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)

    def state():
        numpy_state = np.random.get_state()
        return (
            *(torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()),
            *(torch.get_rng_state().tolist(), numpy_state[1].tolist(), random.getstate()),
        )

    before = state()
    model.translate(TEXTS, strategy="sample")
    model.score(TEXTS, TEXTS)
    model.attend(TEXTS[0])
    model_of("language_model").generate("a dog", max_length=4)
    model_of("classification").probabilities(TEXTS)
    assert state() == before


def test_several_threads_may_use_one_model(model):
    """And from a thread that is not the first, processes are forked that decode."""
    texts = [f"{text} {more}" for text in TEXTS for more in TEXTS] * 2
    wanted, found = {beam: model.translate(texts, beam=beam, max_length=5) for beam in (1, 2)}, {}
    threads = [
        threading.Thread(target=lambda beam=beam: found.update({beam: model.translate(texts, beam=beam, max_length=5)}))
        for beam in (1, 2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == wanted


def test_progress_and_warnings_go_where_they_are_sent(caplog, capsys):
    said = []

    class Told(NullReporter):
        def warn(self, text):
            said.append(text)

    long = " ".join(["dog"] * 200)
    Model(tiny_model(), Told()).translate([long, "a dog"], beam=1, max_length=3)
    (told,) = said
    assert told.startswith("1 of 2 sources was longer than the 95 pieces")
    Model(tiny_model(), LoggingReporter()).translate([long, "a dog"], beam=1, max_length=3)
    assert [(each.name, each.levelname, each.message) for each in caplog.records] == [("tfm", "WARNING", told)]
    assert capsys.readouterr().out == ""


def test_a_model_says_what_it_is(model):
    assert repr(model).startswith("<tfm.Model tiny: translation, transformer, ")
    assert (model.task, model.languages, model.config["encoder"]["dim"]) == ("translation", [], 16)
