"""Links of words by a person or an aligner, read from a file of any of the forms in which they are published."""

from collections.abc import Iterator
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.lines import open_lines
from tfm.pipeline.alignment.numbered_links import are_numbered, read_numbered_links
from tfm.pipeline.alignment.pharaoh import GoldLinks, parse_gold_links


def pair_error(file: Path, pair: int, problem: str) -> DataError:
    """The error of the links of a pair, which names its line or, in a file with numbers of pairs, the pair.

    Args:
        file: of the links.
        pair: its number, from 1.
        problem: of its links, which follows the name.
    """
    if are_numbered(file):
        return DataError(f"pair {pair} of those that it numbers {problem}", file=file)
    return DataError(problem, file=file, line=pair)


def read_gold_links(file: Path, num_pairs: int) -> Iterator[GoldLinks]:
    """Yield the links of each pair.

    Args:
        file: of a line for each pair, as Pharaoh has them, or of lines with the numbers of their pairs.
        num_pairs: pairs that they are of; a file of Pharaoh's form may have more or fewer lines.

    Raises:
        DataError: naming the line that is wrong.
    """
    if are_numbered(file):
        yield from read_numbered_links(file, num_pairs)
        return
    for number, line in enumerate(open_lines(file), 1):
        try:
            yield parse_gold_links(line)
        except ValueError as error:
            raise DataError(str(error), file=file, line=number) from None
