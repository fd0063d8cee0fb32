"""Greedy search of one sentence by itself finds what the search of many finds, and applies where it may."""

import copy
import sys
from typing import Any

import pytest
import torch

from tests.rounding import assert_rounds_like
from tests.tiny_model import tiny_model
from tfm.data.errors import DataError
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.decoder_step import FusedDecoderStep
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.constraints.lexical import BannedPieces
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.fused_greedy import fused_greedy_search

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled

pytest.importorskip("numba", reason="no numba (extra: fast)")

SOURCES = [[5, 9, 7], [], [8], [4, 5, 6, 7, 8, 9, 10], list(range(4, 34))]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "num_workers", lambda *_: 0)


@pytest.fixture
def model() -> Any:
    return tiny_model(norm="pre", positions="learned").model


@pytest.fixture
def steps(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As long as the number of steps that the model, or what does the same sooner, has been asked for."""
    asked: list[int] = []
    for each in (EncoderDecoder, FusedDecoderStep):
        monkeypatch.setattr(each, "step", lambda *given, step=each.step: (asked.append(1), step(*given))[1])
    return asked


@pytest.mark.few(3)
@pytest.mark.parametrize("length_norm", [pytest.param("none", marks=pytest.mark.slow), "average", "wu"])
@pytest.mark.parametrize("limits", [{}, {"min_length": 6}, {"max_length": 4}, {"max_ratio": 0.5}])
def test_it_finds_what_the_model_finds_step_by_step(
    model: Any, steps: list[int], length_norm: str, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = DecodingConfig.model_validate({"beam": 1, "batch_sentences": 1, "length_norm": length_norm} | limits)
    done: list[int] = []
    found = decode(model, SOURCES, config, on_done=done.append)
    assert not steps
    assert sum(done) == len(SOURCES)
    monkeypatch.setattr(decoding, "fused_greedy_search", lambda *_: None)
    assert len({tuple(each[0].ids) for each in found}) > 2
    stepped, exact = (decode(each, SOURCES, config) for each in (model, copy.deepcopy(model).double()))
    assert [each[0].ids for each in found] == [each[0].ids for each in stepped] == [each[0].ids for each in exact]
    for figure in ("log_prob", "score"):
        alone, plain, wanted = ([getattr(best, figure) for (best,) in each] for each in (found, stepped, exact))
        assert_rounds_like(torch.tensor(alone), torch.tensor(plain), torch.tensor(wanted, dtype=torch.float64))
    assert steps


def test_it_is_for_those_that_are_asked_for_one_at_a_time(model: Any, steps: list[int]) -> None:
    decode(model, SOURCES[:1], DecodingConfig(beam=1))
    assert steps


@pytest.mark.parametrize(
    "how",
    [
        {"beam": 2},
        {"strategy": "sample", "beam": 1},
        {"beam": 1, "precision": "bf16"},
        {"beam": 1, "no_repeat_ngram": 2},
    ],
    ids=str,
)
def test_other_searches_are_the_models(model: Any, steps: list[int], how: dict[str, Any]) -> None:
    decode(model, SOURCES[:1], DecodingConfig.model_validate({"batch_sentences": 1} | how))
    assert steps


def test_what_must_come_up_is_left_to_the_model(model: Any, steps: list[int]) -> None:
    config = DecodingConfig(beam=1, batch_sentences=1)
    (found,) = decode(model, SOURCES[:1], config, prefixes=[[7, 7]])
    assert found[0].ids[:2] == (7, 7)
    assert steps
    steps.clear()
    decode(model, SOURCES[:1], config, phrases=PhraseConstraints(forced=[[(9, 8)]]))
    assert steps


def test_rules_that_look_back_are_not_for_it(model: Any) -> None:
    plain = LogitsProcessor.from_config([4], DecodingConfig(), 96)
    with torch.inference_mode(), dispatch.use_compiled_kernels(True):
        assert fused_greedy_search(model, [[5, 9, 7, 3]], plain, lambda _: None) is not None
        for rules in (
            LogitsProcessor.from_config([4], DecodingConfig(), 96, bans=BannedPieces.from_config(2, [], [])),
            LogitsProcessor.from_config([4], DecodingConfig(), 96, [[6]]),
            LogitsProcessor.from_config([4], DecodingConfig(), 96, forced=[[(6,)]]),
        ):
            assert fused_greedy_search(model, [[5, 9, 7, 3]], rules, lambda _: None) is None


def test_without_numba_the_model_does_it(model: Any, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tfm.model.cpu_kernels.library", None)
    monkeypatch.delattr("tfm.model.cpu_kernels.library", raising=False)
    decode(model, SOURCES[:1], DecodingConfig(beam=1, batch_sentences=1))
    assert steps


def test_weights_that_are_no_numbers_are_an_error(model: Any, steps: list[int]) -> None:
    with torch.no_grad():
        next(model.decoder.parameters()).fill_(torch.nan)
    with pytest.raises(DataError, match="no finite probabilities"):
        decode(model, SOURCES[:1], DecodingConfig(beam=1, batch_sentences=1))
    assert not steps
