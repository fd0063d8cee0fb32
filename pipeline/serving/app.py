"""The application: all routes of a server, under headers that keep its page to itself."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.routes.completions import completion_routes
from tfm.pipeline.serving.routes.endpoint import http_exception_response
from tfm.pipeline.serving.routes.labels import label_routes
from tfm.pipeline.serving.routes.operations import operation_routes
from tfm.pipeline.serving.routes.translate import translation_routes

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' blob: data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def make_app(backend: Backend, origins: Sequence[str] = ()) -> Starlette:
    """Return the application.

    Args:
        backend: of the server; its processes start and end with the application.
        origins: of other sites whose pages may ask this server; none unless they are named.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        backend.open()
        try:
            yield
        finally:
            backend.dispatcher.close()

    middleware = [Middleware(SecurityHeaders)]
    if origins:
        methods, headers = ["GET", "POST"], ["Authorization", "Content-Type"]
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=methods, allow_headers=headers)
        )
    routes = [
        *operation_routes(backend),
        *translation_routes(backend),
        *completion_routes(backend),
        *label_routes(backend),
    ]
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={HTTPException: http_exception_response},
    )
    app.router.redirect_slashes = False  # to an address without the scheme, port and prefix of a proxy
    return app


class SecurityHeaders:
    """Adds the headers by which a browser keeps the page to what it needs.

    Args:
        app: the application within.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
