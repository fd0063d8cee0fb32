"""Credentials are found wherever they usually stand, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.credentials import _credential_text_patterns, holds_credential, redact_command_line, redact_credentials
from tfm.data.errors import DataError, escape_control_characters


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://user:hush@host:5432/db", "postgresql://***@host:5432/db"),
        ("mysql+pymysql://u:hu/s@h#@host/db", "mysql+pymysql://***@host/db"),
        ("https://hush@host/corpus.gz", "https://***@host/corpus.gz"),
        ("https:/user:hush@host/x: no such file", "https:/***@host/x: no such file"),
        ("(HTTPS://a:hush@b/c)", "(HTTPS://***@b/c)"),
        ("https://host/x?token=hush&n=1", "https://host/x?token=***&n=1"),
        ("s3://b/k?X-Amz-Signature=hush&X-Amz-Date=hush", "s3://b/k?X-Amz-Signature=***&X-Amz-Date=***"),
        ("https://h/?a=1&accessToken=hush&sig=hush", "https://h/?a=1&accessToken=***&sig=***"),
        ("--set a.password=hush", "--set a.password=***"),
        ("HF_TOKEN=hush is set", "HF_TOKEN=*** is set"),
        ("Token = 'hush hush', next", "Token = ***, next"),
        ('{"api_key": "hush hush", "n": 1}', '{"api_key": ***, "n": 1}'),
        ('command = ["score.py", "--api-key", "hush"]', 'command = ["score.py", "--api-key", ***]'),
        ("Authorization: Bearer hushhushhush.hush", "Authorization: Bearer ***"),
        ("hf_hushhushhushhushhush", "***"),
        ("a ghp_hushhushhush0 b", "a *** b"),
        ("sk-proj-hushhushhushhush0123", "***"),
    ],
)
def test_credentials_are_masked(text: str, masked: str) -> None:
    assert redact_credentials(text) == masked
    assert redact_credentials(masked) == masked
    assert str(DataError(text, file="f")) == f"f: {masked}"
    assert holds_credential([text])
    assert not holds_credential([masked])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https://host:8080/a@b",
            "file:///home/a@b/c",
            "sqlite:///trials.db",
            "git@github.com:a/b",
            "a:/b",
            "me@x.org",
        ),
        *("training.batch_tokens=4096", "tokenizer=bpe", "unit:token|count:3", "max_token=5", "--pad-token=<pad>"),
        *("hf_multi30k", "data/sk-cs-europarl-v7-tok", "task-1234567890abcdef", "a key: value", "https://h/?page=1"),
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert redact_credentials(text) == text
    assert redact_command_line([text]) == [text]
    assert not holds_credential([text])


FRAGMENTS = [
    *(
        "https://",
        "s3:/",
        "user",
        ":",
        "hush",
        "@",
        "host",
        "/",
        "?",
        "&",
        "token",
        "Password",
        "api_key",
        "=",
        " ",
        "'",
        '"',
    ),
    *(
        "BEARER ",
        "hushhushhush.hush",
        "eyJhushhush.hushhush.x",
        "hf_",
        "api_org_",
        "ghp_",
        "github_pat_",
        "glpat-",
        "xoxb-",
    ),
    *(
        "AKIA",
        "ASIA",
        "AIza",
        "sk-",
        "rk_live_",
        "HUSHHUSHHUSH0123",
        "hushhushhushhush0123456789",
        ",",
        "\u212a",
        "\u017f",
    ),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join))
def test_no_pattern_matches_a_text_without_its_signs(text: str) -> None:
    searched = text
    for _, pattern, replacement in _credential_text_patterns():
        searched = pattern.sub(replacement, searched)
    assert redact_credentials(text) == searched


def test_a_credential_may_be_a_word_of_its_own() -> None:
    words = [
        "tfm",
        "x",
        "--password",
        "hush",
        "--set",
        "a.key=hush hush",
        "--set=b.secret=hush",
        "--token",
        "--out",
        "d",
    ]
    masked = ["tfm", "x", "--password", "***", "--set", "a.key=***", "--set=b.secret=***", "--token", "--out", "d"]
    assert redact_command_line(words) == masked
    assert redact_command_line(masked) == masked
    assert holds_credential(["score", "--password", "hush"])
    assert not holds_credential(["score", "--pad-token", "<pad>", "--password"])


def test_control_characters_are_spelled_out_and_joiners_stay() -> None:
    kept = "می\u200cروم, \u200fשלום\u200e, 今日\u3000は, a\u00a0b, 👩\u200d👧, \u00adx"
    assert escape_control_characters(f"{kept}\n\t") == f"{kept}\n\t"
    assert escape_control_characters("\x00\x1b\x7f\x9b\r\u2028\u202e\u2069\ud800") == (
        "\\x00\\x1b\\x7f\\x9b\\r\\u2028\\u202e\\u2069\\ud800"
    )
    assert escape_control_characters("a\n\tb", keep="") == "a\\n\\tb"
