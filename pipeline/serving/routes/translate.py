"""The routes of LibreTranslate: /translate, /languages, /detect, /frontend/settings."""

import asyncio
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import UNKNOWN_LANGUAGE, ModelCatalog
from tfm.pipeline.serving.detection import Detector
from tfm.pipeline.serving.problems import Problem, bad_request
from tfm.pipeline.serving.routes.bodies import (
    cancel_on_disconnect,
    check_has_no_surrogates,
    check_search_limits,
    check_texts,
    read_fields,
    validate_fields,
)
from tfm.pipeline.serving.routes.endpoint import admit, make_endpoint
from tfm.pipeline.serving.routes.language_names import language_name
from tfm.pipeline.serving.text.glossary import glossary_problem
from tfm.pipeline.serving.text.html_document import split_html
from tfm.pipeline.serving.text.segments import SegmentBorders
from tfm.pipeline.serving.translation_service import ServedDirection, TranslatedText

AUTO_DETECT = "auto"
NO_DETECTOR_MESSAGE = (
    "this server has no detector of languages (pip install 'tfm-toolkit[detect]'): name the source language"
)


def _parse_form_glossary(value: object) -> object:
    """A glossary of a form, which is JSON in a text."""
    if isinstance(value, str):
        try:
            return json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            raise ValueError("is no JSON object of terms") from None
    return value


class TranslateBody(BaseModel):
    """The fields of POST /translate; the last four are not LibreTranslate's."""

    q: str | list[str] = Field(description="the text, or several")
    source: str = Field(description="language of the text, or auto")
    target: str = Field(description="language of the translation")
    format: Literal["text", "html"] = Field("text", description="html: tags stay where they are")
    alternatives: int = Field(0, ge=0, description="number of further translations")
    api_key: str | None = Field(None, description="where the server needs one")
    beam: int | None = Field(None, ge=1, description="hypotheses kept at each step; 1 is greedy search")
    glossary: Annotated[dict[str, str], BeforeValidator(_parse_form_glossary)] = Field(
        default_factory=dict, description="target terms by source terms, which the translation must contain"
    )
    model: str | None = Field(None, description="name of a model, where several translate the pair")
    segments: bool = Field(
        False, description="whether the places of all sentences and of their translations come too (plain texts)"
    )


class DetectBody(BaseModel):
    """The fields of POST /detect."""

    q: str = Field(description="the text")
    api_key: str | None = None


def translation_routes(backend: Backend) -> list[Route]:
    """The routes of a server that translates."""

    async def translate(request: Request) -> Response:
        fields = await read_fields(request, backend.limits)
        admit(backend, request, fields)
        body = validate_fields(TranslateBody, fields)
        texts = check_texts([body.q] if isinstance(body.q, str) else body.q, backend.limits)
        request.state.texts = texts
        _check_request_limits(backend, body)
        catalog = _candidate_models(backend, body)
        source, detection = await _resolve_source_language(catalog, backend.detector, body, texts)
        direction = find_direction(catalog, source, body.target)
        work = backend.translation.translate(
            texts,
            direction,
            beam=backend.beam if body.beam is None else body.beam,
            alternatives=body.alternatives,
            glossary=body.glossary,
            is_html=body.format == "html",
        )
        return JSONResponse(_translations_as_json(body, await cancel_on_disconnect(request, work), detection))

    async def languages(request: Request) -> Response:
        return JSONResponse(list_languages(backend))

    async def detect(request: Request) -> Response:
        fields = await read_fields(request, backend.limits)
        admit(backend, request, fields)
        body = validate_fields(DetectBody, fields)
        if backend.detector is None:
            raise Problem(501, NO_DETECTOR_MESSAGE)
        (text,) = check_texts([body.q], backend.limits)
        shares = await asyncio.to_thread(backend.detector, text)
        return JSONResponse([{"language": code, "confidence": round(100 * share, 1)} for code, share in shares[:3]])

    async def settings(request: Request) -> Response:
        return JSONResponse(_frontend_settings(backend))

    return [
        Route("/translate", make_endpoint(backend, "/translate", translate), methods=["POST"]),
        Route("/languages", make_endpoint(backend, "/languages", languages)),
        Route("/detect", make_endpoint(backend, "/detect", detect), methods=["POST"]),
        Route("/frontend/settings", make_endpoint(backend, "/frontend/settings", settings)),
    ]


def list_languages(backend: Backend) -> list[dict[str, Any]]:
    """The languages that texts may be in, with those that each is translated into."""
    return [
        {"code": source, "name": language_name(source), "targets": targets}
        for source, targets in backend.catalog.targets_by_source.items()
    ]


def _check_request_limits(backend: Backend, body: TranslateBody) -> None:
    """Raise Problem for a number beyond its limit, a glossary that is none, or fields that exclude each other."""
    check_search_limits(body.alternatives, body.beam, backend.limits)
    for term in (*body.glossary, *body.glossary.values()):
        check_has_no_surrogates(term, "glossary")
    if (problem := glossary_problem(body.glossary)) is not None:
        raise bad_request(problem)
    if body.segments and body.format == "html":
        raise bad_request("segments: places are given for plain texts only: remove segments, or send format text")


async def _resolve_source_language(
    catalog: ModelCatalog, detector: Detector | None, body: TranslateBody, texts: list[str]
) -> tuple[str, dict[str, Any] | None]:
    """The language of the texts, and how sure that is where it was not named.

    Args:
        catalog: the models that may translate them.
        detector: finds the language of a text, if one is installed.
        body: of the request.
        texts: the texts.
    """
    if body.source != AUTO_DETECT:
        return body.source, None
    all_sources = [*catalog.targets_by_source]
    sources = [each for each in all_sources if catalog.find_translator(each, body.target) is not None] or all_sources
    if len(sources) == 1:
        return sources[0], {"language": sources[0], "confidence": 100.0}
    if detector is None:
        raise bad_request(f"source: {NO_DETECTOR_MESSAGE}")
    shares = await asyncio.to_thread(_detect_language, detector, texts, body.format == "html")
    candidates = [(each, share) for code, share in shares for each in sources if each.partition("-")[0] == code]
    if not candidates and not any(character.isalpha() for text in texts for character in text):
        candidates = [(sources[0], 0.0)]  # numbers, or nothing: of any language
    if not candidates:
        raise bad_request(f"source: the text tells none of {', '.join(sources)}: name its language")
    code, share = candidates[0]
    return code, {"language": code, "confidence": round(100 * share, 1)}


def _detect_language(detector: Detector, texts: list[str], is_html: bool) -> list[tuple[str, float]]:
    """The languages of texts; of HTML, of what is read of it: names of tags and attributes are English."""
    read = [each for text in texts for each in split_html(text, None).sources] if is_html else texts
    return detector("\n".join(read))


def _candidate_models(backend: Backend, body: TranslateBody) -> ModelCatalog:
    """The models that may translate a request: the one that it names, or all. Raises Problem if that is none."""
    catalog = backend.catalog
    if body.model is None:
        return catalog
    return ModelCatalog([backend.choose_model(body.model, "translates text", catalog.translators)])


def find_direction(catalog: ModelCatalog, source: str | None, target: str | None) -> ServedDirection:
    """Find a model and its languages; a language that is None may be any. Raises Problem if there is none."""
    direction = catalog.find_translator(source, target)
    if direction is None and catalog.targets_by_source == {UNKNOWN_LANGUAGE: [UNKNOWN_LANGUAGE]}:
        direction = catalog.find_translator(UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE)
    if direction is None:
        pairs = [f"{one} to {', '.join(others)}" for one, others in catalog.targets_by_source.items()]
        pairs_text = "; ".join(pairs)[:200] or "nothing"
        requested_pair = f"{(source or 'any')[:20]} to {(target or 'any')[:20]}"
        raise bad_request(f"{requested_pair} is not translated here; this server translates {pairs_text}")
    return ServedDirection(*direction)


def _translations_as_json(
    body: TranslateBody, translations: list[TranslatedText], detection: dict[str, Any] | None
) -> dict[str, Any]:
    """The response to a translation request, with lists if `q` is a list."""
    is_single = isinstance(body.q, str)
    texts, alternatives = [each.text for each in translations], [[*each.alternatives] for each in translations]
    answer: dict[str, Any] = {"translatedText": texts[0] if is_single else texts}
    if body.alternatives:
        answer["alternatives"] = alternatives[0] if is_single else alternatives
    if body.segments:
        segments = [[_segment_as_json(borders) for borders in each.borders] for each in translations]
        answer["segments"] = segments[0] if is_single else segments
    if detection is not None:
        answer["detectedLanguage"] = detection if is_single else [detection] * len(texts)
    return answer


def _segment_as_json(borders: SegmentBorders) -> dict[str, list[int]]:
    """A sentence as its first character and the one behind its last, in the text and in the translation."""
    source_start, source_end, target_start, target_end = borders
    return {"source": [source_start, source_end], "target": [target_start, target_end]}


def _frontend_settings(backend: Backend) -> dict[str, Any]:
    """The settings that LibreTranslate tells its page, with the limits that ours needs."""
    limits, sources = backend.limits, backend.catalog.targets_by_source
    source = next(iter(sources), UNKNOWN_LANGUAGE)
    target = next(iter(sources.get(source, [])), UNKNOWN_LANGUAGE)
    return {
        "apiKeys": backend.access.needs_key,
        "keyRequired": backend.access.needs_key,
        "charLimit": limits.chars,
        "bodyLimit": limits.body_bytes,
        "alternativesLimit": limits.alternatives,
        "beamLimit": limits.beam,
        "beam": backend.beam,
        "frontendTimeout": 500,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "suggestions": False,
        "detection": backend.detector is not None,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
        "models": [
            {"name": model.name, "task": model.version.task, "images": model.version.reads_images}
            for model in backend.catalog.models.values()
        ],
    }
