"""The corpora that are cleaned, in chunks; and what is left of them, as the corpora of later stages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tfm.data.corpora.portions import Corpus, flatten_portions
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import Splits
from tfm.data.corpus_config import CorpusConfig, StageTextConfig
from tfm.data.errors import DataError
from tfm.data.lines import chunk_rows
from tfm.pipeline.artifacts.artifact import Input, open_artifact
from tfm.pipeline.artifacts.corpus_inputs import corpus_inputs
from tfm.pipeline.cleaning.measurement import CHUNK_ROWS, PairChunk

CLEAN_STAGE = "clean"
BYTE_ORDER_MARK = "\ufeff"


def iterate_chunks(corpora: Sequence[Corpus], *, online: bool, skip: int = 0) -> Iterator[PairChunk]:
    """The pairs of corpora, read as they are asked for.

    Args:
        corpora: in order.
        online: whether a Hugging Face dataset may be downloaded.
        skip: pairs to leave out at the beginning of all.
    """
    for number, corpus in enumerate(corpora):
        pairs = read_pairs(corpus, online=online)
        while skip and (num_skipped := sum(1 for _ in islice(pairs, skip))):
            skip -= num_skipped
        for rows in chunk_rows(pairs, CHUNK_ROWS):
            sources, targets = zip(*rows, strict=True)
            yield PairChunk(number, has_two_sides(corpus), sources, targets, corpus.languages)


def has_two_sides(corpus: Corpus) -> bool:
    """Whether source and target are two texts."""
    return corpus.has_source and not corpus.is_one_text


def clean_text_file_names(corpus_number: int) -> tuple[str, str]:
    """The names of the files of a corpus in a folder of clean text: of sources, and of targets."""
    return f"train.{corpus_number}.source.txt", f"train.{corpus_number}.target.txt"


def cleaned_splits(splits: Splits, clean: Path | None) -> Splits:
    """Return the splits with the training data that `tfm clean` has left; all else stays.

    Args:
        splits: of the recipe.
        clean: the folder of the artifact; None: the splits as they are.

    Raises:
        DataError: it is not of these corpora.
    """
    if clean is None:
        return splits
    counts = open_artifact(clean, CLEAN_STAGE).figures.get("kept")
    corpora = list(flatten_portions(splits.train))
    if not (isinstance(counts, list) and all(type(count) is int and count >= 0 for count in counts)):
        raise DataError("does not say how many pairs it has: run `tfm clean` again", file=clean)
    if len(counts) != len(corpora):
        raise DataError("is of other corpora: run `tfm clean` with the same recipe", file=clean)
    numbered_corpora = enumerate(zip(corpora, counts, strict=True))
    train = [_cleaned_corpus(corpus, clean, number) for number, (corpus, count) in numbered_corpora if count]
    return replace(splits, train=tuple(train))


def cleaned_inputs(splits: Mapping[str, Sequence[Corpus]], clean: Path | None, *, online: bool) -> dict[str, Input]:
    """The inputs of splits, as `corpus_inputs` has them, with the artifact in place of the training corpora.

    Args:
        splits: corpora by use.
        clean: the folder of the artifact; None: the corpora as they are.
        online: whether a Hugging Face dataset may be downloaded.
    """
    if clean is None or "train" not in splits:
        return corpus_inputs(splits, online=online)
    other_splits = {name: corpora for name, corpora in splits.items() if name != "train"}
    return {"clean": Input.from_artifact(clean, CLEAN_STAGE), **corpus_inputs(other_splits, online=online)}


def check_clean_unchanged(clean: Path | None, inputs: Mapping[str, Input]) -> None:
    """Raise DataError where another version was published while the texts were read."""
    clean_input = inputs.get("clean")
    if (
        clean is not None
        and clean_input is not None
        and open_artifact(clean, CLEAN_STAGE).fingerprint != clean_input.fingerprint
    ):
        raise DataError("was made anew while it was read: run the same command again", file=clean)


def format_lines(texts: Sequence[str], *, is_first: bool) -> str:
    """Return texts as lines of a file that is read as the same texts; line breaks within them become spaces.

    is_first: whether the file begins with them.
    """
    lines = "\n".join(texts)
    if "\r" in lines or lines.count("\n") >= len(texts) or (is_first and lines.startswith(BYTE_ORDER_MARK)):
        lines = "\n".join(_format_line(each, is_first=is_first and not row) for row, each in enumerate(texts))
    return lines + "\n" if texts else ""


def _format_line(text: str, *, is_first: bool) -> str:
    line = text.replace("\n", " ") if "\n" in text else text
    if line.endswith("\r"):  # a reader takes one away
        line += "\r"
    return BYTE_ORDER_MARK + line if is_first and line.startswith(BYTE_ORDER_MARK) else line


def _cleaned_corpus(corpus: Corpus, clean: Path, number: int) -> CorpusConfig:
    source, target = (str(clean / name) for name in clean_text_file_names(number))
    if corpus.is_one_text:
        source = target
    languages = corpus.languages or (None, None)
    return StageTextConfig(
        format="text",
        source=source if corpus.has_source else None,
        target=target,
        source_language=languages[0],
        target_language=languages[1],
        weight=corpus.weight,
        tag=corpus.tag,
        epochs=corpus.epochs,
    )
