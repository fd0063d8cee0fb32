"""Systems to judge that nobody trained, and campaigns of them."""

from collections.abc import Sequence
from typing import Any

from tfm.pipeline.comparison.systems import System
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.making.assembly import CampaignSpec, make_campaign
from tfm.pipeline.scoring.evaluation.segments import Segments

HOSTILE = (
    "</script><script>window.caught = 1</script>",
    "<img src=x onerror=window.caught=1>",
    "<!-- ${window.caught = 1} `\"'&amp;&lt;",
    '=HYPERLINK("http://x","y")',
    "+1+1",
    "-2",
    "@SUM(A1)",
    "\t=1+1",
    "\u202eright to left\u202c and \u2028 a line \u2029 end",
    "كلب يجري في الحديقة 🐕‍🦺 بسرعة",
    "סוס רץ בגן היפה מאוד",
    "狗在公园里跑得很快",
    "W" * 300,
    "a 🐕 b 𝒳 c \u0301 d e\u0301",
    "a bell \x07, a nil \x00 and a return \r inside",
    "",
)
"""Texts that a page, a table or a script could take for something else."""


def systems(number: int, segments: int, *, references: bool = True, texts: Sequence[str] = ()) -> list[System]:
    """Systems whose outputs are all different, or where `texts` are given, these in turn."""
    sources = [f"source {line}" for line in range(segments)]
    columns = [[f"the right words of segment {line} stand here" for line in range(segments)]] if references else []
    found = []
    for system in range(number):
        said = [f"what {chr(65 + system)} says of {line}" for line in range(segments)]
        said = [texts[(system + line) % len(texts)] for line in range(segments)] if texts else said
        found.append(System(f"system {system}", {"t": Segments("t", sources, said, columns)}))
    return found


def campaign(kind: CampaignKind, judged: Sequence[System], **wanted: Any) -> Campaign:
    """A campaign of some systems."""
    return make_campaign(CampaignSpec(**{"kind": kind, "num_segments": 12, "num_judges": 2, **wanted}), judged)
