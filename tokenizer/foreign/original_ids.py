"""The ids that pieces have where their tokenizer comes from, kept in a file beside it."""

import json
from pathlib import Path

from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES

ORIGINAL_IDS_FILE = "original_ids.json"
"""By the name of a tokenizer's file, of each id the id of the same piece where the tokenizer comes from; null: none."""


def load_original_ids(folder: Path, name: str, size: int) -> tuple[int | None, ...]:
    """Return the original ids of the pieces of a tokenizer; empty if none are kept.

    Args:
        folder: the folder of the tokenizer.
        name: the file name of the tokenizer.
        size: the number of its pieces.

    Raises:
        ValueError: the file has no such ids; the error names the file.
    """
    file = folder / ORIGINAL_IDS_FILE
    if not file.exists():
        return ()
    if file.stat().st_size > MAX_TOKENIZER_FILE_BYTES:
        raise ValueError(f"{file}: is larger than any that tfm writes ({file.stat().st_size:,} bytes)")
    data = file.read_bytes()
    try:  # two lists at most: others would take far more memory than the file
        document = json.loads(data) if data.count(b"[") <= 2 and data.count(b"{") <= 1 else None
        ids = document.get(name, []) if isinstance(document, dict) else None
    except ValueError:
        ids = None
    if (
        not isinstance(ids, list)
        or len(ids) > size
        or any(each is not None and (type(each) is not int or each < 0) for each in ids)
    ):
        raise ValueError(f"{file}: has no ids of the pieces of {name}")
    return tuple(ids)
