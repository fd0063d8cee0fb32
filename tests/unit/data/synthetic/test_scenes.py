"""The corpus `scenes`: captions are read back by a plain reader and held against the pixels alone; no two scenes that
say something else share a caption; splits share no caption, and training shows no pair that is held out."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tfm.data.errors import DataError
from tfm.data.synthetic import registry
from tfm.data.synthetic.scenes.captions import caption_scene
from tfm.data.synthetic.scenes.corpus import SPLITS, draw_image_and_captions, draw_split_scene
from tfm.data.synthetic.scenes.drawing import render_scene
from tfm.data.synthetic.scenes.scene import COLOURS, HELD_OUT_COLOUR_SHAPES, SHAPES, Scene, Thing

# size, colour and shape; how far right and down of the first thing of the caption: -1, 0 or 1; for one thing, its cell
Kind = tuple[str, str, str]
Placed = frozenset[tuple[int, int, Kind]]
Pixels = NDArray[np.uint8]
COUNT = 200
NAME = re.compile(r"a (small|big) (\w+) (\w+)")
WHERE = {"above": (0, -1), "below": (0, 1), "to the left of": (-1, 0), "to the right of": (1, 0)}
CORNERS = {"on the left": (-1, 0), "on the right": (1, 0), "at the top": (0, -1), "at the bottom": (0, 1)}


@cache
def first(split: str, count: int) -> list[tuple[Pixels, tuple[str, ...]]]:
    return [draw_image_and_captions(split, number, 1) for number in range(count)]


@cache
def both(split: str) -> list[tuple[Scene, tuple[str, ...]]]:
    return [(draw_split_scene(split, number, 1), texts) for number, (_, texts) in enumerate(first(split, COUNT))]


# A caption read as a person would: what it says is where each thing is


def read(caption: str) -> Placed:
    """Where the things are that a caption names: about the centre of the image if it is one, else about one another."""
    names = [match.groups() for match in NAME.finditer(caption)]
    frame = NAME.sub("X", caption).removeprefix("there is ")
    if len(names) == 1:
        words = frame.replace(" there is X", "").replace("X ", "").split(" and ")
        return frozenset({(*_sum(CORNERS.get(word, (0, 0)) for word in words), names[0])})  # type: ignore[arg-type]
    if len(names) == 2:
        return _two(frame, names)
    return _three(frame, names)


def _sum(places: Iterator[tuple[int, int]]) -> tuple[int, int]:
    found = list(places)
    return sum(x for x, _ in found), sum(y for _, y in found)


def _two(frame: str, names: list[Kind]) -> Placed:
    if match := re.fullmatch(r"X (?:is )?(.*) X", frame):
        subject, other = names
    else:
        match = re.fullmatch(r"(.*) X there is X", frame)
        other, subject = names
    assert match, frame
    right, down = _sum(WHERE[word] for word in match[1].split(" and "))
    return _from_top_left([(right, down, subject), (0, 0, other)])


def _three(frame: str, names: list[Kind]) -> Placed:
    if match := re.fullmatch(r"from (left|right|top|bottom) to (left|right|top|bottom): X, X, X", frame):
        assert {match[1], match[2]} in ({"left", "right"}, {"top", "bottom"})
        ordered = names if match[1] in ("left", "top") else names[::-1]
        upright = match[1] in ("top", "bottom")
    else:
        match = re.fullmatch(
            r"(?:X is )?between X (?:on|at) the (\w+) and X (?:on|at) the (\w+)(?: there is X)?", frame
        )
        assert match, frame
        middle, one, other = names if frame.startswith("X") else (names[2], names[0], names[1])
        ordered = [one, middle, other] if match[1] in ("left", "top") else [other, middle, one]
        upright = match[1] in ("top", "bottom")
        assert {match[1], match[2]} == ({"top", "bottom"} if upright else {"left", "right"})
    return _from_top_left([(0, at, name) if upright else (at, 0, name) for at, name in enumerate(ordered)])


def _from_top_left(found: list[tuple[int, int, Kind]]) -> Placed:
    left, top = min(x for x, _, _ in found), min(y for _, y, _ in found)
    return frozenset((x - left, y - top, name) for x, y, name in found)


# The same, seen in the pixels, whatever the scene says


def seen(pixels: Pixels) -> Placed:
    """The things of an image by size, colour and shape, and their places, as `read` gives them."""
    background = float(np.median(pixels[:, :, 0]))
    apart = abs(pixels.astype(int) - background).max(2) > 60
    found = []
    for row in range(3):
        for column in range(3):
            cell = np.s_[16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
            if apart[cell].any():
                found.append((column, row, _kind(pixels[cell], background)))
    if len(found) == 1:
        ((column, row, kind),) = found
        return frozenset({(column - 1, row - 1, kind)})
    if len(found) == 2:
        (column, row, one), (x, y, other) = found
        return _from_top_left([(int(np.sign(column - x)), int(np.sign(row - y)), one), (0, 0, other)])
    return _from_top_left(found)


def _kind(pixels: Pixels, background: float) -> Kind:
    """The colour by the pixels that are wholly covered; size and shape by what looks most alike, wherever it lies."""
    # those that differ most from grey
    saturation = np.ptp(pixels.astype(int), axis=2)
    paint = pixels[saturation >= saturation.max() - 3].mean(0)
    colour = min(COLOURS, key=lambda name: abs(paint - COLOURS[name]).sum())
    covered = ((pixels - background) @ (paint - background) / ((paint - background) ** 2).sum()).reshape(-1)
    names, pictures = templates()
    size, shape = names[((pictures - covered) ** 2).sum(1).argmin()]
    return size, colour, shape


@cache
def templates() -> tuple[list[tuple[str, str]], NDArray[np.float64]]:
    """Every size and shape at every third of a pixel, in floating point: (names, 256) how far each pixel is covered."""
    centres = np.arange(-5, 6) / 3
    points = (np.arange(64) + 0.5) / 4 - 8
    names, pictures = [], []
    for size, radius in (("small", 3.5), ("big", 6.5)):
        for shape in SHAPES:
            for right in centres:
                for down in centres:
                    inside = holds(shape, points - right, points[:, None] - down, radius)
                    names.append((size, shape))
                    pictures.append(inside.reshape(16, 4, 16, 4).mean((1, 3)).reshape(-1))
    return names, np.array(pictures)


def holds(shape: str, x: NDArray[np.float64], y: NDArray[np.float64], radius: float) -> NDArray[np.bool_]:
    """Which points belong to a shape around the origin."""
    far = (x * x + y * y) ** 0.5
    larger, smaller = np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
    shapes = {
        "circle": far <= radius,
        "ring": (radius * 5 / 9 <= far) & (far <= radius),
        "square": larger <= radius,
        "diamond": abs(x) + abs(y) <= radius,
        "cross": (larger <= radius) & (smaller <= radius / 3),
        "triangle": (abs(x) <= (y + radius) / 2) & (y <= radius),
    }
    return shapes[shape]


def described(found: Scene) -> Placed:
    things = [(thing.column, thing.row, (thing.size, thing.colour, thing.shape)) for thing in found.things]
    if len(things) == 1:
        ((column, row, kind),) = things
        return frozenset({(column - 1, row - 1, kind)})
    if len(things) == 2:
        (column, row, one), (x, y, other) = things
        return _from_top_left([(int(np.sign(column - x)), int(np.sign(row - y)), one), (0, 0, other)])
    return _from_top_left(things)


@pytest.mark.parametrize("split", SPLITS)
def test_captions_are_true_of_the_scene_and_all_say_the_same(split: str) -> None:
    for found, texts in both(split):
        assert {read(caption) for caption in texts} == {described(found)}, texts
        assert len(set(texts)) == len(texts) == {1: 3, 2: 6, 3: 6}[len(found.things)]


@pytest.mark.parametrize("split", ["train", "combinations"])
def test_captions_are_true_of_the_pixels(split: str) -> None:
    for number, (pixels, texts) in enumerate(first(split, COUNT)[:100]):
        assert seen(pixels) == read(texts[0]), (number, texts[0])


def test_no_caption_is_of_two_scenes_that_differ() -> None:
    """A caption tells the sizes, colours, shapes and places: scenes with one in common have all in common."""
    meaning: dict[str, Placed] = {}
    for split in SPLITS:
        for found, texts in both(split):
            for caption in texts:
                assert meaning.setdefault(caption, described(found)) == described(found)


def test_things_of_a_scene_are_told_apart_by_colour_and_shape() -> None:
    for split in SPLITS:
        for found, _ in both(split):
            kinds = [(thing.colour, thing.shape) for thing in found.things]
            cells = [(thing.row, thing.column) for thing in found.things]
            assert len({*kinds}) == len({*cells}) == len(kinds)


def test_splits_share_no_caption() -> None:
    texts = {split: {caption for _, each in first(split, COUNT) for caption in each} for split in SPLITS}
    for number, split in enumerate(SPLITS):
        for other in SPLITS[number + 1 :]:
            assert texts[split].isdisjoint(texts[other]), (split, other)


def test_a_scene_may_be_in_one_split_alone_however_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of scenes of one thing there are so few that every split would otherwise meet all of them."""
    monkeypatch.setattr("tfm.data.synthetic.scenes.scene.THING_COUNTS", (1,))
    texts = {split: {min(caption_scene(draw_split_scene(split, each, 1))) for each in range(300)} for split in SPLITS}
    assert sum(map(len, texts.values())) == len(set.union(*texts.values()))
    assert len(set.union(*texts.values())) > 250


def test_held_out_pairs_are_in_their_split_alone() -> None:
    named = re.compile(r"(\w+) (\w+)(?=$|,| is| there| on| at| in| to| above| below| and| between)")
    for split in SPLITS:
        for _, texts in first(split, COUNT):
            pairs = {(colour, shape) for colour, shape in named.findall(texts[0]) if shape in SHAPES}
            assert pairs
            assert bool(pairs & HELD_OUT_COLOUR_SHAPES) == (split == "combinations"), texts
    words = Counter(word for _, texts in first("train", COUNT) for word in texts[0].split())
    assert all(words[each] + words[f"{each},"] > 20 for each in (*COLOURS, *SHAPES))
    assert {colour for colour, _ in HELD_OUT_COLOUR_SHAPES} == {*COLOURS}
    assert {shape for _, shape in HELD_OUT_COLOUR_SHAPES} == {*SHAPES}


def test_is_a_pure_function_of_split_number_and_seed() -> None:
    pixels, texts = draw_image_and_captions("valid", 7, 1)
    again, same = draw_image_and_captions("valid", 7, 1)
    assert np.array_equal(pixels, again)
    assert texts == same
    others = [
        draw_image_and_captions("valid", 8, 1),
        draw_image_and_captions("test", 7, 1),
        draw_image_and_captions("valid", 7, 2),
    ]
    assert not any(np.array_equal(pixels, each) for each, _ in others)


def test_the_registry_gives_a_part_of_them() -> None:
    part = list(registry.generate_scenes("test", size=3, skip=5))
    assert len(part) == 3
    for number, (pixels, texts) in enumerate(part, 5):
        assert np.array_equal(pixels, first("test", COUNT)[number][0])
        assert texts == first("test", COUNT)[number][1]


def test_no_image_comes_twice() -> None:
    images = [pixels.tobytes() for split in SPLITS for pixels, _ in first(split, COUNT)]
    assert len({*images}) == len(images)


def test_every_count_relation_size_and_order_is_there() -> None:
    frames = Counter(NAME.sub("X", texts[0]) for _, texts in first("train", COUNT))
    counts = Counter(frame.count("X") for frame in frames.elements())
    assert all(abs(counts[each] / COUNT - share) < 0.1 for each, share in ((1, 0.2), (2, 0.5), (3, 0.3)))
    assert len(frames) > 50
    orders = Counter(caption.split()[0] for _, texts in first("train", COUNT) for caption in texts[:1])
    assert orders.keys() >= {"a", "between", "from", "above", "below", "to", "there", "at"}


def test_a_thing_is_where_its_numbers_say_and_no_larger_than_its_cell() -> None:
    """Drawn once more in floating point, at 16 points of each pixel."""
    for shape in SHAPES:
        thing = Thing("big", "red", shape, row=2, column=1, down=12, right=-12, paint=(200, 0, 0))
        image = render_scene(Scene((thing,), 240))
        covered = (240 - image[:, :, 1].astype(float)) / 240
        assert covered[:32].max() == covered[:, :16].max() == covered[:, 32:].max() == 0
        points = (np.arange(64) + 0.5) / 4 - 8
        share = holds(shape, points + 1.5, points[:, None] - 1.5, 6.5).reshape(16, 4, 16, 4).mean((1, 3))
        assert abs(covered[32:, 16:32] - share).max() < 0.005, shape


AS_EVER = "26a713f271f1566822a09d391d0ab1f88b01fe7b9137b4afb014a6d944012aa1"


def test_pictures_and_captions_are_what_they_were() -> None:
    """To the last bit, on every machine and with every version of numpy. Whoever changes them means to."""
    digest = hashlib.sha256()
    for split in SPLITS:
        for pixels, texts in first(split, COUNT)[:25]:
            digest.update(pixels.tobytes() + "\n".join(texts).encode())
    assert digest.hexdigest() == AS_EVER


def test_has_a_version_of_its_own() -> None:
    assert registry.corpus_version("scenes") != registry.corpus_version("programs")
    assert re.fullmatch(r"seed 1 code [0-9a-f]{64}", registry.corpus_version("scenes"))


def test_refuses_a_split_it_does_not_have() -> None:
    with pytest.raises(DataError, match="`scenes` has no split 'dev'; choose one of train, valid, test, combinations"):
        draw_image_and_captions("dev", 0, 1)
