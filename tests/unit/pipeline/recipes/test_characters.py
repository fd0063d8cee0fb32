"""Characters as source: what goes with them, and what is refused with the reason when the recipe is read."""

from pathlib import Path

import pytest

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import Recipe, load_recipe

BASE = """
[tokenizer]
kind = "codepoint"
shared = false
target_kind = "byte"
[data]
path = "corpus"
[model]
tie = "output"
[model.canine]
rate = 2
"""
LABELS = BASE.replace('target_kind = "byte"\n', "").replace('tie = "output"', 'architecture = "encoder_only"')


def read(folder: Path, text: str, *sets: str) -> Recipe:
    (folder / "some.toml").write_text(text, "utf-8")
    return load_recipe(folder / "some.toml", sets)


def test_what_goes_together_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, BASE).model.canine is not None
    for task, names in (("classification", "label"), ("tagging", "tags")):
        assert read(tmp_path, LABELS, f"model.task={task}").tokenizer.target_kind == names
    taken = read(
        tmp_path, BASE, "tokenizer.source_from=old/tokenizer", "tokenizer.kind=bpe", "tokenizer.target_kind=none"
    )
    assert taken.tokenizer.source_from is not None, "of what is taken is seen later what it is"


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        (["model.canine=none"], "it is for models with [model.canine]"),
        (["tokenizer.kind=bpe"], 'model.canine reads characters: tokenizer.kind = "codepoint", not "bpe"'),
        (["tokenizer.target_kind=none"], "is for the source alone"),
        (["tokenizer.target_kind=codepoint"], "is for the source alone"),
        (["tokenizer.shared=true", "tokenizer.target_kind=none"], "tokenizer.shared = false"),
        (["training.layout=flat"], "the shorter sequences of model.canine have no one length"),
        (["model.canine.upsampling=3"], 'model.canine.upsampling = 3 has no effect with model.task = "translation"'),
        (["tokenizer.sentinels=3", "tokenizer.shared=true", "tokenizer.target_kind=none"], "none writes kind"),
    ],
)
def test_what_does_not_is_refused(tmp_path: Path, sets: list[str], reason: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read(tmp_path, BASE, *sets)
    assert reason in str(caught.value)


@pytest.mark.parametrize("key", ["vocab_size=300", "min_frequency=1"])
def test_nothing_is_learned_of_characters_and_names(tmp_path: Path, key: str) -> None:
    with pytest.raises(RecipeError, match=r"nothing is learned\. Remove it"):
        read(tmp_path, LABELS, "model.task=tagging", f"tokenizer.{key}")
    assert read(tmp_path, BASE.replace("byte", "bpe"), f"tokenizer.{key}").model.canine, "the target learns by it"
