"""Keys of one architecture or task in a recipe that is extended: left aside by another, refused beside it."""

from pathlib import Path

import pytest

from tfm.model.build import build
from tfm.model.config import SUPPORTED_TASKS
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.model_weights import model_weight_shapes
from tfm.pipeline.recipes.recipe import load_recipe

OWN_KEYS = {
    "recurrent.cell": ("recurrent", "translation", '"gru"'),
    "recurrent.attention": ("recurrent", "translation", '"luong"'),
    "recurrent.bidirectional": ("recurrent", "translation", "true"),
    "recurrent.reverse_source": ("recurrent", "translation", "true"),
    "recurrent.normalization": ("recurrent", "translation", '"rms"'),
    "word_vectors.window": ("cbow", "word_vectors", "2"),
    "span_corruption.share": ("transformer", "span_corruption", "0.3"),
}
"""A key of [model], an architecture and a task that use it, and a value."""
KINDS = [(architecture, task) for architecture, tasks in SUPPORTED_TASKS.items() for task in tasks]
STACK = {"layers": 2, "dim": 8, "heads": 2, "feed_forward_dim": 8}


def write(file: Path, architecture: str, task: str, more: str = "", extends: str = "") -> Path:
    """A recipe of an architecture and a task, small, with a line more in [model]."""
    source = "none" if task in ("language_model", "word_vectors") else "b"
    target = "b" if task in ("masked_language_model", "span_corruption") else "a"
    corpus = f'{{ source = "{source}", target = "{target}" }}'
    tokenizer = f"shared = {str(task not in ('classification', 'tagging')).lower()}\n"
    tokenizer += f"sentinels = {9 if task == 'span_corruption' else 0}\nkind = 'word'\n"
    model = f'architecture = "{architecture}"\ntask = "{task}"\n{more}'
    text = f"{extends}\n[tokenizer]\n{tokenizer}[data]\ntrain = {corpus}\nvalid = {corpus}\n[model]\n{model}\n"
    file.write_text(text, encoding="utf-8")
    return file


def parent_of(folder: Path, key: str) -> Path:
    """A recipe with a value of a key that uses it."""
    architecture, task, value = OWN_KEYS[key]
    return write(folder / "parent.toml", architecture, task, f"{key} = {value}")


@pytest.mark.few(3)
@pytest.mark.parametrize("key", OWN_KEYS)
def test_a_key_of_another_architecture_or_task_is_left_aside_where_it_is_inherited(key: str, tmp_path: Path) -> None:
    load_recipe(parent_of(tmp_path, key))
    for architecture, task in KINDS:
        file = write(tmp_path / "child.toml", architecture, task, extends='extends = "parent.toml"')
        config = load_recipe(file).model
        assert (config.architecture, config.task) == (architecture, task)
        small = {side: getattr(config, side).model_copy(update=STACK) for side in ("encoder", "decoder")}
        build(config.model_copy(update=small), source_vocab=9, target_vocab=9, seed=1)


@pytest.mark.parametrize("key", OWN_KEYS)
def test_it_is_refused_where_it_is_said_beside_what_has_no_use_for_it(key: str, tmp_path: Path) -> None:
    file = write(tmp_path / "plain.toml", "transformer", "translation", f"{key} = {OWN_KEYS[key][2]}")
    with pytest.raises(RecipeError, match=rf"model\.{key} = .* has no effect with"):
        load_recipe(file)


@pytest.mark.parametrize(
    ("task", "line", "reason"),
    [
        ("language_model", 'recurrent.attention = "luong"', "it is of a decoder that attends to an encoder"),
        ("tagging", "recurrent.reverse_source = true", "it is of an encoder whose last state a decoder reads"),
        ("language_model", "recurrent.bidirectional = true", "a language model reads in one direction"),
    ],
)
def test_what_one_stack_cannot_do_is_refused(task: str, line: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"has no effect with .*{reason}"):
        load_recipe(write(tmp_path / "plain.toml", "recurrent", task, line))


def test_a_layer_in_the_place_of_attention_has_the_cell_alone(tmp_path: Path) -> None:
    more = 'mixing = "recurrent"\nrecurrent.cell = "gru"\n'
    load_recipe(write(tmp_path / "cell.toml", "transformer", "translation", more))
    both = write(tmp_path / "both.toml", "transformer", "translation", f"{more}recurrent.bidirectional = true")
    with pytest.raises(RecipeError, match="only uses its cell"):
        load_recipe(both)


def test_a_recurrent_language_model_reads_in_one_direction_whatever_its_parent_says(tmp_path: Path) -> None:
    parent_of(tmp_path, "recurrent.bidirectional")
    file = write(tmp_path / "child.toml", "recurrent", "language_model", extends='extends = "parent.toml"')
    config = load_recipe(file).model
    assert config.recurrent.bidirectional
    plain = config.model_copy(update={"recurrent": config.recurrent.model_copy(update={"bidirectional": False})})
    shapes, expected = (model_weight_shapes(each, source_vocab=9, target_vocab=9) for each in (config, plain))
    assert shapes == expected
