"""Links of both directions made one (Och and Ney 2003; Koehn et al. 2003): the intersection, the union, or the
intersection grown by links of the union beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice

from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner
from tfm.pipeline.alignment.pharaoh import Link, Links

Symmetrization = Callable[[Links, Links], Links]
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def reverse_links(links: Links) -> Links:
    """Links from target to source as links from source to target, or the other way round."""
    return frozenset((target, source) for source, target in links)


def grow_diagonally(forward: Links, backward: Links) -> Links:
    """Return the intersection, grown by links of the union beside links that are there, the diagonal counted, as long
    as one of the two words has no link yet (Koehn et al. 2003, grow-diag).

    The order decides between links that exclude each other. It is that of Moses (symal): links are scanned by target,
    then by source, those that are added ahead of the scan too, again and again until no link is added.

    Args:
        forward: links of one direction, as (source, target).
        backward: links of the other direction, in the same form.
    """
    union = reverse_links(forward | backward)
    links = set(reverse_links(forward & backward))
    targets, sources = {target for target, _ in links}, {source for _, source in links}
    queue = sorted(links)
    while queue:
        next_queue: list[Link] = []
        while queue:
            point = heappop(queue)
            for down, right in NEIGHBOURS:
                link = point[0] + down, point[1] + right
                if link in union and (link[0] not in targets or link[1] not in sources):
                    links.add(link)
                    targets.add(link[0])
                    sources.add(link[1])
                    heappush(queue if link > point else next_queue, link)
        queue = next_queue
    return reverse_links(frozenset(links))


SYMMETRIZATIONS: Mapping[str, Symmetrization] = {
    "grow-diag": grow_diagonally,
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
}
"""By name: (links of one direction, links of the other, both as (source, target)) -> links."""


def align_both_ways(
    aligners: Sequence[WordAligner],
    heads: Sequence[AlignmentHead],
    pairs: Iterator[SentencePair],
    symmetrize: Symmetrization,
    chunk_pairs: int,
) -> Iterator[Links]:
    """Yield the links of each pair, in order, by models of both directions.

    Args:
        aligners: the model from source to target, and the one from target to source.
        heads: the attention of each that aligns.
        pairs: the texts.
        symmetrize: makes the links of both directions one.
        chunk_pairs: how many are read at once.
    """
    first = 1
    while chunk := list(islice(pairs, chunk_pairs)):
        reversed_pairs = [SentencePair(target, source) for source, target in chunk]
        forward = aligners[0].align(chunk, heads[:1], first, truncate=True)
        backward = aligners[1].align(reversed_pairs, heads[1:], first, truncate=True)
        yield from (
            symmetrize(links, reverse_links(other)) for (links,), (other,) in zip(forward, backward, strict=True)
        )
        first += len(chunk)
