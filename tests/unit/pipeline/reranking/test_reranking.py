"""Reranking by a noisy channel: equal to a plain double loop over lists and translations; weights and their tuning."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import tfm
from tests.tiny_model import TEXTS, publish_model, tiny_model
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.reranking.features import FeatureScorer
from tfm.pipeline.reranking.lists import NBestList, read_lists
from tfm.pipeline.reranking.weights import (
    FEATURE_NAMES,
    FeatureWeights,
    check_weights_fit_models,
    choose_best,
    read_weights,
    tune_weights,
)
from tfm.pipeline.scoring.metrics.registry import sacrebleu_metric
from tfm.tokenizer.special import BOS_ID, EOS_ID

SOURCES = [*TEXTS, "a dog"]
LISTS = [
    NBestList(source, tuple(Translation(text, -rank / 2, -1.5 * rank, 3 + place) for rank, text in enumerate(texts, 1)))
    for place, (source, texts) in enumerate(
        zip(SOURCES, [TEXTS, ("the sea", "a cat and a dog", ""), ("two dogs",), TEXTS[1:]], strict=True)
    )
]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> FeatureScorer:
    root = tmp_path_factory.mktemp("models")
    channel = publish_model(root / "channel")
    model = publish_model(root / "lm", architecture="decoder_only", task="language_model")
    return FeatureScorer.load(channel, model, "cpu")


def log_prob_by_steps(scorer: FeatureScorer, text: str) -> float:
    """log p(text) by the language model, piece by piece."""
    assert scorer.language_model is not None
    model, ids = scorer.language_model.model, scorer.language_model.target_tokenizer.encode(text)
    total, state = 0.0, model.empty_state(1)
    for read, token in zip([BOS_ID, *ids], [*ids, EOS_ID], strict=True):
        predict, state = model.step(torch.tensor([read]), state)
        total += float(predict(slice(None))[0, token])
    return total


def test_scores_and_choice_are_those_of_a_plain_double_loop(scorer: FeatureScorer) -> None:
    weights = (0.7, 0.4, 0.9, -0.3)
    assert scorer.channel is not None
    channel, best, scores = scorer.channel, [], []
    with torch.inference_mode():
        for each in LISTS:
            of_list = []
            for one in each.translations:
                read = channel.source_tokenizer.encode(one.text)
                back = target_log_probs(channel.model, [read], [channel.target_tokenizer.encode(each.source)])[0]
                features = (one.log_prob, back, log_prob_by_steps(scorer, one.text), one.num_tokens)
                of_list.append(sum(weight * value for weight, value in zip(weights, features, strict=True)))
            best.append(each.translations[of_list.index(max(of_list))].text)
            scores += of_list
    found = scorer.score(LISTS) @ np.array(weights)
    np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-4)
    texts = [one.text for each in LISTS for one in each.translations]
    assert [texts[row] for row in choose_best(found, LISTS)] == best
    assert best != [each.translations[0].text for each in LISTS]


def test_features_do_not_depend_on_the_lists_beside_them(scorer: FeatureScorer) -> None:
    alone = np.concatenate([scorer.score([each]) for each in LISTS])
    np.testing.assert_allclose(scorer.score(LISTS), alone, atol=1e-4)


def test_a_channel_of_the_lists_own_direction_is_warned_of(tmp_path: Path) -> None:
    """By translations that it wrote itself; of the other direction is a model that wrote the sources."""
    folder = publish_model(tmp_path / "model")
    sources = [*TEXTS, "a dog", "the sea", "snow !"]
    targets = tfm.load(folder, device="cpu").translate(sources, beam=1, max_length=8)
    scorer = FeatureScorer.load(folder, None, "cpu")
    own, other = (
        [NBestList(source, (Translation(target, -1.0, -1.0, 1),)) for source, target in zip(*sides, strict=True)]
        for sides in ((sources, targets), (targets, sources))
    )
    assert "is it the model of the other direction?" in str(scorer.channel_direction_problem(own))
    assert scorer.channel_direction_problem(other) is None
    assert scorer.channel_direction_problem([]) is None
    empty = [NBestList("a dog", (Translation("", -1.0, -1.0, 1),))]
    assert scorer.channel_direction_problem(empty) is None


def test_models_that_are_not_given_have_no_feature(scorer: FeatureScorer) -> None:
    only = FeatureScorer(None, scorer.language_model)
    assert only.names == ("direct", "language_model", "length")
    assert not only.score(LISTS)[:, FEATURE_NAMES.index("channel")].any()


def test_a_channel_that_has_to_be_told_languages_is_refused(tmp_path: Path) -> None:
    several = tiny_model().source_tokenizer.with_languages("deu", "hin")
    model = publish_model(tmp_path / "several", tokenizer=several)
    with pytest.raises(DataError, match=r"several: translates between several languages.* give a model of one"):
        FeatureScorer.load(model, None, "cpu")


def test_weights_are_tuned_to_the_best_corpus_score_and_are_never_worse_than_the_direct_model() -> None:
    """Features of which the channel knows what is right: tuning finds it."""
    references = [each.translations[-1].text for each in LISTS]
    draw = np.random.default_rng(1)
    features = draw.normal(size=(sum(len(each.translations) for each in LISTS), len(FEATURE_NAMES)))
    ends = np.cumsum([len(each.translations) for each in LISTS]) - 1
    features[ends, 1] += 20
    tuned = tune_weights(features, LISTS, references, FEATURE_NAMES, metric="chrf", trials=50, seed=3)
    assert tuned.tuning["value"] == pytest.approx(100)
    assert tuned == tune_weights(features, LISTS, references, FEATURE_NAMES, metric="chrf", trials=50, seed=3)
    assert (
        tuned.values
        != tune_weights(features, LISTS, references, FEATURE_NAMES, metric="chrf", trials=50, seed=4).values
    )
    chosen = [
        [one.text for each in LISTS for one in each.translations][row] for row in choose_best(features[:, 0], LISTS)
    ]
    metric = sacrebleu_metric("chrf", [references], config=_config())
    assert tuned.tuning["direct_alone"] == pytest.approx(metric.corpus_score(chosen, [references]).score)
    none = tune_weights(features, LISTS, references, ("direct",), metric="ter", trials=5)
    assert none.values[1:] == (0, 0, 0)
    assert none.tuning["value"] == none.tuning["direct_alone"] >= 0
    with pytest.raises(DataError, match="give one for each line"):
        tune_weights(features, LISTS, references[1:], FEATURE_NAMES)


def _config() -> object:
    from tfm.pipeline.config import EvaluationConfig

    return EvaluationConfig()


def test_weights_are_written_and_read_and_know_their_models(tmp_path: Path) -> None:
    file, given = tmp_path / "w.json", {"channel": "a", "language_model": "b"}
    made = FeatureWeights((1.0, 0.5, 0.0, -0.25), given, {"metric": "bleu"})
    made.write(file)
    assert read_weights(file) == made
    check_weights_fit_models(made, given, file)
    check_weights_fit_models(made, {"channel": "a"}, file)
    with pytest.raises(DataError, match="give the model by --channel"):
        check_weights_fit_models(made, {"language_model": "b"}, file)
    with pytest.raises(DataError, match="another model as --language-model"):
        check_weights_fit_models(made, {"channel": "a", "language_model": "c"}, file)
    alone = FeatureWeights((1.0, 0.5, 0.0, -0.25), {"channel": "a"}, {"metric": "bleu"})
    check_weights_fit_models(alone, {"channel": "a"}, file)
    with pytest.raises(DataError, match="was tuned without --language-model, which has no effect by these weights"):
        check_weights_fit_models(alone, given, file)
    typed = FeatureWeights((1.0, 0.5, 0.0, -0.25), {}, {})
    check_weights_fit_models(typed, given, file)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        json.dumps({"weights": {"direct": 1}}),
        json.dumps({"weights": dict.fromkeys(FEATURE_NAMES, "1")}),
        json.dumps({"weights": dict.fromkeys(FEATURE_NAMES, 0)}),
        json.dumps({"weights": dict.fromkeys(FEATURE_NAMES, math.inf)}),
        json.dumps({"weights": dict.fromkeys(FEATURE_NAMES, 1), "models": {"channel": 1}}),
        json.dumps({"weights": dict.fromkeys(FEATURE_NAMES, 1), "tuning": []}),
    ],
)
def test_what_are_no_weights(tmp_path: Path, content: str) -> None:
    (tmp_path / "w.json").write_text(content, "utf-8")
    with pytest.raises(DataError, match=r"w\.json"):
        read_weights(tmp_path / "w.json")


@pytest.mark.parametrize(
    ("weight", "problem"),
    [
        ("1e308", r"weight of channel that is not from 1e-30 to 1e\+06 in size: scale the weights"),
        ("-1e308", "scale the weights"),
        ("1e-320", "scale the weights"),
        ("1" + "0" * 400, "scale the weights"),
        ("Infinity", "scale the weights"),
        ("NaN", "scale the weights"),
        ("true", "weight of channel that is no number"),
    ],
)
def test_weights_whose_sums_are_no_numbers_are_refused(tmp_path: Path, weight: str, problem: str) -> None:
    weights = f'{{"direct": 1, "channel": {weight}, "language_model": 0, "length": -1e6}}'
    (tmp_path / "w.json").write_text(f'{{"weights": {weights}}}', "utf-8")
    with pytest.raises(DataError, match=problem):
        read_weights(tmp_path / "w.json")


def test_a_translation_longer_than_a_model_reads_is_an_error(scorer: FeatureScorer) -> None:
    """Cut, its channel would be that of another text."""
    long = NBestList("a dog", (Translation("a dog " * 100, -1.0, -2.0, 200),), 7)
    for each in (FeatureScorer(scorer.channel, None), FeatureScorer(None, scorer.language_model)):
        with pytest.raises(DataError, match=r"reads \d+ tokens, and a translation of line 7 has \d+: translate with a"):
            each.score([long])


GOOD = {"text": "a", "score": -1.0, "log_prob": -2.0, "num_tokens": 2}


def test_lists_are_read_as_they_were_printed() -> None:
    (found,) = read_lists([json.dumps({"source": "x", "translations": [GOOD]})], "stdin")
    assert found == NBestList("x", (Translation("a", -1.0, -2.0, 2),))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1\t-2.0\ta text",
        "[]",
        '{"source": "x"}',
        json.dumps({"source": "x", "translations": []}),
        json.dumps({"source": 1, "translations": [GOOD]}),
        *(json.dumps({"source": "x", "translations": [{**GOOD, name: value}]}) for name, value in [
            ("text", 1), ("num_tokens", 2.5), ("num_tokens", -1), ("log_prob", "x"), ("score", math.nan),
            ("log_prob", "-2.0"), ("log_prob", 2.0), ("log_prob", -1e308), ("log_prob", 10**400),
            ("score", True), ("text", "two\nlines"), ("text", "two\rlines"),
        ]),
        '{"source": "x", "translations": [' + "[" * 2000,
    ],
)  # fmt: skip
def test_a_line_that_is_no_list_is_named(line: str) -> None:
    good = json.dumps({"source": "x", "translations": [GOOD]})
    with pytest.raises(DataError, match=r"lists\.jsonl, line 2.*--jsonl"):
        list(read_lists([good, line], "lists.jsonl"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"translations": []}', "there is no `source`"),
        ('{"source": "x"}', "there is no `translations`"),
        ('{"source": "x", "translations": [{"text": "a", "score": 1.0, "features": {}}]}', "there is no `num_tokens`"),
        ('{"source": "x", "translations": "text"}', "a source and one translation at least are wanted"),
        ('{"source": "x", "translations": ["text"]}', "a translation is no JSON object"),
        ("[]", "not a JSON object"),
        ("text", "not JSON"),
    ],
)
def test_what_is_missing_of_a_list_is_named(line: str, reason: str) -> None:
    """Also in what `tfm rerank --jsonl` printed, which is no list of a model."""
    with pytest.raises(DataError) as error:
        list(read_lists([line], "n.jsonl"))
    assert f"n.jsonl, line 1: is no list of translations ({reason}): give what" in str(error.value)


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("0 ||| ein Haus ||| LM0= -12.3 TM0= -3 ||| -4.2", "Moses' n-best lists"),
        ("12 ||| ein ||| ||| Haus ||| d: 0 -1 ||| -4.2", "Moses' n-best lists"),
        ("H-3\t-0.42\tein Haus", "fairseq-generate"),
        ("S-3\ta house", "fairseq-generate"),
    ],
)
def test_lists_of_other_programs_are_named(line: str, form: str) -> None:
    with pytest.raises(DataError, match=rf"n\.txt, line 1: is no list of translations \(a line of {form}\): give what"):
        list(read_lists([line], "n.txt"))
