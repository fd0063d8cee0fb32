"""Instructions for judges, in the same words on the page, beside the table and in Pearmut."""

from collections.abc import Mapping, Sequence

from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign, CampaignKind

SCALE_STEPS: Mapping[str, Sequence[str]] = {
    "adequacy": (
        "1: none of the meaning of the source",
        "2: little of it",
        "3: much of it",
        "4: most of it",
        "5: all of it",
    ),
    "fluency": (
        "1: cannot be understood",
        "2: broken language",
        "3: as a learner would say it",
        "4: good",
        "5: flawless",
    ),
    "score": (
        "0: no meaning of the source is kept",
        "33: some of it is kept",
        "66: most of it is kept, with few mistakes of grammar",
        "100: all meaning is kept, and the language is perfect",
    ),
}
"""The meaning of the numbers of a scale: adequacy, fluency (LDC 2005), the score of ESA (Kocmi et al. 2024)."""

_COMMON_INSTRUCTION = "Answer by what you read, alone, and at your own speed; there is no time limit."
_ITEM_INSTRUCTIONS: Mapping[CampaignKind, Sequence[str]] = {
    "likert": (
        "Each item shows a source and one translation. Give it two numbers from 1 to 5.",
        "Adequacy: how much of the meaning of the source is in the translation, however it is said.",
        "Fluency: how good the language of the translation is, whatever the source says.",
    ),
    "esa": (
        "Each item shows a source and one translation. First mark each error in the translation, then give a score.",
        "A minor error is one of style, grammar or choice of words; a major error changes the meaning or makes the "
        "text hard to understand.",
        "Mark an error roughly, where it stands; what the translation leaves out is marked as [missing].",
        "The score, from 0 to 100, is for the whole: how much of the meaning is kept, and how well it is said.",
    ),
    "pairwise": (
        "Each item shows a source and two translations, A and B. Say which is the better one.",
        "If neither is better, it is a tie.",
    ),
    "best": (
        "Each item shows a source and several translations. Say which is the best one.",
        "If several are best, choose all of these.",
    ),
}

_NAVIGATION_KEYS = "Enter goes on, Shift and Enter back, Tab from one field to the next."
KEYBOARD_HELP: Mapping[CampaignKind, str] = {
    "likert": f"1 to 5 answer the field in focus, or the first that is open. {_NAVIGATION_KEYS}",
    "esa": "Tab goes to the translation; arrows go from word to word; Space on the first and on the last word marks an "
    "error; then 1 makes it minor, 2 major, 0 takes it away. Tab goes on to the score: type the number. "
    + _NAVIGATION_KEYS,
    "pairwise": f"1 is A, 2 is B, 3 is a tie. {_NAVIGATION_KEYS}",
    "best": f"1 to 9 choose a translation, or take that back. {_NAVIGATION_KEYS}",
}
"""How the page is used by the keyboard alone."""

_TABLE_INSTRUCTIONS: Mapping[CampaignKind, str] = {
    "likert": "In the table, write a number from 1 to 5 into both columns of each row.",
    "esa": "In the table, write a number from 0 to 100 into the column of the score. Copy the wrong words of the "
    "translation into the column of minor or of major errors, several with | between; [missing] is what it leaves out.",
    "pairwise": "In the table, write an x into the row of the better translation, or into both rows for a tie.",
    "best": "In the table, write an x into the row of the best translation, or of each that is best.",
}


def judge_instructions(campaign: Campaign) -> list[str]:
    """The instructions for every judge; those of repeats and of spoiled texts only where the campaign has any."""
    surprises = [
        *(["some texts are shown twice"] if any(item.repeat_of for item in campaign.items) else []),
        *(["some texts are spoiled on purpose"] if any(item.check for item in campaign.items) else []),
    ]
    warning = f"{' and '.join(surprises)}: what counts is that you read.".capitalize()
    return [*_ITEM_INSTRUCTIONS[campaign.kind], _COMMON_INSTRUCTION, *([warning] if surprises else [])]


def table_instructions(campaign: Campaign) -> str:
    """The instructions for those who fill in a table."""
    scales = [f"{name} {step}" for name in SCALE_RANGES[campaign.kind] for step in SCALE_STEPS[name]]
    closing = "Change nothing else, and save the table as CSV in UTF-8."
    lines = (*judge_instructions(campaign), *scales, _TABLE_INSTRUCTIONS[campaign.kind], closing)
    return "".join(f"{line}\n" for line in lines)
