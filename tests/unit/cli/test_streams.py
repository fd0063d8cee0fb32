"""Streams of messages outlive what they write to, and write nothing then."""

import gc
import io
import os

import pytest

from tfm.cli.streams import MessageStream, TerminalStream


@pytest.mark.parametrize("kind", [MessageStream, TerminalStream])
def test_a_stream_that_was_closed_is_not_flushed(kind: type[MessageStream]) -> None:
    """Python flushes a stream that is deleted; since 3.13 an error of that is shown."""
    stream = io.TextIOWrapper(io.BytesIO())  # as stderr is; a StringIO that was closed may be flushed
    messages = kind(stream)
    messages.write("a")
    stream.close()
    messages.flush()
    del messages
    gc.collect()


def test_messages_to_a_pipe_that_nobody_reads_are_dropped() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        messages = MessageStream(pipe)
        assert messages.write("a\n" * 10) == 20
        messages.flush()
        messages.write("b\n")
        messages.flush()
