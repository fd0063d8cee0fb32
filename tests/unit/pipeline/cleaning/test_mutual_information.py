"""Pointwise mutual information of pairs, beside its equation and the probabilities that models give."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tfm
from tests.recording_reporter import Listening
from tests.tiny_model import TEXTS, publish_model
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import stale_reason
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.pairs.config import MutualInformationConfig
from tfm.pipeline.cleaning.rules.pairs.mutual_information import score_by_mutual_information
from tfm.pipeline.cleaning.rules.pairs.translation_models import TranslationModels
from tfm.pipeline.cleaning.text_batch import Floats
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean, plan_clean, show_dry_run

OFF = dict.fromkeys(("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[2]), ("a dog", TEXTS[1]), ("the sea", "a cat"), ("", "snow")]
PARTNERS = [3, 3, 1, 1]
"""The pair, of the four that can be read, two further on, or the next one of which both sides differ."""


def publish_models(folder: Path) -> TranslationModels:
    forward, backward = publish_model(folder / "forward"), publish_model(folder / "backward", norm="post")
    config = MutualInformationConfig(forward=str(forward), backward=str(backward))
    return TranslationModels(config, "cpu")


def score(models: TranslationModels, pairs: list[tuple[str, str]]) -> Floats:
    return score_by_mutual_information(pairs, models.measure_entropies(pairs, pairs), models)


def corpus_of(folder: Path, pairs: list[tuple[str, str]]) -> DataConfig:
    for side in (0, 1):
        (folder / f"text.{side}").write_text("".join(pair[side] + "\n" for pair in pairs), "utf-8")
    return DataConfig(train=(CorpusConfig(source=str(folder / "text.0"), target=str(folder / "text.1")),))


def config_of(folder: Path, **limits: float) -> CleanConfig:
    models = {"forward": str(folder / "forward"), "backward": str(folder / "backward")}
    return CleanConfig.model_validate(OFF | {"mutual_information": models | limits})


def test_scores_are_those_of_the_equation(tmp_path: Path) -> None:
    """min(A' - A, B' - B), of log p by `Model.score`, which reads each pair by itself."""
    found = score(publish_models(tmp_path), PAIRS)
    expected = []
    for (source, target), partner in zip(PAIRS, PARTNERS, strict=False):
        other_source, other_target = PAIRS[partner]
        gains = []
        for name, text, own, other in (
            ("forward", target, source, other_source),
            ("backward", source, target, other_target),
        ):
            own_score, other_score = tfm.load(tmp_path / name, device="cpu").score([own, other], [text, text]).log_probs
            gains.append(
                (own_score - other_score) / tfm.load(tmp_path / name, device="cpu").score([own], [text]).num_tokens[0]
            )
        expected.append(min(gains))
    np.testing.assert_allclose(found, [*expected, 0.0], rtol=1e-3, atol=1e-5)


def test_pairs_are_cleaned_by_it_and_models_are_known_by_what_they_are(tmp_path: Path) -> None:
    scores = score(publish_models(tmp_path), PAIRS)
    data, least = corpus_of(tmp_path, PAIRS), float(np.sort(scores)[3])
    config = config_of(tmp_path, min=least)
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=["tfm"], reporter=NullReporter())
    table = pq.read_table(tmp_path / "clean" / "scores.parquet")["mutual_information"].to_pylist()
    np.testing.assert_allclose(table, scores, rtol=1e-6)
    kept = (tmp_path / "clean" / "train.0.source.txt").read_text("utf-8").split("\n")[:-1]
    assert kept == [source for (source, _), score in zip(PAIRS, scores, strict=True) if score >= least]
    assert 1 <= len(kept) <= 2
    dropped = [json.loads(line) for line in (tmp_path / "clean" / "dropped.jsonl").read_text("utf-8").splitlines()]
    assert {each["rule"] for each in dropped} == {"mutual_information"}
    worst = config_of(tmp_path, percentile=40)
    clean(worst, data, tmp_path / "worst", whole_corpora=True, command=["tfm"], reporter=NullReporter())
    kept = (tmp_path / "worst" / "train.0.source.txt").read_text("utf-8").split("\n")[:-1]
    assert kept == [PAIRS[row][0] for row in sorted(np.argsort(scores)[2:])]
    publish_model(tmp_path / "other", activation="gelu")
    models = {"forward": str(tmp_path / "other"), "backward": str(tmp_path / "backward"), "min": least}
    changed = CleanConfig.model_validate(OFF | {"mutual_information": models})
    assert "model of mutual_information changed" in str(
        stale_reason(plan_clean(changed, data, tmp_path / "clean", whole_corpora=True))
    )


def test_a_dry_run_decides_as_the_run_does(tmp_path: Path) -> None:
    """Pairs that an earlier rule drops are nobody's partner in either, though a dry run scores them too."""
    models = publish_models(tmp_path)
    pairs = [pair for pair in PAIRS if all(pair)]
    mixed = [pairs[0], ("!", "!!"), pairs[1], ("?", "?!"), pairs[2], pairs[3], ("1", "2")]
    least = float(np.sort(score(models, pairs))[2])
    config = config_of(tmp_path, min=least).model_copy(update={"letters": CleanConfig().letters})
    data, reporter = corpus_of(tmp_path, mixed), Listening()
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=["tfm"], reporter=NullReporter())
    kept = len((tmp_path / "clean" / "train.0.source.txt").read_text("utf-8").splitlines())
    show_dry_run(config, data, tmp_path / "page.html", whole_corpora=True, reporter=reporter)
    assert kept == 2
    assert any("7 pairs read, 2 kept" in line for line in reporter.lines), reporter.lines


@pytest.mark.parametrize("rule", ["mutual_information", "cross_entropy"])
def test_texts_without_a_source_have_no_score_and_stay(rule: str, tmp_path: Path) -> None:
    """Beside a corpus of pairs, which are scored as without them."""
    publish_models(tmp_path)
    pairs, texts = corpus_of(tmp_path, PAIRS[:4]).train, CorpusConfig(source=None, target=str(tmp_path / "text.1"))
    models = {"forward": str(tmp_path / "forward"), "backward": str(tmp_path / "backward"), "min": 1e-30}
    config, columns = CleanConfig.model_validate(OFF | {rule: models}), []
    for name, train in (("mixed", (texts, *pairs, texts)), ("alone", pairs)):
        out = tmp_path / name
        clean(config, DataConfig(train=train), out, whole_corpora=True, command=["tfm"], reporter=NullReporter())
        columns.append(pq.read_table(out / "scores.parquet")[rule].to_pylist())
    none = [None] * 4
    assert columns[0] == [*none, *columns[1], *none]
    for number in (0, 2):
        assert (tmp_path / "mixed" / f"train.{number}.target.txt").read_bytes() == (tmp_path / "text.1").read_bytes()


def test_pairs_without_another_have_no_score(tmp_path: Path) -> None:
    """Nothing says how likely a text is beside another source, where there is none."""
    models = publish_models(tmp_path)
    assert len(score(models, [])) == 0
    assert np.isnan(score(models, PAIRS[:1])).all()
    assert np.isnan(score(models, [PAIRS[0]] * 3)).all()
    found = score(models, [PAIRS[0], (PAIRS[0][0], "a cat"), ("the sea", PAIRS[0][1])])
    assert np.isnan(found).tolist() == [True, False, False]
