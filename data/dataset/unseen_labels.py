"""Labels and tags of validation and test data that training data does not have: no model trained on it can output
them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tfm.data.dataset.split import Split
from tfm.data.errors import format_count
from tfm.tokenizer.labels import split_label_names
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

MAX_LISTED_LABELS = 5


def count_unseen_labels(split: Split, target: Tokenizer) -> Counter[str]:
    """Count each name in the targets of a split that the vocabulary of names does not have."""
    ids, lengths = split.target.take(np.arange(len(split)))
    rows = np.unique(np.repeat(np.arange(len(split)), lengths)[ids == UNK_ID])
    texts = split.texts()[1] if len(rows) else []
    return count_unseen_labels_in_texts([texts[row] for row in rows], target)


def count_unseen_labels_in_texts(texts: Sequence[str], target: Tokenizer) -> Counter[str]:
    """Count each name in some targets that the vocabulary of names does not have."""
    assert target.label_kind is not None, "a vocabulary of names"
    counts = Counter(name for text in texts for name in split_label_names(text, target.label_kind))
    return Counter({name: count for name, count in counts.items() if UNK_ID in target.encode(name)})


def unseen_labels_message(counts: Counter[str], split_description: str) -> str:
    """The message on unseen names, the most frequent first."""
    first = ", ".join(f"{name[:40]!r} ({count})" for name, count in counts.most_common(MAX_LISTED_LABELS))
    num_others = len(counts) - MAX_LISTED_LABELS
    remainder = f" and {format_count(num_others, 'other')}" if num_others > 0 else ""
    template = "label of {} is" if counts.total() == 1 else "labels of {} are"
    subject = template.format(split_description)
    return f"{counts.total():,} {subject} not in the training data: {first}{remainder}; each counts as wrong"
