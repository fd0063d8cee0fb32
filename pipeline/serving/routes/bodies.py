"""The bodies of requests, read within limits, and what is in them."""

import asyncio
import json
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from tfm.data.errors import validation_problem
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.problems import ClientDisconnected, Problem, bad_request
from tfm.pipeline.serving.routes.forms import FORM_TYPES, FormFields, parse_form

TOO_DEEP_JSON_MESSAGE = "the body is JSON that is nested too deeply"
MIN_SIMILARITY_OF_MISSPELLED_FIELD = 0.8

Body = TypeVar("Body", bound=BaseModel)


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read a body whole. Raises Problem if it is too long or too slow; ClientDisconnected where it breaks off."""
    too_long = Problem(
        413,
        f"the body is longer than the {limits.body_bytes:,} bytes that this server takes: send less at once",
        {"Connection": "close"},
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.body_bytes:
        raise too_long
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        sentence = f"the body did not come within {limits.body_seconds:g} s: send it faster"
        raise Problem(408, sentence, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise ClientDisconnected from None
    return b"".join(parts)


async def read_fields(request: Request, limits: Limits) -> dict[str, Any]:
    """The fields of a JSON object or of a form; a field that a form has several times is a list.

    Raises Problem if the body is neither.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if (encoding := request.headers.get("content-encoding", "identity").strip().lower()) not in ("", "identity"):
        raise Problem(415, f"the body is encoded ({encoding:.20}), which this server does not read: send it as it is")
    body = await read_body(request, limits)
    # `curl -d '{...}'` calls its JSON a form; a form of ours begins with the name of a field
    if kind in FORM_TYPES and not body.startswith(b"{"):
        return await parse_form(request, kind, body)
    if kind.startswith("image/"):
        raise bad_request("the body is an image: send it as the file `image` of a form (multipart/form-data)")
    return parse_json_object(body)


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises Problem for anything else."""
    if not body.strip():
        raise bad_request("the body is empty: send a JSON object, or a form, with the fields of this route")
    try:
        document = json.loads(body.decode("utf-8-sig"), parse_constant=_reject_constant)
    except UnicodeDecodeError as error:
        raise bad_request(f"the body is not UTF-8 (byte {error.start}): send JSON in UTF-8") from None
    except RecursionError:
        raise bad_request(TOO_DEEP_JSON_MESSAGE) from None
    except ValueError as error:
        reason = f"{error}".partition("\n")[0]
        raise bad_request(f"the body is not JSON ({reason:.100}): send a JSON object, or a form") from None
    if not isinstance(document, dict):
        raise bad_request("the body is JSON, but not an object: send one with the fields of this route")
    return document


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def validate_fields(body: type[Body], fields: dict[str, Any]) -> Body:
    """Return the checked fields of a route; others have no effect, unless it forbids them.

    A field that may be left out may be null too, as clients of typed languages send what is not set. Raises Problem,
    which names the first that does not fit, or that is another one misspelled.
    """
    model_fields = body.model_fields
    for name in fields.keys() - model_fields.keys():
        if suggestions := get_close_matches(name.lower(), model_fields, 1, MIN_SIMILARITY_OF_MISSPELLED_FIELD):
            raise bad_request(f"{name[:40]!r} is no field of this route: did you mean {suggestions[0]}?")
        if body.model_config.get("extra") == "forbid":
            raise bad_request(f"{name[:40]!r} is no field of this route: remove it")
    optional_names = {name for name, field in model_fields.items() if not field.is_required()}
    given = {name: value for name, value in fields.items() if value is not None or name not in optional_names}
    try:
        return body.model_validate(given, strict=not isinstance(fields, FormFields))
    except ValidationError as error:
        location, kinds = error.errors()[0]["loc"], {str(each["loc"][1]) for each in error.errors() if each["loc"][1:]}
        if kinds & {"str", "list[str]"}:
            raise bad_request(f"{location[0]} is neither a text nor a list of texts") from None
        missing = [str(each["loc"][0]) for each in error.errors() if each["type"] == "missing" and not each["loc"][1:]]
        if missing:
            verb, remedy = ("is", "it as a field") if len(missing) == 1 else ("are", "them as fields")
            raise bad_request(f"{' and '.join(missing)} {verb} missing: send {remedy} of this route") from None
        raise bad_request(validation_problem(error)) from None


def check_has_no_surrogates(text: str, field_name: str) -> str:
    """Return a text unchanged. Raises Problem if it has half of a surrogate pair, which JSON can spell."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_request(f"{field_name} has half a character (place {error.start}): send whole characters") from None
    return text


def check_texts(texts: list[str], limits: Limits) -> list[str]:
    """Return the texts of a request. Raises Problem if they are too many, too long, or none."""
    if len(texts) > limits.texts:
        raise bad_request(f"q has {len(texts)} texts and may have {limits.texts}: send them in parts")
    if (total := sum(map(len, texts))) > limits.chars:
        raise bad_request(f"q has {total:,} characters and may have {limits.chars:,}: send it in parts")
    return [check_has_no_surrogates(text, "q") for text in texts]


def check_search_limits(alternatives: int, beam: int | None, limits: Limits) -> None:
    """Check the numbers of a search.

    Args:
        alternatives: number of further answers.
        beam: hypotheses kept at each step; None: not named.
        limits: of the server.

    Raises:
        Problem: one is beyond its limit.
    """
    if alternatives > limits.alternatives:
        raise bad_request(f"alternatives ({alternatives}) may be {limits.alternatives} at most on this server")
    if beam is not None and beam > limits.beam:
        raise bad_request(f"beam ({beam}) may be {limits.beam} at most on this server")


async def cancel_on_disconnect(request: Request, work: Any) -> Any:
    """Await work while the client is there; when it hangs up, cancel the work and raise ClientDisconnected.

    The body must have been read.
    """
    task: asyncio.Task[Any] = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnected
    finally:
        watcher.cancel()
        task.cancel()


async def _wait_for_disconnect(receive: Callable[[], Any]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
