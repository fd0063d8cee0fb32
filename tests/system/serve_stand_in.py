"""A server that answers as `tfm serve` does, without a model: translations are the text in capitals."""

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PAGE = Path(__file__).parents[2] / "pipeline" / "serving" / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
TRANSLATOR = {"name": "en-de", "task": "translation", "images": False}
OTHERS = [
    {"name": "shakespeare", "task": "language_model", "images": False},
    {"name": "sst2", "task": "classification", "images": False},
    {"name": "atis", "task": "tagging", "images": False},
    {"name": "captions", "task": "translation", "images": True},
]
LANGUAGES = [
    {"code": "en", "name": "English", "targets": ["de", "ar"]},
    {"code": "de", "name": "German", "targets": ["en"]},
    {"code": "ar", "name": "Arabic", "targets": ["en"]},
]


def spell(word: str) -> str:
    """A word as a piece."""
    return "<unk>" if any(character.isdigit() for character in word) else f"\u2423{word}"


@dataclass
class StandIn:
    """The state of a server.

    address: of the server. models: that it has. languages: that these translate. char_limit: of a text. key: that a
    request needs. seconds: that an answer takes. refusals: answers of the next requests, as status and sentence.
    asked: the bodies of requests.
    """

    address: str = ""
    models: list[dict[str, Any]] = field(default_factory=lambda: [TRANSLATOR])
    languages: list[dict[str, Any]] = field(default_factory=lambda: LANGUAGES)
    char_limit: int = 50_000
    key: str | None = None
    seconds: float = 0.0
    refusals: list[tuple[int, str]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def settings(self, request: Request) -> Response:
        """The settings of the page."""
        sides = {"source": {"code": "en", "name": "English"}, "target": {"code": "de", "name": "German"}}
        known = {
            "charLimit": self.char_limit,
            "alternativesLimit": 9,
            "keyRequired": self.key is not None,
            "detection": False,
        }
        return JSONResponse({**known, "models": self.models, "language": sides})

    async def list_languages(self, request: Request) -> Response:
        """The languages."""
        return JSONResponse(self.languages)

    async def translate(self, request: Request) -> Response:
        """The text in capitals."""
        body = await request.json()
        self.asked.append(body)
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return JSONResponse({"error": "this server needs a key"}, 401)
        await asyncio.sleep(self.seconds)
        if self.refusals:
            status, sentence = self.refusals.pop(0)
            return JSONResponse({"error": sentence}, status, {"Retry-After": "1"})
        text = body["q"].upper()
        for term, translation in body.get("glossary", {}).items():
            text = text.replace(term.upper(), translation)
        others = [f"{text} {number}" for number in range(body.get("alternatives", 0))]
        places = [[each.start(), each.end()] for each in re.finditer(r"\S[^.!?\n]*[.!?]*", body["q"])]
        segments = [{"source": each, "target": each} for each in places if text[slice(*each)].strip()]
        return JSONResponse(
            {"translatedText": text, "segments": segments, **({"alternatives": others} if others else {})}
        )

    async def attend(self, request: Request) -> Response:
        """Each word attends to the one in the same place, with half of its weight; with a digit it is unknown."""
        body = await request.json()
        self.asked.append(body)
        keys, queries = (list(map(spell, body[side].split())) for side in ("text", "translation"))
        rest = 0.5 / len(keys)
        rows = [[0.5 + rest if row == column else rest for column in range(len(keys))] for row in range(len(queries))]
        head = [[*row, 0.0] for row in [*rows, [1 / len(keys)] * len(keys)]]  # the last row predicts the end
        tokens = {"cross": {"queries": [*queries, "</s>"], "keys": [*keys, "</s>"]}}
        layers = [{"name": f"cross.{n}", "kind": "cross", "layer": n, "weights": [head, head]} for n in (1, 2)]
        return JSONResponse(
            {"source": body["text"], "target": body["translation"], "tokens": tokens, "attentions": layers}
        )

    async def complete(self, request: Request) -> Response:
        """Five words, one after the other."""
        body = await request.json()
        self.asked.append(body)

        async def events() -> AsyncIterator[str]:
            for word in ("and", "so", "<b>it</b>", "goes", "on"):
                yield f"data: {json.dumps({'choices': [{'text': ' ' + word}]})}\n\n"
                await asyncio.sleep(self.seconds)
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def classify(self, request: Request) -> Response:
        """Two labels."""
        labels = [{"label": "positive", "probability": 0.75}, {"label": "<i>negative</i>", "probability": 0.25}]
        if request.headers["content-type"].startswith("multipart"):
            return JSONResponse({"results": [{"labels": labels}]})
        return JSONResponse({"results": [{"text": text, "labels": labels} for text in (await request.json())["text"]]})

    async def tag(self, request: Request) -> Response:
        """A tag for each word, none for the last."""
        texts = (await request.json())["text"]
        tags = [[{"word": word, "tag": "O"} for word in text.split()] for text in texts]
        for some in tags:
            some[-1]["tag"] = None
        return JSONResponse({"results": [{"tags": some} for some in tags]})

    async def caption(self, request: Request) -> Response:
        """A caption."""
        return JSONResponse({"captions": [{"text": "a dog <runs>", "score": -1.0}]})

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        found = PAGE / request.path_params.get("name", "index.html")
        return FileResponse(found, media_type=MEDIA_TYPES[found.suffix])

    def app(self) -> Starlette:
        """The application."""
        posts = {
            "/translate": self.translate,
            "/v1/attend": self.attend,
            "/v1/completions": self.complete,
            "/v1/classify": self.classify,
            "/v1/tag": self.tag,
            "/v1/caption": self.caption,
        }
        gets = {"/frontend/settings": self.settings, "/languages": self.list_languages, "/static/{name}": self.file}
        routes = [Route(path, handle, methods=["POST"]) for path, handle in posts.items()]
        routes += [Route(path, handle) for path, handle in {**gets, "/": self.file}.items()]

        async def add_policy(request: Request, call_next: RequestResponseEndpoint) -> Response:
            response = await call_next(request)
            response.headers["Content-Security-Policy"] = POLICY
            return response

        return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=add_policy)])


@contextmanager
def standing_in(stand: StandIn, port: int = 0) -> Iterator[StandIn]:
    """Serve on a free port, in a thread."""
    config = uvicorn.Config(stand.app(), port=port, log_level="error", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has not started"
        time.sleep(0.02)
    stand.address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    try:
        yield stand
    finally:
        server.should_exit = True
        thread.join(10)
