"""Who sees what: segments and systems shared out among judges so that no system is better off with any of them.

Legend: J judges · S systems · N segments.
"""

from itertools import chain
from random import Random
from typing import NamedTuple, TypeAlias

from tfm.pipeline.judging.campaign import CampaignKind

SystemGroup: TypeAlias = tuple[int, ...]
"""The systems, by number, that are shown at once."""


class Assignment(NamedTuple):
    """A segment, by its number among the N drawn, and the systems whose texts for it one judge sees."""

    segment: int
    systems: SystemGroup


def full_assignment(kind: CampaignKind, num_systems: int, num_segments: int, rng: Random) -> list[list[Assignment]]:
    """The items of a judge who sees all, in rounds: each round has each of the N segments once.

    From round to round the systems shown together change places, as in a Latin square, so that each is seen as often
    early as late; and a source comes again only when all others were seen.
    """
    groups = groups_shown_together(kind, num_systems)
    names = rng.sample(range(num_systems), num_systems)
    return [
        [
            Assignment(segment, tuple(names[system] for system in groups[(segment + shift) % len(groups)]))
            for segment in range(num_segments)
        ]
        for shift in range(len(groups))
    ]


def balanced_assignment(
    kind: CampaignKind, num_systems: int, num_segments: int, num_judges: int, judges_per_text: int, rng: Random
) -> list[list[Assignment]]:
    """The items of every judge if `judges_per_text` of them see a text: each of the N segments once, in their order.

    Segments go in blocks in which a judge meets every set of systems shown together once, a Latin square (Fisher
    1935) whose columns are the segments of the block: judges are drawn again for each block into groups of
    `judges_per_text`, who see the same, and every further group sees the systems moved on by one. In a block that is
    not whole, and so in all, the counts of any two systems differ by one at most for every judge.
    """
    groups = groups_shown_together(kind, num_systems)
    assignments: list[list[Assignment]] = [[] for _ in range(num_judges)]
    for begin in range(0, num_segments, len(groups)):
        judges = rng.sample(range(num_judges), num_judges)
        names = rng.sample(range(num_systems), num_systems)
        for index, judge in enumerate(judges):
            shift = index // judges_per_text
            for segment, systems in zip(range(begin, num_segments), groups, strict=False):
                group = tuple(names[(system + shift) % num_systems] for system in systems)
                assignments[judge].append(Assignment(segment, group))
    return assignments


def groups_shown_together(kind: CampaignKind, num_systems: int) -> list[SystemGroup]:
    """Which systems are shown at once, in an order after each step of which no system is ahead by more than one."""
    if kind == "best":
        return [tuple(range(num_systems))]
    if kind == "pairwise":
        return round_robin_pairs(num_systems)
    return [(system,) for system in range(num_systems)]


def round_robin_pairs(num_systems: int) -> list[SystemGroup]:
    """All pairs, each once, ordered so that no system is ahead of another by more than one after any of them.

    The rounds of a tournament (the circle method). With an odd number every round leaves one system out; then the
    rounds are cycles through all systems (Walecki's), each walked by every other edge, twice around.
    """
    if num_systems % 2 == 0:
        turning = list(range(1, num_systems))
        rounds = []
        for _ in turning:
            ring = [0, *turning]
            rounds.append([(ring[i], ring[-1 - i]) for i in range(num_systems // 2)])
            turning = [turning[-1], *turning[:-1]]
        return list(chain.from_iterable(rounds))
    pairs: list[SystemGroup] = []
    for cycle in _cyclic_orders(num_systems):
        edges = [(one, other) for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
        pairs += edges[::2] + edges[1::2]
    return pairs


def _cyclic_orders(num_systems: int) -> list[list[int]]:
    """Cycles through all of an odd number of systems that share no edge and have every edge (Walecki 1883).

    One system stands in the middle; the rest lie on a ring that each cycle crosses in a zigzag, turned by one place.
    """
    ring = num_systems - 1
    zigzag = [step // 2 if step % 2 == 0 else ring - 1 - step // 2 for step in range(ring)]
    return [[ring, *((place + turn) % ring for place in zigzag)] for turn in range(ring // 2)]


def interleave_items(num_first_items: int, num_repeats: int, num_checks: int, rng: Random) -> list[tuple[str, int]]:
    """The order in which a judge meets what is asked: ("first", i), ("repeat", i) of the same i, and ("check", i).

    repeats, at most half of the firsts, are drawn from the first half, and come a quarter of the way later or more,
    never next to what they repeat.
    """
    gap = max(1, num_first_items // 4)
    positions: list[tuple[float, str, int]] = [(place, "first", place) for place in range(num_first_items)]
    positions += [
        (rng.uniform(index + gap, num_first_items), "repeat", index)
        for index in sorted(rng.sample(range(num_first_items // 2), num_repeats))
    ]
    positions += [(rng.uniform(0, num_first_items), "check", number) for number in range(num_checks)]
    return [(kind, number) for _, kind, number in sorted(positions)]
