"""The decoding process without its process: real models, and what a query is to each."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.serving_engine import (
    NETWORKS,
    TRANSLATION,
    WORDS,
    check_answers_of_mixtures,
    finish,
    network,
    scheduler_of,
)
from tests.tiny_model import numpy_of, tiny_model
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.serving.dispatch.messages import (
    Answer,
    AnswerPart,
    CancelQuery,
    LoadModel,
    ModelVersion,
    Query,
    QueryBatch,
    UnloadModel,
)
from tfm.pipeline.serving.engine.compiled_network import make_compiled_network
from tfm.pipeline.serving.engine.light_networks import NumpyNetwork
from tfm.pipeline.serving.engine.networks import TorchNetwork
from tfm.pipeline.serving.engine.scheduler import Scheduler
from tfm.pipeline.serving.engine.torch_fallback import refuse_without_torch

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled


@pytest.mark.parametrize(
    ("num_queries", "num_mixtures"),
    [pytest.param(8, 2, id="16"), pytest.param(25, 40, id="1000", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("changes", NETWORKS)
def test_an_answer_depends_on_its_query_alone(changes: str, num_queries: int, num_mixtures: int) -> None:
    """Bit by bit the same, whoever asks beside, in whichever order, however many: texts, scores, probabilities."""
    check_answers_of_mixtures(tiny_model(max_length=24, **NETWORKS[changes]), num_queries, num_mixtures, changes)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_beam_finds_what_tfm_translate_finds(is_compiled: bool) -> None:
    loaded = tiny_model(max_length=24)
    texts = [" ".join(random.Random(n).choices(WORDS, k=n)) for n in (1, 2, 5, 9)]
    queries = [Query(TRANSLATION.key, "translate", text, beam=beam) for text in texts for beam in (1, 3)]
    scheduler = scheduler_of(loaded, is_compiled=is_compiled)
    answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
    for number, query in enumerate(queries):
        (own,) = translate_lines(loaded, [query.text], DecodingConfig(beam=query.beam), reporter=NullReporter())
        text, score, log_prob, num_tokens = answers[number].value[0]
        assert (text, num_tokens) == (own[0].text, own[0].num_tokens)
        assert score == pytest.approx(own[0].score, abs=1e-4)
        assert log_prob == pytest.approx(own[0].log_prob, abs=1e-4)


def test_common_models_are_searched_side_by_side_where_numba_is() -> None:
    pytest.importorskip("numba")
    assert network(tiny_model()).stepper is not None


def test_a_query_that_is_cancelled_is_not_answered() -> None:
    scheduler = scheduler_of(tiny_model())
    query = Query(TRANSLATION.key, "translate", "a dog runs", beam=3)
    replies = scheduler.receive(
        QueryBatch(((1, query), (2, query), (3, Query(TRANSLATION.key, "translate", "a", beam=1))))
    )
    for number in (1, 3):
        scheduler.receive(CancelQuery(number))
    assert set(finish(scheduler, replies)) == {2}


def test_a_query_that_a_model_cannot_do_says_why() -> None:
    scheduler = scheduler_of(tiny_model())
    queries = [
        Query(TRANSLATION.key, "translate", "a", to="deu"),
        Query(TRANSLATION.key, "generate", "a"),
        Query(TRANSLATION.key, "attend", ""),
        Query("another@1", "translate", "a"),
    ]
    answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
    assert [answers[number].is_fault for number in range(4)] == [False, False, False, True]
    assert "--to" in answers[0].problem
    assert "not a language model" in answers[1].problem
    assert "no pieces" in answers[2].problem


def test_a_model_with_broken_weights_fails_at_its_own_queries_alone() -> None:
    broken, whole = tiny_model(), tiny_model()
    with torch.no_grad():
        broken.model.decoder[0].feed_forward.outer.weight.fill_(float("nan"))
    versions = {name: ModelVersion(name, Path("nowhere"), "1", "translation") for name in ("broken", "whole")}
    models = {"broken": network(broken, versions["broken"]), "whole": network(whole, versions["whole"])}
    scheduler = Scheduler(lambda version: models[version.name])
    for version in versions.values():
        scheduler.receive(LoadModel(version))
    asked = tuple((number, Query(f"{name}@1", "translate", "a dog", beam=2)) for number, name in enumerate(versions))
    answers = finish(scheduler, scheduler.receive(QueryBatch(asked)))
    assert answers[0].is_fault
    assert answers[1].problem is None


def test_a_version_that_cannot_be_loaded_says_why() -> None:
    def load(version: ModelVersion) -> TorchNetwork:
        raise DataError("is gone", file=version.folder)

    (reply,) = Scheduler(load).receive(LoadModel(TRANSLATION))
    assert reply.problem == "nowhere: is gone"  # type: ignore[union-attr]


def test_a_version_goes_when_its_last_query_is_answered() -> None:
    scheduler = scheduler_of(tiny_model())
    query = Query(TRANSLATION.key, "translate", "a dog runs", beam=3)
    replies = scheduler.receive(QueryBatch(((1, query),)))
    scheduler.receive(UnloadModel(TRANSLATION.key))
    assert finish(scheduler, replies)[1].problem is None
    assert finish(scheduler, scheduler.receive(QueryBatch(((2, query),))))[2].is_fault


def test_a_completion_comes_in_parts_and_is_counted() -> None:
    loaded = tiny_model(architecture="decoder_only", task="language_model")
    version = ModelVersion("tiny", Path("nowhere"), "1", "language_model")
    scheduler = Scheduler(lambda _: network(loaded, version))
    scheduler.receive(LoadModel(version))
    queries = [
        Query(version.key, "generate", "a dog", sampling=(("max_length", 7), ("seed", seed))) for seed in (1, 1, 2)
    ]
    replies = scheduler.receive(QueryBatch(tuple(enumerate(queries))))
    while not scheduler.is_idle():
        replies += scheduler.advance_one_step()
    texts = [
        "".join(each.text for each in replies if isinstance(each, AnswerPart) and each.number == n) for n in range(3)
    ]
    ends = {each.number: each.value for each in replies if isinstance(each, Answer)}
    assert texts[0] == texts[1]
    assert all(end["tokens"] <= 7 and end["finish"] in ("stop", "length") for end in ends.values())
    assert all((end["finish"] == "length") == (end["tokens"] == 7) for end in ends.values())


def test_a_small_model_in_numpy_gives_the_same_without_torch() -> None:
    loaded = tiny_model(max_length=24)
    model = NumpyModel(numpy_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    light = NumpyNetwork(TRANSLATION, model, refuse_without_torch)
    queries = [
        Query(TRANSLATION.key, "translate", "a dog runs", beam=3),
        Query(TRANSLATION.key, "translate", "a dog runs", beam=3, n_best=2),
        Query(TRANSLATION.key, "align", "a dog runs", target="two dogs"),
        Query(TRANSLATION.key, "attend", "a dog runs"),
    ]
    answers = []
    for make in (lambda _: light, lambda version: network(loaded, version)):
        scheduler = Scheduler(make)
        scheduler.receive(LoadModel(TRANSLATION))
        answers.append(finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries))))))
    for number in (0, 1):
        ours, theirs = (each[number].value for each in answers)
        assert [record[0] for record in ours] == [record[0] for record in theirs]
        assert [record[1] for record in ours] == pytest.approx([record[1] for record in theirs], abs=1e-4)
    ours, theirs = (each[2].value for each in answers)
    assert ours.source_spans == theirs.source_spans
    assert ours.weights == pytest.approx(theirs.weights, abs=1e-4)
    assert "--numpy" in answers[0][3].problem


def test_a_compiled_model_does_in_torch_what_needs_it() -> None:
    loaded = tiny_model(max_length=24)
    queries = [
        Query(TRANSLATION.key, "attend", "a dog runs", beam=3),
        Query(TRANSLATION.key, "translate", "a dog runs", beam=3, forced=("snow",)),
        Query(TRANSLATION.key, "generate", "a dog"),
    ]
    answers = []
    for is_compiled in (True, False):
        scheduler = scheduler_of(loaded, is_compiled=is_compiled)
        answers.append(finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries))))))
    assert answers[0] == answers[1]
    assert "snow" in answers[0][1].value[0][0]
    assert "not a language model" in answers[0][2].problem


def test_a_model_that_torch_cannot_load_is_a_fault_of_that_query_alone() -> None:
    def load(version: ModelVersion) -> TorchNetwork:
        raise DataError("was published anew", file=version.folder)

    loaded = tiny_model(max_length=24)
    model = NumpyModel(numpy_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    light = make_compiled_network(TRANSLATION, model, load)
    if light is None:
        pytest.skip("no numba (extra: fast)")
    scheduler = Scheduler(lambda _: light)
    scheduler.receive(LoadModel(TRANSLATION))
    queries = [Query(TRANSLATION.key, kind, "a dog") for kind in ("attend", "translate", "attend")]  # type: ignore[arg-type]
    answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
    assert [answers[number].is_fault for number in range(3)] == [True, False, True]


def test_a_process_has_the_compiled_search_without_torch() -> None:
    pytest.importorskip("numba", reason="no numba (extra: fast)")
    program = (
        "import sys\nfrom tfm.pipeline.serving.engine.worker import preload_compiled_search\n"
        "preload_compiled_search()\n"
        "print('tfm.model.cpu_kernels.beam_search' in sys.modules, 'torch' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n"
