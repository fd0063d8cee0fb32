"""A dataset as far as its training split: what a model saw, without the corpora."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfm.data.dataset.store import TOKENIZER_FOLDER, write_split
from tfm.pipeline.artifacts.artifact import Input, Plan, publish
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.train import train


def make_dataset(folder: Path, targets: Sequence[str], *, learned_from: Sequence[str], kind: Kind = "bpe") -> Input:
    """The training split of a dataset with empty sources, and a tokenizer learned from some texts."""
    tokenizer = train(learned_from, TokenizerConfig(kind=kind, vocab_size=200))
    with publish(Plan("preprocess", folder, {}, {}, None), command=["test"]) as draft:
        with write_split(draft.folder / "train", texts=False) as writer:
            nothing = np.empty(0, np.int32), np.zeros(len(targets), np.int64)
            writer.write(nothing, tokenizer.encode_flat(list(targets)), np.ones(len(targets)))
        (draft.folder / TOKENIZER_FOLDER).mkdir()
        save_pair(tokenizer, tokenizer, draft.folder / TOKENIZER_FOLDER)
    return Input.from_artifact(folder)
