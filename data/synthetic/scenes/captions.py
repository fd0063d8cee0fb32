"""Captions of a scene: paraphrases that all say the same, and are true of no other scene.

    a big red circle is above a small blue ring
    below a big red circle there is a small blue ring

Each names everything that is in the scene, with size, color and shape, and its place: one thing in the image, two
beside one another, three in a line.
"""

from collections.abc import Callable

from tfm.data.synthetic.scenes.scene import Scene, Thing

ROW_PHRASES = ("at the top", "in the middle", "at the bottom")
COLUMN_PHRASES = ("on the left", "in the middle", "on the right")
LINE_END_WORDS = {True: ("left", "right", "on the"), False: ("top", "bottom", "at the")}


def caption_scene(scene: Scene) -> list[str]:
    """Every caption of a scene that the grammar has: three of one thing, six of two or of three."""
    of: tuple[Callable[..., list[str]], ...] = (_caption_one_thing, _caption_two_things, _caption_three_things)
    return of[len(scene.things) - 1](*scene.things)


def _describe_thing(thing: Thing) -> str:
    return f"a {thing.size} {thing.colour} {thing.shape}"


def _caption_one_thing(thing: Thing) -> list[str]:
    corner = " and ".join(dict.fromkeys((ROW_PHRASES[thing.row], COLUMN_PHRASES[thing.column])))
    name = _describe_thing(thing)
    return [f"{name} {corner}", f"there is {name} {corner}", f"{corner} there is {name}"]


def _caption_two_things(one: Thing, other: Thing) -> list[str]:
    found = []
    for first, second in ((one, other), (other, one)):
        what, of, where = _describe_thing(first), _describe_thing(second), _describe_relation(first, second)
        found += [f"{what} is {where} {of}", f"{what} {where} {of}", f"{where} {of} there is {what}"]
    return found


def _describe_relation(one: Thing, other: Thing) -> str:
    """The place of one thing relative to another: "above" alone says that they share a column."""
    vertical = {-1: "above", 0: "", 1: "below"}[_sign(one.row - other.row)]
    horizontal = {-1: "to the left of", 0: "", 1: "to the right of"}[_sign(one.column - other.column)]
    return " and ".join(filter(None, (vertical, horizontal)))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _caption_three_things(first: Thing, middle: Thing, last: Thing) -> list[str]:
    """Captions of three things in a row from left to right, or in a column from top to bottom."""
    begin, end, at = LINE_END_WORDS[first.row == last.row]
    one, between, other = map(_describe_thing, (first, middle, last))
    found = [f"from {begin} to {end}: {one}, {between}, {other}", f"from {end} to {begin}: {other}, {between}, {one}"]
    for a, side, b, opposite in ((one, begin, other, end), (other, end, one, begin)):
        ends = f"{a} {at} {side} and {b} {at} {opposite}"
        found += [f"{between} is between {ends}", f"between {ends} there is {between}"]
    return found
