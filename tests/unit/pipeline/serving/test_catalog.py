"""The models of a server, with the shortlists that some have."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="no starlette (extra: serve)")

from tests.serving import make_bench
from tests.tiny_model import publish_model, publish_shortlist, tiny_model
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.serving.catalog import is_published_anew, read_catalog, read_served_model
from tfm.pipeline.serving.engine.light_networks import load_light_network
from tfm.pipeline.serving.engine.networks import TorchNetwork


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model, with a shortlist beside it."""
    publish_shortlist(tmp_path / "short", tiny_model())
    return publish_model(tmp_path / "tiny")


def test_a_model_and_its_shortlist_are_a_version_together(model: Path, tmp_path: Path) -> None:
    short, free = tmp_path / "short", read_catalog([model]).models["tiny"]
    held = read_catalog([model], shortlists=[f"tiny={short}"]).models["tiny"]
    assert held.version.key != free.version.key
    assert not is_published_anew(held)
    publish_shortlist(short, tiny_model(), linked=2)
    assert is_published_anew(held)
    assert not is_published_anew(free)
    with pytest.raises(DataError, match="short: was replaced while"):
        TorchNetwork.load(held.version)
    again = read_served_model(model, short)
    assert again.version.key not in (held.version.key, free.version.key)
    assert TorchNetwork.load(again.version).shortlist is not None
    assert TorchNetwork.load(free.version).shortlist is None


@pytest.mark.parametrize("has_torch", [True, False])
def test_a_model_with_a_shortlist_is_one_of_torch(model: Path, tmp_path: Path, has_torch: bool) -> None:
    held = read_served_model(model, tmp_path / "short")
    assert load_light_network(held.version, TorchNetwork.load if has_torch else None) is None


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
    warned = [line for line in bench.log.getvalue().splitlines() if "not taken over" in line]
    assert len(warned) == 1, "once, not every few seconds"
    assert "is of other vocabularies" in warned[0]
