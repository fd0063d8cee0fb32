"""Every key of [clean] changes which pairs stay, or what they are; what has no effect is refused."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.pairs.config import RatioConfig
from tfm.pipeline.cleaning.rules.texts.config import LanguageConfig, LengthConfig
from tfm.pipeline.cleaning.rules.texts.language import make_language_measure
from tfm.pipeline.cleaning.text_batch import TextPairBatch
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean

Pair = tuple[str, str]
ALL_OFF = dict.fromkeys(("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
SCORER = "import json, sys\nfor line in sys.stdin: print(len(json.loads(line)['hypothesis']))"


def kept(folder: Path, pairs: Sequence[Pair], rules: dict[str, object], tests: Sequence[Pair] = ()) -> list[Pair]:
    """The pairs that rules leave; all others are off."""
    files = {"train": pairs, "test": tests}
    folder.mkdir(exist_ok=True)
    corpora = {}
    for name, some in files.items():
        for side in (0, 1):
            text = "".join(each[side] + "\n" for each in some)
            (folder / f"{name}.{side}").write_text(text, "utf-8", newline="")
        corpora[name] = CorpusConfig(source=str(folder / f"{name}.0"), target=str(folder / f"{name}.1"))
    data = DataConfig(train=(corpora["train"],), tests={"test": corpora["test"]} if tests else {})
    config = CleanConfig.model_validate({**ALL_OFF, **rules})
    number = sum(1 for _ in folder.glob("clean*"))
    out = folder / f"clean{number}"
    clean(config, data, out, whole_corpora=True, command=["tfm"], reporter=NullReporter())
    sides = [(out / f"train.0.{side}.txt").read_text("utf-8").split("\n")[:-1] for side in ("source", "target")]
    return list(zip(*sides, strict=True))


SHORT, LONG = ("a b", "c d"), ("a b c d", "e f g h i")
MARKED = ("a \x00b", "c")
Rules = dict[str, object]
CASES: dict[str, tuple[list[Pair], Rules, list[Pair], Rules, list[Pair]]] = {
    "controls.action": (
        [MARKED, SHORT],
        {"controls": {}},
        [("a b", "c"), SHORT],
        {"controls": {"action": "drop"}},
        [SHORT],
    ),
    "empty": ([("", "x"), SHORT], {}, [("", "x"), SHORT], {"empty": {}}, [SHORT]),
    "length.min": ([SHORT, LONG], {"length": {}}, [SHORT, LONG], {"length": {"min": 3}}, [LONG]),
    "length.max": ([SHORT, LONG], {"length": {}}, [SHORT, LONG], {"length": {"max": 4}}, [SHORT]),
    "length.unit": (
        [SHORT, LONG],
        {"length": {"max": 5}},
        [SHORT, LONG],
        {"length": {"max": 5, "unit": "character"}},
        [SHORT],
    ),
    "ratio.max": ([("a", "b c"), SHORT], {"ratio": {}}, [("a", "b c"), SHORT], {"ratio": {"max": 1.5}}, [SHORT]),
    "ratio.unit": (
        [("a bc", "d e f g"), SHORT],
        {"ratio": {"max": 1.9}},
        [SHORT],
        {"ratio": {"max": 1.9, "unit": "character"}},
        [("a bc", "d e f g"), SHORT],
    ),
    "ratio.percentile": (
        [("a", "b c d"), SHORT],
        {"ratio": {}},
        [("a", "b c d"), SHORT],
        {"ratio": {"percentile": 50}},
        [SHORT],
    ),
    "copies.max": (
        [("abcd", "abcx"), SHORT],
        {"copies": {}},
        [("abcd", "abcx"), SHORT],
        {"copies": {"max": 0.7}},
        [SHORT],
    ),
    "copies.fold_case": (
        [("AB", "ab"), SHORT],
        {"copies": {}},
        [SHORT],
        {"copies": {"fold_case": False}},
        [("AB", "ab"), SHORT],
    ),
    "letters.min": ([("a1", "b"), SHORT], {"letters": {}}, [("a1", "b"), SHORT], {"letters": {"min": 0.6}}, [SHORT]),
    "script.source": ([("й", "a"), SHORT], {}, [("й", "a"), SHORT], {"script": {"source": "Latin"}}, [SHORT]),
    "script.target": ([("a", "й"), SHORT], {}, [("a", "й"), SHORT], {"script": {"target": "Latin"}}, [SHORT]),
    "script.min": (
        [("aй", "a"), SHORT],
        {"script": {"source": "Latin"}},
        [SHORT],
        {"script": {"source": "Latin", "min": 0.5}},
        [("aй", "a"), SHORT],
    ),
    "numbers.min": (
        [("12 a", "13 b"), SHORT],
        {"numbers": {}},
        [("12 a", "13 b"), SHORT],
        {"numbers": {"min": 0.6}},
        [SHORT],
    ),
    "markup.min": (
        [("<b>x</b>", "<b>y"), SHORT],
        {"markup": {}},
        [("<b>x</b>", "<b>y"), SHORT],
        {"markup": {"min": 0.6}},
        [SHORT],
    ),
    "punctuation.min": (
        [("a.", "b"), SHORT],
        {"punctuation": {}},
        [("a.", "b"), SHORT],
        {"punctuation": {"min": -0.5}},
        [SHORT],
    ),
    "boilerplate.max": (
        [("p 1", "x"), ("p 2", "y"), SHORT],
        {"boilerplate": {}},
        [("p 1", "x"), ("p 2", "y"), SHORT],
        {"boilerplate": {"max": 1}},
        [SHORT],
    ),
    "duplicates.sides": (
        [SHORT, SHORT, ("a b", "z")],
        {"duplicates": {}},
        [SHORT, ("a b", "z")],
        {"duplicates": {"sides": "source"}},
        [SHORT],
    ),
    "duplicates.ignore": (
        [SHORT, ("A b", "c D")],
        {"duplicates": {}},
        [SHORT, ("A b", "c D")],
        {"duplicates": {"ignore": "case"}},
        [SHORT],
    ),
    "external": (
        [SHORT, LONG],
        {},
        [SHORT, LONG],
        {"external": [{"name": "len", "command": [sys.executable, "-c", SCORER], "min": 4}]},
        [LONG],
    ),
}


@pytest.mark.parametrize("key", CASES)
def test_every_key_changes_what_stays(tmp_path: Path, key: str) -> None:
    pairs, before, expected_before, after, expected_after = CASES[key]
    assert kept(tmp_path, pairs, before) == expected_before
    assert kept(tmp_path, pairs, after) == expected_after


def test_pairs_of_tests_are_left_out_by_overlap_sides(tmp_path: Path) -> None:
    pairs, tests = [("a", "x"), ("a", "b"), SHORT], [("A", "b")]
    assert kept(tmp_path, pairs, {}, tests) == pairs
    assert kept(tmp_path, pairs, {"overlap": {}}, tests) == [SHORT]
    assert kept(tmp_path, pairs, {"overlap": {"sides": "both"}}, tests) == [("a", "x"), SHORT]


@pytest.mark.parametrize("sides", ["either", "both"])
@pytest.mark.parametrize("rule", ["none", "controls", "repair"])
def test_pairs_of_tests_are_known_however_a_rule_changes_them(tmp_path: Path, rule: str, sides: str) -> None:
    if rule == "repair":
        pytest.importorskip("ftfy", reason="needs the extra `clean`")
    same = ("schÃ¶n a", "schÃ¶n b") if rule == "repair" else ("\u200fx\u061c y", "v\x0bw \x07 z")
    changing = {} if rule == "none" else {rule: {}}
    assert kept(tmp_path, [same, SHORT], {"overlap": {"sides": sides}, **changing}, [same]) == [SHORT]


@pytest.mark.parametrize("sides", ["either", "both"])
def test_overlap_knows_all_references_and_pairs_of_several_languages_both_ways(tmp_path: Path, sides: str) -> None:
    pairs = [("a", "b"), ("c", "d"), ("d", "c"), ("e", "f"), ("f", "e"), SHORT]
    columns = {"train.0": [one for one, _ in pairs], "train.1": [other for _, other in pairs]}
    columns |= {"test.0": ["A", "c"], "test.1": ["x", "d"], "test.2": ["b", "y"]}
    files = {name: tmp_path / name for name in columns}
    for name, lines in columns.items():
        files[name].write_text("".join(f"{line}\n" for line in lines), "utf-8")
    train = CorpusConfig(source=str(files["train.0"]), target=str(files["train.1"]))
    test = CorpusConfig(source=str(files["test.0"]), target=str(files["test.1"]), references=(str(files["test.2"]),))
    languages = {"source_language": "eng", "target_language": "deu"}
    config = CleanConfig.model_validate({**ALL_OFF, "overlap": {"sides": sides}})
    for named, left in (({}, pairs[2:]), (languages, pairs[3:])):
        data = DataConfig(train=(train.model_copy(update=named),), tests={"test": test.model_copy(update=named)})
        # the same folder: settings that change what stays make it anew
        clean(config, data, tmp_path / "clean", whole_corpora=True, command=["tfm"], reporter=NullReporter())
        texts = (tmp_path / "clean" / "train.0.source.txt").read_text("utf-8")
        assert texts.split("\n")[:-1] == [source for source, _ in left]
    files["test.2"].write_text("x\nf\n", "utf-8")
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=["tfm"], reporter=NullReporter())
    texts = (tmp_path / "clean" / "train.0.source.txt").read_text("utf-8").split("\n")[:-1]
    assert texts == (["a b"] if sides == "either" else ["a", "e", "f", "a b"])


@pytest.mark.parametrize(
    "rule",
    [
        {"duplicates": {}},
        {"duplicates": {"sides": "source"}},
        {"duplicates": {"sides": "target", "ignore": "case"}},
        {"boilerplate": {"max": 1}},
        {"near_duplicates": {}},
    ],
)
@pytest.mark.few(2)
def test_the_same_texts_in_another_direction_are_no_repetition(tmp_path: Path, rule: dict[str, object]) -> None:
    if "near_duplicates" in rule:
        pytest.importorskip("rensa", reason="needs the extra `clean`")
    for name in ("names", "same names", "other"):
        (tmp_path / name).write_text("other\n" if name == "other" else "Anna Maria\nPaul\n", "utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "names"), target=str(tmp_path / "same names"))
    other = CorpusConfig(source=str(tmp_path / "other"), target=str(tmp_path / "other"))
    config = CleanConfig.model_validate({**ALL_OFF, **rule})
    kept_by_languages = {}
    for languages in ((None, None), ("deu", "deu"), ("deu", "hin")):
        named = [{"source_language": code and "eng", "target_language": code} for code in languages]
        data = DataConfig(
            train=(*(corpus.model_copy(update=each) for each in named), other.model_copy(update=named[0]))
        )
        out = tmp_path / str(languages)
        clean(config, data, out, whole_corpora=True, command=["tfm"], reporter=NullReporter())
        kept_by_languages[languages] = open_artifact(out).figures["kept"]
    repeated = [0, 0] if "boilerplate" in rule else [2, 0]
    assert [*kept_by_languages.values()] == [[*repeated, 1], [*repeated, 1], [2, 2, 1]]


def test_repair_normal_form_and_quotes(tmp_path: Path) -> None:
    pytest.importorskip("ftfy", reason="needs the extra `clean`")
    pairs = [("schÃ¶n", "ﬁn “x”")]
    assert kept(tmp_path, pairs, {"repair": {}})[0][0] == "schön"
    assert kept(tmp_path, pairs, {"repair": {}})[0][1].endswith("“x”")
    assert kept(tmp_path, pairs, {"repair": {"quotes": True}})[0][1].endswith('"x"')
    decomposed = [("e\u0301", "x²")]
    assert kept(tmp_path, decomposed, {"repair": {"normal_form": "none"}}) == decomposed
    assert kept(tmp_path, decomposed, {"repair": {}}) == [("é", "x²")]
    assert kept(tmp_path, decomposed, {"repair": {"normal_form": "nfkc"}}) == [("é", "x2")]
    wide = [("你好，世界！（ＡＢ）\u3000好", "「ｶﾀｶﾅ」、５？")]
    assert kept(tmp_path, wide, {"repair": {}}) == kept(tmp_path, wide, {"repair": {"normal_form": "none"}}) == wide
    assert kept(tmp_path, wide, {"repair": {"normal_form": "nfkc"}}) == [("你好,世界!(AB) 好", "「カタカナ」、5?")]


def test_near_duplicates_by_likeness_and_shingle(tmp_path: Path) -> None:
    pytest.importorskip("rensa", reason="needs the extra `clean`")
    one = "a long sentence that is nearly the same as another one here, word by word, up to its end"
    pairs = [(one, "x"), (f"{one}!", "x"), SHORT]
    assert kept(tmp_path, pairs, {"near_duplicates": {}}) == [pairs[0], SHORT]
    words = one.split()
    other = [(one, "x"), (" ".join(words[::-1]), "x")]
    assert kept(tmp_path, other, {"near_duplicates": {"likeness": 0.8}}) == other
    assert kept(tmp_path, other, {"near_duplicates": {"likeness": 0.3, "shingle": 2}}) == other[:1]


def test_languages_and_those_that_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("py3langid", reason="needs the extra `clean`")
    right = ("The dog runs through the green park.", "Der Hund rennt durch den grünen Park.")
    pairs = [right, right[::-1], (right[0], right[0])]
    assert kept(tmp_path, pairs, {"language": {"source": "en", "target": "de"}}) == [right]
    assert kept(tmp_path, pairs, {"language": {"source": "en"}}) == [right, pairs[2]]
    told = kept(tmp_path, [pairs[1]], {"language": {"target": "fr", "languages": ["fr", "zh"], "min": 0.9}})
    assert told == [pairs[1]]  # nothing likelier to take it for
    with pytest.raises(RecipeError, match='py3langid does not know the language "zz"'):
        kept(tmp_path, pairs, {"language": {"source": "zz"}})


def test_languages_that_one_cleaning_tells_apart_are_not_those_of_the_next() -> None:
    """In one process: `tfm run A B`, and the measurers of a cluster's node."""
    pytest.importorskip("py3langid", reason="needs the extra `clean`")
    pairs = TextPairBatch(["The dog runs through the green park."] * 2, ["Der Hund rennt .", "Le chien court."])
    two = make_language_measure(LanguageConfig(target="de", languages=("de", "en")))
    before = two(pairs)
    every = make_language_measure(LanguageConfig(target="fr"))
    assert (every(pairs)[:, 0] > 0).tolist() == [False, True]
    assert (two(pairs) == before).all()


def test_all_languages_of_the_library_may_be_asked_for() -> None:
    py3langid = pytest.importorskip("py3langid.langid", reason="needs the extra `clean`")
    labels = py3langid.LanguageIdentifier.from_model_file(py3langid.MODEL_FILE).labels
    assert {"de", "yue", "nso"} <= {*labels}
    for code in labels:
        assert LanguageConfig(source=code).source == code


def test_a_rule_whose_package_is_missing_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"repair": ("ftfy", {}), "near_duplicates": ("rensa", {}), "language": ("py3langid", {"source": "en"})}
    for rule, (package, config) in rules.items():
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(RecipeError, match=rf"clean.{rule} needs the package {package}: pip install .*\[clean\]"):
            kept(tmp_path, [SHORT], {rule: config})


def test_a_command_that_fails_says_which_and_why(tmp_path: Path) -> None:
    scorers = {
        "no": "there is no command",
        "few": [sys.executable, "-c", "print(1)"],
        "word": [sys.executable, "-c", "print('high\\n' * 2)"],
    }
    for name, command in scorers.items():
        with pytest.raises(DataError, match=f"clean.external: {name} (cannot be started|printed)"):
            kept(tmp_path, [SHORT, LONG], {"external": [{"name": name, "command": command, "min": 0}]})


BASE = """
[data]
train = { source = "a", target = "b" }
valid = { source = "a", target = "b" }
tests.main = { source = "a", target = "b" }
"""
ALONE = (
    BASE.replace('source = "a"', 'source = "none"')
    + '[model]\ntask = "language_model"\narchitecture = "decoder_only"\n'
)
REFUSED = {
    "ratio and percentile": (BASE, "clean.ratio={max = 2.5, percentile = 5}", "give either `max` or `percentile`"),
    "default and percentile": (BASE, "clean.ratio={max = 3, percentile = 5}", "give either `max` or `percentile`"),
    "a worst end without percentile": (
        BASE,
        'clean.external=[{name = "x", command = "x", min = 5, higher_is_better = false}]',
        "higher_is_better has no effect without `percentile`",
    ),
    "a column's name": (
        BASE,
        'clean.external=[{name = "length.shorter", command = "x", min = 1}]',
        "a column of the scores, of the name",
    ),
    "numbers without source": (ALONE, "clean.numbers={}", "clean.numbers compares source and target"),
    "language of no source": (ALONE, 'clean.language.source="en"', "clean.language.source: these texts have no source"),
    "duplicates of no source": (ALONE, 'clean.duplicates.sides="source"', "these texts have no source"),
    "labels": (BASE + '[model]\ntask = "classification"\narchitecture = "encoder_only"\n', "clean.letters.min=0.6",
               "are names"),
    "length": (BASE, "clean.length={min = 5, max = 4}", "no text has a length from 5 to 4"),
    "script": (BASE, 'clean.script.source="Klingon"', 'there is no script "Klingon" in Unicode'),
    "no script": (BASE, "clean.script.min=0.5", "give the script of `source` or `target`"),
    "language": (BASE, 'clean.language.source="english"', "is no code of ISO 639-1"),
    "long language": (BASE, 'clean.language.target="deu"', '"deu" has a code of two letters in ISO 639-1: write "de"'),
    "one language": (BASE, 'clean.language={source = "en", languages = ["en"]}', "is 'en' where no other is named"),
    "no score between": (
        BASE,
        'clean.external=[{name = "x", command = "x", min = 5, max = 2}]',
        "no score lies from 5 to 2",
    ),
    "no limit": (BASE, 'clean.external=[{name = "x", command = "x"}]', "give `min` or `max`, or `percentile`"),
    "a rule's name": (BASE, 'clean.external=[{name = "Ratio", command = "x", min = 1}]', "another rule"),
    "a typing error": (BASE, "clean.lenght.max=4", "clean.length"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_effect_is_refused(tmp_path: Path, name: str) -> None:
    recipe, setting, reason = REFUSED[name]
    file = tmp_path / "r.toml"
    file.write_text(recipe, "utf-8")
    with pytest.raises(RecipeError) as refused:
        load_recipe(file, [setting])
    assert reason in str(refused.value)


def test_rules_without_effect_are_off_by_default_and_those_of_two_sides_pass_over_texts() -> None:
    assert CleanConfig(length=LengthConfig(max=9)).rules["length"] == LengthConfig(max=9)
    assert [*CleanConfig().rules] == [*ALL_OFF]
    assert RatioConfig(percentile=5).limits[0].high is None
