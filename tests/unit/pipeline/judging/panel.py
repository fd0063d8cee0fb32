"""A simulated panel: judges who read, and judges who do not, answer a campaign in the form of its page.

Texts are sentences of ten words, of which a system gets some wrong; a careful judge counts them, with a bias and a
noise of their own. So what people say of a system, and what metrics say, can be known beforehand.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfm.pipeline.comparison.systems import System
from tfm.pipeline.judging.campaign import Campaign, CampaignItem, ShownText
from tfm.pipeline.scoring.evaluation.segments import Segments

WORDS = "Haus Baum Straße собака كلب 犬 MÜLLER run's ein läuft der Garten alt neu groß".split()
LENGTH = 10
WRONG: Mapping[str, float] = {"good": 0.08, "middling": 0.24, "poor": 0.42}
"""The share of the words that each system gets wrong."""

Quality = Callable[[ShownText], float]
"""How good a text seems, from 1 to 5."""
Judge = Callable[[Quality, np.random.Generator], Quality]
"""What makes of how good texts are how good they seem, to one judge."""


def systems(num_segments: int, seed: int, wrong: Mapping[str, float] = WRONG) -> list[System]:
    """Systems that get words wrong, some segments being harder than others."""
    random = np.random.default_rng(seed)
    references = [" ".join(random.choice(WORDS, size=LENGTH)) for _ in range(num_segments)]
    hardness = random.uniform(0.4, 1.6, size=num_segments)
    return [
        System(
            name,
            {
                "t": Segments(
                    "t",
                    [f"source {line}" for line in range(1, num_segments + 1)],
                    [
                        " ".join("falsch" if random.random() < share * hard else word for word in text.split())
                        for text, hard in zip(references, hardness, strict=True)
                    ],
                    [references],
                )
            },
        )
        for name, share in wrong.items()
    ]


def careful(true: Quality, random: np.random.Generator) -> Quality:
    bias = random.normal(0, 0.3)
    return lambda shown: true(shown) + bias + random.normal(0, 0.6)


def clicking(true: Quality, random: np.random.Generator) -> Quality:
    """Anything, without reading."""
    return lambda shown: random.uniform(0.5, 5.5)


def in_the_middle(true: Quality, random: np.random.Generator) -> Quality:
    """One and the same, without reading; of two texts the one that stands first."""
    return lambda shown: 3.0 - 0.4 * "ABCDEFGHI".index(shown.label)


def upside_down(true: Quality, random: np.random.Generator) -> Quality:
    """Who took 1 for the best mark."""
    seems = careful(true, random)
    return lambda shown: 6 - seems(shown)


PANEL: Sequence[Judge] = (*[careful] * 8, clicking, in_the_middle, upside_down)
CARELESS = ["judge-9", "judge-10", "judge-11"]


def answer(campaign: Campaign, panel: Sequence[Judge], folder: Path, seed: int) -> list[Path]:
    """The files that these judges send back, in the order of the campaign's judges."""
    files = []
    for number, (judge, kind) in enumerate(zip(campaign.judges, panel, strict=True)):
        random = np.random.default_rng([seed, number])
        rows = []
        for name in judge.items:
            item = campaign.items_by_id[name]
            seems = kind(lambda shown, item=item: _true(item, shown), random)  # type: ignore[misc]
            rows.append(
                {"item": name, "seconds": round(random.uniform(5, 30), 1), "answer": _said(campaign, item, seems)}
            )
        content = {"format": 1, "campaign": campaign.fingerprint, "judge": judge.name, "answers": rows}
        files.append(folder / f"{judge.name}.json")
        files[-1].write_text(json.dumps(content), encoding="utf-8")
    return files


def _true(item: CampaignItem, shown: ShownText) -> float:
    """5 where every word is that of the reference, 0.6 less for each other one."""
    pairs = zip(shown.text.split(), item.references[0].split(), strict=True)
    return 5 - 0.6 * sum(said != wanted for said, wanted in pairs)


def _said(campaign: Campaign, item: CampaignItem, seems: Quality) -> Any:
    """The answer to an item as the page writes it."""
    if campaign.kind == "likert":
        return {each.label: {scale: _mark(seems(each)) for scale in ("adequacy", "fluency")} for each in item.shown}
    if campaign.kind == "esa":
        return {each.label: _with_spans(each, seems(each)) for each in item.shown}
    by_label = {each.label: seems(each) for each in item.shown}
    best = max(by_label, key=lambda label: by_label[label])
    if campaign.kind == "best":
        return {"best": [best]}
    first, second = by_label.values()
    return {"preferred": "tie" if abs(first - second) < 0.3 else best}


def _mark(quality: float) -> int:
    return int(min(5, max(1, round(quality))))


def _with_spans(shown: ShownText, quality: float) -> dict[str, Any]:
    """A score of 0 to 100, and as many words marked as it lacks."""
    num = min(len(shown.text), max(0, round(5 - quality)))
    spans = [{"start": i, "end": i + 1, "severity": "major" if i % 3 == 0 else "minor"} for i in range(num)]
    return {"score": round(min(100, max(0, 25 * (quality - 1)))), "spans": spans}
