"""A campaign put together: segments drawn, shared out, blinded, some asked twice, with attention checks between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from tfm.pipeline.comparison.systems import System
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.judging.campaign import (
    MAX_JUDGES,
    MAX_SYSTEMS,
    AttentionCheck,
    Campaign,
    CampaignItem,
    CampaignKind,
    Judge,
    ShownText,
)
from tfm.pipeline.judging.making.attention_checks import corrupt_text
from tfm.pipeline.judging.making.design import Assignment, balanced_assignment, full_assignment, interleave_items
from tfm.pipeline.judging.making.texts import judged_test_set
from tfm.pipeline.scoring.metrics.references import drop_blank_references

SYSTEM_LABELS = "ABCDEFGHI"
DEFAULT_SEGMENTS = 100
MAX_REPLACEMENT_TEXTS = 50  # texts whose words an attention check may take


@dataclass(frozen=True)
class CampaignSpec:
    """The settings of a campaign.

    num_segments: how many are drawn from the test set. judges_per_text: how many judges see a text; None: all of them.
    repeat_share, attention_check_share: beside what is asked once, the share that is asked again, and that of attention
    checks.
    """

    kind: CampaignKind
    num_segments: int
    num_judges: int
    judges_per_text: int | None = None
    repeat_share: float = 0.1
    attention_check_share: float = 0.1
    seed: int = 1
    show_reference: bool = False

    def check_systems(self, systems: Sequence[System]) -> None:
        """Raise RecipeError or DataError where these systems cannot be judged so."""
        if self.num_judges > MAX_JUDGES:
            raise RecipeError(f"--judges {self.num_judges}: a campaign has at most {MAX_JUDGES:,}")
        if len(systems) > MAX_SYSTEMS:
            raise RecipeError(f"{len(systems)} systems: a campaign has at most {MAX_SYSTEMS}")
        test = judged_test_set(systems[0])
        if self.kind in ("pairwise", "best") and len(systems) < 2:
            raise RecipeError(f"--kind {self.kind}: a preference needs two systems or more")
        if self.kind == "best" and len(systems) > len(SYSTEM_LABELS):
            raise RecipeError(
                f"--kind best: {len(systems)} texts at once; at most {len(SYSTEM_LABELS)} can be held apart"
            )
        if self.judges_per_text is not None and self.judges_per_text > self.num_judges:
            raise RecipeError(
                f"--each {self.judges_per_text}: so many judges cannot see a text, "
                f"there are {self.num_judges}: --judges"
            )
        if self.num_segments > len(test.hypotheses):
            raise RecipeError(f"--segments {self.num_segments}: the test set {test.name} has {len(test.hypotheses):,}")
        if test.sources is None:
            raise DataError(f"the test set {test.name} has no sources to judge by")
        if self.show_reference and not test.references:
            raise DataError(f"the test set {test.name} has no references to show")


def default_num_segments(systems: Sequence[System]) -> int:
    """The number of segments to draw where none is given: all that the test set has, 100 at most."""
    return min(DEFAULT_SEGMENTS, len(judged_test_set(systems[0]).hypotheses))


def make_campaign(spec: CampaignSpec, systems: Sequence[System]) -> Campaign:
    """The campaign of some systems, each with the one test set to judge: a pure function of `spec` and the texts."""
    spec.check_systems(systems)
    test = judged_test_set(systems[0])
    # each part has a generator of its own: more judges, or more checks, do not change which segments are drawn
    lines = _seeded_random(spec, "segments").sample(range(len(test.hypotheses)), spec.num_segments)
    texts = _ItemBuilder(systems, lines)
    drafts_by_judge = [
        list(_make_judge_items(spec, texts, rounds, _seeded_random(spec, f"judge {number}")))
        for number, rounds in enumerate(_draw_judge_assignments(spec, len(systems)))
    ]
    width = max(4, len(str(sum(map(len, drafts_by_judge)))))
    names = (f"i{each:0{width}d}" for each in count(1))
    items, judges = [], []
    for number, drafts in enumerate(drafts_by_judge, 1):
        judge_items = _assign_item_ids(drafts, names)
        items += judge_items
        item_ids = tuple(item.id for item in judge_items if not _has_identical_texts(spec.kind, item))
        if not item_ids:
            raise DataError(f"all texts of the segments drawn from {test.name} are the same: nothing can be preferred")
        ties = tuple(item.id for item in judge_items if _has_identical_texts(spec.kind, item))
        judges.append(Judge(name=f"judge-{number}", items=item_ids, ties=ties))
    return Campaign(
        kind=spec.kind,
        seed=spec.seed,
        show_reference=spec.show_reference,
        num_lines=len(test.hypotheses),
        systems=tuple(system.name for system in systems),
        items=tuple(items),
        judges=tuple(judges),
    )


def _draw_judge_assignments(spec: CampaignSpec, num_systems: int) -> list[list[list[Assignment]]]:
    """The items of each judge, in rounds that have every segment once."""
    draw, size = _seeded_random(spec, "shares"), (num_systems, spec.num_segments)
    if spec.judges_per_text is None:
        return [full_assignment(spec.kind, *size, draw) for _ in range(spec.num_judges)]
    return [
        [assignments]
        for assignments in balanced_assignment(spec.kind, *size, spec.num_judges, spec.judges_per_text, draw)
    ]


class _ItemBuilder:
    """The texts of all systems, by the number of a drawn segment."""

    def __init__(self, systems: Sequence[System], lines: Sequence[int]) -> None:
        self.systems, self.lines = systems, lines
        self.test = judged_test_set(systems[0])
        self.sources = self.test.sources or ()
        line_set = {*lines}
        self.spare = [line for line in range(len(self.test.hypotheses)) if line not in line_set]

    def make_item_without_id(
        self, line: int, texts: Sequence[tuple[str | None, str]], **item_fields: object
    ) -> CampaignItem:
        """An item that has no id yet, its texts (system, text) labelled in this order."""
        shown_texts = (
            ShownText(label=SYSTEM_LABELS[index], system=name, text=text) for index, (name, text) in enumerate(texts)
        )
        return CampaignItem(
            id="-",
            test=self.test.name,
            line=line + 1,
            source=self.sources[line],
            references=tuple(drop_blank_references([column[line] for column in self.test.references])),
            shown=tuple(shown_texts),
            **item_fields,  # type: ignore[arg-type]
        )

    def make_item(self, assignment: Assignment, rng: Random) -> CampaignItem:
        """The item of a judge for a segment, its texts in random order."""
        line = self.lines[assignment.segment]
        systems = [self.systems[number] for number in rng.sample(assignment.systems, len(assignment.systems))]
        return self.make_item_without_id(
            line, [(system.name, judged_test_set(system).hypotheses[line]) for system in systems]
        )

    def make_attention_check(self, kind: CampaignKind, line: int, rng: Random) -> CampaignItem | None:
        """An attention check: a corrupted reference, or output without references, beside the intact one if two are
        shown.

        None if this segment's text cannot be spoiled.
        """
        column = (
            self.test.references[0] if self.test.references else judged_test_set(rng.choice(self.systems)).hypotheses
        )
        original, replacements = column[line], [text for text in column if text.split() and text != column[line]]
        replacements = rng.sample(replacements, min(MAX_REPLACEMENT_TEXTS, len(replacements)))
        num_spoiled = {"pairwise": 1, "best": len(self.systems) - 1}.get(kind, 1)
        corrupted_texts = (
            [corrupt_text(original, replacements, rng) for _ in range(num_spoiled)] if original.split() else [None]
        )
        texts = [text for text in corrupted_texts if text is not None]
        if len(texts) < num_spoiled:
            return None
        check_texts = rng.sample([*texts, original], len(texts) + 1) if kind in ("pairwise", "best") else texts
        damaged = tuple(SYSTEM_LABELS[index] for index, text in enumerate(check_texts) if text != original)
        return self.make_item_without_id(
            line, [(None, text) for text in check_texts], check=AttentionCheck(damaged=damaged)
        )


def _make_judge_items(
    spec: CampaignSpec, texts: _ItemBuilder, rounds: Sequence[Sequence[Assignment]], rng: Random
) -> Iterator[CampaignItem]:
    """The items of one judge, in the order shown, the ties that are not shown last; repeats name the place, from 0,
    of what they repeat. Every round goes through the segments in the same order, so that a source is far from itself.
    """
    order = rng.sample(range(spec.num_segments), spec.num_segments)
    all_items = [texts.make_item(assignments[segment], rng) for assignments in rounds for segment in order]
    firsts = [item for item in all_items if not _has_identical_texts(spec.kind, item)]
    repeats = min(round(spec.repeat_share * len(firsts)), len(firsts) // 2)
    checks = _make_attention_checks(spec, texts, round(spec.attention_check_share * len(firsts)), rng)
    first_positions: dict[int, int] = {}
    for position, (kind, number) in enumerate(interleave_items(len(firsts), repeats, len(checks), rng)):
        if kind == "first":
            first_positions[number] = position
            yield firsts[number]
        elif kind == "repeat":
            reversed_texts = [(each.system, each.text) for each in reversed(firsts[number].shown)]
            yield texts.make_item_without_id(
                firsts[number].line - 1, reversed_texts, repeat_of=str(first_positions[number])
            )
        else:
            yield checks[number]
    yield from (item for item in all_items if _has_identical_texts(spec.kind, item))


def _make_attention_checks(spec: CampaignSpec, texts: _ItemBuilder, num_checks: int, rng: Random) -> list[CampaignItem]:
    """Attention checks on segments that nobody judges and, where these do not suffice, on some that are."""
    checks: list[CampaignItem] = []
    lines = [*rng.sample(texts.spare, len(texts.spare)), *rng.sample(texts.lines, len(texts.lines))]
    for line in lines if num_checks else ():
        item = texts.make_attention_check(spec.kind, line, rng)
        checks += [] if item is None else [item]
        if len(checks) == num_checks:
            return checks
    if num_checks and not checks:
        raise DataError("no text can be spoiled for an attention check: all are the same; --checks 0 goes without")
    return checks


def _has_identical_texts(kind: CampaignKind, item: CampaignItem) -> bool:
    """Whether a preference has nothing to choose between."""
    return kind in ("pairwise", "best") and len({each.text for each in item.shown}) == 1


def _seeded_random(spec: CampaignSpec, part: str) -> Random:
    return Random(f"{spec.seed} {part}")


def _assign_item_ids(drafts: Sequence[CampaignItem], names: Iterator[str]) -> list[CampaignItem]:
    """The items of one judge with ids, in the order shown, so that an id says no more than the place."""
    ids = [name for _, name in zip(drafts, names, strict=False)]
    return [
        item.model_copy(update={"id": name, "repeat_of": None if item.repeat_of is None else ids[int(item.repeat_of)]})
        for item, name in zip(drafts, ids, strict=True)
    ]
