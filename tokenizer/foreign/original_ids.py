"""The ids that pieces have where their tokenizer comes from, kept in a file beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES

ORIGINAL_IDS_FILE = "original_ids.json"
"""By the name of a tokenizer's file, of each id the id of the same piece where the tokenizer comes from; null: none."""


@dataclass(frozen=True)
class FairseqNumbering:
    """How a class of transformers numbers the pieces of a SentencePiece model: the ids of some control tokens, and the
    offset of all other pieces.
    """

    control_ids: Mapping[str, int]
    offset: int


_XLM_R = FairseqNumbering({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, 1)
FAIRSEQ_NUMBERINGS: Mapping[str, FairseqNumbering] = {
    **{f"{model}Tokenizer": _XLM_R for model in ("XLMRoberta", "Nllb", "MBart", "MBart50", "PLBart", "XGLM")},
    "CamembertTokenizer": FairseqNumbering({"<pad>": 1, "<unk>": 3}, 4),
}
"""By the class (tokenization_xlm_roberta.py and others of transformers)."""
MODEL_HEAD = ("<unk>", "<s>", "</s>")
"""The first pieces of a model whose ids are moved; others have the control tokens in their places already."""


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


def fairseq_ids(pieces: Mapping[int, str], ids: Sequence[int | None], numbering: FairseqNumbering) -> list[int | None]:
    """Return the ids there of pieces of ours, by our ids.

    Args:
        pieces: of the SentencePiece model, by their place in it.
        ids: by our ids the place in the model; None of a piece of ours.
        numbering: of the class that reads the model.
    """
    if tuple(pieces.get(number) for number in range(len(MODEL_HEAD))) != MODEL_HEAD:
        return [*ids]
    control_ids, offset = numbering.control_ids, numbering.offset
    renumbered_ids = [None if number is None else control_ids.get(pieces[number], number + offset) for number in ids]
    return [control_ids["<pad>"] if renumbered_ids[0] is None else renumbered_ids[0], *renumbered_ids[1:]]
