"""Recipes: precedence, inheritance, and errors that say what would be right."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.model.config import ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.model_weights import model_weight_shapes
from tfm.pipeline.recipes.messages.error_messages import config_of_annotation
from tfm.pipeline.recipes.recipe import Recipe, load_recipe, recipe_schema
from tfm.pipeline.recipes.run_paths import run_folder
from tfm.pipeline.recipes.section_validation import section_from_flags, section_name
from tfm.pipeline.recipes.unused_keys.outputs import OUTPUT_RULES
from tfm.pipeline.recipes.unused_keys.table import UNUSED_KEYS_RULES
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig

RECIPES = Path(__file__).parents[4] / "recipes"
SMALL = """
name = "small"
[data]
path = "corpus"
[training]
max_steps = 10
"""


def write(folder: Path, text: str, name: str = "small.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def problem(folder: Path, text: str, *overrides: str) -> str:
    file = write(folder, text)
    with pytest.raises(RecipeError) as caught:
        load_recipe(file, overrides)
    text = str(caught.value)
    assert len(text.splitlines()) <= 2
    return text


def test_defaults_are_under_the_recipe_under_set_under_flags(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL + "log_every = 7\naccumulate = 2\n[tokenizer]\nvocab_size = 500\n")
    recipe = load_recipe(
        file,
        ["training.log_every=8", "training.accumulate=3", "tokenizer.kind=unigram"],
        {"training.log_every": 9, "seed": None, "training.device": "cpu"},
    )
    assert recipe.training.log_every == 9
    assert recipe.training.accumulate == 3
    assert recipe.tokenizer.vocab_size == 500
    assert recipe.tokenizer.kind == "unigram"
    assert recipe.training.device == "cpu"
    assert recipe.seed == 1
    assert run_folder(recipe) == Path("runs/small")


def test_extends_merges_tables_and_takes_no_name(tmp_path: Path) -> None:
    write(tmp_path, SMALL + "log_every = 7\n[data.limits]\nmax_length = 9\n", "base.toml")
    (tmp_path / "sub").mkdir()
    middle = write(tmp_path / "sub", 'extends = "../base.toml"\n[training]\nmax_steps = 20\n', "middle.toml")
    recipe = load_recipe(middle)
    assert (recipe.name, recipe.training.max_steps, recipe.training.log_every) == ("middle", 20, 7)
    assert recipe.data.limits.max_length == 9


@pytest.mark.parametrize(
    "positions",
    ['positions = "rotary"\nrotary.base = 500.0', 'positions = "learned"\npositions_join = "concatenate"']
    + [f'positions = "{name}"' for name in ("none", "alibi", "shaw", "fairseq")],
)
def test_a_recurrent_model_leaves_the_positions_aside_of_a_recipe_that_it_extends(
    tmp_path: Path, positions: str
) -> None:
    write(tmp_path, f"{SMALL}[model]\n{positions}\n", "base.toml")
    child = write(tmp_path, 'extends = "base.toml"\n[model]\narchitecture = "recurrent"\n', "child.toml")
    assert load_recipe(child).model.architecture == "recurrent"
    both = write(tmp_path, f'{SMALL}[model]\narchitecture = "recurrent"\n{positions}\n', "both.toml")
    assert "has no effect with model.architecture" in problem(tmp_path, both.read_text())


@pytest.mark.parametrize(
    ("name", "layers", "width", "inner", "heads", "millions"),
    [
        *((name, 6, 512, 2048, 8, 65) for name in ("transformer-base", "wmt14-en-de")),
        *((name, 6, 1024, 4096, 16, 213) for name in ("transformer-big", "wmt14-en-de-big")),
        ("wmt14-en-fr", 6, 512, 2048, 8, 60.5),
    ],
)
def test_the_models_of_the_paper_have_its_sizes(
    name: str, layers: int, width: int, inner: int, heads: int, millions: float
) -> None:
    """Vaswani et al. 2017, table 3, last column: counted from the equations, and in the network that is built."""
    recipe = load_recipe(RECIPES / f"{name}.toml")
    model, vocab = recipe.model, recipe.tokenizer.vocab_size
    for stack in (model.encoder, model.decoder):
        assert (stack.layers, stack.dim, stack.feed_forward_dim, stack.heads) == (layers, width, inner, heads)
    attention, norm = 4 * (width**2 + width), 2 * width
    feed_forward = 2 * width * inner + inner + width
    per_layer = (attention + feed_forward + 2 * norm) + (2 * attention + feed_forward + 3 * norm)
    by_hand = vocab * width + layers * per_layer
    shapes = model_weight_shapes(model, source_vocab=vocab, target_vocab=vocab)
    assert sum(map(math.prod, shapes.values())) == by_hand
    assert by_hand / 1e6 == pytest.approx(millions, rel=0.03)


def test_a_circle_of_extends_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "b.toml"', "a.toml")
    write(tmp_path, 'extends = "./a.toml"', "b.toml")
    with pytest.raises(RecipeError, match="extends itself"):
        load_recipe(tmp_path / "a.toml")


def test_none_takes_a_value_away_where_there_may_be_none(tmp_path: Path) -> None:
    text = SMALL.replace('path = "corpus"', 'train = { source = "a", target = "b" }\npath = "corpus"')
    recipe = load_recipe(write(tmp_path, text + 'clip_norm = "none"\n'), ["data.path=none"])
    assert recipe.training.clip_norm is None
    assert recipe.data.path is None
    assert recipe.data.train[0].source == "a"
    assert recipe.tokenizer.normalization != "none"
    assert load_recipe(write(tmp_path, SMALL), ["tokenizer.normalization=none"]).tokenizer.normalization == "none"


def test_a_pair_of_numbers_may_be_given(tmp_path: Path) -> None:
    text = SMALL + "\n[training.optimizer]\nbetas = [0.8, 0.95]\n"
    assert load_recipe(write(tmp_path, text)).training.optimizer.betas == (0.8, 0.95)
    given = ["training.optimizer.betas=[0.9, 0.99]"]
    assert load_recipe(write(tmp_path, SMALL), given).training.optimizer.betas == (0.9, 0.99)
    assert "betas.1 is missing" in problem(tmp_path, SMALL, "training.optimizer.betas=[0.9]")


def test_set_reaches_into_lists(tmp_path: Path) -> None:
    text = 'training.max_steps = 1\n[[data.train]]\nsource = "a"\n[[data.train]]\nsource = "b"\n'
    recipe = load_recipe(write(tmp_path, text), ["data.train.1.weight=2"])
    assert [corpus.weight for corpus in recipe.data.train] == [1.0, 2.0]
    said = problem(tmp_path, text, "data.train.2.weight=2")
    assert said == "--set data.train.2.weight=2: data.train has items 0 to 1, and '2' is not one of them"
    assert "'x' is not one of them" in problem(tmp_path, text, "data.train.x.weight=2")


def test_what_an_unknown_key_is_said_to_be_can_be_set(tmp_path: Path) -> None:
    text = '[[data.train]]\nformat = "generated"\npath = "grammar"\nsplit = "train"\nsize = 5\n'
    for key in ("size", "data.size"):
        assert "did you mean data.train.0.size or " in problem(tmp_path, text, f"{key}=9")
    said = problem(tmp_path, text + text, "data.train.size=9")
    assert said.endswith("has items 0 to 1, and 'size' is not one of them; did you mean data.train.0.size?")
    for key in ("data.train.0.size", "data.train.size"):  # a list of one needs no number
        assert load_recipe(write(tmp_path, text), [f"{key}=9"]).data.train[0].size == 9
    assert "did you mean" not in problem(tmp_path, text, "data.train.one.size=9")
    assert "did you mean" not in problem(tmp_path, text, "data.train.1.size=9")


def test_set_reaches_into_lists_that_the_recipe_does_not_name(tmp_path: Path) -> None:
    one = write(tmp_path, 'data.train = { source = "a", target = "b" }', "one.toml")
    sets = ["data.train.0.weight=2", "data.train.0.epochs=[1, 3]", "data.train.0.epochs.1=10"]
    (corpus,) = load_recipe(one, sets).data.train
    assert (corpus.source, corpus.weight, corpus.epochs) == ("a", 2.0, (1, 10))
    small = write(tmp_path, SMALL)
    assert load_recipe(small, ["training.optimizer.betas.0=0.8"]).training.optimizer.betas == (0.8, 0.98)
    assert load_recipe(small, ["data.ratios=[0.8, 0.1, 0.1]", "data.ratios.1=0.1"]).data.ratios == (0.8, 0.1, 0.1)
    assert load_recipe(small, ["evaluation.metrics.1=chrf"]).evaluation.metrics[:2] == ("bleu", "chrf")
    assert "betas has items 0 to 1, and '2'" in problem(tmp_path, SMALL, "training.optimizer.betas.2=0.8")
    for key in ("data.train.0.weight=2", "decoding.forbidden.0=x"):
        assert f"--set {key}: " in (said := problem(tmp_path, SMALL, key))
        assert "has no items here: give the whole list" in said


@pytest.mark.parametrize(
    ("text", "value"),
    [("corpus,2", "corpus,2"), ("2024-01-01", "2024-01-01"), ('"a b"', "a b"), ("a\nseed = 5", "a\nseed = 5")],
)
def test_what_is_no_toml_value_is_text(tmp_path: Path, text: str, value: str) -> None:
    recipe = load_recipe(write(tmp_path, SMALL), [f"data.path={text}"])
    assert (recipe.data.path, recipe.seed) == (value, 1)


@pytest.mark.parametrize(
    ("added", "parts"),
    [
        ("[tokenizer]\nvocab_sise = 5", ["small.toml", "tokenizer.vocab_sise", "did you mean tokenizer.vocab_size?"]),
        ("label_smothing = 0.1", ["training.label_smothing", "did you mean training.label_smoothing?"]),
        ("vocab_size = 5", ["training.vocab_size", "did you mean tokenizer.vocab_size?"]),
        ("[decodng]\nbeam = 2", ["decodng is not a key", "did you mean decoding?"]),
        ("[model.dropout]\nzzz = 1", ["model.dropout.zzz", "residual, embedding, attention, feed_forward"]),
        ("[data.tests.flickr]\nformt = 'tsv'", ["data.tests.flickr.formt", "did you mean data.tests.flickr.format?"]),
        ("[tokenizer]\nkind = 'bpee'", ['tokenizer.kind = "bpee"', "'bpe'", "'wordpiece'"]),
        ("[tokenizer]\nvocab_size = 3", ["tokenizer.vocab_size = 3", "at least 8"]),
        ("label_smoothing = 1.0", ["training.label_smoothing = 1.0", "less than 1"]),
        ("[tokenizer]\nvocab_size = '8000'", ["tokenizer.vocab_size", "a whole number"]),
        ("accumulate = true", ["training.accumulate = true", "a whole number"]),
        ("accumulate = 1.5", ["training.accumulate = 1.5", "a whole number"]),
        ("clip_norm = inf", ["training.clip_norm", "finite"]),
        ("tensorboard = 1", ["training.tensorboard = 1", "true or false"]),
        ("[model]\nencoder = 3", ["model.encoder = 3", "a table"]),
        ("[model.encoder]\nheads = 3", ["model: encoder: heads (3) must divide dim (512)"]),
        ("validation = { every_steps = 1, every_epochs = 1 }", ["training.validation", "not both"]),
        ("[data.train]\nsource = 'a'", ["data: give either `path` or `train`"]),
        ("[tokenizer]\nshared = false", ["model.tie", "tokenizer.shared = true"]),
        ("[model]\nmax_length = 100", ["data.limits.max_length (256)", "model.max_length (100)"]),
        ("[decoding]\nn_best = 9", ["decoding", "n_best (9)"]),
    ],
)
def test_an_error_names_file_key_and_what_would_be_right(tmp_path: Path, added: str, parts: list[str]) -> None:
    text = problem(tmp_path, SMALL + added)
    assert "small.toml: " in text
    for part in parts:
        assert part in text


def test_several_problems_are_counted_and_the_unknown_key_comes_first(tmp_path: Path) -> None:
    text = problem(tmp_path, SMALL.replace("path", "pth") + "accumulate = 0\nlog_every = 0\n")
    assert "did you mean data.path?" in text
    assert text.endswith("(and 2 more problems)")


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("tokenizer.vocab=5", ["--set tokenizer.vocab=5: ", "did you mean tokenizer.vocab_size?"]),
        ("training.max_steps=x", ["--set training.max_steps=x: ", "a whole number"]),
        ("training", ["--set training: ", "KEY=VALUE"]),
        ("a..b=1", ["--set a..b=1: ", "KEY=VALUE"]),
        ("name=../x", ["--set name=../x: ", "letters, digits"]),
        # a value is said as it would be right, and a table by its keys
        (
            "training.optimizer=adam",
            ['training.optimizer = "adam" must be a table of keys: name, betas, eps, momentum'],
        ),
        ("model.dropout=0.3", ["model.dropout = 0.3 must be a table of keys: residual, embedding, attention, "]),
        ("evaluation.metrics=bleu,chrf", ['"bleu,chrf" must be a list, as in ["bleu", "chrf"]']),
        ("training.optimizer.betas=1", ["training.optimizer.betas = 1 must be a list, as in [1, 2]"]),
        ("training.max_steps=1e4", ["training.max_steps = 10000.0 must be a whole number: 10000"]),
        ("training.max_steps=1.5", ["training.max_steps = 1.5 must be a whole number"]),
        ("data.train=corpus", ["data.train is a list of tables: write [[data.train]] in a recipe, [{...}] on the"]),
        ("data.tests=corpus", ["data.tests is a table of tables with names: write [data.tests.NAME] in a recipe"]),
        # what is suggested can be set: items of a list have numbers, test sets have names
        ("data.size=9", ["did you mean data.train.0.size or data.valid.0.size or data.tests.NAME.size or synthesis"]),
        ("command=x", ["did you mean clean.external.0.command or evaluation.external.0.command?"]),
    ],
)
def test_an_error_of_set_names_it(tmp_path: Path, override: str, parts: list[str]) -> None:
    text = problem(tmp_path, SMALL, override)
    for part in parts:
        assert part in text


@pytest.mark.parametrize("key", ["temperature=0.5", "top_p=0.5", "seed=3"])
@pytest.mark.parametrize("section", ["decoding", "synthesis.decoding"])
def test_settings_of_draws_are_refused_where_the_most_probable_piece_is_taken(
    section: str, key: str, tmp_path: Path
) -> None:
    text = '[synthesis]\ntext = { source = "none", target = "b" }\n' if section == "synthesis.decoding" else ""
    recipe = f'{SMALL}{text}[{section}]\nstrategy = "sample"\ntop_k = 1'
    said = problem(tmp_path, recipe, f"{section}.{key}")
    assert "has no effect with" in said, said
    assert "top_k 1 always takes the most probable piece. Remove it" in said, said


@pytest.mark.parametrize(
    ("recipe", "overrides", "blamed"),
    [
        # of several keys that do not go together, whoever said the last of them
        ("[tokenizer]\nkind = 'bpe'", ["tokenizer.shared=false"], 0),
        ("[decoding]\nn_best = 3\nbeam = 4", ["decoding.beam=2"], 0),
        ("[decoding]\nbeam = 3\nn_best = 3", ["seed=2", "decoding.n_best=4"], 1),
        ("validation = { every_epochs = 1 }", ["training.validation.every_steps=5"], 0),
        ("validation.every_steps = 1", ["training.validation.every_epochs=1", "training.validation.every_steps=5"], 0),
        ("", ["model.max_length=100", "seed=2"], 0),
        ("[model]\nencoder.dim = 60\nencoder.heads = 4", ["model.encoder.heads=7"], 0),
        # and the file, where it is wrong by itself
        ("[tokenizer]\nshared = false", ["seed=2"], None),
        ("[decoding]\nn_best = 9", ["decoding.length_norm=none"], None),
        ("[decoding]\nn_best = 9", ["decoding.beam=2"], None),
    ],
)
def test_what_does_not_go_together_is_laid_to_who_said_it(
    tmp_path: Path, recipe: str, overrides: list[str], blamed: int | None
) -> None:
    said = problem(tmp_path, SMALL + recipe, *overrides)
    place = str(tmp_path / "small.toml") if blamed is None else f"--set {overrides[blamed]}"
    assert said.startswith(f"{place}: "), said


def test_a_set_that_sets_an_item_of_a_file_s_list_is_to_blame(tmp_path: Path) -> None:
    text = 'data.train = { format = "tsv", path = "a.tsv" }'
    assert problem(tmp_path, text, "data.train.0.path=none").startswith("--set data.train.0.path=none: data.train.0: ")
    assert problem(tmp_path, SMALL, "training.clip_norm=nan").startswith("--set training.clip_norm=nan: training.clip")


def test_a_key_that_a_later_recipe_makes_idle_is_left_aside(tmp_path: Path) -> None:
    """Like one that is overridden; said beside what makes it idle, or after, it is refused, with the reason."""
    write(tmp_path, SMALL + "[model]\nactivation = 'gelu'\nencoder.layers = 2\n", "base.toml")
    one_stack = "extends = 'base.toml'\n[model]\narchitecture = 'decoder_only'\n"
    other = write(tmp_path, one_stack, "other.toml")
    assert load_recipe(other).model.architecture == "decoder_only"
    assert load_recipe(tmp_path / "base.toml", ["model.architecture=recurrent"]).model.architecture == "recurrent"
    said = problem(tmp_path, one_stack + "encoder.layers = 3\n")
    assert said == (
        f"{tmp_path}/small.toml: model.encoder.layers = 3 has no effect with model.architecture = "
        '"decoder_only": its one stack is [model.decoder]. Remove it'
    )
    with pytest.raises(RecipeError, match=r"^--set model\.encoder\.layers=3: .*Remove it$"):
        load_recipe(other, ["model.encoder.layers=3"])
    for sets in (
        ["model.architecture=recurrent", "model.norm=post"],
        ["model.norm=post", "model.architecture=recurrent"],
    ):
        with pytest.raises(RecipeError, match=r"^--set model\.norm=post: .* it has no norms"):
            load_recipe(write(tmp_path, SMALL, "plain.toml"), sets)
    with pytest.raises(RecipeError, match=r"^flags: model\.norm = \"post\" has no effect"):
        section_from_flags(ModelConfig, {"architecture": "recurrent", "norm": "post"})


def test_a_wrong_value_is_laid_to_the_file_that_says_it(tmp_path: Path) -> None:
    write(tmp_path, SMALL + "accumulate = 0\n", "base.toml")
    assert f"{tmp_path}/base.toml: training.accumulate" in problem(tmp_path, 'extends = "base.toml"\nseed = 2\n')


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "data is missing" in problem(tmp_path, "training.max_steps = 1")
    assert "give data.path or data.train" in problem(tmp_path, "training.max_steps = 1\n[data]\n")


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a b", "x" * 101])
def test_a_name_that_is_no_plain_folder_is_refused(tmp_path: Path, name: str) -> None:
    assert "letters, digits" in problem(tmp_path, SMALL.replace('"small"', f'"{name}"'))


def test_a_file_that_is_no_recipe_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "model.safetensors"
    binary.write_bytes(b"\x08\x00\xff\xfe")
    cases = {
        binary: "not UTF-8 text (byte 3)",
        tmp_path / "absent.toml": "no such recipe",
        tmp_path: "cannot be read as a recipe",
        write(tmp_path, "[data\n", "broken.toml"): "is not TOML",
        write(tmp_path, "a = \0", "nul.toml"): "is not TOML",
        write(tmp_path, "a = " + "[" * 100_000, "deep.toml"): "nested too deeply",
        write(tmp_path, "#" * 2**21, "large.toml"): "larger than",
        write(tmp_path, "seed = " + "9" * 10_000, "digits.toml"): "is not TOML",
        write(tmp_path, "extends = 3", "number.toml"): "extends must be the name",
        write(tmp_path, 'extends = "absent.toml"', "child.toml"): "child.toml extends",
    }
    for file, reason in cases.items():
        with pytest.raises(RecipeError, match=r".") as caught:
            load_recipe(file)
        assert reason in str(caught.value)
        assert str(file) in str(caught.value) or file.name == "child.toml"


def test_a_byte_order_mark_and_crlf_are_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "dos.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_recipe(file).name == "small"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_recipe_or_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "x.toml"
    file.write_bytes(data)
    with pytest.raises(RecipeError):
        load_recipe(file)


def test_a_section_is_named_after_its_class_and_has_the_rules_that_are_its_own() -> None:
    """A command without a recipe finds both by the class alone."""
    classes = {name: config_of_annotation(field.annotation) for name, field in Recipe.model_fields.items()}
    sections = {name: each for name, each in classes.items() if each is not None}
    assert len(sections) == 8
    for name, section in sections.items():
        assert section_name(section) == name
    for name, rules in OUTPUT_RULES.items():
        own = [rule for rule in UNUSED_KEYS_RULES if all(key.startswith(f"{name}.") for key in rule.conditions)]
        assert own == [rule for rule in rules if all(key.startswith(f"{name}.") for key in rule.conditions)]
        assert own


def test_flags_alone_make_a_part(tmp_path: Path) -> None:
    config = section_from_flags(
        TokenizerConfig, {"kind": "char", "vocab_size": None}, ["tokenizer.lowercase=true", "seed=2"]
    )
    assert config == TokenizerConfig(kind="char", lowercase=True)
    sets = ["model.encoder.heads=4", "training.max_steps=1"]
    deep = section_from_flags(ModelConfig, {"encoder.layers": 2}, sets, other_sections=["training"])
    assert (deep.encoder.layers, deep.encoder.heads) == (2, 4)
    with pytest.raises(RecipeError, match=r"tokenizer\.kind = \"x\" is not allowed"):
        section_from_flags(TokenizerConfig, {"kind": "x"})
    assert section_from_flags(TrainingConfig, {}).max_epochs == 10
    assert section_from_flags(TrainingConfig, {"max_steps": 5}).max_epochs is None
    with pytest.raises(RecipeError, match=r"--set training\..*this command takes model"):
        section_from_flags(ModelConfig, {}, sets)
    with pytest.raises(RecipeError, match="did you mean tokenizer"):
        section_from_flags(TokenizerConfig, {}, ["tokeniser.kind=bpe"])


def test_the_schema_lets_editors_complete(tmp_path: Path) -> None:
    content = recipe_schema()
    json.dumps(content)
    assert set(content["properties"]) == {*Recipe.model_fields, "extends"}
    assert '"null"' not in json.dumps(content)
    assert content["$defs"]["TokenizerConfig"]["properties"]["kind"]["enum"][0] == "bpe"


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_recipe_we_ship_is_valid_and_named_as_its_file(file: Path) -> None:
    recipe = load_recipe(file)
    assert recipe.name == file.stem
    learned = recipe.tokenizer.file is None  # beside a file, keys of learning are refused, whatever their values
    assert Recipe.model_validate_json(recipe.model_dump_json(exclude_unset=not learned)) == recipe


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("data.target=nan", "data.target = nan is a number in TOML; a text needs quotation marks"),
        ("data.train.0.target_language=inf", """--set 'data.train.0.target_language="inf"'"""),
        ("training.schedule.peak=nan", "training.schedule.peak must be a finite number"),
        (f"data.batch_tokens={10**400}", " must be a number below 2^63"),
    ],
)
def test_a_number_that_no_key_takes_is_refused_with_its_key(tmp_path: Path, setting: str, problem: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[data]\ntrain = { source = "a", target = "b" }\n', "utf-8")
    with pytest.raises(RecipeError) as refused:
        load_recipe(file, [setting])
    assert str(refused.value).startswith("--set ")
    assert problem in str(refused.value)


def test_a_name_of_several_lines_makes_a_message_of_one(tmp_path: Path) -> None:
    file = tmp_path / "two\nlines.toml"
    file.write_text('[data]\ntrain = { source = "a", target = "b" }\n', "utf-8")
    for overrides in ([], ["name=a\nb"], ["a\nb"], ["name=a\x1b[2J"]):
        with pytest.raises(RecipeError) as refused:
            load_recipe(file, overrides)
        assert len(str(refused.value).splitlines()) == 1
        assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("corpus", "is_told"),
    [
        ('{ source = "https://example.org/a.de", target = "a.en" }', False),
        ('{ source = "a.de", target = "s3://bucket/a.en" }', False),
        ('{ format = "tsv", path = "https://example.org/a.tsv", source = "0", target = "1" }', False),
        ('{ source = "a.de", target = "a.en" }', True),
    ],
)
def test_online_has_an_effect_where_a_file_is_behind_a_url(tmp_path: Path, corpus: str, is_told: bool) -> None:
    (tmp_path / "r.toml").write_text(f'name = "r"\n[data]\nonline = true\ntrain = {corpus}\n', "utf-8")
    if not is_told:
        assert load_recipe(tmp_path / "r.toml").data.online
        return
    with pytest.raises(RecipeError, match=r"data\.online = true has no effect .* or behind a URL"):
        load_recipe(tmp_path / "r.toml")


def test_of_several_settings_the_one_that_an_error_names_is_its_place(tmp_path: Path) -> None:
    """Without the first there is no such error either."""
    settings = "training.guided_alignment.links=x", "training.guided_alignment.layer=9"
    said = problem(tmp_path, SMALL, *settings)
    assert said.startswith("--set training.guided_alignment.layer=9: training.guided_alignment.layer = 9: the decoder")
