"""The models of a server, with the shortlists that some have."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="no starlette (extra: serve)")

from tests.serving import make_bench, served_model
from tests.tiny_model import publish_model, publish_shortlist, tiny_model
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.serving import catalog
from tfm.pipeline.serving.backend import _read_republished_model
from tfm.pipeline.serving.catalog import ModelCatalog, has_new_version, read_catalog, read_served_model
from tfm.pipeline.serving.engine.light_networks import NumpyNetwork, load_light_network
from tfm.pipeline.serving.engine.networks import TorchNetwork
from tfm.pipeline.serving.problems import Problem
from tfm.pipeline.serving.routes.language_names import language_name
from tfm.tokenizer.languages import request_code


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model, with a shortlist beside it."""
    publish_shortlist(tmp_path / "short", tiny_model())
    return publish_model(tmp_path / "tiny")


def test_a_model_and_its_shortlist_are_a_version_together(model: Path, tmp_path: Path) -> None:
    short, free = tmp_path / "short", read_catalog([model]).models["tiny"]
    held = read_catalog([model], shortlists=[f"tiny={short}"]).models["tiny"]
    assert held.version.key != free.version.key
    assert not has_new_version(held)
    publish_shortlist(short, tiny_model(), linked=2)
    assert has_new_version(held)
    assert not has_new_version(free)
    with pytest.raises(DataError, match="short: was replaced while"):
        TorchNetwork.load(held.version)
    again = read_served_model(model, short)
    assert again.version.key not in (held.version.key, free.version.key)
    assert TorchNetwork.load(again.version).shortlist is not None
    assert TorchNetwork.load(free.version).shortlist is None


def test_a_small_model_has_its_shortlist_without_torch(model: Path, tmp_path: Path) -> None:
    light = load_light_network(read_served_model(model, tmp_path / "short").version, None)
    assert isinstance(light, NumpyNetwork)
    assert isinstance(light.model, NumpyModel)
    assert light.model.shortlist is not None


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["tiny=en:de", "tiny=en:fr"], "--languages tiny=en:fr: tiny has en:de already: remove one of the two"),
        (["verse=en:de"], "--languages verse=en:de: the model does not translate texts"),
        (["several=en:xx"], "--languages several=en:xx: the model does not write xx; it writes deu, fra"),
    ],
)
def test_languages_that_a_model_cannot_have_are_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    publish_model(tmp_path / "verse", task="language_model", architecture="decoder_only")
    several = served_model("several", pairs=(("und", "deu"), ("und", "fra")), has_languages=True)
    monkeypatch.setattr(
        catalog,
        "read_served_model",
        lambda *given: several if given[0].name == "several" else read_served_model(*given),
    )
    with pytest.raises(RecipeError, match=re.escape(said)):
        read_catalog([Path("tiny"), Path("verse"), Path("several")], entries)


def test_the_name_of_a_model_may_have_any_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["lr=0.1", "lr", "my model 1.0", "größe😀"]
    for name in names:
        publish_model(tmp_path / name)
    publish_shortlist(tmp_path / "short=1", tiny_model())
    languages = [f"{name}=en:x{number}" for number, name in enumerate(names)]
    found = read_catalog([Path(name) for name in names], languages, ["lr=0.1=short=1"]).models
    assert [found[name].pairs for name in names] == [(("en", f"x{number}"),) for number in range(4)]
    assert [found[name].version.shortlist is None for name in names] == [False, True, True, True]


def test_languages_that_were_given_stay_when_a_model_has_new_version(model: Path) -> None:
    known = replace(read_served_model(model), pairs=(("en", "deu"),), are_pairs_given=True)
    known = replace(known, version=replace(known.version, has_languages=True))
    again = _read_republished_model(known)
    assert (again.pairs, again.are_pairs_given) == (known.pairs, True)


@pytest.mark.parametrize(
    ("entries", "error", "said"),
    [
        (["short"], RecipeError, "--shortlist short: write NAME=DIR"),
        (["tiny="], RecipeError, "--shortlist tiny=: write NAME=DIR"),
        (["other=short"], RecipeError, "--shortlist other: there is no model of this name; there is tiny, verse"),
        (["tiny=short", "tiny=other"], RecipeError, "--shortlist tiny=other: tiny has short already"),
        (["verse=short"], RecipeError, "--shortlist short: verse does not translate texts, so it takes none"),
        (["tiny=nowhere"], DataError, "nowhere: there is nothing here"),
        (["tiny=tiny"], DataError, "tiny: was made by 'train'"),
        (["tiny=foreign"], DataError, "foreign: is of other vocabularies than the model's: make it from the dataset"),
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entries: list[str],
    error: type[Exception],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    publish_model(tmp_path / "verse", task="language_model", architecture="decoder_only")
    publish_shortlist(tmp_path / "foreign", tiny_model(), vocabularies="others")
    with pytest.raises(error, match=said):
        read_catalog([Path("tiny"), Path("verse")], shortlists=entries)


def test_a_shortlist_that_is_made_anew_is_taken_over_if_it_fits(model: Path, tmp_path: Path) -> None:
    short = tmp_path / "short"
    bench = make_bench(models=[read_served_model(model, short)])

    async def renew() -> None:
        bench.backend.open()
        first = bench.backend.catalog.models["tiny"].version
        assert await bench.backend.reload_republished_models() == []
        publish_shortlist(short, tiny_model(), vocabularies="others")
        for _ in range(3):
            assert await bench.backend.reload_republished_models() == []
        assert bench.backend.catalog.models["tiny"].version == first
        publish_shortlist(short, tiny_model(), linked=2)
        assert await bench.backend.reload_republished_models() == ["tiny"]
        second = bench.backend.catalog.models["tiny"].version
        assert second.fingerprint == first.fingerprint
        assert second.shortlist != first.shortlist
        bench.backend.dispatcher.close()

    asyncio.run(renew())
    warned = [line for line in bench.log.getvalue().splitlines() if "new version not loaded" in line]
    assert len(warned) == 1, "once, not every few seconds"
    assert "is of other vocabularies" in warned[0]


CODES = ("eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant")
NLLB = served_model("nllb", pairs=tuple((one, other) for one in CODES for other in CODES if one != other))


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("eng_Latn", "zho_Hant", ("eng_Latn", "zho_Hant")),
        ("en", "zho_Hans", ("eng_Latn", "zho_Hans")),
        ("en-GB", "zh-Hant", ("eng_Latn", "zho_Hant")),
        ("zh_TW", "deu", ("zho_Hant", "deu_Latn")),
        ("zh-CN", "zh-HK", ("zho_Hans", "zho_Hant")),
        ("zh", "zho_Hans", ("zho_Hant", "zho_Hans")),
        ("en", None, ("eng_Latn", "deu_Latn")),
        (None, "zh-hant", ("eng_Latn", "zho_Hant")),
        ("fr", "de", None),
        ("en", "en", None),
    ],
)
def test_a_code_means_the_language_that_it_names(
    source: str | None, target: str | None, found: tuple[str, str] | None
) -> None:
    """The first of two languages of one code was taken, even for the model's own code of the second."""
    direction = ModelCatalog([NLLB]).find_translator(source, target)
    assert (None if direction is None else direction[1:]) == found


def test_a_code_of_several_languages_is_asked_back_unless_another_model_has_one() -> None:
    with pytest.raises(Problem, match="zh means zho_Hans and zho_Hant here: say which"):
        ModelCatalog([NLLB]).find_translator("en", "zh")
    told = replace(NLLB, has_source_language=True)
    with pytest.raises(Problem, match="is told the language of the text: name it as source, one of eng_Latn, deu_Latn"):
        ModelCatalog([told]).find_translator(None, "zh-Hant")
    assert ModelCatalog([told]).find_translator("de", None) == (told, "deu_Latn", "eng_Latn")
    other = served_model("opus", pairs=(("en", "zh"),))
    assert ModelCatalog([NLLB, other]).find_translator("en", "zh") == (other, "en", "zh")


def test_the_codes_that_are_listed_mean_one_language_each() -> None:
    served = ModelCatalog([NLLB])
    assert served.targets_by_source["en"] == ["de", "zh-Hans", "zh-Hant"]
    for source, targets in served.targets_by_source.items():
        for target in targets:
            direction = served.find_translator(source, target)
            assert direction is not None
            assert (request_code(direction[1], CODES), request_code(direction[2], CODES)) == (source, target)
    assert language_name("zh-Hant") == "Chinese (Hant)"
