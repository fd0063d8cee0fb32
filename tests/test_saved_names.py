"""What is on disk stays readable: names of tensors, keys of recipes and of JSON, files, and built-in corpora."""

import json
from pathlib import Path

import pytest

from tests.golden.saved import FILE, PARTS, written


@pytest.mark.parametrize("part", PARTS)
def test_what_is_saved_stands_in_the_golden_file(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change on purpose `python -m tests.golden.saved` writes it anew."""
    monkeypatch.chdir(tmp_path)
    assert written(PARTS[part]()) == written(json.loads(FILE.read_bytes())[part])
