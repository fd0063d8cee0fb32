"""Routes of our own: /v1/classify, /v1/tag, /v1/caption, /v1/attend."""

import math
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tfm.data.lines import join_lines
from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import UNKNOWN_LANGUAGE, ModelCatalog, ServedModel
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.pipeline.serving.problems import bad_request
from tfm.pipeline.serving.routes.bodies import (
    cancel_on_disconnect,
    check_has_no_surrogates,
    check_search_limits,
    check_texts,
    read_fields,
    validate_fields,
)
from tfm.pipeline.serving.routes.endpoint import admit, make_endpoint
from tfm.pipeline.serving.routes.translate import find_direction
from tfm.pipeline.serving.translation_service import ServedDirection, ask_all

MAX_LABELS = 100
SCORE_DECIMALS = 4
MAX_ATTENDED_CHARS = 1_000


def _check_is_bytes(value: object) -> object:
    if value is not None and not isinstance(value, bytes):
        raise ValueError("is a file of a form (multipart/form-data)")
    return value


ImageBytes = Annotated[bytes | None, BeforeValidator(_check_is_bytes)]


class LabelBody(BaseModel):
    """The fields of POST /v1/classify and /v1/tag."""

    model_config = ConfigDict(extra="ignore")

    text: str | list[str] | None = Field(None, description="the text, or several")
    image: ImageBytes = Field(None, description="an image file, in a form (multipart/form-data), for classes of images")
    model: str | None = Field(None, description="name of the model; optional if there is only one")
    top: int = Field(5, ge=1, le=MAX_LABELS, description="number of labels of each text")
    api_key: str | None = None


class CaptionBody(BaseModel):
    """The fields of the form of POST /v1/caption."""

    image: ImageBytes = Field(None, description="an image file")
    model: str | None = None
    beam: int | None = Field(None, ge=1)
    alternatives: int = Field(0, ge=0)
    api_key: str | None = None


class AttendBody(BaseModel):
    """The fields of POST /v1/attend."""

    text: str = Field(description="the text that is read")
    translation: str | None = Field(None, description="the text to score; the model's own by default")
    source: str | None = Field(None, description="language of the text")
    target: str | None = Field(None, description="language of the translation")
    model: str | None = None
    api_key: str | None = None


def label_routes(backend: Backend) -> list[Route]:
    """The routes of classifiers, taggers and captions, and of attention."""
    handlers = {"/v1/classify": _classify, "/v1/tag": _tag, "/v1/caption": _caption, "/v1/attend": _attend}
    return [
        Route(path, make_endpoint(backend, path, partial(handle, backend)), methods=["POST"])
        for path, handle in handlers.items()
    ]


async def _classify(backend: Backend, request: Request) -> Response:
    """Labels of texts, or of an image."""
    body = await _read_admitted_fields(backend, request, LabelBody)
    if body.image is not None:
        model = backend.choose_model(body.model, "classifies images", _select_models(backend, "label", images=True))
        query = Query(model.version.key, "label", "", n_best=body.top, image=body.image)
        (records,) = await _answer_while_connected(backend, request, [query])
        return JSONResponse({"model": model.name, "results": [{"labels": _labels_as_json(records)}]})
    if body.text is None:
        raise bad_request("text: send a text, or a list of texts; or `image`, a file of a form (multipart/form-data)")
    texts = _validate_texts(backend, request, body)
    model = backend.choose_model(body.model, "classifies texts", _select_models(backend, "label", images=False))
    answers = await _answer_while_connected(backend, request, [_label_query(model, text, body.top) for text in texts])
    results = [{"text": text, "labels": _labels_as_json(records)} for text, records in zip(texts, answers, strict=True)]
    return JSONResponse({"model": model.name, "results": results})


async def _tag(backend: Backend, request: Request) -> Response:
    """Tags of the words of texts."""
    body = await _read_admitted_fields(backend, request, LabelBody)
    texts = _validate_texts(backend, request, body)
    model = backend.choose_model(body.model, "tags words", _select_models(backend, "tags", images=False))
    answers = await _answer_while_connected(backend, request, [_label_query(model, text, 1) for text in texts])
    results = [
        {"text": text, "tags": _tags_as_json(text, records)} for text, records in zip(texts, answers, strict=True)
    ]
    return JSONResponse({"model": model.name, "results": results})


async def _caption(backend: Backend, request: Request) -> Response:
    """Captions of an image."""
    body = await _read_admitted_fields(backend, request, CaptionBody)
    if body.image is None:
        raise bad_request("image: send an image file, in a form (multipart/form-data)")
    check_search_limits(body.alternatives, body.beam, backend.limits)
    models = [each for each in _select_models(backend, None, images=True) if each.abilities.translates]
    model = backend.choose_model(body.model, "describes images", models)
    n_best = body.alternatives + 1
    beam = max(n_best, backend.beam if body.beam is None else body.beam)
    query = Query(model.version.key, "translate", "", beam=beam, n_best=n_best, image=body.image)
    (records,) = await _answer_while_connected(backend, request, [query])
    captions = [{"text": text, "score": round(score, SCORE_DECIMALS)} for text, score, _, _ in records]
    return JSONResponse({"model": model.name, "captions": captions})


async def _attend(backend: Backend, request: Request) -> Response:
    """The attention of a model to a text and its translation."""
    body = await _read_admitted_fields(backend, request, AttendBody)
    if len(body.text) > MAX_ATTENDED_CHARS:
        limit = f"{MAX_ATTENDED_CHARS:,}"
        raise bad_request(f"text has {len(body.text):,} characters and may have {limit}: send one sentence")
    text = check_has_no_surrogates(body.text, "text")
    target = None if body.translation is None else check_has_no_surrogates(body.translation, "translation")
    request.state.texts = [text]
    query = _attend_query(backend, body, text, target)
    (attention,) = await _answer_while_connected(backend, request, [query])
    return JSONResponse(_round_weights(attention))


def _select_models(backend: Backend, kind: str | None, *, images: bool) -> list[ServedModel]:
    """The models that give such labels, of images or of texts."""
    models = backend.catalog.models.values()
    return [each for each in models if each.abilities.labels == kind and each.version.reads_images == images]


async def _read_admitted_fields(backend: Backend, request: Request, body: type[Any]) -> Any:
    """The fields of a request whose caller may ask."""
    fields = await read_fields(request, backend.limits)
    admit(backend, request, fields)
    return validate_fields(body, fields)


async def _answer_while_connected(backend: Backend, request: Request, queries: list[Query]) -> list[Any]:
    return await cancel_on_disconnect(request, ask_all(backend.dispatcher, queries, backend.limits.seconds))  # type: ignore[no-any-return]


def _validate_texts(backend: Backend, request: Request, body: LabelBody) -> list[str]:
    if body.text is None:
        raise bad_request("text: send a text, or a list of texts")
    texts = check_texts([body.text] if isinstance(body.text, str) else body.text, backend.limits)
    request.state.texts = texts
    return texts


def _label_query(model: ServedModel, text: str, top: int) -> Query:
    """The query for the labels of a text, which is one line, as of a file."""
    return Query(model.version.key, "label", join_lines(text.rstrip("\r\n")), n_best=top)


def _labels_as_json(records: list[tuple[str, float, float, int]]) -> list[dict[str, Any]]:
    """Labels with their probabilities; a text without pieces has none."""
    return [
        {"label": text, "probability": round(math.exp(log_prob), 6)}
        for text, _, log_prob, num_tokens in records
        if num_tokens
    ]


def _tags_as_json(text: str, records: list[tuple[str, float, float, int]]) -> list[dict[str, str | None]]:
    """Each word of a text with its tag; null for a word beyond what the model reads."""
    words, tags = text.split(), records[0][0].split()
    return [{"word": word, "tag": tag} for word, tag in zip(words, [*tags, *[None] * len(words)], strict=False)]


def _attend_query(backend: Backend, body: AttendBody, text: str, target: str | None) -> Query:
    models = [each for each in backend.catalog.models.values() if not each.version.reads_images]
    catalog = backend.catalog
    if body.model is not None or (body.source, body.target) == (None, None):
        catalog = ModelCatalog([backend.choose_model(body.model, "reads texts", models)])
    if catalog.translators:
        direction = find_direction(catalog, body.source, body.target)
    else:
        direction = ServedDirection(next(iter(catalog.models.values())), UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE)
    plain = direction.query(text, backend.beam, 1, ())
    return Query(
        plain.model, "attend", text, plain.beam, to=plain.to, source_language=plain.source_language, target=target
    )


def _round_weights(attention: dict[str, Any]) -> dict[str, Any]:
    """Attention with weights of a few decimals: it is to be looked at."""
    layers = [
        {**layer, "weights": [[[round(x, SCORE_DECIMALS) for x in row] for row in head] for head in layer["weights"]]}
        for layer in attention["attentions"]
    ]
    return {**attention, "attentions": layers}
