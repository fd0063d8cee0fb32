"""The ledger: what is entered stays, however many write, whoever is killed, whatever a name looks like."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring import ledger
from tfm.pipeline.scoring.ledger import (
    EvaluatedModel,
    LedgerEntry,
    append_entries,
    are_same_texts,
    describe_test_uses,
    num_test_uses,
    read_evaluated_model,
    read_ledger,
    select_entries,
    texts_fingerprint,
)

ROOT = Path(__file__).parents[4]
LOOK = LedgerEntry(texts="t" * 64, test="main", model="m" * 64, run="demo", chosen="recipe")
# Eight processes at once: each enters as much as it is told, or until it is killed, and says aloud what is entered.
WRITERS = """
import os, sys
from pathlib import Path
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.ledger import LedgerEntry, append_entries
root, most = Path(sys.argv[1]), int(sys.argv[2])
for writer in range(8):
    if os.fork() == 0:
        for entry in range(most):
            entries = [LedgerEntry("t", f"{writer} {entry} " + "ä" * writer * 20, "m", "r", "recipe")]
            append_entries(root, entries, NullReporter())
            os.write(1, f"{writer} {entry}\\n".encode())
        os._exit(0)
print(flush=True)
for writer in range(8):
    os.wait()
"""


class Heard(NullReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def start(root: Path, most: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITERS, root, str(most)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def entered(entries: Sequence[LedgerEntry]) -> list[tuple[str, ...]]:
    return [tuple(look.test.split()[:2]) for look in entries]


def test_no_entry_of_eight_processes_is_lost_or_torn(tmp_path: Path) -> None:
    with start(tmp_path, 40) as process:
        process.communicate()
    found = entered(read_ledger(tmp_path))
    assert sorted(found) == sorted((str(writer), str(entry)) for writer in range(8) for entry in range(40))
    for writer in range(8):
        assert [entry for by, entry in found if by == str(writer)] == [str(entry) for entry in range(40)]


def test_what_was_entered_before_a_kill_stays_and_later_entries_are_whole(tmp_path: Path) -> None:
    with start(tmp_path, 10**6) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(100)]
        os.killpg(process.pid, signal.SIGKILL)
        said += process.stdout.readlines()
    told = {tuple(line.split()) for line in said if line.endswith("\n") and line.strip()}
    found = entered(read_ledger(tmp_path))
    assert told <= set(found)
    assert len(set(found)) == len(found)
    append_entries(tmp_path, [LOOK], NullReporter())
    assert read_ledger(tmp_path)[-1].test == "main"


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_half_a_line_swallows_no_entry(tmp_path: Path, kept: int) -> None:
    append_entries(tmp_path, [LOOK], NullReporter())
    file = tmp_path / ledger.LEDGER_FILE
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:kept])
    append_entries(tmp_path, [LOOK, LOOK], NullReporter())
    # a line that lacks its end alone says all that it had to say
    assert len(read_ledger(tmp_path)) == (4 if kept == -1 else 3)


@pytest.mark.parametrize("line", ["", "[]", "null", '{"texts": 1}', "[" * 10**5, '{"texts": "a"}', "\x00\ufeff"])
def test_lines_of_others_are_passed_over(tmp_path: Path, line: str) -> None:
    append_entries(tmp_path, [LOOK], NullReporter())
    with open(tmp_path / ledger.LEDGER_FILE, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    append_entries(tmp_path, [LOOK], NullReporter())
    assert [look.test for look in read_ledger(tmp_path)] == ["main", "main"]


def test_strange_names_stay_one_line_of_less_than_4_kib(tmp_path: Path) -> None:
    names = ["اختبار", "テスト\u2028\x85\n", "\x01" * 5000, "😀" * 5000, os.fsdecode(b"run-\xff")]
    append_entries(tmp_path, [LedgerEntry(LOOK.texts, name, LOOK.model, name, name) for name in names], NullReporter())
    data = (tmp_path / ledger.LEDGER_FILE).read_bytes()
    assert data.count(b"\n") == len(names)
    assert max(map(len, data.split(b"\n"))) < 4095
    assert [look.test for look in read_ledger(tmp_path)][:2] == names[:2]
    assert read_ledger(tmp_path)[4].run == "run-?"


def test_where_it_cannot_be_written_there_is_a_warning(tmp_path: Path) -> None:
    heard = Heard()
    append_entries(tmp_path / "none", [LOOK], heard)
    (tmp_path / ledger.LEDGER_FILE).mkdir()
    append_entries(tmp_path, [LOOK], heard)
    assert len(heard.warnings) == 2
    assert all("could not be entered: " in text for text in heard.warnings)
    assert read_ledger(tmp_path) == read_ledger(tmp_path / "none") == []


def test_a_full_disk_costs_the_entry_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append_entries(tmp_path, [LOOK], NullReporter())
    heard, write = Heard(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda to, data: write(to, data[:30]))
        append_entries(tmp_path, [LOOK], heard)
    assert "only 30 of" in heard.warnings[0]
    append_entries(tmp_path, [LOOK], NullReporter())
    assert len(read_ledger(tmp_path)) == 2


def test_a_fingerprint_is_of_words_and_lines() -> None:
    texts = ["Ein Hund läuft.", "", "כלב רץ", "ATIS FLIGHT"]
    assert texts_fingerprint(texts) == texts_fingerprint([" Ein  Hund läuft.\r", " ", "כלב\u00a0רץ", "ATIS FLIGHT"])
    others = [["Ein Hund läuft.", "כלב רץ", "ATIS FLIGHT"], [*texts, ""], texts[::-1], [each.lower() for each in texts]]
    assert len({texts_fingerprint(each) for each in [texts, *others]}) == 5


def test_in_words(tmp_path: Path) -> None:
    append_entries(
        tmp_path,
        [LedgerEntry("a", "main", f"model {number % 9}", "r", "recipe") for number in range(14)],
        NullReporter(),
    )
    append_entries(tmp_path, [LedgerEntry("b", "main", "model 1", "r", "recipe")], NullReporter())
    entries = read_ledger(tmp_path)
    assert describe_test_uses(select_entries(entries, "a")) == "14 times, by 9 models of this folder"
    # what is seen again is nothing new: of a crash, say, before the scores were published
    again = [LedgerEntry("a", "main", "m", "r", "recipe", seen=seen) for seen in ("x", "y", "x", "x")]
    assert describe_test_uses(again) == "2 times, by 1 model of this folder"
    assert describe_test_uses(select_entries(entries, "b")) == "once, by 1 model of this folder"
    assert describe_test_uses(select_entries(entries, "c")) == ""
    assert all(look.when.endswith("+00:00") for look in entries)
    assert json.loads((tmp_path / ledger.LEDGER_FILE).read_text().splitlines()[0])["chosen"] == "recipe"


def test_the_ledger_of_a_run_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "demo"
    (run / "model").mkdir(parents=True)
    assert read_evaluated_model(run / "model", "m", "files") is None  # a model by itself
    (run / "training").mkdir()
    assert read_evaluated_model(run / "model", "m", "files") == EvaluatedModel(tmp_path / "runs", "m", "demo", "files")
    monkeypatch.chdir(run)
    assert read_evaluated_model(Path("model"), "m", "files") == EvaluatedModel(tmp_path / "runs", "m", "demo", "files")
    assert read_evaluated_model(Path("training"), "m", "files") is None


def test_the_same_lines_in_another_order_are_the_same_test_set_and_former_entries_count(tmp_path: Path) -> None:
    lines = ["ein Hund", "كلب", "狗", "ein Hund"]
    whole, turned, other = (
        texts_fingerprint(lines),
        texts_fingerprint(lines[::-1]),
        texts_fingerprint([*lines[:3], "eine Katze"]),
    )
    former = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert whole != turned
    assert are_same_texts(whole, turned)
    assert are_same_texts(whole, former)
    assert not are_same_texts(turned, former), "an entry of former times does not know the lines"
    assert not are_same_texts(whole, other)
    assert not are_same_texts(whole, texts_fingerprint(lines[:3]))
    assert are_same_texts(None, None)
    assert not are_same_texts(None, whole)
    entries = [
        replace(LOOK, texts=each, seen=str(number)) for number, each in enumerate((former, turned, whole, other))
    ]
    append_entries(tmp_path, entries, NullReporter())
    assert num_test_uses(select_entries(read_ledger(tmp_path), whole)) == 3
    assert (tmp_path / ledger.LEDGER_FILE).read_text("utf-8").count("…") == 0, "no fingerprint is cut"


def test_labels_are_told_apart_by_their_texts() -> None:
    """Any two balanced test sets have the same labels in another order."""
    labels, texts = ["pos"] * 4 + ["neg"] * 4, [f"text {number}" for number in range(8)]
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    known = texts_fingerprint(labels, texts)
    turned = texts_fingerprint([labels[at] for at in order], [f" {texts[at]}\n" for at in order])
    assert are_same_texts(known, turned)
    others = texts_fingerprint(labels, [f"other {number}" for number in range(8)])
    swapped = texts_fingerprint(labels[::-1], texts)
    assert not any(are_same_texts(known, each) for each in (others, swapped, texts_fingerprint(labels)))


def test_references_that_tell_test_sets_apart_need_no_sources() -> None:
    texts = ["ein Hund", "eine Katze", "ein Hund", "ein Vogel"]
    assert texts_fingerprint(texts, ["a", "b", "c", "d"]) == texts_fingerprint(texts)
