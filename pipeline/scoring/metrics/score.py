"""What every metric gives."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """A number and everything one must know to compute it again."""

    score: float
    signature: str
