"""The direction of translation of each row of a split, and the number of times that each corpus is seen."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.errors import DataError
from tfm.tokenizer.special import LANGUAGE_CODE_PATTERN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Direction:
    """Consecutive rows from one language into another.

    Args:
        source: the source's code of ISO 639-3.
        target: the target's code of ISO 639-3.
        rows: the number of rows.
    """

    source: str
    target: str
    rows: int

    @property
    def language_pair(self) -> tuple[str, str]:
        """The two languages."""
        return self.source, self.target

    @property
    def name(self) -> str:
        """The name of the direction in tables."""
        return f"{self.source}-{self.target}"


Directions = Mapping[str, tuple[Direction, ...]]
"""Directions of each split, in the order of its rows; empty if a dataset has no languages."""


def temperature_sampling_weights(rows: Sequence[int], temperature: float) -> list[float]:
    """The number of times that a row of each corpus occurs in an epoch, with p_i ∝ n_i^(1/T) (Arivazhagan et al. 2019).

    rows: n_i. The sum of rows times factors is the sum of the rows, so an epoch is as long as it was.
    """
    powers = [count ** (1 / temperature) for count in rows]
    return [
        power / sum(powers) * sum(rows) / count if count else 1.0 for power, count in zip(powers, rows, strict=True)
    ]


def read_directions(metadata: Mapping[str, Any], file: Path) -> dict[str, tuple[Direction, ...]]:
    """Read the directions in dataset.json. Raises DataError if `tfm preprocess` did not write them so."""
    try:
        directions_by_split = {
            split: tuple(Direction(source, target, rows) for source, target, rows in direction_rows)
            for split, direction_rows in metadata.get("directions", {}).items()
        }
        for direction in (each for directions in directions_by_split.values() for each in directions):
            if (
                type(direction.rows) is not int
                or direction.rows < 0
                or not all(re.fullmatch(LANGUAGE_CODE_PATTERN, code) for code in direction.language_pair)
            ):
                raise ValueError(direction)
    except (TypeError, ValueError, AttributeError):
        raise DataError("has no valid `directions`", file=file) from None
    return directions_by_split


def rows_by_direction(directions: Sequence[Direction]) -> "dict[str, NDArray[np.int64]]":
    """The row numbers of each direction, by its name ("eng-deu"), in the order in which they come first; one that has
    no rows is left out."""
    import numpy as np  # here, not at the top: scores of files do without

    ends = np.cumsum([direction.rows for direction in directions], dtype=np.int64)
    parts_by_name: dict[str, list[NDArray[np.int64]]] = {}
    for direction, end in zip(directions, ends, strict=True):
        if direction.rows:
            parts_by_name.setdefault(direction.name, []).append(np.arange(end - direction.rows, end))
    return {name: np.concatenate(parts) for name, parts in parts_by_name.items()}


def target_languages(directions: Sequence[Direction]) -> list[str]:
    """The language that each row is translated into."""
    return [each.target for each in directions for _ in range(each.rows)]
