"""A connection of a client: HTTP/1.1 as `uvicorn` and `httptools` read it, with limits for heads that never end."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

SECONDS_FOR_HEAD = 10.0
MAX_HEAD_BYTES = 32 << 10
"""The most bytes of the first line, the headers and the trailers of a request together."""
HTTP_VERSIONS = ("1.0", "1.1")


class RequestHeadError(Exception):
    """The head of a request is longer than it may be, or not of HTTP/1."""


class HttpConnection(HttpToolsProtocol):
    """The requests of a connection, answered in turn.

    The head of the first must come within SECONDS_FOR_HEAD, and none may be longer than MAX_HEAD_BYTES. A client that
    hangs up is told to the request that is being answered, also where it has sent others behind that.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(SECONDS_FOR_HEAD, self._close_without_request)
        self._head_bytes = self._unparsed_bytes = 0
        self._answered: RequestResponseCycle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, and forget the connection."""
        self._head_timer.cancel()
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what has come; what never becomes a header or a body is not kept for ever."""
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Begin to count the bytes of a head."""
        super().on_message_begin()
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL. Raises RequestHeadError."""
        self._count_head_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer. Raises RequestHeadError."""
        self._count_head_bytes(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer. Raises RequestHeadError for a version that has no headers, and hosts other than one."""
        self._unparsed_bytes = 0
        version, num_hosts = self.parser.get_http_version(), sum(name == b"host" for name, _ in self.headers)
        if version not in HTTP_VERSIONS or num_hosts > 1 or (version == "1.1" and num_hosts == 0):
            raise RequestHeadError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the body."""
        self._unparsed_bytes = 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: object) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def _count_head_bytes(self, number: int) -> None:
        self._head_bytes += number
        if self._head_bytes > MAX_HEAD_BYTES:
            raise RequestHeadError

    def _close_without_request(self) -> None:
        if self.cycle is None and self.transport is not None:
            self.transport.close()
