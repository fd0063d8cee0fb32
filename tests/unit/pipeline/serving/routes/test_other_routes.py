"""Completions, labels, captions, attention, and the routes for whoever runs a server; processes are stand-ins."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.serving import MODELS, make_bench, served_model
from tfm.pipeline.serving.app import make_app
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.routes.stop_sequences import StopSequenceFilter


def client_of(**settings: Any) -> TestClient:
    return TestClient(make_app(make_bench(**settings).backend))


def test_a_completion_has_the_shape_of_openai_s() -> None:
    with client_of() as client:
        found = client.post("/v1/completions", json={"model": "verse", "prompt": "zero", "max_tokens": 3}).json()
        echoed = client.post("/v1/completions", json={"prompt": "zero", "echo": True}).json()
    assert found["object"] == "text_completion"
    assert found["model"] == "verse"
    assert found["choices"] == [{"index": 0, "text": " one two three", "logprobs": None, "finish_reason": "stop"}]
    assert found["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert echoed["choices"][0]["text"] == "zero one two three"


def test_a_stream_has_the_same_text_in_events() -> None:
    with client_of() as client:
        response = client.post("/v1/completions", json={"prompt": "zero", "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [each.removeprefix("data: ") for each in response.text.split("\n\n") if each]
    assert events[-1] == "[DONE]"
    choices = [json.loads(each)["choices"][0] for each in events[:-1]]
    assert [each["text"] for each in choices] == [" one", " two", " three", ""]
    assert [each["finish_reason"] for each in choices] == [None, None, None, "stop"]


def test_a_stream_ends_with_the_numbers_of_tokens_where_they_are_asked_for() -> None:
    usage = {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}, "user": "me"}
    with client_of() as client:
        response = client.post("/v1/completions", json={"prompt": "zero", **usage})
    *_, last, end = (each.removeprefix("data: ") for each in response.text.split("\n\n") if each)
    assert json.loads(last)["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert json.loads(last)["choices"] == []
    assert end == "[DONE]"


def test_a_stream_that_takes_too_long_ends_with_the_reason_and_frees_its_slot() -> None:
    bench = make_bench(holds=True, limits=Limits(seconds=0.2))
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/v1/completions", json={"prompt": "zero", "stream": True})
    first, problem, end = (each.removeprefix("data: ") for each in response.text.split("\n\n") if each)
    assert json.loads(first)["choices"][0]["text"] == " one"
    assert "0.2 s" in json.loads(problem)["error"]["message"]
    assert end == "[DONE]"
    assert len(bench.workers[0].cancelled) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_ends_before_a_stop_sequence(stream: bool) -> None:
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/v1/completions", json={"prompt": "zero", "stop": ["o t", "x"], "stream": stream})
    if not stream:
        assert response.json()["choices"][0] == {
            "index": 0,
            "text": " one tw",
            "logprobs": None,
            "finish_reason": "stop",
        }
    else:
        events = [each.removeprefix("data: ") for each in response.text.split("\n\n") if each][:-1]
        assert "".join(json.loads(each)["choices"][0]["text"] for each in events) == " one tw"


def test_what_may_begin_a_stop_sequence_waits() -> None:
    stops = StopSequenceFilter(["END", "EXIT"])
    assert [stops.add(part) for part in ("a E", "N", "x E", "XI")] == ["a ", "", "ENx ", ""]
    assert stops.flush() == "EXI"
    assert [stops.add("b EX"), stops.add("IT c"), stops.is_reached] == ["b ", "", True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": 2}, "n (2) is 1 on this server"),
        ({"logprobs": 5}, "logprobs"),
        ({"logprobs": 0}, "logprobs is not done by this server"),
        ({"max_completion_tokens": 5}, "'max_completion_tokens' is no field of this route: remove it"),
        ({"top_k": 5}, "'top_k' is no field of this route: did you mean top_p?"),
        ({"prompt": [1, 2]}, "prompt is neither a text nor a list of texts"),
        ({"max_tokens": 2001}, "max_tokens (2001) may be 2000 at most"),
        ({"temperature": -1}, "temperature"),
        ({"prompt": ["a", "b"]}, "prompt has 2 texts"),
        ({"prompt": "a" * 50_001}, "prompt has 50,001 characters"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop has 5 texts"),
        ({"model": "de"}, "model: this server has no 'de' that writes texts; it has verse"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_that_cannot_be_is_refused_in_openai_s_shape(
    change: dict[str, Any], said: str, stream: bool
) -> None:
    with client_of() as client:
        response = client.post("/v1/completions", json={"prompt": "a", "stream": stream, **change})
    assert response.status_code == 400
    assert said in response.json()["error"]["message"]
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_models_are_listed() -> None:
    with client_of() as client:
        found = client.get("/v1/models").json()
        one = client.get("/v1/models/fr").json()
        none = client.get("/v1/models/xx")
    assert [each["id"] for each in found["data"]] == [each.name for each in MODELS]
    assert one["pairs"] == [{"source": "en", "target": "fr"}, {"source": "de", "target": "fr"}]
    assert none.status_code == 404


def test_texts_are_classified_and_words_tagged() -> None:
    with client_of() as client:
        classes = client.post("/v1/classify", json={"text": ["a dog", "b"], "top": 2}).json()
        tags = client.post("/v1/tag", json={"text": "a dog runs"}).json()
        none = client.post("/v1/classify", json={})
    assert classes["model"] == "mood"
    assert [each["text"] for each in classes["results"]] == ["a dog", "b"]
    assert [each["label"] for each in classes["results"][0]["labels"]] == ["good", "bad"]
    assert classes["results"][0]["labels"][0]["probability"] == pytest.approx(0.367879)
    assert tags["results"][0]["tags"] == [{"word": each, "tag": "N"} for each in ("a", "dog", "runs")]
    assert none.status_code == 400


def test_a_text_is_labelled_as_the_line_of_a_file_is() -> None:
    """A line ends at a line feed alone; other separators were spaces to the server, and stay in `tfm translate`."""
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        client.post("/v1/classify", json={"text": ["a\u2028b\x85c\x0bd", "a\r\nb\n"]})
    assert [query.text for query in bench.asked] == ["a\u2028b\x85c\x0bd", "a b"]


def test_an_image_is_described_and_classified() -> None:
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        file = {"image": ("a.png", b"\x89PNG...", "image/png")}
        caption = client.post("/v1/caption", files=file, data={"alternatives": "1"}).json()
        classes = client.post("/v1/classify", files=file).json()
        text = client.post("/v1/caption", json={"image": "a.png"})
        none = client.post("/v1/caption", data={"alternatives": "1"})
    assert [each["text"] for each in caption["captions"]] == ["", "~"]
    assert classes["model"] == "clothes"
    assert [query.image for query in bench.asked] == [b"\x89PNG..."] * 2
    assert (text.status_code, none.status_code) == (400, 400)


def test_an_image_that_is_not_sent_as_a_file_of_a_form_is_told_how() -> None:
    with client_of() as client:
        bare = client.post("/v1/caption", content=b"\x89PNG\r\n", headers={"content-type": "image/png"})
        none = client.post("/v1/classify", data={"top": "1"})
    assert (bare.status_code, none.status_code) == (400, 400)
    said = "the body is an image: send it as the file `image` of a form (multipart/form-data)"
    assert bare.json()["error"]["message"] == said
    assert none.json()["error"]["message"].endswith("or `image`, a file of a form (multipart/form-data)")


def test_attention_is_rounded() -> None:
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        found = client.post("/v1/attend", json={"text": "a b", "source": "en", "target": "de"}).json()
        several = client.post("/v1/attend", json={"text": "a b"})
        long = client.post("/v1/attend", json={"text": "a" * 1001, "model": "de"})
    assert found["attentions"][0]["weights"] == [[[0.1235, 0.8765]]]
    assert bench.asked[0].model == "de@1"
    assert several.status_code == 400
    assert "text has 1,001 characters" in long.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "model", "to", "said"),
    [
        ({"model": "several", "target": "fr"}, "several@1", "fra", ""),
        ({"model": "several", "source": "en"}, "several@1", "deu", ""),
        ({"target": "fra"}, "several@1", "fra", ""),
        ({"model": "several", "target": "es"}, None, None, "any to es is not translated here"),
        (
            {"model": "nl", "source": "fr"},
            None,
            None,
            "fr to any is not translated here; this server translates en to nl",
        ),
        ({"model": "nl", "source": "en", "target": "de"}, None, None, "en to de is not translated here"),
        ({"model": "verse"}, "verse@1", None, ""),
    ],
)
def test_attention_is_of_the_languages_that_are_asked_for(
    fields: dict[str, Any], model: str | None, to: str | None, said: str
) -> None:
    several = served_model("several", pairs=(("eng", "deu"), ("eng", "fra")), has_languages=True)
    bench = make_bench(
        models=(several, served_model("nl", pairs=(("en", "nl"),)), served_model("verse", "language_model"))
    )
    with TestClient(make_app(bench.backend)) as client:
        response = client.post("/v1/attend", json={"text": "a", **fields})
    if model is None:
        assert response.status_code == 400
        assert said in response.json()["error"]["message"]
    else:
        assert [(each.model, each.to) for each in bench.asked] == [(model, to)]


def test_health_metrics_and_the_description_of_the_routes() -> None:
    with client_of() as client:
        assert client.get("/health").json() == {"status": "ok"}
        client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
        metrics = client.get("/metrics").text
        described = client.get("/openapi.json").json()
        page = client.get("/docs").text
    assert 'tfm_requests_total{route="/translate",status="200"} 1.0' in metrics
    assert "tfm_cache_misses 1.0" in metrics
    assert described["openapi"].startswith("3.1")
    assert "/detect" not in described["paths"]  # there is no detector
    answer = described["paths"]["/v1/completions"]["post"]["responses"]["200"]["content"]
    assert set(answer) == {"application/json", "text/event-stream"}
    body = described["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert "POST /translate" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    "path", ["/static/..%2Fapp.py", "/static/app.py", "/static/none.js", "/nothing", "/v1/nothing"]
)
def test_nothing_else_is_given_away(path: str) -> None:
    with client_of() as client:
        response = client.get(path)
    assert response.status_code == 404
    assert "error" in response.json()


def test_another_method_is_refused() -> None:
    with client_of() as client:
        response = client.get("/translate")
    assert response.status_code == 405
    assert "another method" in response.json()["error"]


def test_the_queue_is_bounded() -> None:
    with client_of(limits=Limits(sentences=2)) as client:
        response = client.post("/translate", json={"q": "A a.\nB b.\nC c.", "source": "en", "target": "de"})
    assert response.status_code == 400
    assert "3 sentences and may have 2" in response.json()["error"]
