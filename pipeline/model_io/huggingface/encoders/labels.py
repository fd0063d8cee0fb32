"""The names of labels and tags, as config.json has them; here control tokens have the first ids of every vocabulary."""

from tfm.pipeline.model_io.huggingface.classes import JsonObject
from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.labels import split_label_names
from tfm.tokenizer.special import SPECIAL_TOKENS


def has_tfm_labels(settings: JsonObject) -> bool:
    """Whether control tokens are among the names, as `tfm export` writes them."""
    return _read_id2label(settings)[: len(SPECIAL_TOKENS)] == [*SPECIAL_TOKENS]


def read_label_names(settings: JsonObject, kind: LabelKind) -> list[str]:
    """The names in their order, without control tokens. Raises ValueError if one cannot be a name here."""
    names = _read_id2label(settings)[len(SPECIAL_TOKENS) if has_tfm_labels(settings) else 0 :]
    unique_names: set[str] = set()
    for name in names:
        if split_label_names(name, kind) != [name]:
            position = "in or around it" if kind == "tags" else "around it"
            raise ValueError(f"the label {name!r} is empty or has white space {position}")
        if name in unique_names:
            raise ValueError(f"two labels are called {name!r}")
        unique_names.add(name)
    return names


def _read_id2label(settings: JsonObject) -> list[str]:
    """Every name by its number; without any there are two, as transformers has them by default."""
    names_by_id = settings.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [str(names_by_id[str(number)]) for number in range(len(names_by_id))]
