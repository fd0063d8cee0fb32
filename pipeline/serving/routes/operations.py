"""Routes for whoever runs a server: /health, /metrics, /openapi.json, /docs; and the page with its files."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.problems import Problem
from tfm.pipeline.serving.routes.endpoint import admit, make_endpoint
from tfm.pipeline.serving.routes.openapi import describe_routes, docs_page

PAGE_FOLDER = Path(__file__).parent.parent / "page"
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


def operation_routes(backend: Backend) -> list[Route]:
    """The routes that every server has."""

    async def health(request: Request) -> Response:
        loading_models = [
            name
            for name, model in backend.catalog.models.items()
            if not backend.dispatcher.is_loaded(model.version.key)
        ]
        if loading_models:
            return JSONResponse({"status": "starting", "models": loading_models}, 503, {"Retry-After": "1"})
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        if backend.access.needs_key:
            admit(backend, request)
        return Response(backend.metrics.text(), media_type=backend.metrics.content_type)

    async def openapi(request: Request) -> Response:
        return JSONResponse(describe_routes(backend))

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(describe_routes(backend)))

    async def page(request: Request) -> Response:
        return _page_file("index.html")

    async def static(request: Request) -> Response:
        return _page_file(request.path_params["name"])

    handlers = {
        "/health": health,
        "/metrics": metrics,
        "/openapi.json": openapi,
        "/docs": docs,
        "/": page,
        "/static/{name}": static,
    }
    return [Route(path, make_endpoint(backend, path, handle)) for path, handle in handlers.items()]


def _page_file(name: str) -> Response:
    """Return a file of the page. Raises Problem if the page has no such file."""
    file = PAGE_FOLDER / name
    if "/" in name or file.suffix not in MEDIA_TYPES or not file.is_file():
        raise Problem(404, "there is no such file of the page")
    return FileResponse(file, media_type=MEDIA_TYPES[file.suffix], headers={"Cache-Control": "no-cache"})
