"""Models of both directions, each told the languages that it is told."""

from pathlib import Path
from typing import Any

import pytest
import tokenizers

from tests.tiny_model import TEXTS, tiny_model
from tfm.data.errors import DataError
from tfm.pipeline.alignment.direction import select_languages_both_ways
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

PLAIN: tuple[str, ...] = ()
TARGET = (">>deu<<", ">>eng<<")
BOTH = ("__de__", "__en__")


def model_of(tokens: tuple[str, ...], folder: str, languages: str) -> LoadedModel:
    whole = tokenizers.Tokenizer.from_str(train(TEXTS, TokenizerConfig(kind="word"))._backend.to_str())
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])
    changes: dict[str, Any] = {"languages": languages} if tokens == BOTH else {}
    return tiny_model(Path(folder), tokenizer=Tokenizer(whole), **changes)


@pytest.mark.parametrize(
    ("tokens", "named", "said"),
    [
        ((PLAIN, PLAIN), (None, None), ("", "")),
        ((TARGET, TARGET), ("deu", "eng"), (">>deu<<", ">>eng<<")),
        ((TARGET, PLAIN), ("deu", None), (">>deu<<", "")),
        ((PLAIN, TARGET), (None, "eng"), ("", ">>eng<<")),
        ((BOTH, BOTH), ("deu", "eng"), ("__de__ __en__", "__en__ __de__")),
        ((PLAIN, BOTH), ("deu", "eng"), ("", "__en__ __de__")),
        ((BOTH, TARGET), ("deu", "eng"), ("__de__ __en__", ">>eng<<")),
        ((PLAIN, PLAIN), ("deu", None), "forward: was not trained with languages"),
        ((PLAIN, PLAIN), (None, "eng"), "forward: takes no source language: remove --from"),
        ((TARGET, PLAIN), ("deu", "eng"), "forward: takes no source language: remove --from"),
        ((TARGET, TARGET), (None, "eng"), "forward: translates into several languages: say which, --to"),
        ((TARGET, TARGET), ("deu", None), "backward: is told languages, .*: say which, --from deu or eng"),
        ((PLAIN, BOTH), (None, "eng"), "backward: is told languages, .*: say which, --to de or en"),
        ((TARGET, TARGET), ("deu", "fra"), "backward: does not translate into fra"),
    ],
)
def test_each_model_is_told_what_it_takes(
    tokens: tuple[tuple[str, ...], tuple[str, ...]],
    named: tuple[str | None, str | None],
    said: tuple[str, str] | str,
) -> None:
    forward, backward = (
        model_of(each, folder, "m2m100") for each, folder in zip(tokens, ("forward", "backward"), strict=True)
    )
    if isinstance(said, str):
        with pytest.raises(DataError, match=said):
            select_languages_both_ways(forward, backward, *named)
        return
    text = TEXTS[0]
    for found, model, begin in zip(
        select_languages_both_ways(forward, backward, *named), (forward, backward), said, strict=True
    ):
        assert found.source_tokenizer.pieces(text) == [*begin.split(), *model.source_tokenizer.pieces(text)]


def test_a_model_that_knows_languages_and_is_told_none_needs_none() -> None:
    forward, backward = model_of(TARGET, "forward", "source"), model_of(BOTH, "backward", "source")
    found = select_languages_both_ways(forward, backward, "deu", None)
    assert found[1].source_tokenizer.pieces(TEXTS[0]) == backward.source_tokenizer.pieces(TEXTS[0])
