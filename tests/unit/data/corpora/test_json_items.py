"""Lines that are nearly JSON are refused with what makes JSON Lines of them."""

from pathlib import Path

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

ROW = '{"source": "a", "target": "b"}'


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"{ROW},\n{ROW},\n", "a comma ends the line: cut those"),
        (f"{ROW}{ROW}\n", r"as by jq -c \. FILE"),
        (f"{ROW} {ROW}\n", r"as by jq -c \. FILE"),
        (ROW.replace(",", ",\n"), r"as by jq -c \. FILE"),
        (f"\x1e{ROW}\n\x1e{ROW}\n", r"as by tr -d '\\036' < FILE"),
        (f"[{ROW}]\n[{ROW}]\n", r"as by jq -c '\.\[\]' FILE"),
        (ROW.replace("}", ",}"), "a comma stands before a closing bracket: remove it"),
        (ROW.replace('"', "'"), "as Python and JavaScript write objects"),
        ("{source: 'a', target: 'b'}\n", "as Python and JavaScript write objects"),
        ("[{'source': 'a', 'target': 'b'}]\n", "as Python and JavaScript write objects"),
        (f"// rows\n{ROW}\n", "JSON has no comments: remove them"),
        (f"var rows = [{ROW}];\n", "keep what is behind the = and before the ;"),
    ],
)
def test_each_kind_is_answered_with_its_remedy(text: str, remedy: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=remedy) as error:
        list(read_pairs(CorpusConfig(format="jsonl", path=str(file))))
    assert "\n" not in str(error.value)


def test_other_damage_has_no_remedy_that_would_not_help(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for text in (f"{ROW}\n{ROW[:-4]}\n", f"{ROW}\n{ROW}x\n", f"{ROW}\nnull x\n"):
        file.write_text(text, "utf-8")
        with pytest.raises(DataError, match=r"line 2: not JSON: [^;]*$"):
            list(read_pairs(CorpusConfig(format="jsonl", path=str(file))))


def test_an_array_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(f"[{ROW}]".encode("utf-16"))
    with pytest.raises(DataError, match="is UTF-16"):
        list(read_pairs(CorpusConfig(format="jsonl", path=str(file))))
    file.write_bytes(f"[{ROW.replace('a', 'ä')}]".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 1, byte \d+: not UTF-8 .* as by iconv"):
        list(read_pairs(CorpusConfig(format="jsonl", path=str(file))))
