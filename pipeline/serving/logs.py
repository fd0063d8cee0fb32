"""The log of a server: a line a request on stderr, as text or JSON, without the texts of the request."""

import json
import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from tfm.pipeline.errors import format_for_terminal

MAX_LOGGED_TEXT_CHARS = 2_000


@dataclass
class Log:
    """The log of a server.

    Args:
        as_json: whether each line is a JSON object.
        with_texts: whether the texts of requests are written too.
        stream: where it is written.
    """

    as_json: bool = False
    with_texts: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    def info(self, text: str) -> None:
        """Write something about the server."""
        self._write({"level": "info", "message": text}, text)

    def warn(self, text: str) -> None:
        """Write something about the server that its operator should look at."""
        self._write({"level": "warning", "message": text}, f"warning: {text}")

    def log_request(
        self, request_id: str, method: str, path: str, status: int, seconds: float, caller: str, texts: list[str] | None
    ) -> None:
        """Write a line about a request that was answered.

        Args:
            request_id: of the request, as its response has it.
            method: of HTTP.
            path: without the query.
            status: of HTTP.
            seconds: that it took.
            caller: the label of its key, or its address.
            texts: that it sent.
        """
        fields: dict[str, object] = {
            "level": "info",
            "request": request_id,
            "method": method,
            "path": path,
            "status": status,
            "seconds": round(seconds, 4),
            "caller": caller,
        }
        line = f"{caller} {method} {path} {status} {seconds:.3f} s {request_id}"
        if self.with_texts and texts:
            excerpts = [text[:MAX_LOGGED_TEXT_CHARS] for text in texts]
            fields["texts"], line = excerpts, f"{line} {json.dumps(excerpts, ensure_ascii=False)}"
        self._write(fields, line)

    def _write(self, fields: dict[str, object], line: str) -> None:
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        if self.as_json:
            line = json.dumps({"time": f"{timestamp}Z", **fields})
        else:
            line = f"{timestamp}Z {format_for_terminal(line)}".replace("\n", " ")
        print(line, file=self.stream, flush=True)
