"""The fields of forms, whose texts are UTF-8: what is not is refused, where a library would take it for Latin-1."""

from typing import Any
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from tfm.pipeline.serving.problems import bad_request

MAX_FORM_FIELDS = 1000
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
FORM_TYPES = (URLENCODED, MULTIPART)


class FormFields(dict[str, Any]):
    """The fields of a form, whose numbers are texts; those of JSON have the types that the route describes."""

    def add(self, name: str, value: str | bytes) -> None:
        """Add a value; a field that a form has several times is a list."""
        previous = self.get(name)
        self[name] = value if previous is None else [*(previous if isinstance(previous, list) else [previous]), value]


async def parse_form(request: Request, kind: str, body: bytes) -> FormFields:
    """The fields of a form, whose body has been read.

    Args:
        request: the request.
        kind: the type of the form.
        body: its bytes.

    Raises:
        Problem: the body is no such form, or its texts are not UTF-8.
    """
    return _parse_urlencoded_form(body) if kind == URLENCODED else await _parse_multipart_form(request, body)


def _parse_urlencoded_form(body: bytes) -> FormFields:
    fields = FormFields()
    try:
        # of bytes that are not spelled by %, as `curl -d` sends them, too
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS)
    except UnicodeDecodeError:
        raise bad_request("the form is not UTF-8: send its texts in UTF-8") from None
    except ValueError:
        raise bad_request(f"the form has more than {MAX_FORM_FIELDS} fields: send fewer") from None
    for name, value in pairs:
        fields.add(name, value)
    return fields


async def _parse_multipart_form(request: Request, body: bytes) -> FormFields:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    new_request, fields = Request(request.scope, receive), FormFields()
    try:
        form = await new_request.form(max_files=1, max_fields=MAX_FORM_FIELDS, max_part_size=len(body) + 1)
        for name, value in form.multi_items():
            if isinstance(value, str) and value.encode() not in body:  # it was taken for Latin-1
                raise bad_request(f"{name[:40]} is not UTF-8: send the texts of the form in UTF-8")
            fields.add(name, await value.read() if isinstance(value, UploadFile) else value)
        await form.close()
    except (HTTPException, ValueError, KeyError) as error:
        reason = error.detail if isinstance(error, HTTPException) else type(error).__name__
        raise bad_request(f"the body is not the form that its header names ({reason:.100})") from None
    _, options = parse_options_header(request.headers["content-type"])
    if b"--" + options[b"boundary"] + b"--" not in body:
        raise bad_request("the form breaks off before its last boundary: send it whole")
    return fields
