"""Every key of [synthesis] changes what is made, so that the artifact is made anew; or is refused, with the reason."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.tiny_model import publish_model
from tfm.pipeline.artifacts.artifact import Plan, publish, stale_reason
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages import synthesize as stage
from tfm.pipeline.stages.synthesize import plan_synthesis, synthesize
from tfm.pipeline.synthesis.config import NoiseConfig, SynthesisConfig

KEYS: dict[str, Any] = {
    "noise": {},
    "min_score": -1.5,
    "percentile": 10,
    "to": "deu",
    "source_language": "eng",
}
NOISE: dict[str, Any] = {"delete": 0.2, "fill": 0.2, "window": 2, "filler": "_", "seed": 2}
SAMPLE = {"strategy": "sample"}
MBR = {"strategy": "mbr", "mbr_size": 3}
BESIDE: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("temperature", "top_k", "top_p", "seed"), SAMPLE),
    **dict.fromkeys(("mbr_candidates", "mbr_size", "mbr_utility", "mbr_pruning"), MBR),
    "n_best": {},
}
DECODING: dict[str, Any] = {
    "strategy": "sample",
    "beam": 2,
    "temperature": 0.5,
    "top_k": 5,
    "top_p": 0.5,
    "seed": 2,
    "mbr_candidates": "search",
    "mbr_size": 4,
    "mbr_utility": "bleu",
    "mbr_pruning": 0.9,
    "length_norm": "wu",
    "alpha": 0.5,
    "n_best": 2,
    "min_length": 2,
    "max_length": 5,
    "max_ratio": 1.5,
    "no_repeat_ngram": 2,
    "forbidden": ["cat"],
    "forced": ["cat"],
    "replace_unknown": True,
    "precision": "int8",
}
RECIPE = """
[data]
train = { source = "a", target = "b" }
[synthesis]
text = { source = "none", target = "text" }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    for name in ("text", "other"):
        (root / name).write_text(f"a dog of {name}\n", "utf-8")
    return publish_model(root / "model")


def plan(model: Path, **settings: object) -> Plan:
    text = {"source": None, "target": str(model.parent / "text")}
    return plan_synthesis(SynthesisConfig.model_validate({"text": text, **settings}), model, Path("out"))


def test_every_key_of_the_decoding_is_named_here() -> None:
    assert {*DECODING, "batch_sentences", "shortlist"} == {*DecodingConfig.model_fields}
    assert {*NOISE} == {*NoiseConfig.model_fields}
    assert {*KEYS, "text", "models", "decoding", "tests", "utility"} == {*SynthesisConfig.model_fields}


def test_every_key_makes_another_artifact(model: Path, tmp_path: Path) -> None:
    found = [plan(model), *(plan(model, **{key: value}) for key, value in KEYS.items())]
    found += [plan(model, noise={key: value}) for key, value in NOISE.items()]
    assert len({str(each.config) for each in found}) == len(found)
    for key, value in DECODING.items():
        beside = BESIDE.get(key, {})
        with_key, without = (plan(model, decoding=each) for each in ({**beside, key: value}, beside))
        assert with_key.config != without.config, key
    second = publish_model(tmp_path / "second", norm="post")
    (tmp_path / "test").write_text("a\n", "utf-8")
    for more in ({"models": [str(second)]}, {"tests": [str(tmp_path / "test")]}):
        assert {*plan(model, **more).inputs} > {*plan(model).inputs}
    other = {"text": {"source": None, "target": str(model.parent / "other")}}
    assert plan(model, **other).inputs != plan(model).inputs


def test_references_and_their_utility_make_another_artifact(model: Path) -> None:
    pairs = {"source": str(model.parent / "text"), "target": str(model.parent / "other")}
    plans = [plan(model, decoding={"n_best": 2}, **more) for more in ({}, {"text": pairs})]
    plans += [plan(model, decoding={"n_best": 2}, text=pairs, utility=name) for name in ("chrf", "exact_match")]
    assert len({str(each.config) for each in plans}) == len(plans)
    assert {*plans[1].inputs} > {f"text: {file}" for file in pairs.values()}


def test_text_of_an_earlier_revision_is_made_anew(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan_in_place() -> Plan:
        return replace(plan(model), folder=tmp_path / "synthetic")

    with publish(plan_in_place(), command=["tfm", "synthesize"]):
        pass
    assert stale_reason(plan_in_place()) is None
    monkeypatch.setattr(stage, "SYNTHESIS_REVISION", stage.SYNTHESIS_REVISION + 1)
    assert "revision" in str(stale_reason(plan_in_place()))


def test_a_shortlist_is_an_input(model: Path, tmp_path: Path) -> None:
    found = []
    for text in ("one", "other"):
        with publish(Plan("shortlist", tmp_path / "short", {"text": text}, {}, None), command=["test"]):
            pass
        found.append(plan(model, decoding={"shortlist": str(tmp_path / "short")}))
    assert found[0].config == found[1].config != plan(model).config
    assert found[0].inputs["shortlist"] != found[1].inputs["shortlist"]


def test_a_model_is_known_by_what_it_is_and_not_where(model: Path, tmp_path: Path) -> None:
    second = publish_model(tmp_path / "second", norm="post")
    before = plan(model, models=[str(second)])
    second.rename(tmp_path / "moved")
    after = plan(model, models=[str(tmp_path / "moved")])
    assert (before.config, [each.fingerprint for each in before.inputs.values()]) == (
        after.config,
        [each.fingerprint for each in after.inputs.values()],
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"text": {"source": "a", "target": "b"}}, "nothing to choose"),
        ({"utility": "chrf"}, "without references"),
        (
            {"text": {"format": "generated", "path": "scenes", "split": "train", "size": 5}, "decoding": {"n_best": 2}},
            "images are no text",
        ),
        ({"text": {"source": None, "target": "b", "weight": 2}}, "are for training corpora"),
        ({"text": {"synthetic": "folder"}}, "has two sides"),
        ({"min_score": -1, "percentile": 5}, "give either"),
        ({"min_score": 1}, "less than or equal to 0"),
        ({"percentile": 100}, "less than 100"),
        ({"decoding": {"batch_sentences": 2}}, "is fixed here"),
        ({"decoding": {"n_best": 6}}, "cannot exceed beam"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        SynthesisConfig.model_validate({"text": {"source": None, "target": "text"}, **settings})


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("synthesis.decoding.seed=3", "it is for strategy"),
        ("model.task=language_model", "nothing is translated"),
        ("synthesis.decoding={ strategy = 'sample', beam = 3 }", "it is for strategy"),
        ("synthesis.decoding={ strategy = 'mbr', mbr_size = 8, mbr_pruning = 0.9 }", "after 8 references, of more"),
        ("synthesis.decoding={ strategy = 'sample', alpha = 0.5 }", "a line has one sample"),
        (
            "synthesis.decoding={ beam = 1, length_norm = 'wu' }",
            "greedy search has one",
        ),
    ],
)
def test_a_recipe_refuses_what_has_no_effect(tmp_path: Path, setting: str, reason: str) -> None:
    (tmp_path / "r.toml").write_text(RECIPE, "utf-8")
    if "task" in setting:
        (tmp_path / "r.toml").write_text(RECIPE.replace('source = "a", ', 'source = "none", '), "utf-8")
    more = ["model.architecture=decoder_only"] if "task" in setting else []
    with pytest.raises(RecipeError, match=reason):
        load_recipe(tmp_path / "r.toml", [setting, *more])


def test_settings_by_which_translations_are_chosen_are_taken(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE, "utf-8")
    for decoding in (
        "{ strategy = 'sample', n_best = 2, alpha = 0.5 }",
        "{ beam = 2, length_norm = 'wu' }",
        "{ strategy = 'mbr', mbr_size = 9, mbr_pruning = 0.9 }",
    ):
        assert load_recipe(tmp_path / "r.toml", [f"synthesis.decoding={decoding}"]).synthesis is not None


def test_a_language_that_the_model_does_not_know(model: Path, tmp_path: Path) -> None:
    text = {"source": None, "target": str(model.parent / "text")}
    config = SynthesisConfig.model_validate({"text": text, "to": "deu"})
    with pytest.raises(DataError, match=r"deu|language"):
        synthesize(config, model, tmp_path / "out", command=["tfm"], reporter=NullReporter(), device="cpu")
