"""Gold alignments whose lines begin with the number of their pair: a link a line, as of NAACL 2003 (Mihalcea and
Pedersen 2003: `0001 2 3 S`), or all links of a pair (`1 1-1 2-3`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.lines import open_lines
from tfm.pipeline.alignment.pharaoh import GoldLinks, Link, parse_gold_links

LINK_LINE = re.compile(r"([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([0-9]{1,9})(?:[ \t]+([SPsp]))?(?:[ \t]+[0-9.]+)?")
"""The number of the pair, the places of both words, from 1 (0 is no word), whether the link is sure, and how sure."""
PAIR_LINE = re.compile(r"([0-9]{1,9})[ \t]+([0-9]+[-p?][0-9]+(?:[ \t].*)?)")
"""The number of the pair and its links, as Pharaoh has them."""
POSSIBLE = frozenset("Pp")


def are_numbered(file: Path) -> bool:
    """Whether the first line of a file that is not blank begins with the number of its pair."""
    first = next((line.strip() for line in open_lines(file) if line.strip()), "")
    return LINK_LINE.fullmatch(first) is not None or PAIR_LINE.fullmatch(first) is not None


def read_numbered_links(file: Path, num_pairs: int) -> Iterator[GoldLinks]:
    """Yield the links of each pair, none for those that the file does not name.

    Args:
        file: of the links; pairs count from 0 if one is 0, else from 1.
        num_pairs: pairs that they are of.

    Raises:
        DataError: naming the line; it is of another form, or of a pair that is not there.
    """
    links: dict[int, GoldLinks] = {}
    lines: dict[int, int] = {}
    for number, line in enumerate(open_lines(file), 1):
        if not line.strip():
            continue
        try:
            pair, more = _parse_line(line.strip())
        except ValueError as error:
            raise DataError(str(error), file=file, line=number) from None
        before = links.get(pair, GoldLinks(frozenset(), frozenset()))
        links[pair] = GoldLinks(before.sure | more.sure, before.possible | more.possible)
        lines.setdefault(pair, number)
    first = 0 if 0 in links else 1
    outside = [pair for pair in links if pair >= first + num_pairs]
    if outside:
        problem = f"is of pair {outside[0]}, counted from {first}, and there are {num_pairs:,}: are the links of these?"
        raise DataError(problem, file=file, line=lines[outside[0]])
    yield from (links.get(pair, GoldLinks(frozenset(), frozenset())) for pair in range(first, first + num_pairs))


def _parse_line(line: str) -> tuple[int, GoldLinks]:
    """The number of a pair and its links. Raises ValueError if a line has another form."""
    if (match := LINK_LINE.fullmatch(line)) is not None:
        pair, source, target = int(match[1]), int(match[2]), int(match[3])
        link: set[Link] = {(source - 1, target - 1)} if source and target else set()
        return pair, GoldLinks(frozenset() if match[4] in POSSIBLE else frozenset(link), frozenset(link))
    if (match := PAIR_LINE.fullmatch(line)) is not None:
        return int(match[1]), parse_gold_links(match[2])
    raise ValueError("has no number of a pair before its links, as the first line has")
