"""Answers as tables, which statistics read: one row a number, a preference, or a judge.

A segment is named by its test set and line: items belong to one judge each, and segments to all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from zlib import crc32

from tfm.pipeline.judging.answers import Answer, Rating
from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign, CampaignItem, CampaignKind
from tfm.pipeline.judging.statistics.careless import JudgeStats
from tfm.pipeline.judging.statistics.preferences import Preference, preferences_from_best
from tfm.pipeline.judging.statistics.ratings import Judgment

RatingValue = Callable[[Rating], float]

SEVERITY_WEIGHTS = {"minor": 1, "major": 5}
"""Weights of marked errors in MQM (Freitag et al. 2021)."""
AGREEMENT_TOLERANCE = {"likert": 1, "esa": 10}
"""Two ratings of one text by one judge are alike if they are no further apart, on every scale."""


def segment_name(item: CampaignItem) -> str:
    """The name of an item's segment."""
    return f"{item.test}:{item.line}"


def make_scale_reader(scale: str) -> RatingValue:
    """The value that a text was given on a scale."""
    return lambda rating: rating.scores[scale]


def error_weight(rating: Rating) -> float:
    """The weight of the errors marked in a text: 1 for a minor one, 5 for a major one."""
    return float(sum(SEVERITY_WEIGHTS[span.severity] for span in rating.spans))


def make_error_counter(severity: str) -> RatingValue:
    """How many errors of a severity are marked in a text."""
    return lambda rating: float(sum(span.severity == severity for span in rating.spans))


def mean_of_scales(rating: Rating) -> float:
    """The mean of all scales, by which judges are compared with each other."""
    return sum(rating.scores.values()) / len(rating.scores)


def list_judgments(answers: Sequence[Answer], value: RatingValue) -> list[Judgment]:
    """One row a rating of a system's text; attention checks and repeated items are none."""
    return [
        Judgment(answer.judge, segment_name(answer.item), system, value(rating))
        for answer in answers
        if answer.item.is_counted
        for label, rating in answer.ratings.items()
        if (system := answer.item.texts_by_label[label].system) is not None
    ]


def list_preferences(answers: Sequence[Answer], systems: Sequence[str]) -> list[Preference]:
    """List a row for every two systems of an item, one of them among the best, in the order of `systems`."""
    return [
        preference
        for answer in answers
        if answer.item.is_counted
        for preference in preferences_from_best(
            answer.judge, segment_name(answer.item), *_shown_and_preferred_systems(answer, systems)
        )
    ]


def _shown_and_preferred_systems(answer: Answer, systems: Sequence[str]) -> tuple[list[str], list[str]]:
    """The systems shown, in the order of `systems`, and those preferred."""
    labels = {each.system: each.label for each in answer.item.shown}
    names = [system for system in systems if system in labels]
    return names, [system for system in names if labels[system] in answer.best]


PAIR_SEPARATOR = "\t"
"""Between the two systems of a pair, in the name of what was judged."""


def preferences_as_judgments(preferences: Sequence[Preference]) -> list[Judgment]:
    """Preferences as numbers: 1, 0.5 (a tie) or 0 for the first system of the pair.

    Which system of a pair comes first is a coin for each segment, the same for all judges (a hash). In one fixed order
    a clearly better system would have a 1 almost everywhere, and judges who agree on it a correlation near 0.
    """
    judgments = []
    for preference in preferences:
        is_reversed = crc32(f"{preference.segment}\t{preference.first}\t{preference.second}".encode()) % 2
        pair = (preference.second, preference.first) if is_reversed else (preference.first, preference.second)
        judgments.append(
            Judgment(
                preference.judge,
                preference.segment,
                PAIR_SEPARATOR.join(pair),
                1 - preference.wins if is_reversed else preference.wins,
            )
        )
    return judgments


def choice_judgments(kind: CampaignKind, answers: Sequence[Answer], systems: Sequence[str]) -> list[Judgment]:
    """The values by which judges of preferences are compared, of items that were shown.

    For pairs these are `preferences_as_judgments`; for the best, 1 for a system that is among them, 0 for another.
    """
    shown_answers = [answer for answer in answers if answer.shown and answer.item.is_counted]
    if kind == "pairwise":
        return preferences_as_judgments(list_preferences(shown_answers, systems))
    judgments = []
    for answer in shown_answers:
        names, best = _shown_and_preferred_systems(answer, systems)
        segment = segment_name(answer.item)
        judgments += [Judgment(answer.judge, segment, system, float(system in best)) for system in names]
    return judgments


def judge_stats(campaign: Campaign, answers: Sequence[Answer]) -> list[JudgeStats]:
    """How each judge who answered worked, in the campaign's order."""
    stats = []
    for judge in campaign.judges:
        answers_by_item = {answer.item.id: answer for answer in answers if answer.judge == judge.name and answer.shown}
        if answers_by_item:
            stats.append(
                JudgeStats(
                    judge.name,
                    num_items=len(judge.items),
                    num_answered=len(answers_by_item),
                    checks=[
                        answer.passed_attention_check
                        for answer in answers_by_item.values()
                        if answer.passed_attention_check is not None
                    ],
                    repeats=list(_repeat_agreements(campaign.kind, answers_by_item)),
                    seconds=[answer.seconds for answer in answers_by_item.values() if answer.seconds is not None],
                    answers=[
                        text
                        for answer in answers_by_item.values()
                        if answer.item.is_counted
                        for text in _click_sequence(answer)
                    ],
                    num_ties=len(judge.ties),
                )
            )
    return stats


def _repeat_agreements(kind: CampaignKind, answers_of_judge: Mapping[str, Answer]) -> Iterator[bool]:
    """For each text rated twice, or each preference asked twice, whether the two answers are alike."""
    for answer in answers_of_judge.values():
        first_answer = answers_of_judge.get(answer.item.repeat_of or "")
        if first_answer is None:
            continue
        if kind in ("pairwise", "best"):
            yield _preferred_labels(answer) == _preferred_labels(first_answer)
            continue
        ratings, first_ratings = (
            {a.item.texts_by_label[label].system: r for label, r in a.ratings.items()} for a in (answer, first_answer)
        )
        for system in ratings.keys() & first_ratings.keys():
            pairs = [
                (ratings[system].scores[scale], first_ratings[system].scores[scale]) for scale in SCALE_RANGES[kind]
            ]
            yield all(abs(one - other) <= AGREEMENT_TOLERANCE[kind] for one, other in pairs)


def _preferred_labels(answer: Answer) -> set[str | None]:
    return {answer.item.texts_by_label[label].system for label in answer.best}


def _click_sequence(answer: Answer) -> list[str]:
    """The clicks, without the authors of the texts: the labels preferred, or each text's ratings."""
    if answer.best:
        return [" ".join(sorted(answer.best))]
    return [" ".join(f"{score:g}" for score in rating.scores.values()) for rating in answer.ratings.values()]
