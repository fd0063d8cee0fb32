"""Corpora of images -> images with their captions, streamed: one reader a format."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from tfm.data.corpora.portions import Corpus, Portion
from tfm.data.corpus_config import CorpusConfig
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.idx import read_idx
from tfm.data.images.image_column import read_image_column
from tfm.data.images.imagefolder import TableReader, list_files, read_imagefolder
from tfm.data.lines import check_is_file
from tfm.data.synthetic import registry

ImageIterator: TypeAlias = Iterator[CaptionedImage]
ContentFingerprints: TypeAlias = list[tuple[str, Path | None, str]]
SkippedCallback: TypeAlias = Callable[[list[str]], None]


def read_images(
    corpus: Corpus, read_table: TableReader, *, online: bool = False, on_skipped: SkippedCallback = lambda names: None
) -> ImageIterator:
    """The images of a corpus in order, not decoded; `size` and `skip` count them.

    Which of them belong to a portion is decided by the bytes of each image alone, so that its captions, and copies of
    it, are never in two. read_table: `corpora.sources.read_rows`. on_skipped: is told the files that are no images.
    """
    if isinstance(corpus, Portion):
        for member in corpus.corpora:
            images = read_images(member, read_table, online=online, on_skipped=on_skipped)
            yield from (image for image in images if corpus.part.contains(image.content_hash))
        return
    images = IMAGE_READERS[corpus.format](corpus, read_table, online, on_skipped)
    # A built-in corpus makes exactly as many as requested.
    size = None if corpus.size is None or corpus.format == "generated" else corpus.skip + corpus.size
    yield from images if corpus.format == "generated" else islice(images, corpus.skip, size)


def read_captions(corpus: Corpus, read_table: TableReader, *, online: bool = False) -> Iterator[tuple[str, str]]:
    """The name of an image and a caption of it, for each caption of each image."""
    return ((image.title, text) for image in read_images(corpus, read_table, online=online) for text in image.captions)


def image_fingerprints(
    corpus: CorpusConfig, label: str, read_table: TableReader, *, online: bool = False
) -> ContentFingerprints:
    """The contents of a corpus of files, as `corpora.sources.content_fingerprints` returns them."""
    path = Path(str(corpus.path))
    if corpus.format == "imagefolder":
        return [(str(path), path, _hash_texts((name, _hash_image_file(file)) for name, file in list_files(path)))]
    if corpus.format == "idx":
        return [(str(file), file, _hash_image_file(check_is_file(file))) for file in (path, Path(corpus.target))]
    full_corpus = corpus.model_copy(update={"skip": 0, "size": None})
    images = read_images(full_corpus, read_table, online=online)
    return [(label, None, _hash_texts((each.content_hash, *each.captions) for each in images))]


def _hash_texts(parts: Iterable[tuple[str, ...]]) -> str:
    """sha256, in hex, of tuples of texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _hash_image_file(file: Path) -> str:
    return CaptionedImage(str(file), file, ()).content_hash


def _read_imagefolder(
    corpus: CorpusConfig, read_table: TableReader, online: bool, on_skipped: SkippedCallback
) -> ImageIterator:
    columns = (corpus.target, *(corpus.references or ()))
    images, skipped_names = read_imagefolder(Path(str(corpus.path)), columns, read_table, corpus.classes)
    on_skipped(skipped_names)
    return iter(images)


def _read_huggingface(
    corpus: CorpusConfig, read_table: TableReader, online: bool, on_skipped: SkippedCallback
) -> ImageIterator:
    columns = (corpus.target, *(corpus.references or ()))
    image, classes = str(corpus.image), corpus.classes
    return read_image_column(str(corpus.path), corpus.split, image, columns, classes, online=online)


def _generate_images(
    corpus: CorpusConfig, read_table: TableReader, online: bool, on_skipped: SkippedCallback
) -> ImageIterator:
    scenes = registry.generate_scenes(str(corpus.split), corpus.size or 0, corpus.skip)
    for number, (pixels, texts) in enumerate(scenes, corpus.skip + 1):
        name = f"{corpus.path} {corpus.split}, image {number}"
        yield CaptionedImage(name, pixels, texts, f"image {number}")


IMAGE_READERS: Mapping[str, Callable[[CorpusConfig, TableReader, bool, SkippedCallback], ImageIterator]] = {
    "imagefolder": _read_imagefolder,
    "idx": lambda corpus, *_: read_idx(Path(str(corpus.path)), Path(corpus.target), corpus.classes),
    "huggingface": _read_huggingface,
    "generated": _generate_images,
}
