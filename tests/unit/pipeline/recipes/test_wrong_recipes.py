"""Whatever key of a recipe is wrong, in whatever way: the file, the key and what would be right are said, exit 2."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tests.cli.user import tfm
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import Recipe, load_recipe

WRONG = {"text": '"some text"', "number": "-7.25", "flag": "true", "list": "[[1]]", "table": "{ zzz = 1 }"}
# What a value of a type may be among WRONG: nothing else is.
RIGHT: dict[Any, set[str]] = {int: set(), float: {"number"}, bool: {"flag"}, str: {"text"}}


def fields(model: type[BaseModel], key: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key that holds a value, with dots, and the field that describes it."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields(inner, f"{key}{name}.")
        elif f"{key}{name}" not in ("data.train", "data.valid", "data.tests"):
            yield f"{key}{name}", field


FIELDS = dict(fields(Recipe)) | {f"data.valid.{key}": field for key, field in fields(CorpusConfig)}
BOUNDED = {key: field for key, field in FIELDS.items() if field.metadata and key != "name"}
CHOICES = {key: field for key, field in FIELDS.items() if get_origin(field.annotation) is Literal}


def problem(folder: Path, text: str) -> str:
    """The error of a recipe, which names its file and fits two lines."""
    file = folder / "wrong.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(RecipeError) as caught:
        load_recipe(file)
    assert caught.value.exit_code == 2
    said = str(caught.value)
    assert str(file) in said
    assert len(said.splitlines()) <= 2
    return said


def kinds(annotation: Any) -> set[Any]:
    """The plain types a field may hold."""
    if get_origin(annotation) is Literal:
        return {str}
    inner = [each for each in get_args(annotation) if each is not NoneType]
    return set().union(*map(kinds, inner)) if inner and get_origin(annotation) is not tuple else {annotation}


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("key", FIELDS)
@pytest.mark.few(114)
def test_a_value_of_the_wrong_type_names_its_key(tmp_path: Path, key: str, record_property: Any) -> None:
    allowed = set().union(*(RIGHT.get(kind, set()) for kind in kinds(FIELDS[key].annotation)))
    wrong = WRONG.keys() - allowed
    for kind in sorted(wrong):
        assert re.search(rf"\b{re.escape(key)}\b", problem(tmp_path, f"{key} = {WRONG[kind]}\n"))
    record_property("recipes", len(wrong))


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("key", BOUNDED)
def test_a_value_out_of_range_names_its_bound(tmp_path: Path, key: str, record_property: Any) -> None:
    tried = 0
    for limit in BOUNDED[key].metadata:
        for name, step in (("ge", -1), ("gt", 0), ("le", 1), ("lt", 0)):
            if (bound := getattr(limit, name, None)) is not None:
                said = problem(tmp_path, f"{key} = {bound + step}\n")
                assert f"{key} = " in said
                assert str(bound) in said.split("must be")[1]
                tried += 1
    assert tried
    record_property("recipes", tried)


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("key", CHOICES)
def test_a_name_that_is_none_of_the_table_lists_the_table(tmp_path: Path, key: str, record_property: Any) -> None:
    said = problem(tmp_path, f'{key} = "nonsense"\n')
    assert f'{key} = "nonsense"' in said
    assert all(f"'{name}'" in said for name in get_args(CHOICES[key].annotation))
    record_property("recipes", 1)


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("key", FIELDS)
@pytest.mark.few(114)
def test_a_misspelt_key_is_told_the_right_one(tmp_path: Path, key: str, record_property: Any) -> None:
    above, _, name = key.rpartition(".")
    misspelt = f"{above}.{name}e" if above else f"{name}e"
    said = problem(tmp_path, f"{misspelt} = 1\n")
    assert f"{misspelt} is not a key" in said
    assert re.search(rf"did you mean {re.escape(key)}\?", said)
    record_property("recipes", 1)


IMPOSSIBLE = {
    "path and train": ("data.path = 'a'\ndata.train = { source = 'a', target = 'b' }", "not both"),
    "shares": ("data.path = 'a'\ndata.ratios = [0.5, 0.5, 0.5]", "add up to 1"),
    "there is no training data": ("data.source = 'de'", "data.path or data.train"),
    "a path of two files": ("data.train = { path = 'a', source = 'b', target = 'c' }", "no `path`"),
    "a table without a path": ("data.train = { format = 'tsv' }", "needs `path`"),
    "no such generator": ("data.train = { format = 'generated', path = 'gramar' }", "grammar, it, languages, copy"),
    "a generator without a size": ("data.train = { format = 'generated', path = 'copy' }", "`split` and `size`"),
    "programs without a length": (
        "data.train = { format = 'generated', path = 'programs', split = 'train', size = 9, nesting = 1 }",
        '"programs" needs `length`',
    ),
    "additions with a nesting": (
        "data.train = { format = 'generated', path = 'addition', split = 'train', size = 9, length = 1, nesting = 1 }",
        '`nesting` is only for built-in corpora: "programs"',
    ),
    "a length of a file": (
        "data.train = { target = 'a', length = 3 }",
        '`length` is only for built-in corpora: "addition" and "programs"',
    ),
    "mixed toys": (
        "data.train = { format = 'generated', path = 'copy', split = 'train', size = 9, mix = true }",
        "`mix` is only for built-in corpora",
    ),
    "a column that a format does not have": (
        "data.train = { format = 'conllu', path = 'a', target = 'pos' }",
        '"conllu" has no column "pos"; it has form, upos, lemma',
    ),
    "epochs the wrong way round": ("data.train = { epochs = [3, 2] }", "3 is after 2"),
    "an epoch left out": (
        "data.train = [{ epochs = [4, 9] }, { epochs = [1, 2] }]",
        "no training corpus is used in epoch 3",
    ),
    "epochs that begin late": ("data.train = [{ epochs = [2, 9] }]", "is used in epoch 1"),
    "more epochs than corpora": (
        "data.train = [{ epochs = [1, 2] }, { epochs = [3, 4] }]\ntraining.max_epochs = 5",
        "is used in epoch 5",
    ),
    "validation in turns": ("data.train = {}\ndata.valid.epochs = [1, 2]", "valid.epochs: only training corpora"),
    "the second of several in turns": (
        "data.train = {}\ndata.valid = [{}, { epochs = [1, 2] }]",
        "valid.1.epochs: only training corpora",
    ),
    "a key that the second of several does not have": (
        "data.train = {}\ndata.valid = [{}, { taget = 'a' }]",
        "data.valid.1.taget is not a key of recipes; did you mean data.valid.1.target?",
    ),
    "a test in turns": ("data.train = {}\ndata.tests.a.epochs = [1, 2]", "tests.a.epochs: only training corpora"),
    "clusters of unknown languages": (
        "data.path = 'a'\ntokenizer = { kind = 'unigram', clusters = 2 }",
        "tokenizer.clusters needs the language of each text",
    ),
    "clusters for each side": (
        "tokenizer = { kind = 'unigram', clusters = 2, shared = false }",
        "`clusters` needs one vocabulary for all languages",
    ),
    "bytes do not fit": ("tokenizer = { kind = 'byte', vocab_size = 100 }", "at least 260"),
    "heads": ("model.encoder = { dim = 100, heads = 3 }", "heads (3) must divide dim (100)"),
    "tied widths": ("model.encoder = { dim = 64, heads = 1 }", "needs embedding_dim"),
    "tied vocabularies": ("data.path = 'a'\ntokenizer.shared = false", "tokenizer.shared = true"),
    "limits": ("data.path = 'a'\nmodel.max_length = 50", "model.max_length (50)"),
    "two clocks": ("training.validation = { every_steps = 1, every_epochs = 1 }", "not both"),
    "not measured": (
        "training.early_stopping.metric = 'bleu'\ntraining.validation.bleu = false",
        "needs validation.bleu = true",
    ),
    "more than the beam": ("data.path = 'x'\ndecoding = { beam = 2, n_best = 3 }", "n_best (3) cannot exceed beam (2)"),
    "shortest and longest": ("decoding = { min_length = 9, max_length = 3 }", "min_length (9) cannot exceed"),
}


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_be_together_is_refused_with_its_reason(tmp_path: Path, case: str, record_property: Any) -> None:
    text, reason = IMPOSSIBLE[case]
    assert reason in problem(tmp_path, text)
    record_property("recipes", 1)


@pytest.mark.promise("recipe")
@pytest.mark.parametrize("command", ["tokenize", "preprocess", "train", "translate", "evaluate"])
def test_every_stage_refuses_it_the_same_way(tmp_path: Path, command: str, record_property: Any) -> None:
    file = tmp_path / "wrong.toml"
    for content, hint in ((b"\x7fELF\x02\xff\xfe\0", "not UTF-8"), (b"training.beam = 3\n", "decoding.beam")):
        file.write_bytes(content)
        result = tfm(command, "--recipe", file)
        assert (result.code, result.out) == (2, "")
        assert hint in result.err
        assert str(file) in result.err
        assert len(result.err.strip().splitlines()) <= 2
    record_property("recipes", 2)


def test_the_lists_of_keys_are_those_of_the_schema() -> None:
    assert len(FIELDS) > 60
    assert {"training.optimizer.betas", "model.encoder.heads", "data.valid.format", "seed"} <= FIELDS.keys()
    text = json.dumps(Recipe.model_json_schema())
    assert all(f'"{key.rpartition(".")[2]}"' in text for key in FIELDS)


@pytest.mark.parametrize("key", ["clean.external", "evaluation.external"])
def test_a_table_in_place_of_a_list_of_tables_is_told_how_these_are_written(key: str, tmp_path: Path) -> None:
    said = problem(
        tmp_path, f'[data]\ntrain = {{ source = "a", target = "b" }}\n[{key}]\nname = "a"\ncommand = "b"\nmin = 1\n'
    )
    assert f"{key} is a list of tables: write [[{key}]] in a recipe" in said
