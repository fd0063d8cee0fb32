"""[data.images] of a recipe: the shape of images and how training varies them; and which keys of a corpus of images
have no meaning."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

IMAGES_FILE = "images.json"
"""The file that a dataset or model of images has in place of a source's tokenizer (`images/preparation.py`)."""

IMAGE_FORMATS = ("imagefolder", "idx")
"""The formats that hold images alone."""
FORMATS_WITH_CLASSES = ("idx", "jsonl", "parquet", "huggingface", "imagefolder")
"""The formats whose labels may be integers."""
UNSUPPORTED_KEYS_REASONS: Mapping[str, str] = {
    "source": "the source of a corpus of images is the image",
    "merge_references": "all captions of an image are together anyway",
    "lists": "a list of texts is several captions of an image",
    "source_language": "an image has no language",
    "target_language": "an image has no language",
}


class ImagesConfig(BaseModel):
    """Images in place of source texts: one shape for all, and what is varied in training.

    Each image is scaled until it covers height x width, and what hangs over is cut off evenly.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    height: int = Field(ge=1, le=4096, description="in pixels")
    width: int = Field(ge=1, le=4096, description="in pixels")
    colour: bool = Field(True, description="three channels, red, green and blue; false: one, grey")
    shift: int = Field(0, ge=0, le=4096, description="training: moved by up to so many pixels to each side")
    flip: bool = Field(False, description="training: left and right exchanged, every second time")
    crop: float = Field(1.0, gt=0, le=1, description="training: the smallest share of each side that is kept; 1: all")


def image_corpus_problem(corpus: Any) -> str | None:
    """Reason why a corpus (a CorpusConfig) does not go with its images, or with having none; None if it does."""
    if (problem := _classes_problem(corpus.classes)) is not None:
        return problem
    if corpus.image is not None and corpus.format != "huggingface":
        return f'`image` is a column of format "huggingface"; format "{corpus.format}" has none'
    if corpus.classes and corpus.format not in FORMATS_WITH_CLASSES:
        formats = ", ".join(FORMATS_WITH_CLASSES)
        return f'`classes` are for formats whose labels may be integers ({formats}), not for "{corpus.format}"'
    if not corpus.has_images:
        return None
    if corpus.format == "idx" and "target" not in corpus.model_fields_set:
        return 'format "idx" needs `target`, the file of the labels; `path` is the file of the images'
    if corpus.format in ("idx", "generated") and corpus.references:
        return f'`references`: format "{corpus.format}" has no further columns'
    if (problem := _column_names_problem(corpus)) is not None:
        return problem
    for key, reason in UNSUPPORTED_KEYS_REASONS.items():
        if getattr(corpus, key) != type(corpus).model_fields[key].default:
            return f"`{key}`: {reason}: remove it"
    return None


def _classes_problem(classes: Sequence[str]) -> str | None:
    """Classes that are not one name each, as labels are read: without white space around."""
    names = [name.strip() for name in classes]
    for name in names:
        if not name or "\n" in name or "\r" in name:
            return f"`classes`: {name!r} is not one line of text, as each name must be"
        if names.count(name) > 1:
            return f"`classes`: {name!r} is the name of two labels: give each its own"
    return None


def _column_names_problem(corpus: Any) -> str | None:
    """Columns that are named twice."""
    columns = [corpus.target, *(corpus.references or ())]
    if corpus.image in columns:
        return f'`image` and `target` or `references` name the same column, "{corpus.image}"'
    twice = next((column for column in columns if columns.count(column) > 1), None)
    return None if twice is None else f'`target` and `references` name the column "{twice}" twice: remove one'


def images_problem(data: Any, corpora: Mapping[str, Any]) -> str | None:
    """Reason why the corpora (`corpora`) of a DataConfig do not go with `data.images`; None if all do."""
    with_images = {name: corpus.has_images for name, corpus in corpora.items()}
    if data.images is None:
        image_corpus = next((name for name, has_images in with_images.items() if has_images), None)
        shape = "images = { height = 32, width = 32 }"
        return None if image_corpus is None else f"{image_corpus} has images: set their size, as {shape}"
    if data.path is not None:
        return "`images`: name the corpora in `train`, `valid` and `tests`; `path` is for texts"
    text_corpus = next((name for name, has_images in with_images.items() if not has_images), None)
    if text_corpus is not None:
        return f"`images`: {text_corpus} has no images, and texts cannot be mixed with images"
    return None
