"""Routes as clients of other programs meet them: null, missing fields, prefixes of proxies; stand-ins answer."""

import json
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.serving import make_bench
from tfm.pipeline.serving.app import make_app


def client_of(**settings: Any) -> TestClient:
    return TestClient(make_app(make_bench(**settings).backend))


@pytest.mark.parametrize("path", ["/translate", "/v1/completions", "/v1/classify", "/v1/attend"])
def test_a_field_that_may_be_left_out_may_be_null(path: str) -> None:
    """As Go, Java and C# send what is not set; a bool or a number of it was refused."""
    needed = {
        "/translate": {"q": "a", "source": "en", "target": "de"},
        "/v1/completions": {"model": "verse", "prompt": "a", "seed": 2},
        "/v1/classify": {"text": "a", "model": "mood"},
        "/v1/attend": {"text": "a", "model": "de"},
    }[path]
    with client_of() as client:
        described = client.get("/openapi.json").json()
        content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        schema = described["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        optional = [name for name in schema["properties"] if name not in (*needed, *schema.get("required", ()))]
        assert len(optional) >= 2
        plain, with_nulls = (
            client.post(path, json=fields, headers={"X-Request-ID": "one"})
            for fields in (needed, {**dict.fromkeys(optional), **needed})
        )
        assert (with_nulls.status_code, with_nulls.json()) == (plain.status_code, plain.json())
        assert plain.status_code == 200
        for name in optional:
            assert {"type": "null"} in schema["properties"][name]["anyOf"]


def test_what_a_request_misses_is_named() -> None:
    with client_of() as client:
        found = client.post("/translate", json={"text": "a"}).json()["error"]
        assert found == "q and source and target are missing: send them as fields of this route"
        found = client.post("/translate", json={"q": "a", "source": "en"}).json()["error"]
        assert found == "target is missing: send it as a field of this route"
        assert client.post("/translate", json={"q": None, "source": "en", "target": "de"}).status_code == 400


def test_the_page_of_the_routes_is_whole_behind_a_prefix_of_a_proxy() -> None:
    with client_of() as client:
        page = client.get("/docs").text
    places = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert sorted(places) == ["openapi.json", "static/docs.css"]


@pytest.mark.parametrize("path", ["/translate/", "/docs/", "/v1/models/", "/health//"])
def test_a_slash_too_many_is_no_redirect(path: str) -> None:
    """To an address that lacked scheme, port and prefix of a proxy: behind TLS a text then went on without."""
    with client_of() as client:
        response = client.post(path, json={"q": "a", "source": "en", "target": "de"}, follow_redirects=False)
        found = client.get(path, follow_redirects=False)
    assert (response.status_code, found.status_code) in ((404, 404), (405, 404))
    assert "location" not in response.headers
    assert "slash" in json.dumps(found.json()["error"]) or "has no" in json.dumps(found.json()["error"])
