"""A shortlist: which pieces may come, their probabilities, and that no sentence depends on those beside it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny_model import TEXTS, publish_shortlist, random_shortlist, tiny_model
from tfm.data.errors import DataError
from tfm.model.layers.int8 import int8_unsupported_reason
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.hypothesis import Hypothesis
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.model_io.shortlist_folder import read_shortlist
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID
from tfm.tokenizer.train import train

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "narrow": {"embedding_dim": 8, "output_bias": True},
    "adaptive": {"adaptive": {"cutoffs": [20]}},
    "recurrent": {"architecture": "recurrent"},
}


def sources_of(loaded: LoadedModel) -> list[list[int]]:
    texts = [text[first:] for text in TEXTS for first in (0, 2, 6)]
    return loaded.source_tokenizer.encode_batch(texts)


@torch.inference_mode()
def exact_log_prob(loaded: LoadedModel, source: list[int], ids: list[int], candidates: list[int]) -> float:
    """The sum of log p(piece) of a hypothesis, end token included: the model's own p, divided by that of candidates."""
    model, read = loaded.model, [*source, EOS_ID]
    state = model.start(torch.tensor(read), Layout.from_lengths(torch.tensor([len(read)])))
    total = 0.0
    for last, piece in zip([BOS_ID, *ids], [*ids, EOS_ID], strict=True):
        predict, state = model.step(torch.tensor([last]), state)
        probabilities = predict(slice(None))[0].exp()
        total += math.log(probabilities[piece] / probabilities[candidates].sum())
    return total


def agree(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """The same pieces, and the same log-probabilities but for rounding."""
    for one, other in zip(found, expected, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.log_prob for each in one] == pytest.approx([each.log_prob for each in other], abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.few(3)
def test_only_candidates_come_and_their_probabilities_sum_to_one(name: str, beam: int) -> None:
    loaded = tiny_model(dtype=torch.float64, **MODELS[name])
    shortlist, sources = random_shortlist(loaded), sources_of(loaded)
    config = DecodingConfig(beam=beam, n_best=beam, max_length=12)
    found = decode(loaded.model, sources, config, shortlist=shortlist)
    for source, hypotheses in zip(sources, found, strict=True):
        candidates = shortlist.candidates([*source, EOS_ID]).tolist()
        assert {PAD_ID, BOS_ID, EOS_ID} < {*candidates}
        for each in hypotheses:
            assert {*each.ids} <= {*candidates} - {PAD_ID, BOS_ID, EOS_ID}
            wanted = exact_log_prob(loaded, source, list(each.ids), candidates)
            assert each.log_prob == pytest.approx(wanted, abs=1e-9)
    free = decode(loaded.model, sources, config)
    assert [each[0].ids for each in free] != [each[0].ids for each in found]


@pytest.mark.parametrize("strategy", [{"beam": 1}, {"beam": 3, "n_best": 2}, {"strategy": "sample", "n_best": 2}])
@pytest.mark.few(1)
def test_a_sentence_does_not_depend_on_those_beside_it(strategy: dict[str, Any]) -> None:
    loaded = tiny_model(dtype=torch.float64)
    shortlist, sources = random_shortlist(loaded), sources_of(loaded)
    alone = decode(
        loaded.model, sources, DecodingConfig(**strategy, max_length=12, batch_sentences=1), shortlist=shortlist
    )
    for size in (2, 64):
        config = DecodingConfig(**strategy, max_length=12, batch_sentences=size)
        agree(decode(loaded.model, sources[::-1], config, shortlist=shortlist)[::-1], alone)


def test_with_all_pieces_the_search_is_the_usual_one() -> None:
    loaded = tiny_model()
    size, sources = loaded.target_tokenizer.vocab_size, sources_of(loaded)
    everything = Shortlist(np.zeros((size, 0), np.int32), np.arange(size, dtype=np.int32), size)
    for settings in ({"beam": 1}, {"beam": 4, "n_best": 4}, {"strategy": "sample"}):
        config = DecodingConfig.model_validate({**settings, "max_length": 12})
        agree(decode(loaded.model, sources, config, shortlist=everything), decode(loaded.model, sources, config))


def test_models_that_decide_together() -> None:
    loaded = tiny_model(dtype=torch.float64)
    other = tiny_model(dtype=torch.float64, norm="post")
    shortlist, sources = random_shortlist(loaded), sources_of(loaded)
    ensemble = Ensemble([loaded.model, other.model])
    for source, (best, *_) in zip(
        sources, decode(ensemble, sources, DecodingConfig(beam=3, max_length=12), shortlist=shortlist), strict=True
    ):
        candidates = shortlist.candidates([*source, EOS_ID]).tolist()
        assert {*best.ids} <= {*candidates}
        twice = LoadedModel(ensemble, *(loaded.source_tokenizer,) * 2, loaded.config, loaded.folder)
        assert best.log_prob == pytest.approx(exact_log_prob(twice, source, list(best.ids), candidates), abs=1e-9)


NEEDS_INT8 = pytest.mark.skipif(int8_unsupported_reason() is not None, reason=str(int8_unsupported_reason()))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16", pytest.param("int8", marks=NEEDS_INT8)])
@pytest.mark.parametrize("beam", [1, 4])
def test_compiled_loops_find_the_same(precision: Any, beam: int) -> None:
    """One at a time by the loop of a whole search, and many by the fused step, beside the plain modules in float64."""
    exact, loaded = tiny_model(dtype=torch.float64), tiny_model()
    shortlist, sources = random_shortlist(loaded), sources_of(loaded) * 25
    expected = decode(exact.model, sources, DecodingConfig(beam=beam, max_length=12), shortlist=shortlist)
    for size in (1, 64):
        config = DecodingConfig(beam=beam, max_length=12, batch_sentences=size, precision=precision)
        found = decode(loaded.model, sources, config, shortlist=shortlist)
        same = sum(a[0].ids == b[0].ids for a, b in zip(found, expected, strict=True))
        assert same >= len(sources) * (0.6 if precision == "bf16" else 0.99)
        if precision == "fp32":
            agree(found, expected)


def test_what_does_not_combine_is_refused() -> None:
    loaded = tiny_model()
    shortlist, sources = random_shortlist(loaded), sources_of(loaded)[:1]
    with pytest.raises(RecipeError, match="may lack those of a prefix"):
        decode(loaded.model, sources, DecodingConfig(), shortlist=shortlist, prefixes=[[5]])
    with pytest.raises(ValueError, match="may lack the pieces of forced words"):
        DecodingConfig(forced=("dog",), shortlist="x")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    loaded = tiny_model()
    wanted = random_shortlist(loaded)
    found = read_shortlist(publish_shortlist(tmp_path / "s", loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    assert (found.by_source == wanted.by_source).all()
    assert (found.always == wanted.always).all()
    assert found.vocab_size == wanted.vocab_size
    assert json.loads((tmp_path / "s" / "manifest.json").read_text())["stage"] == "shortlist"


SIZE = tiny_model().target_tokenizer.vocab_size
ALWAYS, TABLE = np.arange(4, dtype=np.int32), np.full((SIZE, 2), NO_PIECE, np.int32)


@pytest.mark.parametrize(
    "tensors",
    [
        b"",
        b"\xff" * 64,
        {"always": ALWAYS},
        {"always": ALWAYS[1:], "by_source": TABLE},
        {"always": ALWAYS, "by_source": TABLE[1:]},
        {"always": ALWAYS, "by_source": TABLE.ravel()},
        {"always": ALWAYS[None], "by_source": TABLE},
        {"always": ALWAYS.astype(np.float32), "by_source": TABLE},
        {"always": ALWAYS.astype(np.int64), "by_source": TABLE},
        {"always": ALWAYS, "by_source": TABLE + SIZE + 1},
        {"always": ALWAYS, "by_source": TABLE - 1},
        {"always": np.array([*ALWAYS, -1], np.int32), "by_source": TABLE},
    ],
)
def test_what_is_no_shortlist_is_refused(tensors: Any, tmp_path: Path) -> None:
    loaded = tiny_model()
    folder = publish_shortlist(tmp_path / "s", loaded, tensors)
    with pytest.raises(DataError, match=r"shortlist\.safetensors"):
        read_shortlist(folder, loaded.source_tokenizer, loaded.target_tokenizer)


def test_other_vocabularies_of_the_same_size_are_refused(tmp_path: Path) -> None:
    loaded = tiny_model()
    other = train([text[::-1] for text in TEXTS], TokenizerConfig(kind="bpe", vocab_size=SIZE, min_frequency=1))
    assert other.vocab_size == SIZE
    folder = publish_shortlist(tmp_path / "s", tiny_model(tokenizer=other))
    read_shortlist(folder, other, other)
    for pair in ((own := loaded.source_tokenizer, own), (own, other), (other, own)):
        with pytest.raises(DataError, match="is of other vocabularies than the model's"):
            read_shortlist(folder, *pair)
