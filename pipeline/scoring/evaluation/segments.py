"""A test set with its hypotheses, line by line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfm.data.dataset.directions import Direction, rows_by_direction

if TYPE_CHECKING:
    from tfm.data.images.row_images import RowImages


@dataclass(frozen=True)
class Segments:
    """A test set with its hypotheses, line by line.

    Args:
        name: of the test set.
        sources: None if only files to compare are given.
        hypotheses: one for each segment.
        references: one or more lists as long.
        directions: the languages of its rows, of a dataset that names them.
        images: of a test set of images, if they are at hand.
        sources_are_names: whether the sources are names of images, and so no texts.
        image_contents: the hash of the images behind these names, if it is known.
    """

    name: str
    sources: Sequence[str] | None
    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    directions: Sequence[Direction] = ()  # the languages of its rows, of a dataset that says them
    images: "RowImages | None" = None
    sources_are_names: bool = False
    image_contents: str | None = None

    @property
    def source_texts(self) -> Sequence[str] | None:
        """The sources, if they are texts."""
        return None if self.sources_are_names else self.sources

    @property
    def identifying_sources(self) -> Sequence[str] | None:
        """The sources as they tell test sets apart: texts, or of images the hash of them all; None if not known."""
        if not self.sources_are_names:
            return self.sources
        contents = self.image_contents if self.images is None else self.images.store.contents
        return None if contents is None else [contents] * len(self.hypotheses)

    def split_by_direction(self) -> list["Segments"]:
        """The segments of each direction, called NAME.eng-deu; none if there are not several."""
        pairs = {each.name: each.language_pair for each in self.directions}
        groups = rows_by_direction(self.directions)
        return (
            [self._select_rows(rows.tolist(), pairs[name]) for name, rows in groups.items()] if len(groups) > 1 else []
        )

    def _select_rows(self, rows: Sequence[int], pair: tuple[str, str]) -> "Segments":
        direction = Direction(*pair, len(rows))
        return Segments(
            f"{self.name}.{direction.name}",
            None if self.sources is None else [self.sources[row] for row in rows],
            [self.hypotheses[row] for row in rows],
            [[column[row] for row in rows] for column in self.references],
            (direction,),
        )
