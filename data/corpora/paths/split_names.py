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
    """The name of the validation data, the names of the test sets, main one first, and the names that are not used."""

    valid: str | None
    tests: Sequence[str]
    unused: Sequence[str]


def classify_splits(names: Iterable[str]) -> SplitRoles:
    """Classify names of splits: `train` is training data, and the first name of validation data is used."""
    other_names = sorted(name for name in names if name != TRAIN_NAME)
    tests = [name for name in other_names if _TEST_NAME_PATTERN.search(name)]
    tests.sort(key=lambda name: name != "test")
    valid = [name for name in VALID_NAMES if name in other_names]
    valid += [name for name in other_names if name not in (*valid, *tests) and _VALID_NAME_PATTERN.search(name)]
    used_names = {*tests, *valid[:1]}
    return SplitRoles(valid[0] if valid else None, tests, [name for name in other_names if name not in used_names])


def split_name_family(names: Iterable[str]) -> str:
    """Return the prefix that all splits of a corpus share: "ptb." of ptb.train, ptb.valid and ptb.test, "opus-" of
    opus-train and opus-dev; "" if a split is called train.

    If several prefixes are possible, it is the one with which the others begin, as for ptb.train beside
    ptb.char.train; "" if there is none.
    """
    known_names = set(names)
    prefixes = (name.removesuffix(TRAIN_NAME) for name in known_names if name.endswith(TRAIN_NAME))
    family_prefixes = sorted((prefix for prefix in prefixes if prefix.endswith((".", "-", "_"))), key=len)
    is_single_family = (
        TRAIN_NAME not in known_names
        and family_prefixes
        and all(each.startswith(family_prefixes[0]) for each in family_prefixes)
    )
    return family_prefixes[0] if is_single_family else ""


def is_family_member(name: str, family: str) -> bool:
    """Whether a split belongs to this family: after the family's prefix its name has no dot."""
    return name.startswith(family) and "." not in name.removeprefix(family)


def is_split_name(name: str) -> bool:
    """Whether a name has a usual word for a split, such as test or dev."""
    return any(pattern.search(name) for pattern in (_TEST_NAME_PATTERN, _VALID_NAME_PATTERN, _SPLIT_WORD_PATTERN))


def training_name_rank(name: str) -> int:
    """Rank a name as that of training data: 0 for a training name, 1 for no name of a split, 2 for another split."""
    if (match := _SPLIT_WORD_PATTERN.search(name)) is not None and match[1].lower().startswith("tr"):
        return 0
    return 2 if is_split_name(name) else 1


def is_parallel_split_name(name: str) -> bool:
    """Whether files of this name must have both sides; files of other names may be in other languages."""
    return name in (TRAIN_NAME, "test", *VALID_NAMES)
