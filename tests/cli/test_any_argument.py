"""Whatever an argument says, a command ends with an exit code and one or two lines, and leaves no process behind."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cli.arguments import USUAL, Parameter, make_run, parameters, words_with, write_texts
from tests.cli.user import tfm
from tests.hub import Hub
from tfm.pipeline.recipes.messages.error_messages import _section_keys
from tfm.pipeline.recipes.recipe import Recipe

pytestmark = pytest.mark.promise("arguments")
MAX_SECONDS = 60
CODES = {0, 2, 65, 73, 74}
EVERY = list(parameters())
ODD = [
    *(
        "",
        " ",
        "\n",
        "a\nb",
        "\r",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1",
        "0",
        "3",
        "1.5",
        "true",
        "none",
        "1,1",
        "--help",
    ),
    *(str(10**400), "9" * 5000, str(2**31), str(2**63), "٣", "²", "½", "１２", "x" * 300, "a/" * 3000, "x" * 100_000),
    *(".", "=", "a=b", "[1]", "{", '"', "it", "test.en", "runs/tiny", "-", "--help"),
    *("\x1b[2J", "\u202e", "\ufeff", "\ud800", "\udcff", "😀" * 50),
]
KEYS = sorted(".".join(key) for key in _section_keys(Recipe, ()))
any_bytes = st.binary(min_size=1, max_size=40).map(lambda each: os.fsdecode(each.replace(b"\0", b"")))
values = st.one_of(st.sampled_from(ODD), any_bytes, st.text(st.characters(exclude_characters="\0"), max_size=40))
inside = values.filter(lambda each: not each.startswith("/") and ".." not in each)  # writes stay in the folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arguments")


@pytest.fixture
def texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has corpora, a recipe and a search."""
    monkeypatch.chdir(folder)
    write_texts(folder)


@pytest.fixture
def here(texts: None, hub: Hub) -> None:
    """The working folder has all that every command of USUAL reads; there is a hub without a model."""
    if not Path("judging").exists():
        make_run()


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Within, what takes longer is stopped by an error that no command handles."""

    def ring(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check_end(words: list[str]) -> None:
    """Run a command, which raises nothing but SystemExit."""
    with alarm(MAX_SECONDS):
        done = tfm(*words, stdin="")
    assert done.code in CODES, done.err
    assert "Traceback" not in done.err
    assert not multiprocessing.active_children()


@given(st.sampled_from(EVERY), any_bytes.filter(lambda each: any("\udc80" <= letter <= "\udcff" for letter in each)))
@example(next(each for each in EVERY if (each.command, each.name) == ("translate", "file")), "\udcff")
@example(next(each for each in EVERY if (each.command, each.name) == ("export", "language")), "\udcff")
@settings(max_examples=20)
@pytest.mark.slow
def test_bytes_that_are_not_utf8_are_refused_before_anything_is_done(parameter: Parameter, value: str) -> None:
    words = words_with(parameter, value)
    done = tfm(*words)
    assert done.code == 2
    assert f"argument {words.index(value) + 1} is not UTF-8: " in done.err


@pytest.mark.few(12)
@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("value", ["nan", str(10**400), "a\nb", "٣", "x" * 300])
@pytest.mark.parametrize("command", ["evaluate", "recipe", "tokenize"])
def test_any_value_of_a_quick_command_ends_in_an_exit_code(command: str, value: str) -> None:
    able = [each for each in EVERY if each.command == command and each.name not in ("out", "sets", "reference", "grow")]
    for each in able[len(value) % 3 :: 3]:
        check_end(words_with(each, value))


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("value", ["nan", "1e400", str(10**400), "-1", "٣", ""])
def test_any_value_of_a_key_ends_in_an_exit_code(value: str) -> None:
    for key in KEYS[:: len(KEYS) // 8]:
        check_end(["recipe", "tiny.toml", "--set", f"{key}={value}"])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("parameter", EVERY, ids=lambda each: f"{each.command} {each.flag or each.name}")
def test_any_value_of_any_argument_ends_in_an_exit_code(parameter: Parameter) -> None:
    @given(st.builds("{}={}".format, st.sampled_from(KEYS), values) if parameter.flag == "--set" else inside)
    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    def ends(value: str) -> None:
        check_end(words_with(parameter, value))

    ends()


def test_every_command_is_tried() -> None:
    assert {each.command for each in EVERY} == {*USUAL}
