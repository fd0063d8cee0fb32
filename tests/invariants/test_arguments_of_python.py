"""Whatever a Python caller gives to `import tfm`: a result, a TfmError, or a TypeError for another type; no hang."""

import inspect
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfm
from tests.tiny_model import tiny_model
from tfm.model.config import StackConfig
from tfm.pipeline.api.settings import DecodingOptions
from tfm.pipeline.runtime.progress import NullReporter

ALLOWED = (tfm.TfmError, TypeError)
SECONDS = 60
MODELS: dict[str, dict[str, Any]] = {
    "translation": {},
    "language_model": {"architecture": "decoder_only", "task": "language_model"},
    "classification": {"architecture": "encoder_only", "task": "classification"},
    "tagging": {"architecture": "encoder_only", "task": "tagging"},
    "masked_language_model": {"architecture": "encoder_only", "task": "masked_language_model"},
    "word_vectors": {"architecture": "skip_gram", "task": "word_vectors"},
}
STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)

ODD_TEXTS = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "a\nb",
    "a\tb",
    "\u2028",
    "🐕",
    "كلب",
    "x" * 300,
    "a dog " * 40,
    "[MASK]",
    "a [MASK][MASK]",
]
TEXTS = st.sampled_from(["a dog", "dog", *ODD_TEXTS, "de", "source", "cross", "search", "sample", "--to", "/", ".."])
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-3, 4),
    st.sampled_from([10**6, 10**9, 2**31, 2**63, 2**64, 10**30, -(10**30)]),
    st.floats(),
    st.sampled_from([np.int64(2), np.float32(0.5), np.float64("nan"), np.bool_(True), 1j]),
)
OTHERS = st.sampled_from([None, b"a dog", b"\xff", Path("a dog"), object(), int, np.array(["a"]), np.zeros((2, 2)), {}])
ANYTHING = st.recursive(
    st.one_of(TEXTS, NUMBERS, OTHERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.sampled_from(["a", "dog"]), inner, max_size=2),
    ),
    max_leaves=4,
)


@contextmanager
def no_hang() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no answer in {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def call(function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """What a function gives; None where it refuses, in words."""
    with no_hang():
        try:
            return function(*args, **kwargs)
        except ALLOWED as refused:
            said = str(refused)
    assert said
    return None


@cache
def model_of(task: str) -> "tfm.Model":
    return tfm.Model(tiny_model(encoder=STACK, decoder=STACK, **MODELS[task] | {"max_length": 48}), NullReporter())


METHODS = [name for name, each in inspect.getmembers(tfm.Model, inspect.isfunction) if not name.startswith("_")]
SETTINGS = list(DecodingOptions.__annotations__)


def names_of(method: str) -> list[str]:
    """The keywords of a method; those of decoding where it takes them."""
    known = inspect.signature(getattr(tfm.Model, method)).parameters.values()
    named = [each.name for each in known if each.kind is each.KEYWORD_ONLY]
    return [*named, *(SETTINGS if any(each.kind is each.VAR_KEYWORD for each in known) else [])]


@st.composite
def asked(draw: st.DrawFn, method: str) -> tuple[list[object], dict[str, object]]:
    """Arguments of a method: a text, or anything; and up to two keywords."""
    first = draw(st.one_of(TEXTS, st.lists(TEXTS, max_size=3), ANYTHING))
    more = (
        draw(st.lists(st.one_of(TEXTS, ANYTHING), max_size=1))
        if method in ("score", "neighbours", "neighbour_probability", "attend", "fill")
        else []
    )
    keywords = draw(st.dictionaries(st.sampled_from([*names_of(method), "unknown"]), ANYTHING, max_size=2))
    return [first, *more], keywords


def check(task: str, method: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(asked(method))
    def each(given_: tuple[list[object], dict[str, object]]) -> None:
        call(getattr(model_of(task), method), *given_[0], **given_[1])

    each()


ABLE = [
    ("translation", method) for method in ("translate", "translations", "score", "attend", "embed", "neighbours")
] + [
    ("language_model", "generate"),
    ("language_model", "generations"),
    ("language_model", "score"),
    ("classification", "classify"),
    ("classification", "probabilities"),
    ("tagging", "tag"),
    ("masked_language_model", "attend"),
    ("masked_language_model", "fill"),
    ("masked_language_model", "encode"),
    ("translation", "encode"),
    ("word_vectors", "neighbour_probability"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("task", "method"), ABLE)
def test_methods_answer_or_refuse(task: str, method: str) -> None:
    check(task, method, 40)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", MODELS)
def test_methods_of_every_model_answer_or_refuse(task: str, method: str) -> None:
    check(task, method, 200)


ARRAY = np.zeros((2, 2))


@pytest.mark.parametrize("name", ["beam", "through_ends", "strategy", "forbidden", "temperature", "unknown"])
@pytest.mark.parametrize(
    "value",
    [ARRAY, object(), b"a", {1}, "False"],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_a_setting_of_another_type_is_refused(name: str, value: object) -> None:
    assert call(model_of("language_model").generate, "a dog", **{name: value}) is None


@pytest.mark.parametrize("name", ["to", "source_language"])
def test_a_language_is_a_text(name: str) -> None:
    for value in (["de"], 1, b"de", ARRAY):
        with pytest.raises(TypeError, match=f"{name} is .*: give one str"):
            model_of("translation").translate("a dog", **{name: value})  # type: ignore[arg-type]


def test_numpy_s_values_and_tuples_are_python_s() -> None:
    model = model_of("language_model")
    wanted = model.generate("a dog", max_length=12, forbidden=["cat"], through_ends=False)
    given_ = {"max_length": np.int32(12), "forbidden": np.array(["cat"]), "through_ends": np.bool_(False)}
    assert model.generate("a dog", **given_) == wanted  # type: ignore[arg-type]
    assert model.generate("a dog", max_length=12, forbidden=("cat",), through_ends=False) == wanted


def test_every_method_is_tried() -> None:
    assert {method for _, method in ABLE} == {*METHODS}


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(folder=ANYTHING, device=st.one_of(TEXTS, ANYTHING))
def test_what_is_no_folder_is_refused(tmp_path: Path, folder: object, device: object) -> None:
    for function in (tfm.read_run, tfm.load):
        assert call(function, folder) is None
    assert call(tfm.load, str(tmp_path), device=device) is None


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(kind=ANYTHING, file=ANYTHING)
def test_what_attention_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: object, file: object) -> None:
    monkeypatch.chdir(tmp_path)
    attention = model_of("masked_language_model").attend("a dog")
    call(attention.weights, kind)
    call(attention.tokens, kind)
    call(attention.save, file)
