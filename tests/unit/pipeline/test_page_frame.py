"""The frame of pages: what it promises holds whatever stands in the page."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.html_elements import Elements
from tfm.pipeline.page_frame import escape_corpus_text, escape_html, frame_page, script_json

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def policy(page: str) -> str | None:
    (found,) = (each["content"] for each in Elements(page).found["meta"] if "http-equiv" in each)
    return found


def test_a_page_without_a_script_lets_none_run() -> None:
    page = Elements(frame_page("A <title>", "<p>body</p>", style="p { color: red; }\n"))
    assert policy(frame_page("t", "")) == POLICY
    assert page.texts["title"] == page.texts["h1"] == ["A <title>"]
    assert page.texts["p"] == ["body"]
    assert page.texts["style"][0].endswith("p { color: red; }\n")
    assert "script" not in page.found
    assert page.found["html"] == [{"lang": "en"}]


def test_the_one_script_is_allowed_by_its_hash() -> None:
    script = "document.title = 'ß$title'"
    text = frame_page("t", "<p>body</p>", script=script)
    assert Elements(text).texts["script"] == [script]
    # printf "document.title = 'ß\$title'" | openssl dgst -sha256 -binary | base64
    assert policy(text) == f"{POLICY}; script-src 'sha256-6ZO3sV3ZGePCFDAcquk2V3bdmCqUmHaTFcWetqz6YCM='"


def test_text_is_text_and_nothing_in_it_is_invisible() -> None:
    assert escape_html("<b>&\u202e\u05d0\n") == "&lt;b&gt;&amp;\\u202e\u05d0\\n"


def test_running_text_keeps_what_its_language_needs() -> None:
    kept = "می\u200cروم, \u200fשלום\u200e, 今日\u3000は, a\u00a0b, 👩\u200d👧, \u00adx\t"
    assert escape_corpus_text(kept) == kept
    assert escape_corpus_text('<b>&"\u202ea\u202c\u2067\u2028\x1b[0m\r\x85') == (
        "&lt;b&gt;&amp;&quot;\\u202ea\\u202c\\u2067\\u2028\\x1b[0m\\r\\x85"
    )


texts = st.text(st.sampled_from("</script>!-&\u2028\u0000\ud800ß") | st.characters())


@given(st.recursive(texts | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_json_within_a_script_is_the_same_and_ends_no_script(value: Any) -> None:
    spelled = script_json(value)
    assert json.loads(spelled) == value
    assert spelled.isascii()
    assert "<" not in spelled
