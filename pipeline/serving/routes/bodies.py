"""The bodies of requests, read within limits, and what is in them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from tfm.data.errors import validation_problem
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.problems import ClientDisconnected, Problem, bad_request

MAX_FORM_FIELDS = 1000
TOO_DEEP_JSON_MESSAGE = "the body is JSON that is nested too deeply"
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")

Body = TypeVar("Body", bound=BaseModel)


class FormFields(dict[str, Any]):
    """The fields of a form, whose numbers are texts; those of JSON have the types that the route describes."""


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

    Raises Problem where the body is neither.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request, limits)
    # `curl -d '{...}'` calls its JSON a form; a form of ours begins with the name of a field
    if kind in FORM_TYPES and not body.startswith(b"{"):
        return await _parse_form(request, body)
    if kind.startswith("image/"):
        raise bad_request("the body is an image: send it as the file `image` of a form (multipart/form-data)")
    return parse_json_object(body)


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises Problem for anything else."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_reject_constant)
    except UnicodeDecodeError as error:
        raise bad_request(f"the body is not UTF-8 (byte {error.start}): send JSON in UTF-8") from None
    except RecursionError:
        raise bad_request(TOO_DEEP_JSON_MESSAGE) from None
    except ValueError as error:
        reason = f"{error}".partition("\n")[0]
        raise bad_request(f"the body is not JSON ({reason:.100}): send a JSON object, or a form") from None
    if not isinstance(found, dict):
        raise bad_request("the body is JSON, but not an object: send one with the fields of this route")
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


async def _parse_form(request: Request, body: bytes) -> dict[str, Any]:
    """The fields of a form, whose body has been read."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    again = Request(request.scope, receive)
    found = FormFields()
    try:
        form = await again.form(max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=len(body) + 1)
        for name, value in form.multi_items():
            content = await value.read() if isinstance(value, UploadFile) else value
            before = found.get(name)
            found[name] = content if before is None else [*(before if isinstance(before, list) else [before]), content]
        await form.close()
    except (HTTPException, ValueError, KeyError) as error:
        reason = error.detail if isinstance(error, HTTPException) else type(error).__name__
        raise bad_request(f"the body is not the form that its header names ({reason:.100})") from None
    return found


def validate_fields(body: type[Body], fields: dict[str, Any]) -> Body:
    """Return the checked fields of a route. Raises Problem, which names the first that does not fit."""
    try:
        return body.model_validate(fields, strict=not isinstance(fields, FormFields))
    except ValidationError as error:
        raise bad_request(validation_problem(error)) from None


def check_has_no_surrogates(text: str, field_name: str) -> str:
    """Return a text that is one. Raises Problem where half a character stands in it, which JSON can spell."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_request(f"{field_name} has half a character (place {error.start}): send whole characters") from None
    return text


def check_texts(texts: list[str], limits: Limits) -> list[str]:
    """Return the texts of a request. Raises Problem where they are too many, too long, or none."""
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
