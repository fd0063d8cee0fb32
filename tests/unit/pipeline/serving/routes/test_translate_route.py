"""POST /translate and its like, as LibreTranslate has them; the decoding processes are stand-ins."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.serving import MODELS, TOKENIZER, Bench, make_bench, served_model
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist
from tfm.pipeline.serving.app import make_app
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.pipeline.serving.limits import Limits


def ask(bench: Bench, fields: Any, path: str = "/translate", **more: Any) -> tuple[int, Any]:
    with TestClient(make_app(bench.backend)) as client:
        response = client.post(path, json=fields, **more)
        return response.status_code, response.json()


def test_a_text_is_translated_by_the_model_of_its_languages() -> None:
    bench = make_bench()
    assert ask(bench, {"q": "a dog", "source": "en", "target": "fr"}) == (200, {"translatedText": "A DOG"})
    assert [query.model for query in bench.asked] == ["fr@1"]


@pytest.mark.parametrize("source", ["en", "eng", "en-GB", "en_US"])
def test_a_language_may_be_named_by_any_of_its_codes(source: str) -> None:
    assert ask(make_bench(), {"q": "a", "source": source, "target": "deu"})[0] == 200


@pytest.mark.parametrize(("has_links", "num_warnings"), [(False, 1), (True, 0)])
def test_a_shortlist_without_links_of_what_is_asked_for_is_warned_of_once(has_links: bool, num_warnings: int) -> None:
    """As `tfm translate` warns of one that was made of pairs in the other direction."""
    size = TOKENIZER.vocab_size
    linked_pieces = np.full((size, 1), 5 if has_links else NO_PIECE, np.int32)
    shortlist = Shortlist(linked_pieces, np.arange(4, dtype=np.int32), size)
    model = replace(served_model("de", pairs=(("en", "de"),)), shortlist=shortlist)
    bench = make_bench(models=(model, served_model("fr", pairs=(("en", "fr"),))))
    fields = {"q": ["a dog runs . two cats sleep !"] * 10, "source": "en"}
    with TestClient(make_app(bench.backend)) as client:
        for target in ("fr", "de", "de"):
            assert client.post("/translate", json={**fields, "target": target}).status_code == 200
    messages = [json.loads(line).get("message", "") for line in bench.log.getvalue().splitlines()]
    warnings = [each for each in messages if "no link in the shortlist" in each]
    assert len(warnings) == num_warnings
    assert all(each.startswith("de: 100 % of the sources' pieces") for each in warnings)


def test_a_list_has_a_list_of_translations() -> None:
    status, found = ask(make_bench(), {"q": ["a", "", "b. c\n d"], "source": "en", "target": "de", "alternatives": 1})
    assert status == 200
    assert found["translatedText"] == ["A", "", "B. C\n D"]
    assert found["alternatives"][0] == ["A~"]
    assert found["alternatives"][1] == []


def test_a_form_is_read_as_json_is() -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        fields = {"q": "a dog", "source": "en", "target": "de", "alternatives": "2", "glossary": '{"dog": "Hund"}'}
        found = client.post("/translate", data=fields).json()
        parts = client.post("/translate", files={name: (None, value) for name, value in fields.items()}).json()
    assert found == parts == {"translatedText": "A DOG Hund", "alternatives": ["A DOG Hund~", "A DOG Hund~~"]}


@pytest.mark.parametrize("text", ["Grüße + 1 & 2 = 3 % ; \r\n 👩\u200d👧", "", "שלום"])
def test_a_form_may_have_any_text_spelled_by_percent_or_not(text: str) -> None:
    fields = {"q": text, "source": "en", "target": "de"}
    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
    bare = text.replace("%", "%25").replace("&", "%26").replace("+", "%2B").replace(" ", "+")
    with TestClient(make_app(make_bench().backend)) as client:
        found = [
            client.post("/translate", data=fields),
            client.post("/translate", files={name: (None, value) for name, value in fields.items()}),
            client.post("/translate", content=f"q={bare}&source=en&target=de".encode(), headers=kind),
            client.post("/translate", content=b"\xef\xbb\xbf" + json.dumps(fields).encode()),
        ]
    assert [each.json() for each in found] == [{"translatedText": text.upper()}] * 4


def test_auto_looks_at_the_languages_of_the_model_that_is_named_alone() -> None:
    models = (served_model("de", pairs=(("en", "de"),)), served_model("fr", pairs=(("fr", "de"),)))
    fields = {"q": "a", "source": "auto", "target": "deu", "model": "fr"}
    status, found = ask(make_bench(models=models), fields)
    assert (status, found.get("detectedLanguage")) == (200, {"language": "fr", "confidence": 100.0})


@pytest.mark.parametrize("text", ["", "12, 13 %", "😀"])
def test_a_text_without_letters_is_of_any_language(text: str) -> None:
    bench = make_bench(detector=lambda text: [])
    status, found = ask(bench, {"q": text, "source": "auto", "target": "fr"})
    assert (status, found["detectedLanguage"]["confidence"]) == (200, 0.0)
    assert ask(bench, {"q": "xyz", "source": "auto", "target": "fr"})[0] == 400


def test_auto_reads_the_text_of_html_not_its_tags() -> None:
    models, read = (served_model("de", pairs=(("en", "de"), ("fr", "de"))),), list[str]()

    def detect(text: str) -> list[tuple[str, float]]:
        read.append(text)
        return [("fr", 1.0)]

    fields = {"q": "<p class='box'>Le chat.</p><script>var x</script>", "source": "auto", "target": "de"}
    assert ask(make_bench(models=models, detector=detect), {**fields, "format": "html"})[0] == 200
    assert read == ["Le chat."]


def test_json_is_read_where_a_client_calls_it_a_form() -> None:
    with TestClient(make_app(make_bench().backend)) as client:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        body = b'{"q": "a", "source": "en", "target": "de"}'
        assert client.post("/translate", content=body, headers=kind).json() == {"translatedText": "A"}


def test_sentences_are_asked_once_and_what_stands_between_them_stays() -> None:
    bench = make_bench()
    _, found = ask(bench, {"q": "A dog runs.  A dog runs.\n\n\tTwo cats!\r\n", "source": "en", "target": "de"})
    assert found["translatedText"] == "A DOG RUNS.  A DOG RUNS.\n\n\tTWO CATS!\r\n"
    assert [query.text for query in bench.asked] == ["A dog runs.", "Two cats!"]


def test_a_glossary_forces_terms_where_they_occur() -> None:
    bench = make_bench()
    fields = {"q": "A dog.\nA cat.", "source": "en", "target": "de", "glossary": {"dog": "Hund"}, "beam": 1}
    assert ask(bench, fields)[1]["translatedText"] == "A DOG. Hund\nA CAT."
    assert [(query.forced, query.beam) for query in bench.asked] == [(("Hund",), 2), ((), 1)]


def test_auto_is_the_only_language_that_is_translated_into_the_target() -> None:
    found = ask(make_bench(), {"q": "a", "source": "auto", "target": "de"})[1]
    assert found == {"translatedText": "A", "detectedLanguage": {"language": "en", "confidence": 100.0}}


def test_auto_asks_the_detector_where_there_are_several() -> None:
    fields = {"q": "a", "source": "auto", "target": "fr"}
    status, found = ask(make_bench(), fields)
    assert status == 400
    assert "no detector of languages" in found["error"]
    bench = make_bench(detector=lambda text: [("de", 0.75), ("en", 0.25)])
    assert ask(bench, fields)[1]["detectedLanguage"] == {"language": "de", "confidence": 75.0}
    assert ask(bench, {"q": "a"}, "/detect") == (
        200,
        [{"language": "de", "confidence": 75.0}, {"language": "en", "confidence": 25.0}],
    )
    assert ask(make_bench(), {"q": "a"}, "/detect")[0] == 501


def test_auto_takes_the_likeliest_language_that_is_translated_into_the_target() -> None:
    fields = {"q": "a", "source": "auto", "target": "fr"}
    bench = make_bench(detector=lambda text: [("fr", 0.5), ("en", 0.3), ("de", 0.2)])
    assert ask(bench, fields)[1]["detectedLanguage"] == {"language": "en", "confidence": 30.0}
    bench = make_bench(detector=lambda text: [])
    sentence = "source: the text tells none of de, en: name its language"
    assert ask(bench, fields) == (400, {"error": sentence})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"alternatives": 10000}, "alternatives (10000) may be 9 at most"),
        ({"alternatives": -1}, "alternatives"),
        ({"beam": 11}, "beam (11) may be 10 at most"),
        ({"beam": 0}, "beam"),
        ({"beam": True}, "beam"),
        ({"alternatives": "1"}, "alternatives"),
        ({"segments": 1}, "segments"),
        ({"q": None}, "q"),
        ({"q": ["a"] * 201}, "q has 201 texts and may have 200"),
        ({"q": "a" * 50_001}, "q has 50,001 characters and may have 50,000"),
        ({"q": "\ud800"}, "half a character"),
        ({"target": "xx"}, "en to xx is not translated here"),
        ({"format": "pdf"}, "format"),
        ({"glossary": {"": "x"}}, "glossary"),
        ({"glossary": {"a": "\udfff"}}, "glossary has half a character"),
        ({"glossary": "nonsense"}, "glossary"),
        ({"model": "xx"}, "model: this server has no 'xx'"),
        ({"model": "verse"}, "model: this server has no 'verse'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(change: dict[str, Any], said: str) -> None:
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        import json

        body = json.dumps({"q": "a", "source": "en", "target": "de", **change})
        response = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert said in response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert bench.asked == []


def test_languages_and_settings_have_what_their_clients_read() -> None:
    with TestClient(make_app(make_bench(limits=Limits(chars=7)).backend)) as client:
        languages, settings = client.get("/languages").json(), client.get("/frontend/settings").json()
    assert languages == [
        {"code": "de", "name": "German", "targets": ["fr"]},
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
    ]
    assert settings["charLimit"] == 7
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "de", "name": "German"}


def test_a_model_of_unknown_languages_translates_whatever_they_are_called() -> None:
    bench = make_bench(models=[served_model("some", pairs=(("und", "und"),))])
    assert ask(bench, {"q": "a", "source": "en", "target": "de"})[1] == {"translatedText": "A"}


def test_a_model_of_several_languages_is_told_them() -> None:
    several = served_model("many", pairs=(("und", "deu"), ("und", "hin")), has_languages=True)
    bench = make_bench(models=[several])
    assert ask(bench, {"q": "a", "source": "auto", "target": "hi"})[0] == 200
    assert [(query.to, query.source_language) for query in bench.asked] == [("hin", None)]


def test_an_answer_is_given_again_from_the_cache_and_not_without_one() -> None:
    for limits, times in ((Limits(), 1), (Limits(cached_answers=0), 2)):
        bench = make_bench(limits=limits)
        with TestClient(make_app(bench.backend)) as client:
            fields = {"q": "a dog", "source": "en", "target": "de"}
            answers = [client.post("/translate", json=fields).json() for _ in range(2)]
        assert answers == [{"translatedText": "A DOG"}] * 2
        assert len(bench.asked) == times


def test_what_else_is_asked_is_another_answer() -> None:
    bench = make_bench()
    with TestClient(make_app(bench.backend)) as client:
        plain = {"q": "a dog", "source": "en", "target": "de"}
        for more in ({}, {"beam": 2}, {"alternatives": 1}, {"glossary": {"dog": "Hund"}}, {"target": "fr"}):
            client.post("/translate", json={**plain, **more})
    assert len(set(bench.asked)) == len(bench.asked) == 5


def test_only_models_that_translate_texts_have_languages() -> None:
    assert make_bench(models=MODELS[2:]).backend.catalog.targets_by_source == {}


def test_html_keeps_its_tags_and_an_alignment_is_asked_where_there_are_any() -> None:
    bench = make_bench()
    html = '<p class="x">A <b>dog</b> runs.</p>\n<script>a < b</script><p>Two &amp; cats!</p>'
    fields = {"q": html, "source": "en", "target": "de", "format": "html"}
    status, found = ask(bench, fields)
    assert status == 200
    assert (
        found["translatedText"] == '<p class="x">A <b>DOG</b> RUNS.</p>\n<script>a < b</script><p>TWO &amp; CATS!</p>'
    )
    aligned = [(query.text, query.target) for query in bench.asked if query.kind == "align"]
    assert aligned == [("A dog runs.", "A DOG RUNS.")]


def test_of_sentences_that_are_the_same_one_alignment_is_asked() -> None:
    bench = make_bench()
    fields = {"q": "<b>A</b> dog. " * 20, "source": "en", "target": "de", "format": "html", "alternatives": 2}
    assert ask(bench, fields)[0] == 200
    assert [query.kind for query in bench.asked] == ["translate", "align", "align", "align"]


def test_all_that_a_request_asks_for_has_one_time() -> None:
    bench = make_bench(limits=Limits(seconds=0.5))
    slow, now = [], bench.backend.dispatcher.ask

    async def ask_slowly(queries: Sequence[Query], seconds: float) -> list[Any]:
        slow.append(queries)
        await asyncio.sleep(0.2)
        return await now(queries, seconds)

    bench.backend.dispatcher.ask = ask_slowly  # type: ignore[method-assign]
    fields = {"q": "<b>A</b> dog.", "source": "en", "target": "de", "format": "html", "alternatives": 5}
    status, found = ask(bench, fields)
    assert status == 504
    assert 1 <= len(slow) <= 3  # of four, however busy the machine is
    assert "longer than 0.5 s" in found["error"]


def test_the_places_of_sentences_are_told_where_they_are_asked_for() -> None:
    text = "\U0001f415 runs. Two cats!\n\n a"
    status, found = ask(make_bench(), {"q": [text, ""], "source": "en", "target": "de", "segments": True})
    places = [[0, 7], [8, 17], [20, 21]]
    assert status == 200
    assert found["translatedText"] == ["\U0001f415 RUNS. TWO CATS!\n\n A", ""]
    assert found["segments"] == [[{"source": each, "target": each} for each in places], []]
    fields = {"q": text, "source": "en", "target": "de", "segments": True, "format": "html"}
    assert ask(make_bench(), fields) == (
        400,
        {"error": "segments: places are given for plain texts only: remove segments, or send format text"},
    )
