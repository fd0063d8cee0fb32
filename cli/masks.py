"""`tfm translate` of masked language models: the likeliest pieces or words for each `[MASK]`."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tfm.cli.streams import print_data, print_json

if TYPE_CHECKING:
    from tfm.pipeline.inference.filling import FillUnit
    from tfm.pipeline.model_io.loaded_model import LoadedModel

NUM_CANDIDATES = 5


def print_mask_fillings(
    load: "Callable[[], LoadedModel]",
    lines: Iterable[str],
    file: str | None,
    top_k: int,
    unit: "FillUnit",
    jsonl: bool,
) -> None:
    """Print the candidates of each mask of each line: LINE, MASK, PROBABILITY, TEXT, with tabs between them.

    Args:
        load: () -> the model.
        lines: the texts.
        file: of the texts, for messages; None for a text of the command line.
        top_k: the most candidates of each mask.
        unit: what each mask stands for, piece or word.
        jsonl: whether to print a JSON object for each line.

    Raises:
        DataError: a text has no mask, or is longer than the model reads.
    """
    from tfm.pipeline.errors import DataError
    from tfm.pipeline.inference.filling import fill_masks

    loaded = load()
    for number, line in enumerate(lines, 1):
        try:
            fillings = fill_masks(loaded, line, top_k, unit)
        except DataError as error:
            if file is None:
                raise
            raise DataError(str(error), file=file, line=number) from error
        if jsonl:
            print_json(
                {"source": line, "masks": [[vars(candidate) for candidate in candidates] for candidates in fillings]}
            )
        else:
            rows = (
                f"{number}\t{mask}\t{candidate.probability:.6f}\t{candidate.text.replace(' ', '␣')}\n"
                for mask, candidates in enumerate(fillings, 1)
                for candidate in candidates
            )
            print_data("".join(rows), end="")
