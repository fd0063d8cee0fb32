"""Strange text through every command: line n stays line n, or it is said which file, line and byte is wrong."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.cli.user import ROOT, WORDS, Stages, tfm, write_lines
from tfm.data import lines
from tfm.data.dataset.store import load_dataset
from tfm.tokenizer.config import Kind

pytestmark = pytest.mark.promise("text")
# What is no end of a line, whatever some libraries say, and a line without any word.
WITHIN = {
    "carriage return": b"\r", "NUL": b"\0", "line separator": "\u2028".encode(), "next line": "\u0085".encode(),
    "form feed": b"\f", "vertical tab": b"\v", "file separator": b"\x1c", "byte order mark": "\ufeff".encode(),
}  # fmt: skip
USUAL_MORE = 500 * 2**20


def insulted(within: bytes, words: bytes = b"eins") -> bytes:
    """Five lines: ordinary, with an insult in the middle, at both ends, alone, ordinary."""
    return b"\n".join([words, words + within + words, within + words + within, within, words, b""])


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def aligned(folder: Path, stages: Stages, source: bytes, target: bytes) -> Any:
    """`tfm preprocess` on two texts, dropping nothing that can be read; also as test set, which keeps texts."""
    train = written(folder, "a.de", source), written(folder, "a.en", target)
    good = write_lines(folder / "v.de", ["eins"]), write_lines(folder / "v.en", ["one"])
    splits = ("--train", *good, "--valid", *good, "--test", *train)
    words = ("preprocess", *splits, "--tokenizer", stages.folder / "tokenizer", "--batch-tokens", "64")
    return tfm(*words, "--out", folder / "dataset")


@pytest.mark.few(4)
@pytest.mark.parametrize("insult", WITHIN)
def test_what_is_no_line_end_moves_no_line(insult: str, stages: Stages, tmp_path: Path) -> None:
    content = insulted(WITHIN[insult])
    plain = b"one\ntwo\nthree\nfour\nfive\n"
    made = aligned(tmp_path, stages, content, plain)
    assert made.code == 0, made.err
    sources, targets = load_dataset(tmp_path / "dataset").tests["test"].texts()
    assert targets == plain.decode().split("\n")[:-1]
    assert (sources[0], sources[4]) == ("eins", "eins")

    file = tmp_path / "a.de"
    assert tfm("tokenize", file, "--kind", "char", "--vocab-size", "30", "--out", tmp_path / "t").code == 0
    for translated in (tfm("translate", stages.folder, file), tfm("translate", stages.folder, "-", stdin=content)):
        assert translated.code == 0, translated.err
        assert translated.out.count("\n") == 5
        lines = translated.out.split("\n")
        assert lines[0] == lines[4]
    scored = tfm("evaluate", "--hypotheses", file, "--reference", file, "--metric", "exact_match", "--json")
    assert scored.code == 0, scored.err
    assert '"score": 100.0' in scored.out


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"eins\r\nzwei\r\ndrei\r\n", 3),
        (b"\xef\xbb\xbfeins\nzwei", 2),
        (b"eins\n\n\nzwei", 4),
        (b"\n", 1),
        (b"", 0),
    ],
    ids=["CRLF", "BOM and no final newline", "empty lines", "one empty line", "nothing"],
)
def test_a_line_of_output_for_a_line_of_input(content: bytes, lines: int, stages: Stages, tmp_path: Path) -> None:
    file = written(tmp_path, "a.de", content)
    for translated in (tfm("translate", stages.folder, file), tfm("translate", stages.folder, "-", stdin=content)):
        assert translated.code == 0, translated.err
        assert translated.out.count("\n") == lines
    if lines > 1:
        plain = tfm("translate", stages.folder, "-", stdin="eins\n").out
        assert tfm("translate", stages.folder, file).out.split("\n")[0] == plain.strip("\n")


@pytest.mark.parametrize("command", ["tokenize", "preprocess", "translate", "translate -", "evaluate"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc3"], ids=["no UTF-8", "half a surrogate", "cut"])
def test_what_is_not_utf8_is_named_by_line_and_byte(command: str, bad: bytes, stages: Stages, tmp_path: Path) -> None:
    content = b"eins\nzwei\ndr" + bad + b"ei\nvier\n"
    file = written(tmp_path, "bad.de", content)
    good = write_lines(tmp_path / "good.en", ["one", "two", "three", "four"])
    if command == "preprocess":
        result = aligned(tmp_path, stages, content, b"one\ntwo\nthree\nfour\n")
        name = "a.de"
    else:
        words = {
            "tokenize": ("tokenize", file, "--out", tmp_path / "out"),
            "translate": ("translate", stages.folder, file),
            "translate -": ("translate", stages.folder, "-"),
            "evaluate": ("evaluate", "--hypotheses", file, "--reference", good),
        }[command]
        result = tfm(*words, stdin=content)
        name = "stdin" if command == "translate -" else "bad.de"
    assert result.code == 65, result.err
    assert all(part in result.err for part in (name, "line 3", "byte 3")), result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "dataset").exists()


@pytest.mark.parametrize("command", ["tokenize", "preprocess", "translate", "evaluate"])
def test_a_folder_is_no_text(command: str, stages: Stages, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    good = write_lines(tmp_path / "good.en", ["one"])
    data = ("--valid", good, good, "--test", good, good, "--tokenizer", stages.folder / "tokenizer")
    words: dict[str, tuple[str | Path, ...]] = {
        "tokenize": ("tokenize", folder, "--out", tmp_path / "out"),
        "preprocess": ("preprocess", "--train", good, folder, *data, "--out", tmp_path / "out"),
        "translate": ("translate", stages.folder, folder),
        "evaluate": ("evaluate", "--hypotheses", good, "--reference", folder),
    }
    result = tfm(*words[command])
    assert result.code == 65, result.err
    assert str(folder) in result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["tokenize", "translate", "translate -", "evaluate"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    command: str, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    content = b"eins\n" + b"x" * 2000
    file = written(tmp_path, "endless.de", content)
    words: dict[str, tuple[str | Path, ...]] = {
        "tokenize": ("tokenize", file, "--out", tmp_path / "out"),
        "translate": ("translate", stages.folder, file),
        "translate -": ("translate", stages.folder, "-"),
        "evaluate": ("evaluate", "--hypotheses", file, "--reference", file),
    }
    result = tfm(*words[command], stdin=content)
    assert result.code == 65, result.err
    name = "stdin" if command == "translate -" else "endless.de"
    assert f"{name}, line 2: is longer than 1,000 bytes" in result.err


def test_an_empty_corpus_is_refused(stages: Stages, tmp_path: Path) -> None:
    empty, good = written(tmp_path, "empty", b""), write_lines(tmp_path / "good", ["one"])
    assert tfm("tokenize", empty, "--out", tmp_path / "t").code == 65
    data = ("--valid", good, good, "--test", good, good, "--tokenizer", stages.folder / "tokenizer")
    made = tfm("preprocess", "--train", empty, empty, *data, "--out", tmp_path / "d")
    assert made.code == 65
    assert "empty" in made.err


# A line of a million characters

PEAK = """
import json, resource, sys
from tfm.cli.app import app
try:
    app(json.loads(sys.argv[1]), prog_name="tfm")
except SystemExit as end:
    code = end.code or 0
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([code, peak]), file=sys.stderr)
"""


def measured(words: tuple[str | Path, ...]) -> tuple[int, int, str]:
    """Exit code, peak memory in bytes and stdout of a command in a process of its own."""
    command = [sys.executable, "-c", PEAK, json.dumps([str(word) for word in words])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    code, peak = json.loads(done.stderr.splitlines()[-1])
    return code, peak, done.stdout


COMMANDS = (*(f"tokenize {kind}" for kind in get_args(Kind)), "preprocess", "translate", "evaluate")


@pytest.mark.slow
@pytest.mark.parametrize("words", [True, False], ids=["of words", "of one word"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_line_of_a_million_characters_takes_bounded_memory(
    command: str, words: bool, stages: Stages, tmp_path: Path, record_property: Any
) -> None:
    giant = (" " if words else "").join(random.Random(1).choices(list(WORDS), k=250_000))[:1_000_000]
    peaks = []
    for name, middle in (("usual", "eins"), ("giant", giant)):
        file = write_lines(tmp_path / name, ["eins zwei", middle, "drei"] * 2)
        data = ("--valid", file, file, "--test", file, file, "--tokenizer", stages.folder / "tokenizer")
        arguments: dict[str, tuple[str | Path, ...]] = {
            "preprocess": ("preprocess", "--train", file, file, *data, "--out", tmp_path / f"{name}-data"),
            "translate": ("translate", stages.folder, file),
            "evaluate": ("evaluate", "--hypotheses", file, "--reference", file),
        }
        stage, _, kind = command.partition(" ")
        learned = () if kind == "codepoint" else ("--vocab-size", "300")
        tokenize = ("tokenize", file, "--kind", kind, *learned, "--out", tmp_path / f"{name}-t")
        code, peak, out = measured(tokenize if kind else arguments[stage])
        assert code == 0
        assert stage != "translate" or out.count("\n") == 6
        peaks.append(peak)
    assert peaks[1] - peaks[0] < USUAL_MORE, f"{(peaks[1] - peaks[0]) / 2**20:.0f} MiB more than usual"
    record_property("lines", 2)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["13a", "char", "zh", "intl"])
def test_scores_of_a_line_of_a_million_chinese_characters_take_bounded_memory(how: str, tmp_path: Path) -> None:
    generator = random.Random(1)
    giant = "".join(chr(generator.randrange(0x4E00, 0x9FA6)) for _ in range(1_000_000))
    peaks = []
    for name, middle in (("usual", "eins"), ("giant", giant)):
        file = write_lines(tmp_path / name, ["eins zwei", middle, "drei"])
        code, peak, _ = measured(
            ("evaluate", "--hypotheses", file, "--reference", file, "--set", f"evaluation.bleu_tokenize={how}")
        )
        assert code == 0
        peaks.append(peak)
    assert peaks[1] - peaks[0] < USUAL_MORE, f"{(peaks[1] - peaks[0]) / 2**20:.0f} MiB more than usual"
