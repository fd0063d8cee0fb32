"""Alignments in Pharaoh's form: a line for each pair, "0-0 1-2 2-1": places of words of source and target, from 0.

In gold alignments "1p2" or "1?2" is a possible link, "1-2" a sure one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import Input

Link = tuple[int, int]
"""The places of a word of the source and of one of the target, from 0; words are what stands between spaces."""
Links = frozenset[Link]
MIN_PAIRS_TO_TELL_ORIGIN = 10
"""Pairs with links of which some first word has one, if places are counted from 0."""
COUNTED_FROM_ONE = "does the file count from 1? Then take 1 from each of its numbers"
"""The remedy for links that `is_counted_from_one` finds."""
OTHER_FORMS = {
    re.compile(r"# Sentence pair \(\d+\) .*"): (
        "is GIZA++'s form (A3): make Pharaoh's of both directions, as by giza2bal.pl and symal of Moses"
    ),
    re.compile(
        r"(\d+[-p]\d+ )*(\d+[-p]\d+ ?)?\|\|\| .*"
    ): "has a score behind its links: cut it, as by sed 's/ *|||.*//'",
    re.compile(r"(\d+-\d+:[0-9.e-]+ ?)+"): "has links with probabilities: cut these, as by sed 's/:[^ ]*//g'",
}
"""Problems of lines of other programs, by their form."""
_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldLinks:
    """The links of a pair by a person or a grammar. Sure links are possible too (Och and Ney 2003)."""

    sure: Links
    possible: Links


def format_links(links: Iterable[Link]) -> str:
    """Links as a line, by source and then by target."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_gold_links(line: str) -> GoldLinks:
    """Read the links of a line. Raises ValueError if some part of it is no link."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for part in line.split():
        match = _LINK.fullmatch(part)
        if match is None:
            problem_of_form = next(
                (problem for form, problem in OTHER_FORMS.items() if form.fullmatch(line.strip())), None
            )
            raise ValueError(problem_of_form or f"{part[:40]!r} is no link: write 3-4, or 3p4 for a possible one")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def outside_link(links: GoldLinks, num_source_words: int, num_target_words: int) -> Link | None:
    """Return a link of a word that a pair does not have; None if there is none."""
    outside = (link for link in links.possible if link[0] >= num_source_words or link[1] >= num_target_words)
    return min(outside, default=None)


def outside_link_problem(link: Link, num_source_words: int, num_target_words: int, *, from_one: bool) -> str:
    """Return the problem of a link of a word that a pair does not have, with the likeliest cause as a question.

    Args:
        link: the link.
        num_source_words: of the pair.
        num_target_words: of the pair.
        from_one: whether the lines so far are such as `is_counted_from_one` finds.
    """
    cause = "are the links of these texts?"
    if from_one:
        cause = COUNTED_FROM_ONE
    elif link[1] < num_source_words and link[0] < num_target_words:
        cause = "are source and target exchanged? A link is SOURCE-TARGET"
    return (
        f"links word {link[0]} with word {link[1]}, counted from 0, and the pair has {num_source_words} and "
        f"{num_target_words} words: {cause}"
    )


def is_counted_from_one(lines: Iterable[GoldLinks]) -> bool:
    """Whether no link is of the first word of a source or target, as it is where places are counted from 1."""
    return not any(0 in link for links in lines for link in links.possible)


def counted_from_one_warning(num_linked_pairs: int, *, from_one: bool) -> str | None:
    """Return why links may be counted from 1 although each is of words that its pair has; None if too few tell.

    Args:
        num_linked_pairs: pairs with links.
        from_one: whether they are such as `is_counted_from_one` finds.
    """
    if not from_one or num_linked_pairs < MIN_PAIRS_TO_TELL_ORIGIN:
        return None
    return f"none of its links is of the first word of a source or target: {COUNTED_FROM_ONE}"


def links_input(file: str | None) -> dict[str, Input]:
    """Return a file of links as an input of a training; none without one. Raises DataError if there is no file."""
    if file is None:
        return {}
    try:
        return {"links": Input.from_file(Path(file))}
    except FileNotFoundError:
        raise DataError("no such file: `tfm align MODEL DATASET` writes one", file=file) from None
