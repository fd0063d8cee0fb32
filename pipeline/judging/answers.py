"""Answers of judges, as typed records checked against the campaign, whatever file they came in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign, CampaignItem, Judge

Severity: TypeAlias = Literal["minor", "major"]
SEVERITIES: tuple[Severity, ...] = ("minor", "major")
TIE_ANSWER = "tie"
MAX_SPANS = 1_000
"""Errors that one can mark in a text."""
MAX_SECONDS = 10**9


@dataclass(frozen=True)
class ErrorSpan:
    """A marked error: characters start <= i < end of the text, counted in code points.

    If start and end are both the length of the text, something of the source is missing in it.
    """

    start: int
    end: int
    severity: Severity


@dataclass(frozen=True)
class Rating:
    """The values of one text on each scale of the kind (`SCALE_RANGES`), and the errors marked in it (ESA)."""

    scores: Mapping[str, float]
    spans: tuple[ErrorSpan, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answer of a judge to an item.

    ratings: by label, of likert and esa. best: the labels preferred, of pairwise and best; several where they tie,
    and with each text all that are the same. seconds: how long it took, None if not known. shown: False if the
    item was not shown, since all its texts are the same, and is a tie.
    """

    judge: str
    item: CampaignItem
    seconds: float | None = None
    ratings: Mapping[str, Rating] = field(default_factory=dict)
    best: frozenset[str] = frozenset()
    shown: bool = True

    @property
    def passed_attention_check(self) -> bool | None:
        """Whether an attention check was passed; None if the item is none.

        A damaged text is to be rated below the middle of the first scale (adequacy, score), and never to be preferred.
        """
        if self.item.check is None:
            return None
        damaged = self.item.check.damaged
        return not (self.best & {*damaged}) and all(
            _is_low_rating(self.ratings[label]) for label in damaged if self.ratings
        )


def _is_low_rating(rating: Rating) -> bool:
    scale, value = next(iter(rating.scores.items()))
    low, high = next(scales[scale] for scales in SCALE_RANGES.values() if scale in scales)
    return value < (low + high) / 2


def parse_answer(campaign: Campaign, judge: Judge, item_id: object, content: object, seconds: object = None) -> Answer:
    """One answer in the form of the page's file. Raises ValueError, naming the item and the value, if it is wrong.

    content: likert {"A": {"adequacy": 4, "fluency": 5}}; esa {"A": {"score": 70, "spans": [{"start", "end",
    "severity"}]}}; pairwise {"preferred": "A"}, or "tie"; best {"best": ["A", "C"]}.
    """
    item = campaign.items_by_id.get(item_id) if isinstance(item_id, str) else None
    if item is None or item.id not in judge.item_ids:
        raise ValueError(f"item {item_id!r:.60}: not an item that {judge.name} was asked")
    try:
        took = None if seconds is None else _check_number(seconds, "seconds", 0, MAX_SECONDS)
        if campaign.kind in ("pairwise", "best"):
            return Answer(judge.name, item, took, best=_parse_best(campaign, item, content))
        return Answer(judge.name, item, took, _parse_ratings(campaign, item, content))
    except ValueError as error:
        raise ValueError(f"item {item.id}: {error}") from None


def make_tie_answers(campaign: Campaign, judge: Judge) -> list[Answer]:
    """The items that a judge was not shown because all texts are the same: ties."""
    items = (campaign.items_by_id[name] for name in judge.ties)
    return [Answer(judge.name, item, best=frozenset(item.texts_by_label), shown=False) for item in items]


def missing_items(campaign: Campaign, answers: Sequence[Answer]) -> dict[str, list[str]]:
    """The items that each judge who answered anything has left out, in the order shown; only judges with any."""
    answered_pairs = {(answer.judge, answer.item.id) for answer in answers}
    names = {answer.judge for answer in answers}
    missing = {
        judge.name: [item for item in judge.items if (judge.name, item) not in answered_pairs]
        for judge in campaign.judges
        if judge.name in names
    }
    return {name: items for name, items in missing.items() if items}


def sort_answers(campaign: Campaign, answers: Sequence[Answer]) -> list[Answer]:
    """The answers by the places of judges and items in the campaign: draws of segments depend on their order."""
    judges = {judge.name: place for place, judge in enumerate(campaign.judges)}
    items = {item.id: place for place, item in enumerate(campaign.items)}
    return sorted(answers, key=lambda each: (judges[each.judge], items[each.item.id]))


def _parse_ratings(campaign: Campaign, item: CampaignItem, content: object) -> dict[str, Rating]:
    ratings = _check_json_object(content, "answer")
    check_names(ratings, item.texts_by_label, "label")
    return {
        label: _parse_rating(campaign, ratings[label], label, item.texts_by_label[label].text)
        for label in item.texts_by_label
    }


def _parse_rating(campaign: Campaign, content: object, label: str, text: str) -> Rating:
    fields, scales = dict(_check_json_object(content, label)), SCALE_RANGES[campaign.kind]
    spans = fields.pop("spans", []) if campaign.kind == "esa" else []
    check_names(fields, scales, f"{label}: scale")
    is_whole = campaign.kind == "likert"
    scores = {
        name: _check_number(fields[name], f"{label}: {name}", *ends, is_whole=is_whole) for name, ends in scales.items()
    }
    if not isinstance(spans, list):
        raise ValueError(f"{label}: spans: {quote_value(spans)} is no list")
    if len(spans) > MAX_SPANS:
        raise ValueError(f"{label}: spans: {len(spans):,} errors are marked; at most {MAX_SPANS:,} can be")
    return Rating(scores, tuple(sorted((_parse_span(each, label, len(text)) for each in spans), key=lambda s: s.start)))


def _parse_span(content: object, label: str, length: int) -> ErrorSpan:
    fields = _check_json_object(content, f"{label}: span")
    check_names(fields, ("start", "end", "severity"), f"{label}: key of a span")
    start = int(_check_number(fields["start"], f"{label}: start", 0, length, is_whole=True))
    end = int(_check_number(fields["end"], f"{label}: end", 0, length, is_whole=True))
    if not (start < end or start == end == length):
        raise ValueError(f"{label}: a span ends at {end}, which is not after its start {start}")
    severity = next((each for each in SEVERITIES if each == fields["severity"]), None)
    if severity is None:
        raise ValueError(f"{label}: severity {quote_value(fields['severity'])} is neither minor nor major")
    return ErrorSpan(start, end, severity)


def _parse_best(campaign: Campaign, item: CampaignItem, content: object) -> frozenset[str]:
    """The labels preferred, and those of the same texts."""
    fields = _check_json_object(content, "answer")
    key = "preferred" if campaign.kind == "pairwise" else "best"
    check_names(fields, (key,), "key")
    labels = fields[key] if key == "best" else [*item.texts_by_label] if fields[key] == TIE_ANSWER else [fields[key]]
    if not isinstance(labels, list) or not labels:
        raise ValueError(f"{key}: {quote_value(fields[key])} is no list of labels")
    for label in labels:
        if not isinstance(label, str) or label not in item.texts_by_label:
            raise ValueError(f"{key}: {quote_value(label)} is not one of {', '.join(item.texts_by_label)}")
    texts = {item.texts_by_label[label].text for label in labels}
    return frozenset(each.label for each in item.shown if each.text in texts)


def _check_json_object(content: object, description: str) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{description}: {quote_value(content)} is no object")
    return content


def quote_value(value: object) -> str:
    """A value of somebody's file as a message shows it."""
    return f"{value!r:.60}"


def check_names(values: Mapping[str, object], expected: Mapping[str, object] | Sequence[str], description: str) -> None:
    """Raise ValueError if the names of `given` are not exactly the expected ones."""
    for name in expected:
        if name not in values:
            raise ValueError(f"{description} {name} is missing")
    for name in values:
        if name not in expected:
            raise ValueError(f"{description} {quote_value(name)} is not one of {', '.join(expected)}")


def _check_number(value: object, description: str, low: float, high: float, *, is_whole: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        text = f"{value:g}" if isinstance(value, float) else quote_value(value)  # 6, as it was written, not 6.0
        raise ValueError(f"{description}: {text} is no number from {low:,} to {high:,}")
    if is_whole and value != int(value):
        raise ValueError(f"{description}: {quote_value(value)} is no whole number")
    return float(value)
