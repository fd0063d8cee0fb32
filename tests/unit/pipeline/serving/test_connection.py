"""A connection reads requests, and bounds what never becomes one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("httptools", reason="no httptools (extra: serve)")

import uvicorn
from uvicorn.server import ServerState

from tfm.pipeline.serving import connection
from tfm.pipeline.serving.connection import MAX_HEAD_BYTES, HttpConnection

App = Callable[[Any, Any, Any], Awaitable[None]]
HEAD = b"POST /a HTTP/1.1\r\nHost: x\r\n"
HALF = b"a" * (MAX_HEAD_BYTES // 2)


class Line(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_shut = b"", False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in {"peername", "sockname"} else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_shut

    def close(self) -> None:
        self.is_shut = True

    def pause_reading(self) -> None:
        """Nothing is sent unasked."""

    def resume_reading(self) -> None:
        """Nothing is sent unasked."""


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the path, the number of headers and the body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    text = b"%s %d %s;" % (scope["raw_path"], len(scope["headers"]), body)
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]}
    await send(head)
    await send({"type": "http.response.body", "body": text})


def connect(app: App = echo) -> tuple[HttpConnection, Line]:
    """Return a new connection to an application, in a running loop."""
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", log_config=None, access_log=False)
    config.load()
    protocol, line = HttpConnection(config, ServerState(), {}), Line()
    protocol.connection_made(line)
    return protocol, line


async def exchange(parts: Iterable[bytes]) -> Line:
    """The transport of a connection that has received parts, one after another, and is closed."""
    protocol, line = connect()
    for part in parts:
        if not line.is_closing():
            protocol.data_received(part)
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return line


def answer(*parts: bytes) -> Line:
    return asyncio.run(exchange(parts))


def test_requests_are_answered_in_their_order_however_their_bytes_come() -> None:
    sent = HEAD + b"Content-Length: 3\r\n\r\none" + HEAD.replace(b"/a", b"/b?c=%20") + b"Content-Length: 0\r\n\r\n"
    whole = answer(sent).written
    assert [whole.find(text) > 0 for text in (b"/a 2 one;", b"/b 2 ;")] == [True, True]
    assert whole.index(b"/a 2 one;") < whole.index(b"/b 2 ;")
    assert answer(*(bytes([byte]) for byte in sent)).written == whole


def test_a_body_is_no_part_of_the_head() -> None:
    body = b"b" * (4 * MAX_HEAD_BYTES)
    assert body in answer(HEAD + b"Content-Length: %d\r\n\r\n" % len(body), *(body[n::4] for n in range(4))).written
    chunk = b"8000\r\n" + b"c" * 0x8000 + b"\r\n"
    assert 3 * 0x8000 * b"c" in answer(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 3, b"0\r\n\r\n").written


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD + b"A: " + 2 * HALF + b"\r\n\r\n"],
        [HEAD + b"A: ", HALF, HALF, HALF],
        [HEAD, *[b"A: 1234567890\r\n"] * 3_000],
        [b"GET /", HALF, HALF, HALF],
        [b"GET /" + HALF + b" HTTP/1.1\r\nA: " + HALF + b"\r\n\r\n"],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: ", HALF, HALF, HALF],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", HALF, HALF, HALF],
        [b"\r\n" * 10_000] * 3,
    ],
    ids=["header", "header in parts", "headers", "URL", "both", "trailer", "extension of a chunk", "empty lines"],
)
def test_what_never_becomes_a_request_is_refused(parts: list[bytes]) -> None:
    line = answer(*parts)
    assert line.is_shut
    assert line.written.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Transfer-Encoding: x, chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + b"A : b\r\n\r\n",
        HEAD + b"A\x00: b\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        HEAD + b"Host: y\r\n\r\n",
    ],
)
def test_a_request_that_can_be_read_two_ways_is_refused(sent: bytes) -> None:
    line = answer(sent)
    assert line.is_shut
    assert line.written.startswith(b"HTTP/1.1 400 ")
    assert line.written.count(b"HTTP/1.1") == 1


def test_a_client_that_hangs_up_is_told_to_the_request_that_is_answered() -> None:
    """Also where it has sent another behind that, which is not begun."""
    seen: list[str] = []

    async def wait_for_end(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"])
        while (message := await receive())["type"] != "http.disconnect":
            pass
        seen.append(message["type"])

    async def hang_up() -> None:
        protocol, _ = connect(wait_for_end)
        protocol.data_received(2 * (HEAD + b"\r\n"))
        await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError())
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(hang_up())
    assert seen == ["/a", "http.disconnect"]


def test_a_client_that_sends_no_request_is_shut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SECONDS_FOR_HEAD", 0.01)

    async def dawdle() -> list[bool]:
        lines = []
        for sent in (HEAD, HEAD + b"Content-Length: 0\r\n\r\n"):
            protocol, line = connect()
            protocol.data_received(sent)
            lines.append(line)
        await asyncio.sleep(0.05)
        return [line.is_shut for line in lines]

    assert asyncio.run(dawdle()) == [True, False]
