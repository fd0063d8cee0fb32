"""Lines of a pipe: the same as those of a file, and known to be there before they are read."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tfm.data import lines, live_input
from tfm.data.errors import DataError
from tfm.data.lines import chunk_rows, stream_lines
from tfm.data.live_input import LiveLineReader


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    with suppress(OSError):  # some tests have closed it
        os.close(writer)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("content", ["", "\n", "a", "a\n", "\ufeffeins\nzwei drei\r\n\nvierß\u2028\nfünf", "\n\n\n"])
def test_lines_are_those_of_a_file(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, block: int, content: str
) -> None:
    monkeypatch.setattr(live_input, "BLOCK_BYTES", block)
    reader, writer = pipe
    os.write(writer, content.encode())
    os.close(writer)
    expected = [line.removesuffix("\r") for line in content.removeprefix("\ufeff").split("\n")]
    expected = expected[:-1] if expected[-1] == "" else expected
    for asks in (False, True):
        if asks:
            reader, writer = os.pipe()
            os.write(writer, content.encode())
            os.close(writer)
        stream, found = LiveLineReader(reader, lambda: None), []
        for line in stream_lines(stream, "stdin"):
            found.append(line)
            if asks:
                assert stream.is_line_ready()
        assert found == expected
        if asks:
            os.close(reader)


def test_files_hint_is_read_and_before_waiting_somebody_is_told(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    told: list[float] = []
    stream = LiveLineReader(reader, lambda: told.append(time.monotonic()))
    os.write(writer, b"one\ntwo\nthr")
    assert stream.is_line_ready()
    assert stream.readline(100) == b"one\n"
    assert stream.is_line_ready()
    assert stream.readline(100) == b"two\n"
    assert not stream.is_line_ready()  # a line that is half there is not
    assert told == []
    written: list[float] = []

    def write_once_told() -> None:
        while not told:
            time.sleep(0.001)
        written.append(time.monotonic())
        os.write(writer, b"ee\n")

    thread = threading.Thread(target=write_once_told, daemon=True)
    thread.start()
    assert stream.readline(100) == b"three\n"
    thread.join()
    assert len(told) == 1
    assert told[0] < written[0]
    os.close(writer)
    assert stream.is_line_ready()
    assert stream.readline(100) == b""


def test_a_line_without_end_is_refused_in_bounded_memory(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (live_input, lines):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(live_input, "BLOCK_BYTES", 100)
    reader, writer = pipe
    stream = LiveLineReader(reader, lambda: None)
    os.write(writer, b"good\n" + b"x" * 5000)
    read = stream_lines(stream, "stdin")
    assert next(read) == "good"
    assert stream.is_line_ready()  # nobody waits for the end of such a line
    with pytest.raises(DataError, match=r"stdin, line 2.*is longer than 1,000 bytes"):
        next(read)


def test_portions_end_where_the_next_row_would_be_waited_for() -> None:
    arrived = iter([True, False, False, True, True, True])
    rows = [(str(number),) for number in range(6)]
    found = list(chunk_rows(rows, 3, lambda: next(arrived, True)))
    assert [[row for (row,) in portion] for portion in found] == [["0", "1"], ["2"], ["3", "4", "5"]]


def test_a_writer_that_is_at_work_fills_portions(pipe: tuple[int, int]) -> None:
    """Its next line is waited for a little: what is translated together is sorted by length, and so is faster."""
    reader, writer = pipe

    def write() -> None:
        for number in range(60):
            os.write(writer, b"line %d\n" % number)
            time.sleep(0.002)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    stream = LiveLineReader(reader, lambda: None)
    sizes = [len(each) for each in chunk_rows(zip(stream_lines(stream, "stdin")), 8192, stream.is_line_ready)]
    thread.join()
    assert sum(sizes) == 60
    assert len(sizes) <= 15  # 1 on a machine that is not busy, and 60 without patience


def test_a_long_text_is_read_in_whole_portions(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    content = b"".join(b"line %d\n" % number for number in range(50_000))

    def write() -> None:
        with os.fdopen(os.dup(writer), "wb") as stream:
            stream.write(content)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    stream = LiveLineReader(reader, lambda: None)
    sizes = [len(each) for each in chunk_rows(zip(stream_lines(stream, "stdin")), 8192, stream.is_line_ready)]
    thread.join()
    assert sum(sizes) == 50_000
    assert len(sizes) <= 10  # 7 on a machine that is not busy
