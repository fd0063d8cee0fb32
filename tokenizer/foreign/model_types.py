"""A tokenizer.json whose model names no type, as they were before `tokenizers` 0.9: bert-base-uncased, gpt2, t5-small.

That library tells the type from the other keys, and so its own reading is taken.
"""

import json
from collections.abc import Mapping
from typing import Any

import tokenizers

from tfm.tokenizer.tokenizer import tokenizers_error_message


def add_model_type(document: dict[str, Any]) -> dict[str, Any]:
    """Add the model's type to a tokenizer.json without one, as `tokenizers` writes it today; others are unchanged.

    Raises ValueError if that library reads no tokenizer from it.
    """
    model = document.get("model")
    if not isinstance(model, Mapping) or "type" in model:
        return document
    try:
        typed_document: dict[str, Any] = json.loads(tokenizers.Tokenizer.from_str(json.dumps(document)).to_str())
    except BaseException as error:
        raise ValueError(
            f"its model has no type, and tokenizers cannot read it: {tokenizers_error_message(error)}"
        ) from error
    return typed_document
