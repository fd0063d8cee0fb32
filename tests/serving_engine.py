"""The engine of a decoding process, run in the test itself: tiny models, queries at random, and their answers."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_model import numpy_of
from tfm.model.config import StackConfig
from tfm.model.cpu_kernels.dispatch import use_compiled_kernels
from tfm.model.fused.decoder_step import FusedDecoderStep, fuse_if_supported
from tfm.model.fused.greedy_search import make_source_encoder
from tfm.model.fused.row_invariance import is_row_invariant
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.serving.dispatch.messages import (
    Answer,
    CancelQuery,
    LoadModel,
    ModelVersion,
    Query,
    QueryBatch,
)
from tfm.pipeline.serving.engine.compiled_network import CompiledNetwork, make_compiled_network
from tfm.pipeline.serving.engine.networks import TorchNetwork
from tfm.pipeline.serving.engine.scheduler import Scheduler

WORDS = "a dog runs through the snow two dogs and cat sit by sea asleep is cold".split()
TRANSLATION = ModelVersion("tiny", Path("nowhere"), "1", "translation")


def network(
    loaded: LoadedModel, version: ModelVersion = TRANSLATION, shortlist: Shortlist | None = None
) -> TorchNetwork:
    with torch.inference_mode(), use_compiled_kernels(True):
        stepper, read = fuse_if_supported(loaded.model), make_source_encoder(loaded.model)
    fused = isinstance(stepper, FusedDecoderStep) and is_row_invariant(loaded.model)
    return TorchNetwork(version, loaded, *((stepper, read) if fused else (None, None)), shortlist)


def compiled_network(loaded: LoadedModel, shortlist: Shortlist | None = None) -> CompiledNetwork:
    tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
    model = NumpyModel(numpy_of(loaded), *tokenizers, shortlist=shortlist)
    found = make_compiled_network(TRANSLATION, model, lambda version: network(loaded, version, shortlist))
    if found is None:
        pytest.skip("no numba (extra: fast)")
    return found


def scheduler_of(loaded: LoadedModel, *, is_compiled: bool = False, shortlist: Shortlist | None = None) -> Scheduler:
    scheduler = Scheduler(
        lambda version: compiled_network(loaded, shortlist) if is_compiled else network(loaded, version, shortlist)
    )
    assert scheduler.receive(LoadModel(TRANSLATION))[0].problem is None  # type: ignore[union-attr]
    return scheduler


def finish(scheduler: Scheduler, replies: list[Any]) -> dict[int, Any]:
    """All answers, by number, once nothing is left to do."""
    answers = {each.number: each for each in replies if isinstance(each, Answer)}
    with use_compiled_kernels(True):
        while not scheduler.is_idle():
            answers |= {each.number: each for each in scheduler.advance_one_step() if isinstance(each, Answer)}
    return answers


def random_queries(draw: random.Random, count: int) -> list[Query]:
    """Queries of all kinds that translate: short and long, wide and narrow, with alternatives and forced words."""
    queries = []
    for _ in range(count):
        text = " ".join(draw.choices(WORDS, k=draw.choice([0, 1, 2, 5, 9, 20, 40])))
        beam = draw.choice([1, 2, 2, 3, 5, 5, 5])
        n_best = draw.choice([1, 1, 1, beam])
        forced = ("snow",) if beam > 1 and draw.random() < 0.1 else ()
        queries.append(Query(TRANSLATION.key, "translate", text, beam=beam, n_best=n_best, forced=forced))
    return queries


def mixture_answers(scheduler: Scheduler, queries: list[Query], draw: random.Random) -> list[Any]:
    """The answers to queries that come a few at a time, some of which are cancelled and asked again."""
    answers, waiting = dict[int, Any](), list(enumerate(queries))
    with use_compiled_kernels(True):
        while waiting or not scheduler.is_idle():
            some = tuple(waiting.pop() for _ in range(min(len(waiting), draw.choice([0, 0, 0, 1, 2, 7]))))
            replies = scheduler.receive(QueryBatch(some)) if some else []
            if some and draw.random() < 0.2:
                scheduler.receive(CancelQuery(some[0][0]))
                if some[0][0] not in {each.number for each in replies if isinstance(each, Answer)}:
                    waiting.insert(0, some[0])
            replies += scheduler.advance_one_step()
            answers |= {each.number: each for each in replies if isinstance(each, Answer)}
    assert all(each.problem is None for each in answers.values())
    return [answers[number].value for number in range(len(queries))]


WIDE = StackConfig(layers=1, dim=256, heads=4, feed_forward_dim=64)
RECURRENT = {"dim": 16, "layers": 1}
NETWORKS: dict[str, dict[str, Any]] = {
    "sinusoids": {},
    "rotary": {"positions": "rotary"},
    "factorized": {"encoder": WIDE, "decoder": WIDE, "embedding_dim": 128},
    "adaptive": {"encoder": WIDE, "decoder": WIDE, "adaptive": {"cutoffs": [20]}},
    "recurrent": {"architecture": "recurrent", "encoder": RECURRENT, "decoder": RECURRENT},
    "compiled": {},
}


def check_answers_of_mixtures(
    loaded: LoadedModel, num_queries: int, num_mixtures: int, changes: str, shortlist: Shortlist | None = None
) -> None:
    """Check that queries have the same answers alone as in random mixtures."""
    draw, is_compiled = random.Random(1), changes == "compiled"
    queries = random_queries(draw, num_queries)
    alone = []
    for query in queries:
        scheduler = scheduler_of(loaded, is_compiled=is_compiled, shortlist=shortlist)
        alone.append(finish(scheduler, scheduler.receive(QueryBatch(((7, query),))))[7].value)
    for _ in range(num_mixtures):
        scheduler = scheduler_of(loaded, is_compiled=is_compiled, shortlist=shortlist)
        assert mixture_answers(scheduler, queries, draw) == alone
