"""The two reporters: what a log holds, and that a terminal's bars neither swallow nor interpret text."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from tfm.cli.console import PlainReporter, format_cell, format_duration, make_reporter, table_lines
from tfm.cli.terminal.reporter import TerminalReporter
from tfm.pipeline.runtime.progress import Reporter


class Clock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (3723, "1:02:03")])
def test_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (37.4012, "37.40"),
        (0.012345, "0.01235"),
        (0.0, "0.00"),
        (None, ""),
        (True, "true"),
        ("a", "a"),
    ],
)
def test_cell(value: object, text: str) -> None:
    assert format_cell(value) == text


def test_table_aligns_numbers_right_and_words_left() -> None:
    assert table_lines(("split", "rows"), [("train", 29000), ("valid", 14)]) == [
        "split    rows",
        "-----  ------",
        "train  29,000",
        "valid      14",
    ]


def test_table_takes_numbers_written_as_text_for_numbers() -> None:
    rows = [("BLEU", "9.10", "3 %"), ("perplexity", "∞", "12.5 %")]
    assert table_lines(("metric", "score", "share"), rows)[2:] == [
        "BLEU         9.10     3 %",
        "perplexity      ∞  12.5 %",
    ]


@pytest.mark.parametrize("width", [35, 36, 37, 41, 60, 200])
def test_words_of_a_table_are_whole_where_they_fit(width: int) -> None:
    said = io.StringIO()
    rows = [("transformer-base", "x", "wort " * 9), ("b", "Wörter in 中文", "y")]
    columns = ("run", "architecture of it", "long")
    TerminalReporter(Console(file=said, width=width)).table("", columns, rows)
    words = [word for row in (columns, *rows) for text in row for word in text.split()]
    lines = said.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    assert (sorted(said.getvalue().split()) == sorted(words)) is (width >= 16 + 2 + 12 + 2 + 4)
    assert sorted("".join(said.getvalue().split())) == sorted("".join(words))  # nothing is lost where words are cut


def test_table_without_rows_is_its_heading() -> None:
    assert table_lines(("a", "bc"), []) == ["a  bc", "-  --"]


def test_plain_bar_writes_a_line_every_ten_seconds_at_most() -> None:
    stream, clock = io.StringIO(), Clock()
    with PlainReporter(stream, clock).bar("train", total=100, unit="steps") as bar:
        for _ in range(50):
            clock.now += 0.5
            bar.advance(1, note="loss 2.5")
    lines = stream.getvalue().splitlines()
    assert lines == [
        "train: 20/100 steps, 2 steps/s, 0:40 left, loss 2.5",
        "train: 40/100 steps, 2 steps/s, 0:30 left, loss 2.5",
        "train: 50/100 steps, in 0:25, loss 2.5",
    ]


def test_rate_of_a_resumed_bar_counts_only_what_was_done_now() -> None:
    stream, clock = io.StringIO(), Clock()
    with PlainReporter(stream, clock).bar("train", total=1000, unit="steps", done=900) as bar:
        clock.now += 10
        bar.advance(20)
    assert stream.getvalue().splitlines()[0] == "train: 920/1,000 steps, 2 steps/s, 0:40 left"


def test_plain_bar_of_unknown_length() -> None:
    stream, clock = io.StringIO(), Clock()
    with PlainReporter(stream, clock).bar("read", total=None, unit="lines") as bar:
        clock.now += 10
        bar.advance(50_000)
    assert stream.getvalue().splitlines() == ["read: 50,000 lines, 5,000 lines/s", "read: 50,000 lines, in 0:10"]


def test_plain_lines_warnings_and_tables() -> None:
    stream = io.StringIO()
    plain = PlainReporter(stream)
    plain.line("[tokenizer] fresh")
    plain.warn("3 sources truncated")
    plain.table("Splits", ("split", "rows"), [("train", 5)])
    assert stream.getvalue() == (
        "[tokenizer] fresh\nwarning: 3 sources truncated\nSplits\n  split  rows\n  -----  ----\n  train     5\n"
    )


def shown(stream: io.StringIO) -> str:
    """What a terminal was sent, without its escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_terminal_shows_text_as_it_is() -> None:
    stream = io.StringIO()
    terminal = TerminalReporter(Console(file=stream, force_terminal=True, width=100))
    terminal.line("[bold] is not markup, and [/] closes nothing")
    terminal.warn("[red] neither")
    terminal.table("[Splits]", ("a[b]", "n"), [("[x]", 1)])
    text = shown(stream)
    assert "[bold] is not markup, and [/] closes nothing" in text
    assert "warning: [red] neither" in text
    assert "[Splits]" in text
    assert "a[b]" in text
    assert "[x]" in text


def test_terminal_bars_nest_and_clean_up() -> None:
    stream, clock = io.StringIO(), Clock()
    terminal = TerminalReporter(Console(file=stream, force_terminal=True, width=120), clock)
    with terminal.bar("train", total=2, unit="steps") as outer:
        clock.now += 1
        outer.advance(1, note="[loss] 2.5")
        with terminal.bar("validate", total=10, unit="sentences") as inner:
            inner.advance(10)
            terminal.line("between")
        outer.advance(1)
    with terminal.bar("again", total=1, unit="steps") as bar:
        bar.advance()
    text = shown(stream)
    for part in ("validate: 10/10 sentences", "between", "train: 2/2 steps, in 0:01, [loss] 2.5", "again: 1/1 steps"):
        assert part in text


def test_a_bar_left_by_an_error_lets_the_next_one_open() -> None:
    terminal = TerminalReporter(Console(file=io.StringIO(), force_terminal=True))
    with pytest.raises(ValueError, match="boom"), terminal.bar("train", total=2, unit="steps"):
        raise ValueError("boom")
    with terminal.bar("train", total=2, unit="steps") as bar:
        bar.advance()


def test_reporter_is_plain_when_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    talk: Reporter = make_reporter()
    talk.line("hello")
    assert isinstance(talk, PlainReporter)
    captured = capsys.readouterr()
    assert captured.err == "hello\n"
    assert captured.out == ""


EVIL = "x\x1b[31m\x1b]0;t\x07\x9b2J\r\x08\u202e\u2066"
KEPT = "می\u200cروم 👩\u200d👧 a\u00a0b"
STEERING = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


def say_everything(talk: Reporter) -> None:
    talk.line(f"{EVIL} {KEPT} postgresql://user:hush@host/d")
    talk.warn(f"{EVIL} --api-key=hush")
    talk.table(EVIL, ("a", EVIL), [(EVIL, KEPT), ("one\ntwo", "https://host/?token=hush")])
    with talk.bar(EVIL, 2, EVIL) as bar:
        bar.advance(1, EVIL)


def test_a_log_has_no_control_character_and_no_credential() -> None:
    stream = io.StringIO()
    say_everything(PlainReporter(stream))
    said = stream.getvalue()
    assert not re.search(STEERING, said)
    assert "\r" not in said
    assert KEPT in said
    assert "\\x1b[31m" in said
    assert "one\\ntwo" in said
    assert "hush" not in said


def test_a_terminal_gets_no_control_characters_but_those_of_its_colours_and_bars() -> None:
    stream = io.StringIO()
    say_everything(TerminalReporter(Console(file=stream, force_terminal=True, width=200)))
    own = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")  # red is none of them
    said = own.sub(lambda found: "" if found[0] != "\x1b[31m" else found[0], stream.getvalue())
    assert not re.search(STEERING, said)
    assert KEPT in said
    assert "hush" not in said
