"""A plan and an artifact small enough to break in every way."""

from pathlib import Path
from typing import Any

from pipeline.artifact import Input, Plan, publish


def plan_of(
    folder: Path, stage: str = "first", seed: int = 1, inputs: dict[str, Input] | None = None, **config: Any
) -> Plan:
    return Plan(stage, folder, config, inputs or {}, seed)


def make(plan: Plan, text: str = "old") -> None:
    with publish(plan, command=["tfm", "make", "\udcff"]) as draft:
        (draft.folder / "sub").mkdir()
        (draft.folder / "a.txt").write_text(text)
        (draft.folder / "sub" / "b.bin").write_bytes(b"\0" * 1000)
        draft.figures["loss"] = float("nan")
