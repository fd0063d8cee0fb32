"""The frame of all routes: the caller is counted, the client is watched, and problems are said in the route's shape."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.problems import ClientDisconnected, Problem

Handler = Callable[[Request], Awaitable[Response]]
CLIENT_GONE_STATUS = 499
"""The status that logs have of a request whose client has hung up; it is sent to nobody."""
OPENAI_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
REQUEST_ID_HEADER = "X-Request-ID"
MAX_REQUEST_ID_CHARS = 64


def make_endpoint(backend: Backend, route: str, handle: Handler) -> Handler:
    """Return a handler that also notes each request down, and turns problems into responses.

    Args:
        backend: of the server.
        route: the path of the route, for figures.
        handle: answers a request.
    """

    async def respond(request: Request) -> Response:
        start_time = time.monotonic()
        request.state.number, request.state.caller = _request_id(request), client_address(request)
        request.state.texts = None
        try:
            response = await handle(request)
        except Problem as problem:
            response = problem_response(request, problem)
        except ClientDisconnected:
            response = Response(status_code=CLIENT_GONE_STATUS)
        except Exception as error:
            backend.log.warn(f"request {request.state.number}: {_error_type_and_place(error)}")
            response = problem_response(request, Problem(500, "the server failed at this request: it is its fault"))
        response.headers[REQUEST_ID_HEADER] = request.state.number
        seconds = time.monotonic() - start_time
        backend.metrics.count_request(route, response.status_code, seconds)
        asyncio.get_running_loop().call_soon(  # when the response is sent: its client does not wait for the log
            backend.log.log_request,
            request.state.number,
            request.method,
            route,
            response.status_code,
            seconds,
            request.state.caller,
            request.state.texts,
        )
        return response

    return respond


def admit(backend: Backend, request: Request, fields: dict[str, Any] | None = None) -> None:
    """Count a request of its caller. Raises Problem if it may not ask, or not yet.

    Args:
        backend: of the server.
        request: the request.
        fields: of its body, of which api_key may be one.
    """
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    with suppress(UnicodeError):  # a header's bytes come as Latin-1, and are UTF-8 where a key is no ASCII
        bearer = bearer.encode("latin-1").decode()
    key = bearer.strip() if kind.lower() == "bearer" and bearer.strip() else None
    for parameters in (fields or {}, request.query_params):
        api_key = parameters.get("api_key")
        key = key or (api_key if isinstance(api_key, str) and api_key else None)
    request.state.caller = backend.access.admit(key, client_address(request))


def client_address(request: Request) -> str:
    """The address of a client."""
    return request.client.host if request.client is not None else "local"


def problem_response(request: Request, problem: Problem) -> Response:
    """Format a problem for the clients of a route: as OpenAI does for /v1, else as LibreTranslate does."""
    body: dict[str, Any] = {"error": problem.sentence}
    if request.url.path.startswith("/v1/"):
        kind = OPENAI_ERROR_TYPES.get(
            problem.status, "server_error" if problem.status >= 500 else "invalid_request_error"
        )
        body = {"error": {"message": problem.sentence, "type": kind, "param": None, "code": None}}
    return JSONResponse(body, problem.status, problem.headers)


def http_exception_response(request: Request, error: Exception) -> Response:
    """The response to a path or a method that the server does not have."""
    assert isinstance(error, HTTPException)
    sentences = {
        404: "there is nothing at this path: /openapi.json lists the routes",
        405: "this path has another method: /openapi.json lists the routes",
    }
    sentence = sentences.get(error.status_code, str(error.detail))
    if error.status_code == 404 and request.url.path.endswith("/"):
        sentence = f"there is nothing at {request.url.path[:80]!r}: remove the slash at its end"
    return problem_response(request, Problem(error.status_code, sentence, error.headers))


def _request_id(request: Request) -> str:
    """The id that a client or a proxy gave the request, or one of its own."""
    request_id = request.headers.get(REQUEST_ID_HEADER, "")
    is_plain = request_id.isascii() and request_id.replace("-", "").replace("_", "").isalnum()
    return request_id if is_plain and len(request_id) <= MAX_REQUEST_ID_CHARS else secrets.token_hex(8)


def _error_type_and_place(error: Exception) -> str:
    """An error with its place, without its text, which may hold one of a request."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    location = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}{location}"
