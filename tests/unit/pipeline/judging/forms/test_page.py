"""A judge's page as text: what it holds, what it must not hold, and that no text can leave its place."""

import json
import re
from html.parser import HTMLParser

import pytest

from tests.judged import HOSTILE, campaign, systems
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.forms.page import judge_page

KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")


class Tags(HTMLParser):
    """The tags of a page, and what its scripts hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.scripts += data if self.tags[-1:] == ["script"] else ""


def held(of: Campaign, text: str) -> dict[str, object]:
    found = re.search(r"const DATA = (.*);\n", Tags(text).scripts)
    assert found is not None
    content: dict[str, object] = json.loads(found[1])
    return content


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_holds_what_its_judge_is_shown_and_no_more(kind: CampaignKind) -> None:
    of = campaign(kind, systems(3, 40))
    judge, text = of.judges[1], judge_page(of, of.judges[1])
    items = [of.items_by_id[name] for name in judge.items]
    content = held(of, text)
    assert (content["campaign"], content["judge"], content["kind"]) == (of.fingerprint, "judge-2", kind)
    assert content["items"] == [
        {
            "id": item.id,
            "source": item.source,
            "reference": None,
            "shown": [{"label": each.label, "text": each.text} for each in item.shown],
        }
        for item in items
    ]
    assert not any(word in text for word in ("system 0", "system 1", "system 2", "damaged", "repeat_of"))
    without = campaign(kind, systems(3, 40), attention_check_share=0)
    assert "the right words" not in judge_page(without, without.judges[0]), (
        "references are shown only where it was asked for"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_leaves_its_place(kind: CampaignKind) -> None:
    of = campaign(kind, systems(3, 60, texts=HOSTILE), num_segments=30, show_reference=True)
    plain = campaign(kind, systems(3, 60), num_segments=30, show_reference=True)
    found = Tags(judge_page(of, of.judges[0]))
    assert found.tags == Tags(judge_page(plain, plain.judges[0])).tags
    assert found.tags.count("script") == 1
    first = of.items_by_id[of.judges[0].items[0]]
    items = held(of, judge_page(of, of.judges[0]))["items"]
    assert isinstance(items, list)
    assert items[0]["reference"] == first.references[0]
    assert [each["text"] for each in items[0]["shown"]] == [each.text for each in first.shown]
