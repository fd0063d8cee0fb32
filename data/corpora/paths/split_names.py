"""The names of splits: which names in a folder or a Hugging Face dataset are used for what."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# By name the whole of a split, the one that is used before others.
TRAIN_NAME = "train"
TRAINING_WORD_PATTERN = re.compile("train(?:ing)?|trn", re.IGNORECASE)
VALID_NAMES = ("valid", "validation", "val", "dev")
# Within a name, as in test2016, newstest2014, flickr2018.test, test_2016_flickr, tst2013, validation_matched.
_TEST_NAME_PATTERN = re.compile(r"(?<![^\W\d_])(news|dev)?(tests?|testset|tst)(?![^\W\d_])", re.IGNORECASE)
_VALID_NAME_PATTERN = re.compile(
    r"(?<![^\W\d_])(news)?(valid|validation|val|dev|devel|development)(?![^\W\d_])", re.IGNORECASE
)
_SPLIT_WORD_PATTERN = re.compile(
    r"(?<![^\W\d_])(train|training|trn|eval|evaluation|heldout)(?![^\W\d_])", re.IGNORECASE
)


@dataclass(frozen=True)
class SplitRoles:
    """The name that is the validation data, those of test sets, the main one first, and those that are not used."""

    valid: str | None
    tests: Sequence[str]
    unused: Sequence[str]


def classify_splits(names: Iterable[str]) -> SplitRoles:
    """The splits that names stand for. The one `train` is training data; of validation data the first is used."""
    other_names = sorted(name for name in names if name != TRAIN_NAME)
    tests = [name for name in other_names if _TEST_NAME_PATTERN.search(name)]
    tests.sort(key=lambda name: name != "test")
    valid = [name for name in VALID_NAMES if name in other_names]
    valid += [name for name in other_names if name not in (*valid, *tests) and _VALID_NAME_PATTERN.search(name)]
    used = {*tests, *valid[:1]}
    return SplitRoles(valid[0] if valid else None, tests, [name for name in other_names if name not in used])


def split_name_family(names: Iterable[str]) -> str:
    """The beginning of the names of all splits of a corpus: "ptb." of ptb.train, ptb.valid, ptb.test; "opus-" of
    opus-train, opus-dev; "" where a split is called train.

    If there are several, it is the one that the others begin with too (ptb.train beside ptb.char.train); otherwise
    there is none.
    """
    known = set(names)
    prefixes = (name.removesuffix(TRAIN_NAME) for name in known if name.endswith(TRAIN_NAME))
    found = sorted((prefix for prefix in prefixes if prefix.endswith((".", "-", "_"))), key=len)
    alone = TRAIN_NAME not in known and found and all(each.startswith(found[0]) for each in found)
    return found[0] if alone else ""


def is_family_member(name: str, family: str) -> bool:
    """Whether a name is that of a split of this family: no further dot stands in it."""
    return name.startswith(family) and "." not in name.removeprefix(family)


def is_split_name(name: str) -> bool:
    """Whether a name sounds like one of a split."""
    return any(pattern.search(name) for pattern in (_TEST_NAME_PATTERN, _VALID_NAME_PATTERN, _SPLIT_WORD_PATTERN))


def training_name_rank(name: str) -> int:
    """Rank a name for training data: 0 if it names them, 1 if it names no split, 2 if it names another split."""
    if (found := _SPLIT_WORD_PATTERN.search(name)) is not None and found[1].lower().startswith("tr"):
        return 0
    return 2 if is_split_name(name) else 1


def is_parallel_split_name(name: str) -> bool:
    """Whether it is an error that one side of such files is missing; other names may be those of other languages."""
    return name in (TRAIN_NAME, "test", *VALID_NAMES)
