"""The description of the routes in OpenAPI 3.1, made of what checks their fields, and a page of it."""

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

from pydantic import BaseModel

from tfm.pipeline.distribution import version
from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.routes.completions import CompletionBody
from tfm.pipeline.serving.routes.labels import AttendBody, CaptionBody, LabelBody
from tfm.pipeline.serving.routes.translate import DetectBody, TranslateBody

JSON_MEDIA_TYPE = "application/json"
FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
MULTIPART_MEDIA_TYPE = "multipart/form-data"
NULL_SCHEMA = {"type": "null"}
ANNOTATION_KEYS = ("title", "description", "default")
"""The keys of a field's schema that say nothing of its type."""
PROBLEM_DESCRIPTIONS = {
    "400": "The request says something wrong; the sentence names it.",
    "401": "The server needs a key.",
    "403": "The server does not know the key.",
    "408": "The body came too slowly.",
    "413": "The body is too long.",
    "415": "The body is compressed.",
    "429": "Too many requests a minute.",
    "500": "The server failed.",
    "503": "Too much is asked for at once, or the models are being loaded.",
    "504": "The answer took too long.",
}


class RouteDescription(NamedTuple):
    """A route as the description has it: summary, fields of the body, types of bodies, and of answers."""

    summary: str
    body: type[BaseModel] | None = None
    types: tuple[str, ...] = ()
    answers: tuple[str, ...] = (JSON_MEDIA_TYPE,)


ROUTE_DESCRIPTIONS: Mapping[tuple[str, str], RouteDescription] = {
    ("post", "/translate"): RouteDescription(
        "Translate a text, or several", TranslateBody, (JSON_MEDIA_TYPE, FORM_MEDIA_TYPE)
    ),
    ("get", "/languages"): RouteDescription("Languages, and those that each is translated into"),
    ("post", "/detect"): RouteDescription("The language of a text", DetectBody, (JSON_MEDIA_TYPE, FORM_MEDIA_TYPE)),
    ("get", "/frontend/settings"): RouteDescription("Limits and models, as the page needs them"),
    ("post", "/v1/completions"): RouteDescription(
        "Text after a prompt, by a language model",
        CompletionBody,
        (JSON_MEDIA_TYPE,),
        (JSON_MEDIA_TYPE, "text/event-stream"),
    ),
    ("get", "/v1/models"): RouteDescription("All models"),
    ("post", "/v1/classify"): RouteDescription(
        "Labels of a text or an image", LabelBody, (JSON_MEDIA_TYPE, MULTIPART_MEDIA_TYPE)
    ),
    ("post", "/v1/tag"): RouteDescription("A tag for each word of a text", LabelBody, (JSON_MEDIA_TYPE,)),
    ("post", "/v1/caption"): RouteDescription("Captions of an image", CaptionBody, (MULTIPART_MEDIA_TYPE,)),
    ("post", "/v1/attend"): RouteDescription(
        "The attention of a model that reads a text", AttendBody, (JSON_MEDIA_TYPE,)
    ),
    ("get", "/health"): RouteDescription("Whether the models are loaded"),
    ("get", "/metrics"): RouteDescription("Figures for Prometheus", answers=("text/plain",)),
}


def describe_routes(backend: Backend) -> dict[str, Any]:
    """The description of a server's routes."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for (method, path), route in ROUTE_DESCRIPTIONS.items():
        if path == "/detect" and backend.detector is None:
            continue
        paths.setdefault(path, {})[method] = _describe_operation(route, schemas)
    schemas["Problem"] = {"type": "object", "required": ["error"], "properties": {"error": {}}}
    security = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tfm serve", "version": version() or "0"},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
        **({"security": [{"key": []}]} if backend.access.needs_key else {}),
    }


def _describe_operation(route: RouteDescription, schemas: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {JSON_MEDIA_TYPE: {"type": ["object", "array"]}}
    answers = {each: {"schema": kinds.get(each, {})} for each in route.answers}
    answer = {"description": "the answer", "content": answers}
    problem = {JSON_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[str, Any] = {"200": answer}
    responses |= {status: {"description": text, "content": problem} for status, text in PROBLEM_DESCRIPTIONS.items()}
    operation: dict[str, Any] = {"summary": route.summary, "responses": responses}
    if route.body is not None:
        name = route.body.__name__
        schema = route.body.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[name] = _allow_null(schema)
        content = {each: {"schema": {"$ref": f"#/components/schemas/{name}"}} for each in route.types}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of fields whose optional ones may be null, which means that they are left out."""
    properties = {}
    for name, field in schema["properties"].items():
        types = field.get("anyOf") or [{key: each for key, each in field.items() if key not in ANNOTATION_KEYS}]
        annotations = {key: each for key, each in field.items() if key in ANNOTATION_KEYS}
        is_closed = name in schema.get("required", ()) or NULL_SCHEMA in types
        properties[name] = field if is_closed else {"anyOf": [*types, NULL_SCHEMA], **annotations}
    return {**schema, "properties": properties}


def docs_page(description: dict[str, Any]) -> str:
    """A page of the routes and their fields, without a script."""
    parts = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}.</p>")
            parts.append(_fields_table(description, operation))
    style = '<link rel="stylesheet" href="static/docs.css">'
    title = "<title>tfm serve: routes</title>"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{title}{style}'
    intro = '<h1>Routes of this server</h1><p>The same for programs: <a href="openapi.json">/openapi.json</a>.</p>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{intro}{"".join(parts)}</main></body></html>'


def _fields_table(description: dict[str, Any], operation: dict[str, Any]) -> str:
    body = operation.get("requestBody")
    if body is None:
        return ""
    reference = next(iter(body["content"].values()))["schema"]["$ref"]
    schema = description["components"]["schemas"][reference.rpartition("/")[2]]
    required = schema.get("required", ())
    rows = [
        f"<tr><td><code>{escape(name)}</code></td><td>{'required' if name in required else ''}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    ]
    kinds = " or ".join(map(escape, body["content"]))
    return f"<p>Body: {kinds}</p><table><tr><th>field</th><th></th><th>meaning</th></tr>{''.join(rows)}</table>"
