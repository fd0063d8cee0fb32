"""Answers and campaigns that others send are read, or refused in a line that names the file; there is no traceback."""

import csv
import io
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from tests import hostile
from tests.cli.user import ROOT, tfm
from tests.hostile_json import variants
from tests.peak_memory import PROGRAM
from tests.unit.pipeline.judging import panel
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.analysis import analyze_answers
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.answers import Answer
from tfm.pipeline.judging.campaign import Campaign, CampaignKind, read_campaign, write_campaign
from tfm.pipeline.judging.findings_tables import tables_of_findings
from tfm.pipeline.judging.forms.pearmut import campaign_id
from tfm.pipeline.judging.forms.spreadsheet import make_spreadsheet
from tfm.pipeline.judging.making.assembly import CampaignSpec, make_campaign

pytestmark = pytest.mark.promise("hostile")
KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")
MAX_SECONDS, MAX_RAM = 20.0, 1.5e9
EVERY = pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.slow)])
"""All variants, or quickly one of many."""
CELLS = (
    *("", "-1", "1e400", "nan", "inf", "1" + "0" * 400, "1_0", "\0", "\x1b[2J", "a" * 150_000, "x|" * 5_000),
    *("=1+1", '"', "\n\n", "\u202e", "../x", "[missing]", "٣"),
)
Judged = tuple[Campaign, list[Path]]


@pytest.fixture(params=KINDS)
def judged(request: pytest.FixtureRequest, tmp_path: Path) -> Judged:
    """A small campaign in a folder, and what two judges sent back."""
    campaign = make_campaign(
        CampaignSpec(request.param, 3, 2, seed=4, attention_check_share=0.4, repeat_share=0), panel.systems(6, 4)
    )
    write_campaign(campaign, tmp_path / "campaign.json")
    return campaign, panel.answer(campaign, [panel.careful] * 2, tmp_path, 4)


def is_refused(file: Path, read: Callable[[], object]) -> bool:
    """Whether what others sent is refused, in one short line that names the file; all that is not is read."""
    began, said = time.monotonic(), ""
    try:
        read()
    except DataError as error:
        said = str(error)
    assert time.monotonic() - began < MAX_SECONDS
    assert said.startswith(f"{file}") or not said, said[:300]
    assert len(said) < 600
    assert "\n" not in said
    return bool(said)


def scored(campaign: Campaign, answers: Sequence[Answer]) -> None:
    """All that is said of answers can be computed and shown."""
    if not any(answer.item.is_counted for answer in answers):
        return
    found = analyze_answers(campaign, answers)
    assert tables_of_findings(found)
    json.dumps(found.as_json(), allow_nan=False)


@EVERY
def test_answers_of_pages(judged: Judged, tmp_path: Path, every: int) -> None:
    campaign, files = judged
    document = json.loads(files[0].read_text("utf-8"))
    document["answers"] = document["answers"][:3]
    wrong, accepted = tmp_path / "wrong.json", set()
    for where, text in islice(variants(document), None, None, every):
        wrong.write_text(text, "utf-8")
        if not is_refused(wrong, lambda: read_answers(campaign, [wrong], partial=True)):
            accepted.add(where.split(".")[-1])
            scored(campaign, read_answers(campaign, [wrong], partial=True))
    # what is read all the same: other numbers of the scale, answers that are missing, and keys that nobody reads
    assert {each for each in accepted if each.partition(": ")[2] not in ("missing", "a key of a million")} <= {
        *("score: zero", "score: half", "score: tiny", "start: zero", "spans: an empty list"),
        *("seconds: zero", "seconds: half", "seconds: tiny", "seconds: null"),
    }


def log_of(campaign: Campaign, file: Path) -> list[dict[str, Any]]:
    """The answers of a page as Pearmut logs them."""
    document = json.loads(file.read_text("utf-8"))
    entries = []
    for row in document["answers"][:2]:
        item = campaign.items_by_id[row["item"]]
        entries.append(
            {
                "user_id": document["judge"],
                "item": [{"item_id": item.id, "campaign": campaign.fingerprint}],
                "annotation": [{each.label: _annotation(campaign.kind, each.label, row) for each in item.shown}],
                "actions": [{"time": 100.5, "action": "load"}, {"time": 112.0, "action": "submit"}],
            }
        )
    return entries


def _annotation(kind: CampaignKind, label: str, row: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "esa":
        spans = [{"start_i": 0, "end_i": 1, "severity": "minor"}]
        return {"score": row["answer"][label]["score"], "error_spans": spans}
    return {"sliders": row["answer"][label] if kind == "likert" else {"best": 1}}


@EVERY
def test_logs_of_pearmut(judged: Judged, tmp_path: Path, every: int) -> None:
    campaign, files = judged
    first, second = log_of(campaign, files[0])
    wrong, accepted = tmp_path / "wrong.json", set()
    logs = ((where, f"{text}\n{json.dumps(second)}\n") for where, text in variants(first))
    for where, text in islice(chain(logs, variants({campaign_id(campaign): [first, second]})), None, None, every):
        wrong.write_text(text, "utf-8")
        if not is_refused(wrong, lambda: read_answers(campaign, [wrong], partial=True)):
            accepted.add(where.split(".")[-1])
            scored(campaign, read_answers(campaign, [wrong], partial=True))
    assert {each for each in accepted if each.partition(": ")[2] not in ("missing", "a key of a million")} <= {
        *("score: zero", "score: half", "score: tiny", "best: zero", "actions: null", "actions: an empty list"),
        *("actions: a list of objects", "0: an object", "0: an empty object", "1: an object", "1: an empty object"),
        *("time: zero", "time: half", "time: negative", "time: tiny", "action: twice", "start_i: zero", "end_i: zero"),
        *("error_spans: null", "error_spans: an empty list"),
        *(each for each in accepted if each.startswith("action:")),  # what was done is not read, only when
    }


@EVERY
@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.few(4)
def test_tables(judged: Judged, tmp_path: Path, separator: str, every: int) -> None:
    campaign, _ = judged
    head, *rows = csv.reader(
        io.StringIO(make_spreadsheet(campaign, campaign.judges[0]).removeprefix("\ufeff"), newline="")
    )
    filled = [[cell or ("x" if campaign.kind in ("pairwise", "best") else "3") for cell in row] for row in rows[:4]]
    wrong = tmp_path / "wrong.csv"
    for table in islice(_wrong_tables([head, *filled]), None, None, every):
        with open(wrong, "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(table)
        if not is_refused(wrong, lambda: read_answers(campaign, [wrong], partial=True)):
            scored(campaign, read_answers(campaign, [wrong], partial=True))
    for text in ("\0" * 1000, "campaign," * 10**5, "\n" * 10**5, '"' * 10**5, "," * 10**5 + "\n", "\ufeff" * 3):
        wrong.write_text(text, "utf-8")
        assert is_refused(wrong, lambda: read_answers(campaign, [wrong], partial=True))


def _wrong_tables(table: list[list[str]]) -> Iterator[list[list[str]]]:
    """A table with each column left out, and given twice, and its cells in the head and the first row wrong."""
    for column in range(len(table[0])):
        yield [row[:column] + row[column + 1 :] for row in table]
        yield [[*row, row[column]] for row in table]
        for place in (0, 1):
            for cell in CELLS:
                changed = [list(row) for row in table]
                changed[place][column] = cell
                yield changed


@EVERY
def test_campaigns(judged: Judged, tmp_path: Path, every: int) -> None:
    campaign, files = judged
    file = tmp_path / "campaign.json"
    for _, text in islice(variants(json.loads(file.read_text("utf-8"))), None, None, every):
        file.write_text(text, "utf-8")
        if is_refused(file, lambda: read_campaign(file)):
            continue
        other = read_campaign(file)
        renamed = tmp_path / "renamed.json"
        renamed.write_text(files[0].read_text("utf-8").replace(campaign.fingerprint, other.fingerprint), "utf-8")
        if not is_refused(renamed, lambda: read_answers(other, [renamed], partial=True)):  # noqa: B023
            scored(other, read_answers(other, [renamed], partial=True))


# What takes memory or time


def no_files(file: Path) -> Iterator[str]:
    """What stands at the place of a file, one after the other."""
    hostile.sparse(file, 2**40)
    yield "a terabyte"
    file.unlink()
    os.mkfifo(file)
    yield "a FIFO"
    file.unlink()
    file.symlink_to("/dev/zero")
    yield "a device"
    file.unlink()
    file.symlink_to(file.name)
    yield "a loop"
    file.unlink()
    file.mkdir()
    yield "a folder"
    file.rmdir()


@pytest.mark.parametrize("name", ["campaign.json", "judge-1.json"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, name: str) -> None:
    campaign = make_campaign(CampaignSpec("likert", 2, 1, seed=4), panel.systems(6, 4))
    write_campaign(campaign, tmp_path / "campaign.json")
    panel.answer(campaign, [panel.careful], tmp_path, 4)
    (tmp_path / name).unlink()
    for kind in no_files(tmp_path / name):
        began = time.monotonic()
        done = tfm("judge", "score", tmp_path, tmp_path / "judge-1.json")
        assert done.code == 65, (kind, done)
        assert name in done.err, kind
        assert done.out == ""
        assert time.monotonic() - began < MAX_SECONDS


def test_a_link_in_the_folder_of_a_campaign_is_not_followed(tmp_path: Path) -> None:
    campaign = make_campaign(CampaignSpec("likert", 2, 1, seed=4), panel.systems(6, 4))
    (tmp_path / "sent").mkdir()
    write_campaign(campaign, tmp_path / "elsewhere.json")
    (tmp_path / "sent" / "campaign.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DataError, match=r"campaign\.json: is not a regular file"):
        read_campaign(tmp_path / "sent")
    assert read_campaign(tmp_path / "sent" / "campaign.json") == campaign  # a file that the user names may be a link


def cpu_seconds() -> float:
    """What processes that have ended took; a busy machine makes it no longer."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("name", ["campaign.json", "judge-1.json"])
def test_memory_is_bounded(tmp_path: Path, name: str) -> None:
    campaign = make_campaign(CampaignSpec("best", 2, 1, seed=4), panel.systems(6, 4))
    write_campaign(campaign, tmp_path / "campaign.json")
    panel.answer(campaign, [panel.careful], tmp_path, 4)
    size = 31 * 2**20
    row = f"{campaign.fingerprint},judge-1,i0001,A,x\n".encode()
    bombs = {
        "lists": b'{"a":[' + b"[]," * (size // 3) + b"0]}",
        "some lists": b'{"answers":[' + b"[]," * 3_900_000 + b"0]}",
        "objects": b'{"answers":[' + b'{"a":1},' * 1_900_000 + b"0]}",
        "a text": b'{"a":"' + "𝒳".encode() + b"x" * size + b'"}',
        "pieces of texts": b'{"a":"' + b"\\ud83d\\ude00" * (size // 12) + b'"}',
        "lines": b"\n" * size,
        "columns": b"campaign,judge,item,label,best," + b"," * 3_900_000,
        "rows": b"campaign,judge,item,label,best\n" + row * (size // len(row)),
    }
    for kind, bomb in bombs.items():
        (tmp_path / name).write_bytes(bomb)
        began = cpu_seconds()
        command = [sys.executable, "-c", PROGRAM, "judge", "score", str(tmp_path), str(tmp_path / "judge-1.json")]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        said, _, peak = done.stderr.rpartition("peak ")
        assert done.returncode == 65, (kind, said)
        assert name in said
        assert int(peak) < MAX_RAM, (kind, int(peak))
        assert cpu_seconds() - began < MAX_SECONDS, kind
