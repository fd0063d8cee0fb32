"""Target pieces counted by source piece: against a count link by link; and what a shortlist lets through."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.pipeline.alignment import linked_pieces
from tfm.pipeline.alignment.linked_pieces import learn_shortlist, measure_coverage
from tfm.pipeline.alignment.piece_links import PieceLinks
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist

SIZES = 9, 11
IDS = st.lists(st.integers(4, 8), min_size=1, max_size=5)


def split_of(pairs: list[tuple[list[int], list[int]]]) -> Split:
    source, target = (TokenIdColumn.from_lists([pair[side] for pair in pairs]) for side in (0, 1))
    return Split(source, target, np.ones(len(pairs)))


@given(
    pairs=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=7),
    num_linked=st.one_of(st.integers(1, 4), st.just(1 << 40)),
    num_frequent=st.integers(0, 3),
    rows=st.integers(1, 9),
    data=st.data(),
)
def test_pieces_are_those_of_a_count_link_by_link(pairs, num_linked, num_frequent, rows, data) -> None:
    links = []
    for source, target in pairs:
        places = st.tuples(st.integers(0, len(target) - 1), st.integers(0, len(source) - 1))
        links.append(sorted(data.draw(st.sets(places, max_size=6))))
    columns = [TokenIdColumn.from_lists([[link[side] for link in each] for each in links]) for side in (0, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linked_pieces, "ROWS_PER_COUNT", rows)
        found = learn_shortlist(PieceLinks(*columns), split_of(pairs), SIZES, num_linked, num_frequent)
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for (source, target), each in zip(pairs, links, strict=True):
        for target_place, source_place in each:
            counts[source[source_place]][target[target_place]] += 1
    for piece in range(SIZES[0]):
        best = sorted(counts[piece], key=lambda other: (-counts[piece][other], other))[:num_linked]
        assert [each for each in found.by_source[piece].tolist() if each != NO_PIECE] == best
    frequent = Counter(piece for _, target in pairs for piece in target)
    wanted = sorted(frequent, key=lambda piece: (-frequent[piece], piece))[:num_frequent]
    assert found.always.tolist() == sorted({0, 1, 2, 3, *wanted})
    assert found.candidates([4, 5]).tolist() == sorted(
        {0, 1, 2, 3, *wanted} | {each for piece in (4, 5) for each in found.by_source[piece].tolist()} - {NO_PIECE}
    )


def test_what_it_lets_through() -> None:
    table = np.full((SIZES[0], 2), NO_PIECE, np.int32)
    table[4], table[5, 0] = (6, 7), 8
    shortlist = Shortlist(table, np.arange(4, dtype=np.int32), SIZES[1])
    found = measure_coverage(shortlist, split_of([([4], [6, 7, 7]), ([4, 5], [8, 9]), ([6], [1])]))
    assert (found.pieces, found.sentences, found.mean_size) == (pytest.approx(5 / 6), 2 / 3, (6 + 7 + 4) / 3)
