"""Answers of judges: what the page gives is read as it was given, and what does not fit the campaign is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.answers import Answer, ErrorSpan, Rating
from tfm.pipeline.judging.campaign import (
    AttentionCheck,
    Campaign,
    CampaignItem,
    CampaignKind,
    Judge,
    ShownText,
    read_campaign,
    write_campaign,
)

TEXTS = ("Ein Hund 🐕 läuft.", "كلب يجري", "")


def item(number: int, labels: str = "AB", **more: Any) -> CampaignItem:
    shown = tuple(ShownText(label=label, system=f"system {label}", text=TEXTS[i]) for i, label in enumerate(labels))
    return CampaignItem(
        **{"id": f"i{number}", "test": "t", "line": number, "source": "A dog runs.", "shown": shown, **more}
    )


def campaign(kind: CampaignKind, *items: CampaignItem, ties: tuple[str, ...] = ()) -> Campaign:
    asked = tuple(each.id for each in items if each.id not in ties)
    judges = (Judge(name="judge-1", items=asked, ties=ties), Judge(name="judge-2", items=asked[:1]))
    return Campaign(kind=kind, seed=1, systems=("system A", "system B", "system C"), items=items, judges=judges)


def answers_file(file: Path, of: Campaign, rows: list[Any], **changed: Any) -> Path:
    content = {"format": 1, "campaign": of.fingerprint, "judge": "judge-1", "answers": rows, **changed}
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


ESA = {
    "A": {
        "score": 70,
        "spans": [{"start": n, "end": m, "severity": kind} for n, m, kind in ((17, 17, "minor"), (9, 10, "major"))],
    }
}
GIVEN: dict[CampaignKind, tuple[str, Any]] = {
    "likert": ("A", {"A": {"adequacy": 1, "fluency": 5}}),
    "esa": ("A", ESA),
    "pairwise": ("AB", {"preferred": "B"}),
    "best": ("ABC", {"best": ["A", "C"]}),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_what_the_page_gives_is_read(tmp_path: Path, kind: CampaignKind) -> None:
    labels, answer = GIVEN[kind]
    of = campaign(kind, item(1, labels))
    file = answers_file(tmp_path / "a.json", of, [{"item": "i1", "seconds": 2.5, "answer": answer}])
    expected = {
        "likert": Answer("judge-1", of.items[0], 2.5, {"A": Rating({"adequacy": 1, "fluency": 5})}),
        "esa": Answer(
            "judge-1",
            of.items[0],
            2.5,
            {"A": Rating({"score": 70}, (ErrorSpan(9, 10, "major"), ErrorSpan(17, 17, "minor")))},
        ),
        "pairwise": Answer("judge-1", of.items[0], 2.5, best=frozenset("B")),
        "best": Answer("judge-1", of.items[0], 2.5, best=frozenset("AC")),
    }
    assert read_answers(of, [file]) == [expected[kind]]


def test_a_campaign_is_read_as_it_was_written(tmp_path: Path) -> None:
    hostile = CampaignItem(
        id="i9",
        test='"',
        line=1,
        source="</script>\u2028\u202e=1+1",
        references=("",),
        shown=item(1).shown,
        repeat_of="i1",
    )
    check = item(3, check=AttentionCheck(damaged=("B",)))
    of = campaign("pairwise", item(1), item(2), check, hostile, ties=("i2",))
    write_campaign(of, tmp_path / "campaign.json")
    assert read_campaign(tmp_path) == read_campaign(tmp_path / "campaign.json") == of
    assert read_campaign(tmp_path).fingerprint == of.fingerprint
    other = of.model_copy(update={"seed": 2})
    assert Campaign.model_validate(other.model_dump()).fingerprint != of.fingerprint


@pytest.mark.parametrize("limit", ["MAX_CAMPAIGN_BYTES", "MAX_JSON_VALUES", "MAX_JSON_OBJECTS"])
def test_no_campaign_is_written_that_is_not_read(tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = campaign("pairwise", *map(item, range(1, 9)))
    monkeypatch.setattr(f"tfm.pipeline.judging.campaign.{limit}", 20)
    with pytest.raises(DataError, match=r"would be too large: has .* 20.*; give fewer segments or judges"):
        write_campaign(of, tmp_path / "campaign.json")
    assert not (tmp_path / "campaign.json").exists()


def test_braces_in_texts_are_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    braces = item(1).model_copy(update={"source": '\\frac{a}{"b\\"}' * 20})
    of = campaign("pairwise", braces)
    monkeypatch.setattr("tfm.pipeline.judging.campaign.MAX_JSON_OBJECTS", 20)
    write_campaign(of, tmp_path / "campaign.json")
    assert read_campaign(tmp_path) == of


def test_a_tie_is_both_and_texts_that_are_the_same_are_one(tmp_path: Path) -> None:
    same = tuple(
        ShownText(label=label, system=f"system {label}", text=text) for label, text in zip("ABC", "xyx", strict=True)
    )
    pair, three = campaign("pairwise", item(1)), campaign("best", item(1, shown=same))
    tie = answers_file(tmp_path / "tie", pair, [{"item": "i1", "answer": {"preferred": "tie"}}])
    one = answers_file(tmp_path / "one", three, [{"item": "i1", "answer": {"best": ["C"]}}])
    assert read_answers(pair, [tie])[0].best == {"A", "B"}
    assert read_answers(three, [one])[0].best == {"A", "C"}


def test_ties_that_were_not_shown_come_at_the_end_for_judges_who_answered(tmp_path: Path) -> None:
    of = campaign("pairwise", item(1), item(2), ties=("i2",))
    file = answers_file(tmp_path / "a", of, [{"item": "i1", "answer": {"preferred": "A"}}])
    first, tie = read_answers(of, [file])
    assert first.shown
    assert (tie.judge, tie.item.id, tie.best, tie.shown) == ("judge-1", "i2", {"A", "B"}, False)
    other = answers_file(tmp_path / "b", of, [{"item": "i1", "answer": {"preferred": "A"}}], judge="judge-2")
    assert [answer.judge for answer in read_answers(of, [other])] == ["judge-2"]


@pytest.mark.parametrize(
    ("kind", "answer", "passed"),
    [
        ("likert", {"A": {"adequacy": 2, "fluency": 5}}, True),
        ("likert", {"A": {"adequacy": 3, "fluency": 1}}, False),
        ("esa", {"A": {"score": 49}}, True),
        ("esa", {"A": {"score": 50, "spans": []}}, False),
        ("pairwise", {"preferred": "B"}, True),
        ("pairwise", {"preferred": "A"}, False),
        ("pairwise", {"preferred": "tie"}, False),
    ],
)
def test_a_check_is_passed_by_who_sees_the_damage(
    tmp_path: Path, kind: CampaignKind, answer: Any, passed: bool
) -> None:
    labels = "AB" if kind == "pairwise" else "A"
    of = campaign(kind, item(1, labels, check=AttentionCheck(damaged=("A",))), item(2, labels))
    rows = [{"item": name, "answer": answer} for name in ("i1", "i2")]
    assert [each.passed_attention_check for each in read_answers(of, [answers_file(tmp_path / "a", of, rows)])] == [
        passed,
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("likert", {"A": {"adequacy": 6, "fluency": 1}}, "A: adequacy: 6 is no number from 1 to 5"),
        ("likert", {"A": {"adequacy": 2.5, "fluency": 1}}, "A: adequacy: 2.5 is no whole number"),
        ("likert", {"A": {"adequacy": True, "fluency": 1}}, "A: adequacy: True is no number from 1 to 5"),
        ("likert", {"A": {"adequacy": "4", "fluency": 1}}, "A: adequacy: '4' is no number"),
        ("likert", {"A": {"adequacy": 4}}, "A: scale fluency is missing"),
        ("likert", {"A": {"adequacy": 4, "fluency": 1, "style": 1}}, "A: scale 'style' is not one of adequacy"),
        ("likert", {"A": {"adequacy": 4, "fluency": 1, "spans": []}}, "A: scale 'spans' is not one of"),
        ("likert", {}, "label A is missing"),
        ("likert", [], "answer: [] is no object"),
        ("esa", {"A": {"score": -1}}, "A: score: -1 is no number from 0 to 100"),
        ("esa", {"A": {"score": float("nan")}}, "A: score: nan is no number"),
        ("esa", {"A": {"score": 1, "spans": [{"start": 3, "end": 3, "severity": "minor"}]}}, "not after its start 3"),
        ("esa", {"A": {"score": 1, "spans": [{"start": 3, "end": 19, "severity": "minor"}]}}, "from 0 to 17"),
        ("esa", {"A": {"score": 1, "spans": [{"start": 3, "end": 4, "severity": "bad"}]}}, "'bad' is neither"),
        ("esa", {"A": {"score": 1, "spans": [{"start": 3, "end": 4}]}}, "key of a span severity is missing"),
        ("esa", {"A": {"score": 1, "spans": 3}}, "spans: 3 is no list"),
        ("pairwise", {"preferred": "C"}, "'C' is not one of A, B"),
        ("pairwise", {"preferred": None}, "None is not one of A, B"),
        ("pairwise", {"best": ["A"]}, "key preferred is missing"),
        ("best", {"best": []}, "[] is no list of labels"),
        ("best", {"best": "A"}, "'A' is no list of labels"),
        ("best", {"best": [["A"]]}, "['A'] is not one of"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, kind: CampaignKind, answer: Any, said: str
) -> None:
    of = campaign(kind, item(1, GIVEN[kind][0]))
    file = answers_file(tmp_path / "a.json", of, [{"item": "i1", "answer": answer}])
    with pytest.raises(DataError) as caught:
        read_answers(of, [file])
    assert str(caught.value).startswith(f"{file}: item i1: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"campaign": "0" * 64}, "is of another campaign"),
        ({"judge": "judge-3"}, "'judge-3' is not one of the campaign's 2 judges"),
        ({"format": 2}, "no answers of format 1"),
        ({"answers": [{"item": "i9", "answer": {"preferred": "A"}}]}, "item 'i9': not an item that judge-1 was asked"),
        ({"answers": [{"item": ["i1"], "answer": {"preferred": "A"}}]}, "not an item that judge-1 was asked"),
        ({"answers": [{"item": "i2", "answer": {"preferred": "A"}}]}, "item 'i2': not an item that judge-1 was asked"),
        ({"answers": [{"item": "i1"}]}, "answer 1 has no item and answer"),
        ({"answers": [{"item": "i1", "seconds": -1, "answer": {"preferred": "A"}}]}, "seconds: -1 is no number"),
        ({"answers": [{"item": "i1", "answer": {"preferred": "A"}}] * 2}, "item i1: answered twice"),
        ({"answers": []}, "holds no answer"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    of = campaign("pairwise", item(1), item(2), ties=("i2",))
    file = answers_file(tmp_path / "a.json", of, [], **changed)
    with pytest.raises(DataError) as caught:
        read_answers(of, [file])
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04" + bytes(40), "is a zip archive, as Excel workbooks .* save the sheet as CSV UTF-8"),
        (b"\r\n", "is empty"),
        ("campaign\tjudge".encode("utf-16"), "is not UTF-8; save it as CSV UTF-8"),
    ],
)
def test_a_spreadsheet_in_the_form_of_its_program_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    (file := tmp_path / "judge-1.xlsx").write_bytes(data)
    with pytest.raises(DataError, match=rf"^{file}: {said}"):
        read_answers(campaign("likert", item(1)), [file])


def test_items_left_out_are_refused_or_allowed(tmp_path: Path) -> None:
    of = campaign("pairwise", item(1), item(2), item(3))
    file = answers_file(tmp_path / "a.json", of, [{"item": "i3", "answer": {"preferred": "A"}}])
    with pytest.raises(DataError, match="judge-1 has not answered item i1 and 1 more"):
        read_answers(of, [file])
    assert [answer.item.id for answer in read_answers(of, [file], partial=True)] == ["i3"]


def test_a_judge_answers_in_one_file(tmp_path: Path) -> None:
    of = campaign("pairwise", item(1))
    rows = [{"item": "i1", "answer": {"preferred": "A"}}]
    one, other = (answers_file(tmp_path / name, of, rows) for name in ("a", "b"))
    with pytest.raises(DataError, match=r"b: answers for judge-1, for whom .*a answers too"):
        read_answers(of, [one, other])


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"[]", "not a JSON object"),
        (b'{"format": 1', "not JSON"),
        (b'{"format": 2}', "format: Input should be 1"),
        (b"[" * 100_000, "nested deeper"),
    ],
)
def test_a_file_that_is_no_campaign_is_refused(tmp_path: Path, broken: bytes, said: str) -> None:
    (tmp_path / "campaign.json").write_bytes(broken)
    with pytest.raises(DataError, match=said):
        read_campaign(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_campaign(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "likert", "items": (item(1), item(1))}, "item i1 occurs twice"),
        ({"items": (item(1, "ABC"),)}, "a pair has two texts, not 3"),
        ({"items": (item(1, "AA"),)}, "label A occurs twice"),
        ({"items": (item(1, "AD"),)}, "no such system: system D"),
        ({"items": (item(1, check=AttentionCheck(damaged=("Z",))),)}, "no such label: Z"),
        ({"judges": (Judge(name="j", items=("i7",)),)}, "no such item: i7"),
        ({"judges": (Judge(name="j", items=("i1", "i1")),)}, "item i1 occurs twice"),
        ({"items": (item(1, repeat_of="i5"),)}, "i1 repeats i5, which was not shown before"),
    ],
)
def test_a_campaign_that_does_not_fit_together_is_refused(changed: dict[str, Any], said: str) -> None:
    judge = Judge(name="judge-1", items=("i1",))
    content = {"kind": "pairwise", "seed": 1, "items": (item(1),), "judges": (judge,)}
    content["systems"] = ("system A", "system B", "system C")
    with pytest.raises(ValueError, match=said):
        Campaign(**(content | changed))
