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
    """All captions of a scene in the grammar: three for one thing, six for two or three things."""
    caption_functions: tuple[Callable[..., list[str]], ...] = (
        _caption_one_thing,
        _caption_two_things,
        _caption_three_things,
    )
    return caption_functions[len(scene.things) - 1](*scene.things)


def _describe_thing(thing: Thing) -> str:
    return f"a {thing.size} {thing.colour} {thing.shape}"


def _caption_one_thing(thing: Thing) -> list[str]:
    corner = " and ".join(dict.fromkeys((ROW_PHRASES[thing.row], COLUMN_PHRASES[thing.column])))
    name = _describe_thing(thing)
    return [f"{name} {corner}", f"there is {name} {corner}", f"{corner} there is {name}"]


def _caption_two_things(thing: Thing, other_thing: Thing) -> list[str]:
    captions = []
    for first, second in ((thing, other_thing), (other_thing, thing)):
        first_name, second_name, relation = (
            _describe_thing(first),
            _describe_thing(second),
            _describe_relation(first, second),
        )
        captions += [
            f"{first_name} is {relation} {second_name}",
            f"{first_name} {relation} {second_name}",
            f"{relation} {second_name} there is {first_name}",
        ]
    return captions


def _describe_relation(thing: Thing, other_thing: Thing) -> str:
    """The position of one thing relative to another: only "above" if both are in one column."""
    vertical = {-1: "above", 0: "", 1: "below"}[_sign(thing.row - other_thing.row)]
    horizontal = {-1: "to the left of", 0: "", 1: "to the right of"}[_sign(thing.column - other_thing.column)]
    return " and ".join(filter(None, (vertical, horizontal)))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _caption_three_things(first: Thing, middle: Thing, last: Thing) -> list[str]:
    """Captions of three things in a row from left to right, or in a column from top to bottom."""
    begin, end, preposition = LINE_END_WORDS[first.row == last.row]
    first_name, middle_name, last_name = map(_describe_thing, (first, middle, last))
    captions = [
        f"from {begin} to {end}: {first_name}, {middle_name}, {last_name}",
        f"from {end} to {begin}: {last_name}, {middle_name}, {first_name}",
    ]
    for a, side, b, opposite in ((first_name, begin, last_name, end), (last_name, end, first_name, begin)):
        ends = f"{a} {preposition} {side} and {b} {preposition} {opposite}"
        captions += [f"{middle_name} is between {ends}", f"between {ends} there is {middle_name}"]
    return captions
