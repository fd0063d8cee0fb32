"""`tfm compare` of folders of `tfm evaluate --out` that somebody changed by hand: refused, with the file that is wrong.

Once as they are, which the checksums find, and once with all checksums in order.
"""

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm, write_lines
from tests.tiny_artifact import signed

WORDS = "the a dog cat bird ran sat here over there . and two small".split()
NUM_LINES = 20
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scores of two systems, `one` and `two`."""
    here = tmp_path_factory.mktemp("scores")
    draw = random.Random(3)
    lines = [" ".join(draw.choices(WORDS, k=8)) for _ in range(NUM_LINES)]
    write_lines(here / "ref", lines)
    for name, kept in (("one", 0.9), ("two", 0.7)):
        write_lines(here / f"{name}.txt", [" ".join(w for w in text.split() if draw.random() < kept) for text in lines])
        words = ("--hypotheses", here / f"{name}.txt", "--reference", here / "ref", "--metric", "bleu")
        assert tfm("evaluate", *words, "--out", here / name).code == 0
    return here


def missing(name: str) -> Change:
    return lambda made: (made / name).unlink()


def written(name: str, text: str) -> Change:
    return lambda made: (made / name).write_bytes(text.encode("utf-8", "surrogateescape"))


def longer(*names: str) -> Change:
    def change(made: Path) -> None:
        for name in names:
            with open(made / name, "a", encoding="utf-8") as stream:
                stream.write("x\n")

    return change


def scores(change: Callable[[dict[str, Any]], object]) -> Change:
    """A change of scores.json."""

    def change_file(made: Path) -> None:
        content = json.loads((made / "scores.json").read_bytes())
        change(content)
        (made / "scores.json").write_text(json.dumps(content))

    return change_file


def bleu(key: str, value: object) -> Change:
    return scores(lambda content: content["metrics"]["bleu"].update({key: value}))


def segments(change: Callable[[list[dict[str, Any]]], object]) -> Change:
    """A change of the rows of segments.jsonl, in place."""

    def change_file(made: Path) -> None:
        rows = [json.loads(line) for line in (made / "segments.jsonl").read_text("utf-8").splitlines()]
        change(rows)
        (made / "segments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    return change_file


SEGMENTS: dict[str, Change] = {
    "no file": missing("segments.jsonl"),
    "a line less": segments(list.pop),
    "a line more": segments(lambda rows: rows.append(rows[-1] | {"line": NUM_LINES + 1})),
    "reversed": segments(list.reverse),
    "of another test set": segments(lambda rows: [row.update(split="x") for row in rows]),
    "a probability that is none": segments(lambda rows: rows[3].update(log_prob=math.nan)),
    "an endless probability": segments(lambda rows: rows[3].update(log_prob=-math.inf)),
    "a count below 0": segments(lambda rows: rows[3].update(pieces=-3)),
    "an endless count": segments(lambda rows: rows[3].update(words=math.inf)),
    "a number that is none": segments(lambda rows: rows[3].update(external={"x": math.nan})),
    "empty": written("segments.jsonl", ""),
    "no JSON": written("segments.jsonl", "{\n"),
    "deep": written("segments.jsonl", "[" * 100_000),
    "bytes": written("segments.jsonl", "\udcff\n"),
}
SCORES: dict[str, Change] = {
    "no file": missing("scores.json"),
    "cut off": written("scores.json", "{"),
    "a list": written("scores.json", "[]"),
    "deep": written("scores.json", "[" * 100_000),
    "bytes": written("scores.json", "\udcff"),
    "better": bleu("score", 99.0),
    "NaN": bleu("score", math.nan),
    "infinite": bleu("score", math.inf),
    "null": bleu("score", None),
    "text": bleu("score", "99"),
    "truth": bleu("score", [True]),
    "more than a float holds": bleu("score", 10**400),
    "without a signature": bleu("signature", None),
    "other texts": scores(lambda content: content.update(texts="0" * 64)),
    "fewer segments": scores(lambda content: content.update(num_segments=7)),
    "segments in words": scores(lambda content: content.update(num_segments="7")),
    "other test sets": scores(lambda content: content.update(others=[1])),
    "other hypotheses": written("hypotheses.txt", "x\n" * NUM_LINES),
    "other references": written("reference.txt", "x\n" * NUM_LINES),
}
TEXTS: dict[str, Change] = {
    "no hypotheses": missing("hypotheses.txt"),
    "no reference": missing("reference.txt"),
    "a hypothesis more": longer("hypotheses.txt"),
    "a reference more": longer("reference.txt"),
    "no UTF-8": written("hypotheses.txt", "\udcff\n" * NUM_LINES),
}
CASES = [
    *((SEGMENTS[name], "segments.jsonl") for name in SEGMENTS),
    *((SCORES[name], "scores.json") for name in SCORES),
    *((TEXTS[name], "changed") for name in TEXTS),
    (longer("hypotheses.txt", "reference.txt"), "segments.jsonl"),
]
NAMES = [*(f"segments: {name}" for name in SEGMENTS), *(f"scores: {name}" for name in SCORES), *TEXTS, "a line more"]


@pytest.mark.few(20)
@pytest.mark.promise("bytes")
@pytest.mark.parametrize(("change", "file"), CASES, ids=NAMES)
def test_a_folder_that_was_changed_is_refused(folder: Path, change: Change, file: str, tmp_path: Path) -> None:
    made = tmp_path / "changed"
    shutil.copytree((folder / "one").resolve(), made)
    change(made)
    for is_signed in (False, True):
        if is_signed:
            signed(made)
        done = tfm("compare", f"A={folder / 'two'}", f"B={made}")
        assert done.code == 65, done.err
        assert done.out == ""
        (line,) = done.err.splitlines()
        assert str(made) in line
        assert len(line) < 500
        assert not is_signed or file in line


@pytest.mark.slow
def test_a_folder_as_it_was_written_is_compared(folder: Path) -> None:
    assert tfm("compare", f"A={folder / 'two'}", f"B={folder / 'one'}").code == 0
