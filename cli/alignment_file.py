"""The file of `tfm translate --alignments`: a line of links for each line that is printed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from tfm.pipeline.alignment.extraction import SentencePair
    from tfm.pipeline.inference.translation_records import Translation
    from tfm.pipeline.model_io.loaded_model import LoadedModel

CHUNK_PAIRS = 512


class AlignmentWriter:
    """Writes the alignments of translations, some pairs at a time.

    Args:
        loaded: the model that translates.
        file: that is written.
        stream: the file, opened for bytes.

    Raises:
        RecipeError: the model has no cross-attention between pieces.
    """

    def __init__(self, loaded: "LoadedModel", file: Path, stream: IO[bytes]) -> None:
        from tfm.pipeline.alignment.extraction import WordAligner

        self._aligner, self._file, self._stream = WordAligner(loaded), file, stream
        self._head = self._aligner.choose_head()
        self._queue: list[SentencePair] = []

    def add(self, source: str, translations: "Sequence[Translation]") -> None:
        """Align a source with each of its translations."""
        from tfm.pipeline.alignment.extraction import SentencePair

        self._queue += [SentencePair(source, each.text) for each in translations]
        if len(self._queue) >= CHUNK_PAIRS:
            self.flush()

    def flush(self) -> None:
        """Write the lines of the pairs that wait."""
        from tfm.pipeline.alignment.pharaoh import format_links
        from tfm.pipeline.artifacts.files import add_path_to_errors

        alignments = self._aligner.align(self._queue, [self._head], truncate=True)
        with add_path_to_errors(self._file):
            self._stream.writelines(format_links(links).encode() + b"\n" for (links,) in alignments)
        self._queue.clear()


@contextmanager
def open_alignment_file(
    file: Path | None, load: "Callable[[], LoadedModel]", inputs: "Sequence[Path | None]" = ()
) -> "Iterator[Callable[[str, Sequence[Translation]], None] | None]":
    """Yield the function that aligns a source with its translations; None if no file is asked for.

    The file is there, or another one than before, when all has been aligned.

    Args:
        file: of the alignments.
        load: loads the model that translates.
        inputs: files that the command reads.
    """
    if file is None:
        yield None
        return
    from tfm.pipeline.artifacts.files import convert_os_errors, open_atomically
    from tfm.pipeline.artifacts.place import check_output_files

    check_output_files({"--alignments": file}, inputs)
    with ExitStack() as resources:
        with convert_os_errors(file):
            stream = resources.enter_context(open_atomically(file))
        writer = AlignmentWriter(load(), file, stream)
        yield writer.add
        writer.flush()
