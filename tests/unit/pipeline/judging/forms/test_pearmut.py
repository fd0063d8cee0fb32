"""The campaign for Pearmut and its annotations back, in the words of Pearmut 1.1.6's own code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judged import HOSTILE, campaign, systems
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.answers import ErrorSpan, Rating
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.forms.pearmut import campaign_id, format_pearmut

KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")


def entry(of: Campaign, item_id: str, judge: str = "judge-1", **given: Any) -> dict[str, Any]:
    """What its server logs when a user goes on from an item: `given` by label."""
    item = [each for task in json.loads(format_pearmut(of))["data"] for (each,) in task if each["item_id"] == item_id]
    blank = {"score": None, "error_spans": [], "textfield": None}
    return {
        "annotation": [{label: {**blank, **each} for label, each in given.items()}],
        "actions": [{"time": 100.5, "action": "load"}, {"time": 112.0, "action": "submit"}],
        "item": item,
        "user_id": judge,
        "item_i": 0,
    }


def log(file: Path, *entries: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in entries), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", KINDS)
def test_a_campaign_is_one_that_pearmut_opens(kind: CampaignKind) -> None:
    """What `_add_single_campaign` of its cli.py checks."""
    of = campaign(kind, systems(3, 40, texts=HOSTILE), num_segments=20, show_reference=True)
    content = json.loads(format_pearmut(of))
    assert content["campaign_id"] == campaign_id(of)
    info = content["info"]
    assert (info["assignment"], info["shuffle"]) == ("task-based", False)
    assert info["protocol"] == ("ESA" if kind == "esa" else "DA")
    assert info["users"] == [judge.name for judge in of.judges]
    assert len(content["data"]) == len(info["users"])
    for slider in info.get("sliders", ()):
        assert slider["min"] < slider["max"]
        assert slider["step"] == 1
    for judge, task in zip(of.judges, content["data"], strict=True):
        assert [item["item_id"] for (item,) in task] == list(judge.items)
        for (item,) in task:
            assert {type(item[key]) for key in ("src", "ref")} == {str}
            assert all(not label.isdigit() and isinstance(text, str) for label, text in item["tgt"].items())
            assert [len(text) for text in item["tgt"].values()] == [
                len(each.text) for each in of.items_by_id[item["item_id"]].shown
            ]


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_neither_systems_nor_checks_and_no_text_is_html(kind: CampaignKind) -> None:
    text = format_pearmut(campaign(kind, systems(3, 60, texts=HOSTILE), num_segments=30))
    assert not any(word in text for word in ("system 0", "damaged", "repeat_of", "validation"))
    items = [item for task in json.loads(text)["data"] for (item,) in task]
    texts = [each for item in items for each in (item["src"], *item["tgt"].values())]
    assert not any(tag in each.lower() for each in texts for tag in ("<img", "<script", "</script", "<b>", "<!--"))
    assert any("＜img" in each for each in texts)


def test_ratings_come_back(tmp_path: Path) -> None:
    of = campaign("likert", systems(2, 40))
    one, two = of.judges[0].items[:2], of.judges[1].items[:1]
    file = log(
        tmp_path / "log.jsonl",
        entry(of, one[0], A={"sliders": {"adequacy": 1, "fluency": 1}}),
        entry(of, one[1], A={"sliders": {"adequacy": 2, "fluency": 5}}),
        entry(of, two[0], "judge-2", A={"sliders": {"adequacy": 3, "fluency": 3}}),
        entry(of, one[0], A={"sliders": {"adequacy": 4, "fluency": 5}}),
    )
    found = {answer.item.id: answer for answer in read_answers(of, [file], partial=True)}
    assert found.keys() == {*one, *two}
    assert found[one[0]].ratings == {"A": Rating({"adequacy": 4, "fluency": 5})}, "the last answer counts"
    assert (found[two[0]].judge, found[two[0]].seconds) == ("judge-2", 11.5)


def test_a_reset_takes_back_what_came_before(tmp_path: Path) -> None:
    of = campaign("likert", systems(2, 40))
    first, second = of.judges[0].items[:2]
    given = {"sliders": {"adequacy": 1, "fluency": 1}}
    reset = {"user_id": "judge-1", "item_i": 0, "annotation": "__RESET__"}
    file = log(tmp_path / "log", entry(of, first, A=given), reset, entry(of, second, A=given))
    assert [answer.item.id for answer in read_answers(of, [file], partial=True)] == [second]


def test_what_the_dashboard_gives_is_read_as_well(tmp_path: Path) -> None:
    of = campaign("likert", systems(2, 40))
    given = entry(of, of.judges[0].items[0], A={"sliders": {"adequacy": 1, "fluency": 1}})
    file = tmp_path / "annotations.json"
    file.write_text(json.dumps({"another": [], campaign_id(of): [given]}))
    assert len(read_answers(of, [file], partial=True)) == 1
    file.write_text(json.dumps({"another": [given]}))
    with pytest.raises(DataError, match="has no annotations of campaign tfm-"):
        read_answers(of, [file])


def test_error_spans_are_counted_in_utf_16_with_the_last_one_included(tmp_path: Path) -> None:
    text = "a 🐕 b 𝒳"  # characters 0 to 6; units: a0 _1 🐕2,3 _4 b5 _6 𝒳7,8
    of = campaign("esa", systems(1, 40, texts=[text]), attention_check_share=0)
    spans = [(0, 0), (2, 3), (3, 5), (7, 7), (9, 9), (5, 9)]
    expected = [(0, 1), (2, 3), (2, 5), (6, 7), (7, 7), (4, 7)]
    items = of.judges[0].items[: len(spans)]
    rows = [
        entry(of, item, A={"score": 50, "error_spans": [{"start_i": i, "end_i": j, "severity": "major"}]})
        for item, (i, j) in zip(items, spans, strict=True)
    ]
    found = read_answers(of, [log(tmp_path / "log", *rows)], partial=True)
    assert [answer.ratings["A"].spans for answer in found] == [(ErrorSpan(i, j, "major"),) for i, j in expected]


@pytest.mark.parametrize(
    ("kind", "given", "best"),
    [
        *(("pairwise", "01", "B"), ("pairwise", "11", "AB"), ("pairwise", "00", "AB")),
        *(("best", "101", "AC"), ("best", "010", "B")),
    ],
)
def test_a_preference_is_the_larger_number(tmp_path: Path, kind: CampaignKind, given: str, best: str) -> None:
    of = campaign(kind, systems(3, 40))
    sliders = {label: {"sliders": {"best": int(number)}} for label, number in zip("ABC", given, strict=False)}
    file = log(tmp_path / "log", entry(of, of.judges[0].items[0], **sliders))
    assert read_answers(of, [file], partial=True)[0].best == frozenset(best)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"user_id": "brave-fox-1"}, "line 1: user 'brave-fox-1' is not one of the campaign's 2 judges"),
        ({"user_id": "judge-2"}, "not an item that judge-2 was asked"),
        ({"annotation": [{"A": {"score": None, "sliders": {"adequacy": None, "fluency": 1}}}]}, "adequacy: None is no"),
        ({"annotation": [{"A": None}]}, "A: None is no annotation"),
        ({"annotation": [None]}, "line 1: an item or its annotation is no object"),
        ({"annotation": []}, "line 1: has no items with an annotation each"),
        ({"item": [{"campaign": "x"}]}, "is of another campaign"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    of = campaign("likert", systems(2, 40))
    wrong = entry(of, of.judges[0].items[0], A={"sliders": {"adequacy": 1, "fluency": 1}}) | changed
    with pytest.raises(DataError) as caught:
        read_answers(of, [log(tmp_path / "log", wrong)], partial=True)
    assert said in str(caught.value)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    of = campaign("likert", systems(2, 40))
    file = log(tmp_path / "log", entry(of, of.judges[0].items[0], A={"sliders": {"adequacy": 1, "fluency": 1}}))
    file.write_text(file.read_text() + '{"annotation": \n')
    with pytest.raises(DataError, match="line 2: is damaged"):
        read_answers(of, [file], partial=True)
