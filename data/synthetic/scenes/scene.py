"""Contents of a scene: one to three things in the cells of a 3 x 3 grid, each of a size, a color and a shape."""

from dataclasses import dataclass
from random import Random

GRID_SIDE = 3
SIZES = ("small", "big")
COLOURS = {
    "red": (205, 40, 45),
    "green": (40, 150, 60),
    "blue": (40, 80, 200),
    "yellow": (235, 205, 30),
    "purple": (140, 50, 160),
    "orange": (240, 130, 20),
}
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")
# Each colour and each shape once, so that both are seen in training, but never the one with the other.
HELD_OUT_COLOUR_SHAPES = {
    ("red", "triangle"),
    ("green", "ring"),
    ("blue", "circle"),
    ("yellow", "cross"),
    ("purple", "square"),
    ("orange", "diamond"),
}
THING_COUNTS = (1, 1, 2, 2, 2, 2, 2, 3, 3, 3)  # how many things a scene has, of ten scenes
MAX_CENTRE_OFFSET = 12  # of a centre, in eighths of a pixel
MAX_SHADE_CHANGE = 15  # of a colour, in its 256 steps
BACKGROUND_GREYS = (200, 250)  # greys


@dataclass(frozen=True)
class Thing:
    """A thing in a scene.

    Args:
        size: in words.
        colour: in words.
        shape: in words.
        row: of its cell.
        column: of its cell.
        down: how far its center is off the cell's, in eighths of a pixel.
        right: the same to the right.
        paint: RGB.
    """

    size: str
    colour: str
    shape: str
    row: int
    column: int
    down: int
    right: int
    paint: tuple[int, ...]


@dataclass(frozen=True)
class Scene:
    """Things of which no two share a cell, nor both color and shape; the second of three is between the others.

    background: a gray.
    """

    things: tuple[Thing, ...]
    background: int

    @property
    def is_held_out(self) -> bool:
        """Whether a thing of the scene has a color and a shape that training never shows together."""
        return any((thing.colour, thing.shape) in HELD_OUT_COLOUR_SHAPES for thing in self.things)


def draw_scene(random: Random) -> Scene:
    """Any scene."""

    def random_below(number: int) -> int:
        return int(random.random() * number)  # random() alone is the same on every version of Python

    count = THING_COUNTS[random_below(len(THING_COUNTS))]
    if count == 3:
        line, is_row = random_below(GRID_SIDE), random_below(2) == 0
        cells = [(line, place) if is_row else (place, line) for place in range(GRID_SIDE)]
    else:
        first = random_below(GRID_SIDE**2)
        second = (first + 1 + random_below(GRID_SIDE**2 - 1)) % GRID_SIDE**2
        cells = [divmod(cell, GRID_SIDE) for cell in (first, second)][:count]
    kinds: list[tuple[str, str]] = []
    while len(kinds) < count:
        kind = (tuple(COLOURS)[random_below(len(COLOURS))], SHAPES[random_below(len(SHAPES))])
        kinds += [kind] if kind not in kinds else []
    things = []
    for (row, column), (colour, shape) in zip(cells, kinds, strict=True):
        size = SIZES[random_below(len(SIZES))]
        down, right = (random_below(2 * MAX_CENTRE_OFFSET + 1) - MAX_CENTRE_OFFSET for _ in range(2))
        paint = tuple(
            min(255, max(0, each + random_below(2 * MAX_SHADE_CHANGE + 1) - MAX_SHADE_CHANGE))
            for each in COLOURS[colour]
        )
        things.append(Thing(size, colour, shape, row, column, down, right, paint))
    low, high = BACKGROUND_GREYS
    return Scene(tuple(things), low + random_below(high - low + 1))
