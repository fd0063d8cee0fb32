"""The laws of a campaign: balance, blinding, order, repeats, checks; whatever the numbers."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from tests.judged import campaign, systems
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.judging.campaign import MAX_JUDGES, MAX_SYSTEMS, Campaign, CampaignItem, CampaignKind
from tfm.pipeline.judging.making.assembly import CampaignSpec
from tfm.pipeline.judging.making.attention_checks import corrupt_text
from tfm.pipeline.judging.making.design import balanced_assignment, round_robin_pairs

KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")
SIZES = [(2, 7, 1, 1), (3, 11, 4, 2), (4, 13, 3, 2), (5, 23, 6, 1), (2, 40, 5, 3)]
"""Systems, segments, judges, judges a text."""


def spread(counts: Counter[object]) -> int:
    return max(counts.values()) - min(counts.values())


def firsts(of: Campaign, name: str) -> list[CampaignItem]:
    """What a judge is asked for the first time, also what is not shown."""
    judge = of.find_judge(name)
    assert judge is not None
    return [item for each in (*judge.items, *judge.ties) if (item := of.items_by_id[each]).is_counted]


@pytest.mark.parametrize("number", range(2, 12))
def test_every_pair_comes_once_and_no_system_is_ahead_on_the_way(number: int) -> None:
    pairs = round_robin_pairs(number)
    assert Counter(map(frozenset, pairs)) == Counter(map(frozenset, combinations(range(number), 2)))
    counts: Counter[object] = Counter(dict.fromkeys(range(number), 0))
    for pair in pairs:
        counts.update(pair)
        assert spread(counts) <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("num_systems", "segments", "judges", "each"), SIZES)
def test_each_judge_sees_each_segment_once_and_each_system_as_often(
    kind: CampaignKind, num_systems: int, segments: int, judges: int, each: int
) -> None:
    judged = systems(num_systems, segments + 9)
    of = campaign(kind, judged, num_segments=segments, num_judges=judges, judges_per_text=each, seed=num_systems)
    for judge in of.judges:
        items = firsts(of, judge.name)
        assert len({item.line for item in items}) == len(items) == segments
        seen = Counter(dict.fromkeys(of.systems, 0))
        seen.update(str(shown.system) for item in items for shown in item.shown)
        assert spread(Counter(seen)) <= 1
        if kind == "pairwise":
            pairs = Counter(dict.fromkeys(map(frozenset, combinations(of.systems, 2)), 0))
            pairs.update(frozenset(str(shown.system) for shown in item.shown) for item in items)
            assert spread(Counter(pairs)) <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_systems", [2, 3, 4, 5])
def test_without_each_every_judge_sees_all_and_a_source_is_far_from_itself(
    kind: CampaignKind, num_systems: int
) -> None:
    of = campaign(
        kind, systems(num_systems, 40), num_segments=13, num_judges=2, attention_check_share=0, repeat_share=0
    )
    together = {"pairwise": 2, "best": num_systems}.get(kind, 1)
    wanted = Counter(
        (line, frozenset(names))
        for line in {item.line for item in of.items}
        for names in combinations(of.systems, together)
    )
    orders = []
    for judge in of.judges:
        items = firsts(of, judge.name)
        assert Counter((item.line, frozenset(str(each.system) for each in item.shown)) for item in items) == wanted
        lines = [item.line for item in items]
        assert all(len({*lines[place : place + 13]}) == 13 for place in range(len(lines) - 12))
        orders.append(lines)
        early: Counter[object] = Counter(each.system for item in items[:13] for each in item.shown)
        assert spread(early) <= (2 if kind == "pairwise" else 1), "and each system is seen early as often"
    assert orders[0] != orders[1]


def test_several_judges_see_the_same_text_and_who_changes() -> None:
    shares = balanced_assignment("likert", 3, 60, 6, 2, Random(1))
    together = Counter(
        frozenset((one, other))
        for one, other in combinations(range(6), 2)
        for mine, others in zip(shares[one], shares[other], strict=True)
        if mine == others
    )
    assert len(together) == 15, "every two judges meet"
    for segment in range(60):
        seen = Counter(share[segment].systems for share in shares)
        assert {*seen.values()} == {2}, "with three systems and six judges each text is seen by two"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_the_systems_and_labels_are_drawn(kind: CampaignKind) -> None:
    judged = systems(3, 80)
    of = campaign(kind, judged, num_segments=60, num_judges=2)
    said = {(system.name, line): text for system in judged for line, text in enumerate(system.tests["t"].hypotheses, 1)}
    firsts_of_a = Counter[object]()
    for item in of.items:
        assert item.source == f"source {item.line - 1}"
        assert item.references == (f"the right words of segment {item.line - 1} stand here",)
        assert [each.label for each in item.shown] == list("ABC"[: len(item.shown)])
        if item.check is None:
            assert all(each.text == said[str(each.system), item.line] for each in item.shown)
            firsts_of_a[item.shown[0].system] += 1
    assert all(count > len(of.items) / 3 / 2 for count in firsts_of_a.values()), "each system is often first"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("repeats", "checks"), [(0.1, 0.1), (0.5, 0.5), (0, 0), (0.25, 0)])
def test_the_stated_share_comes_twice_and_as_checks(kind: CampaignKind, repeats: float, checks: float) -> None:
    of = campaign(
        kind, systems(3, 110), num_segments=40, num_judges=3, repeat_share=repeats, attention_check_share=checks
    )
    judged = {item.line for item in of.items if item.is_counted}
    for judge in of.judges:
        order = [of.items_by_id[name] for name in judge.items]
        again = {place: item for place, item in enumerate(order) if item.repeat_of is not None}
        spoilt = [item for item in order if item.check is not None]
        asked = sum(item.is_counted for item in order)
        assert (len(again), len(spoilt)) == (round(asked * repeats), round(asked * checks))
        for place, item in again.items():
            first = of.items_by_id[str(item.repeat_of)]
            assert place - order.index(first) > 2
            assert [each.text for each in item.shown] == [each.text for each in reversed(first.shown)]
            assert (item.line, item.source) == (first.line, first.source)
        assert not judged & {item.line for item in spoilt}, "checks are of segments that nobody judges"
        for item in spoilt:
            assert item.check is not None
            assert all(each.system is None for each in item.shown)
            whole = [each.text for each in item.shown if each.label not in item.check.damaged]
            assert whole == ([] if kind in ("likert", "esa") else list(item.references))


def test_the_order_is_a_pure_function_of_the_seed() -> None:
    judged = systems(3, 60)
    one, same, other = (campaign("pairwise", judged, seed=seed) for seed in (1, 1, 2))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert {item.line for item in one.items} != {item.line for item in other.items}
    more = campaign("pairwise", judged, num_judges=5)
    drawn = [{item.line for item in of.items if item.is_counted} for of in (one, more)]
    assert drawn[0] == drawn[1], "more judges judge the same segments"
    orders = [[of_judge.line for of_judge in firsts(more, judge.name)] for judge in more.judges]
    assert len({tuple(order) for order in orders}) == 5


def test_an_id_says_no_more_than_the_place() -> None:
    of = campaign("best", systems(3, 60), num_judges=2)
    assert [name for judge in of.judges for name in (*judge.items, *judge.ties)] == [item.id for item in of.items]
    assert [item.id for item in of.items] == [f"i{number:04d}" for number in range(1, len(of.items) + 1)]


@pytest.mark.parametrize("kind", ["pairwise", "best"])
def test_texts_that_are_all_the_same_are_ties_and_are_not_shown(kind: CampaignKind) -> None:
    judged = systems(2, 40)
    first = judged[0].tests["t"]
    half = [*first.hypotheses[:20], *judged[1].tests["t"].hypotheses[20:]]
    judged[1] = replace(judged[1], tests={"t": replace(first, hypotheses=half)})
    of = campaign(kind, judged, num_segments=30, num_judges=2)
    for judge in of.judges:
        assert all(len({each.text for each in of.items_by_id[name].shown}) == 2 for name in judge.items)
        assert all(len({each.text for each in of.items_by_id[name].shown}) == 1 for name in judge.ties)
        assert {of.items_by_id[name].line for name in judge.ties} == {
            i.line for i in of.items if i.is_counted and i.line <= 20
        }
        assert len(firsts(of, judge.name)) == 30


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("eins zwei drei vier fünf sechs sieben acht", ["one two three four five six seven eight"]),
        ("eins", ["one"]),
        ("eins zwei", ["eins zwei", "one"]),
        ("狗在公园里跑得很快", ["猫在家里睡觉了"]),
        ("كلب يجري في الحديقة", ["قطة تنام"]),
    ],
)
def test_a_spoiled_text_keeps_a_quarter_of_its_words_at_most(text: str, others: list[str]) -> None:
    for seed in range(20):
        bad = corrupt_text(text, others, Random(seed))
        assert bad is not None
        assert bad.split() != text.split()
        pieces = [*text] if " " not in text else text.split()
        kept = Counter(pieces) & Counter([*bad] if " " not in text else bad.split())
        assert kept.total() <= len(pieces) / 4 + sum(piece in "".join(others) for piece in pieces)


def test_a_text_that_cannot_be_spoiled_is_none() -> None:
    assert corrupt_text("eins zwei", ["eins zwei"], Random(1)) is None
    assert corrupt_text("eins zwei", [], Random(1)) is None


def test_checks_without_references_are_spoiled_outputs() -> None:
    of = campaign("pairwise", systems(2, 60, references=False), num_segments=20, attention_check_share=0.5)
    said = {text for system in systems(2, 60) for text in system.tests["t"].hypotheses}
    for item in of.items:
        if item.check:
            whole = [each.text for each in item.shown if each.label not in item.check.damaged]
            assert {*whole} <= said
            assert item.references == ()


@pytest.mark.parametrize(
    ("kind", "number", "wanted", "said"),
    [
        ("pairwise", 1, {}, "a preference needs two systems"),
        ("best", 10, {}, "10 texts at once; at most 9"),
        ("likert", 1, {"num_segments": 21}, "--segments 21: the test set t has 20"),
        ("pairwise", 2, {"judges_per_text": 3}, "--each 3: so many judges cannot see a text, there are 2: --judges"),
    ],
)
def test_what_cannot_be_asked_is_refused(kind: CampaignKind, number: int, wanted: dict[str, int], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        campaign(kind, systems(number, 20), **wanted)


def test_a_test_set_without_what_is_shown_is_refused() -> None:
    with pytest.raises(DataError, match="no references to show"):
        campaign("likert", systems(1, 20, references=False), show_reference=True)
    same = systems(1, 20, texts=["always this"], references=False)
    with pytest.raises(DataError, match="--checks 0 goes without"):
        campaign("likert", same)
    assert campaign("likert", same, attention_check_share=0).items
    both = systems(2, 20, texts=["always this"])
    with pytest.raises(DataError, match="nothing can be preferred"):
        campaign("pairwise", both)


@pytest.mark.parametrize("segments", range(2, 9))
def test_in_a_short_campaign_too_nothing_comes_twice_in_a_row(segments: int) -> None:
    for seed in range(20):
        of = campaign(
            "best", systems(2, 30), num_segments=segments, repeat_share=0.5, attention_check_share=0, seed=seed
        )
        for judge in of.judges:
            lines = [of.items_by_id[name].line for name in judge.items]
            assert len(lines) == segments + segments // 2
            assert all(one != other for one, other in zip(lines, lines[1:], strict=False))


def test_a_campaign_that_is_too_large_to_be_read_is_refused() -> None:
    some = systems(1, 2)
    many = [replace(some[0], name=f"system {number}") for number in range(MAX_SYSTEMS + 1)]
    with pytest.raises(RecipeError, match=r"^--judges 1001: a campaign has at most 1,000$"):
        CampaignSpec("likert", 1, MAX_JUDGES + 1).check_systems(some)
    with pytest.raises(RecipeError, match=r"^201 systems: a campaign has at most 200$"):
        CampaignSpec("likert", 1, 1).check_systems(many)
