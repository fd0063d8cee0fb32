"""Keys, rates, bodies, headers and logs: what holds for every route."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.serving import make_bench
from tfm.pipeline.errors import DataError
from tfm.pipeline.serving.access import AccessControl, read_keys
from tfm.pipeline.serving.app import make_app
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.problems import Problem

FIELDS = {"q": "a dog", "source": "en", "target": "de"}


def keys_of(folder: Path, text: str) -> Any:
    file = folder / "keys.txt"
    file.write_text(text, "utf-8")
    return read_keys(file)


def test_a_key_is_needed_and_its_label_is_logged(tmp_path: Path) -> None:
    bench = make_bench(keys=keys_of(tmp_path, "# who\nsecret-1 ann\n\nsecret-2\n"))
    with TestClient(make_app(bench.backend)) as client:
        none = client.post("/translate", json=FIELDS)
        wrong = client.post("/translate", json={**FIELDS, "api_key": "secret-3"})
        field = client.post("/translate", json={**FIELDS, "api_key": "secret-1"})
        header = client.post("/translate", json=FIELDS, headers={"Authorization": "Bearer secret-2"})
        query = client.post("/translate?api_key=secret-1", json=FIELDS)
        openai = client.post("/v1/completions", json={"prompt": "a"})
        languages = client.get("/languages")
        assert [client.get("/metrics").status_code, client.get("/health").status_code] == [401, 200]
    assert [each.status_code for each in (none, wrong, field, header, query, languages)] == [
        401,
        403,
        200,
        200,
        200,
        200,
    ]
    assert openai.json()["error"]["type"] == "authentication_error"
    assert none.headers["www-authenticate"] == "Bearer"
    callers = [json.loads(line).get("caller") for line in bench.log.getvalue().splitlines()]
    assert callers[:5] == ["testclient", "testclient", "ann", "key 2", "ann"]
    assert "secret" not in bench.log.getvalue()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no key"),
        ("short\n", "line 1"),
        ("long-enough a 0\n", "line 1"),
        ("long-enough a 5 b\n", "line 1"),
        ("long-enough a\n\nlong-enough b 5\n", "line 3: the key is already on line 1"),
    ],
)
def test_a_file_of_keys_that_is_none_is_named_without_the_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as raised:
        keys_of(tmp_path, text)
    assert "long-enough" not in str(raised.value)


def test_a_file_of_keys_may_be_written_by_windows_and_a_key_in_any_letters(tmp_path: Path) -> None:
    bench = make_bench(keys=keys_of(tmp_path, "\ufeffsecret-1 ann\r\n# more\r\n\r\nschlüssel-ß 鍵\r\n"))
    with TestClient(make_app(bench.backend)) as client:
        headers = {"Authorization": "Bearer schlüssel-ß".encode()}
        found = [client.post("/translate", json={**FIELDS, "api_key": key}) for key in ("secret-1", "schlüssel-ß")]
        found.append(client.post("/translate", json=FIELDS, headers=headers))
    assert [each.status_code for each in found] == [200, 200, 200]


def test_two_keys_of_one_label_have_a_rate_each(tmp_path: Path) -> None:
    access = AccessControl(keys_of(tmp_path, "secret-1 ann 1\nsecret-2 ann 2\n"), None, lambda: 0.0)
    assert [access.admit(key, "address") for key in ("secret-1", "secret-2", "secret-2")] == ["ann"] * 3
    for key in ("secret-1", "secret-2"):
        with pytest.raises(Problem, match="requests a minute"):
            access.admit(key, "address")


def test_a_rate_holds_for_each_caller_and_comes_back(tmp_path: Path) -> None:
    now = 0.0
    access = AccessControl(keys_of(tmp_path, "secret-1 ann 2\nsecret-2 bob\n"), 3, lambda: now)

    def count(key: str) -> int:
        """How many requests are taken before one is refused."""
        taken = 0

        def admit_all() -> None:
            nonlocal taken
            for _ in range(9):
                access.admit(key, "address")
                taken += 1

        with pytest.raises(Problem, match="requests a minute") as refused:
            admit_all()
        assert refused.value.status == 429
        assert int(refused.value.headers["Retry-After"]) >= 1
        return taken

    assert [count("secret-1"), count("secret-2"), count("secret-1")] == [2, 3, 0]
    now = 31.0
    assert [count("secret-1"), count("secret-2")] == [1, 1]
    everyone = AccessControl(None, 1, lambda: now)
    assert everyone.admit(None, "here") == "here"
    with pytest.raises(Problem):
        everyone.admit(None, "here")
    assert everyone.admit(None, "there") == "there"


PART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n'


def test_a_body_that_is_compressed_is_refused() -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        response = client.post("/translate", content=gzip.compress(b"{}"), headers=headers)
    assert response.status_code == 415
    assert response.json() == {"error": "the body is encoded (gzip), which this server does not read: send it as it is"}


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        (b'{"q": "', "application/json", 400, "not JSON"),
        (b"\xff\xfe", "application/json", 400, "not UTF-8 (byte 0)"),
        (b"[1]", "application/json", 400, "not an object"),
        (b'{"q": NaN}', "application/json", 400, "NaN"),
        (b"[" * 100_000, "application/json", 400, "nested too deeply"),
        (b"x" * 2_000_000, "application/json", 413, "longer than the 1,048,576 bytes"),
        (b"--x\r\nbroken", "multipart/form-data; boundary=x", 400, "breaks off before its last boundary"),
        (b"q=%ff&source=en&target=de", "application/x-www-form-urlencoded", 400, "the form is not UTF-8"),
        (b"q=\xe9&source=en&target=de", "application/x-www-form-urlencoded", 400, "the form is not UTF-8"),
        (b"a=b&" * 2000, "application/x-www-form-urlencoded", 400, "more than 1000 fields"),
        (PART + b"\xff\r\n--x--", "multipart/form-data; boundary=x", 400, "q is not UTF-8"),
        (PART + b"a dog\r\n", "multipart/form-data; boundary=x", 400, "breaks off before its last boundary"),
        (b"q", "multipart/form-data", 400, "form"),
        (b" \n", "application/json", 400, "the body is empty"),
        (b'{"q": null}', "application/json", 400, "q is neither a text nor a list of texts"),
        (b'{"q": ["a", 1]}', "application/json", 400, "q is neither a text nor a list of texts"),
        (b'{"q": "a", "glosary": {}}', "application/json", 400, "did you mean glossary?"),
        (b"q=a&apikey=x", "application/x-www-form-urlencoded", 400, "did you mean api_key?"),
    ],
)
def test_a_body_that_is_none_is_refused(body: bytes, kind: str, status: int, said: str) -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        response = client.post("/translate", content=body, headers={"Content-Type": kind})
    assert response.status_code == status
    assert said in response.json().get("error", "")


def test_every_response_keeps_the_page_to_itself() -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        for response in (client.get("/health"), client.get("/nothing"), client.post("/translate", json={})):
            policy = response.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in response.headers


def test_other_sites_may_ask_where_they_are_named() -> None:
    with TestClient(make_app(make_bench().backend, ["https://one.example"])) as client:
        named = client.get("/languages", headers={"Origin": "https://one.example"})
        other = client.get("/languages", headers={"Origin": "https://two.example"})
    assert named.headers["access-control-allow-origin"] == "https://one.example"
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("with_texts", [False, True])
def test_texts_are_logged_only_where_asked(with_texts: bool) -> None:
    bench = make_bench(with_texts=with_texts)
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/translate", json={**FIELDS, "q": "a private text"}, headers={"X-Request-ID": "one-2"})
        client.post("/translate", json={**FIELDS, "q": "a private text", "target": "xx"})
    assert response.headers["x-request-id"] == "one-2"
    first = json.loads(bench.log.getvalue().splitlines()[0])
    assert (first["request"], first["status"], first["path"]) == ("one-2", 200, "/translate")
    assert ("a private text" in bench.log.getvalue()) is with_texts


@pytest.mark.parametrize("number", ["a b", "x" * 65, "<script>", ""])
def test_a_request_id_that_is_none_is_replaced(number: str) -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        found = client.get("/health", headers={"X-Request-ID": number}).headers["x-request-id"]
    assert len(found) == 16


def test_a_fault_of_the_server_says_nothing_of_the_text() -> None:
    bench = make_bench()

    def fail(text: str) -> list[tuple[str, float]]:
        raise RuntimeError(f"with {text}")

    bench.backend.detector = fail
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/detect", json={"q": "a private text"})
    assert response.status_code == 500
    assert "private" not in response.text + bench.log.getvalue()
    assert "RuntimeError at" in bench.log.getvalue()


def test_a_process_that_fails_is_a_503() -> None:
    with TestClient(make_app(make_bench(fails="it failed").backend)) as client:
        response = client.post("/translate", json=FIELDS)
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"


def test_what_takes_too_long_is_a_504_and_its_slot_is_freed() -> None:
    bench = make_bench(holds=True, limits=Limits(seconds=0.1))
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/translate", json=FIELDS)
    assert response.status_code == 504
    assert "0.1 s" in response.json()["error"]
    assert len(bench.workers[0].cancelled) == 1
    assert bench.backend.dispatcher.num_pending == 0
