"""Models with a shortlist in a decoding process: their answers are those of `tfm translate`, whoever asks beside."""

from pathlib import Path
from typing import Any

import pytest

from tests.serving_engine import NETWORKS, TRANSLATION, WORDS, check_answers_of_mixtures, finish, network, scheduler_of
from tests.tiny_model import publish_model, publish_shortlist, random_shortlist, tiny_model
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.manifest import Input
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query, QueryBatch, ShortlistVersion
from tfm.pipeline.serving.engine.small_versions import load_small_version
from tfm.pipeline.serving.engine.work import BeamSearchJob

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled


@pytest.mark.parametrize(
    ("num_queries", "num_mixtures"),
    [pytest.param(8, 2, id="16"), pytest.param(25, 40, id="1000", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("changes", ["sinusoids", "rotary", "recurrent", "compiled"])
def test_an_answer_of_the_pieces_of_a_shortlist_depends_on_its_query_alone(
    changes: str, num_queries: int, num_mixtures: int
) -> None:
    loaded = tiny_model(max_length=24, **NETWORKS[changes])
    check_answers_of_mixtures(loaded, num_queries, num_mixtures, changes, random_shortlist(loaded))


@pytest.mark.parametrize("changes", ["sinusoids", "recurrent", "compiled"])
def test_with_a_shortlist_all_is_found_that_tfm_translate_finds(changes: str) -> None:
    """Greedy search, a beam, alternatives; with forced words what `tfm translate` finds without the shortlist."""
    loaded = tiny_model(max_length=24, **NETWORKS[changes])
    shortlist, texts = random_shortlist(loaded), [" ".join(WORDS[:n]) for n in (0, 1, 2, 5, 9, 12)]
    queries = [
        Query(TRANSLATION.key, "translate", text, beam=beam, n_best=n_best, forced=forced)
        for text in texts
        for beam, n_best, forced in ((1, 1, ()), (3, 1, ()), (4, 4, ()), (3, 1, ("snow",)))
    ]
    scheduler = scheduler_of(loaded, is_compiled=changes == "compiled", shortlist=shortlist)
    answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
    num_changed = 0
    for number, query in enumerate(queries):
        config = DecodingConfig(beam=query.beam, n_best=query.n_best)
        given: dict[str, Any] = {"reporter": NullReporter(), "forced": [*query.forced] or None}
        held = None if query.forced else shortlist
        (own,) = translate_lines(loaded, [query.text], config, shortlist=held, **given)
        (other,) = translate_lines(loaded, [query.text], config, **given)
        num_changed += own != other
        found = answers[number].value
        assert [(text, count) for text, _, _, count in found] == [(each.text, each.num_tokens) for each in own]
        assert [score for _, score, _, _ in found] == pytest.approx([each.score for each in own], abs=1e-4)
        assert [log_prob for _, _, log_prob, _ in found] == pytest.approx([each.log_prob for each in own], abs=1e-4)
    assert num_changed >= 10


def test_the_translation_whose_attention_is_shown_is_of_the_pieces_of_a_shortlist() -> None:
    loaded = tiny_model(max_length=24)
    scheduler, changed = scheduler_of(loaded, shortlist=random_shortlist(loaded)), set()
    for text in (" ".join(WORDS[:n]) for n in range(1, 10)):
        queries = [Query(TRANSLATION.key, kind, text, beam=3) for kind in ("translate", "attend")]
        answers = finish(scheduler, scheduler.receive(QueryBatch(tuple(enumerate(queries)))))
        assert answers[1].value["target"] == answers[0].value[0][0]
        (free,) = translate_lines(loaded, [text], DecodingConfig(beam=3), reporter=NullReporter())
        changed.add(answers[1].value["target"] != free[0].text)
    assert True in changed


@pytest.mark.parametrize("replaced", ["model", "shortlist", None])
def test_a_small_version_is_the_one_that_was_asked_for(tmp_path: Path, replaced: str | None) -> None:
    folder = publish_model(tmp_path / "mine")
    short = publish_shortlist(tmp_path / "short", tiny_model())
    made = {
        each: Input.from_artifact(each, stage).fingerprint for each, stage in ((folder, "train"), (short, "shortlist"))
    }
    if replaced is not None:
        made[short if replaced == "shortlist" else folder] = "0" * 64
    version = ModelVersion("mine", folder, made[folder], "translation", shortlist=ShortlistVersion(short, made[short]))
    if replaced is None:
        found = load_small_version(version, DecodingConfig())
        assert isinstance(found, NumpyModel)
        assert found.shortlist is not None
        return
    with pytest.raises(DataError, match="was replaced"):
        load_small_version(version, DecodingConfig())


def test_sentences_of_a_beam_are_searched_side_by_side_with_their_own_candidates() -> None:
    pytest.importorskip("numba")
    loaded = tiny_model(max_length=24)
    work = network(loaded, shortlist=random_shortlist(loaded)).make_work(
        Query(TRANSLATION.key, "translate", "a", beam=3)
    )
    assert isinstance(work, BeamSearchJob)
    assert work.candidates is not None
