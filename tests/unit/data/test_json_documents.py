"""JSON of others: an object, bounded in bytes, depth and number of values, before memory is taken for them."""

from pathlib import Path

import pytest

from tfm.data.errors import DataError
from tfm.data.json_documents import MAX_DEPTH, MAX_JSON_VALUES, parse_json, read_json


@pytest.mark.parametrize("data", [b"", b"3", b"[]", b"\xff", b"{", b'{"a":' * 300 + b"1" + b"}" * 300, b"[" * 10**6])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"is damaged|is nested"):
        parse_json(data)


@pytest.mark.parametrize("value", [b"0", b"[]", b"{}", b'""', b'"a":0'])
def test_too_many_values_are_refused_before_one_is_made(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.data.json_documents.json.loads", None)  # it is not reached
    begin, end = (b"{", b"}") if b":" in value else (b'{"a":[', b"]}")
    with pytest.raises(ValueError, match=f"more than {MAX_JSON_VALUES:,} values"):
        parse_json(begin + (value + b",") * MAX_JSON_VALUES + value + end)


def test_an_object_within_the_bounds_is_read(tmp_path: Path) -> None:
    deep = MAX_DEPTH - 1
    assert "a" in parse_json(b'{"a":' + b"[" * deep + b"]" * deep + b"}")
    (tmp_path / "x.json").write_bytes(b'{"a": 1}')
    assert read_json(tmp_path / "x.json", max_bytes=8) == {"a": 1}
    with pytest.raises(DataError, match=r"x\.json: is larger than .* \(8 bytes; 7 at most\)"):
        read_json(tmp_path / "x.json", max_bytes=7)
