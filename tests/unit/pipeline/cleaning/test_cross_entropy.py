"""Dual conditional cross-entropy, beside its equation and the probabilities that models give."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tfm
from tests.recording_reporter import Listening
from tests.tiny_model import TEXTS, publish_model, tiny_model
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import stale_reason
from tfm.pipeline.cleaning import cleaner, late_scores
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.pairs.model_check import check_rule_models
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean, plan_clean


def test_scores_are_those_of_the_equation_and_the_limits_are_kept(tmp_path: Path) -> None:
    """|A - B| + (A + B) / 2 of log p by `Model.score`, which reads each pair by itself."""
    forward, backward = publish_model(tmp_path / "forward"), publish_model(tmp_path / "backward", norm="post")
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[2]), ("a dog", TEXTS[1]), ("the sea", "a cat"), ("", "snow")]
    for side in (0, 1):
        (tmp_path / f"text.{side}").write_text("".join(pair[side] + "\n" for pair in pairs), "utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "text.0"), target=str(tmp_path / "text.1"))
    data = DataConfig(train=(corpus,))
    rules = {"cross_entropy": {"forward": str(forward), "backward": str(backward), "percentile": 30}}
    off = dict.fromkeys(("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
    config = CleanConfig.model_validate(off | rules)
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=["tfm"], reporter=NullReporter())
    found = pq.read_table(tmp_path / "clean" / "scores.parquet")["cross_entropy"].to_pylist()
    expected = []
    for source, target in pairs[:-1]:
        entropies = []
        for folder, one, other in ((forward, source, target), (backward, target, source)):
            scored = tfm.load(folder, device="cpu").score([one], [other])
            entropies.append(-scored.log_probs[0] / scored.num_tokens[0])
        a, b = entropies
        expected.append(math.exp(-(abs(a - b) + (a + b) / 2)))
    np.testing.assert_allclose(found, [*expected, 0.0], rtol=1e-4)
    kept = (tmp_path / "clean" / "train.0.source.txt").read_text("utf-8").split("\n")[:-1]
    worst = np.argsort(found)[0]  # 30 % of five pairs: one
    assert kept == [source for row, (source, _) in enumerate(pairs) if row != worst]
    # a model is known by what it is, not by where it is
    (tmp_path / "forward").rename(tmp_path / "moved")
    moved = CleanConfig.model_validate(
        off | {"cross_entropy": {**rules["cross_entropy"], "forward": str(tmp_path / "moved")}}
    )
    assert stale_reason(plan_clean(moved, data, tmp_path / "clean", whole_corpora=True)) is None
    swapped = {"forward": str(backward), "backward": str(tmp_path / "moved"), "percentile": 30}
    other = CleanConfig.model_validate(off | {"cross_entropy": swapped})
    assert "model of cross_entropy changed" in str(
        stale_reason(plan_clean(other, data, tmp_path / "clean", whole_corpora=True))
    )
    least = CleanConfig.model_validate(off | {"cross_entropy": {**swapped, "percentile": None, "min": 0.5}})
    with pytest.raises(DataError, match="no training pair is left; dropped: cross_entropy: 5; change cross_entropy in"):
        clean(least, data, tmp_path / "none", whole_corpora=True, command=["tfm"], reporter=NullReporter())


@pytest.mark.parametrize("rule", ["cross_entropy", "mutual_information"])
def test_models_that_are_exchanged_are_warned_of(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pairs that the forward model wrote, behind as many as are read at once, which another rule drops."""
    monkeypatch.setattr(late_scores, "ROWS_PER_SAVE", 16)
    forward, backward = publish_model(tmp_path / "forward"), publish_model(tmp_path / "backward", norm="post")
    sources = [*TEXTS, "a dog", "the sea", "two cats asleep", "snow !"]
    targets = tfm.load(forward, device="cpu").translate(sources, beam=1, max_length=8)
    for name, texts in (("text.0", sources), ("text.1", targets)):
        (tmp_path / name).write_text("\n" * 16 + "".join(text + "\n" for text in texts), "utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "text.0"), target=str(tmp_path / "text.1"))
    off = dict.fromkeys(("controls", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
    for number, models in enumerate(((forward, backward), (backward, forward))):
        settings = {"forward": str(models[0]), "backward": str(models[1]), "percentile": 10}
        out, reporter = tmp_path / f"clean{number}", Listening()
        config = CleanConfig.model_validate(off | {rule: settings})
        clean(config, DataConfig(train=(corpus,)), out, whole_corpora=True, command=["tfm"], reporter=reporter)
        warnings = [each for each in reporter.warnings if "is `forward` the model from source to target?" in each]
        assert len(warnings) == number, reporter.warnings


@pytest.mark.parametrize("rule", ["cross_entropy", "mutual_information"])
@pytest.mark.parametrize("task", ["language_model", "masked_language_model", "classification", "tagging"])
def test_a_model_that_does_not_translate_is_refused_before_pairs_are_measured(
    task: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner, "iterate_chunks", lambda *_, **__: pytest.fail("pairs were measured"))
    architecture = "decoder_only" if task == "language_model" else "encoder_only"
    other = publish_model(tmp_path / "other", architecture=architecture, task=task)
    model = publish_model(tmp_path / "model")
    for side in (0, 1):
        (tmp_path / f"text.{side}").write_text("a dog\n", "utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "text.0"), target=str(tmp_path / "text.1"))
    for forward, backward in ((other, model), (model, other)):
        config = CleanConfig.model_validate(
            {"copies": None, rule: {"forward": str(forward), "backward": str(backward)}}
        )
        with pytest.raises(DataError, match=rf"clean\.{rule} needs translation models, and this is one for {task}"):
            clean(
                config,
                DataConfig(train=(corpus,)),
                tmp_path / "c",
                whole_corpora=True,
                command=["tfm"],
                reporter=NullReporter(),
            )


def test_a_limit_that_drops_nothing_is_warned_of(tmp_path: Path) -> None:
    """The default, by which models score every pair for nothing but the table of scores."""
    model = publish_model(tmp_path / "model")
    (tmp_path / "text").write_text("a dog\n", "utf-8")
    corpora = [CorpusConfig(source=str(tmp_path / "text"), target=str(tmp_path / "text"))]
    models = {"forward": str(model), "backward": str(model)}
    for settings, is_warned in (({}, True), ({"min": 0.1}, False), ({"percentile": 5}, False)):
        reporter = Listening()
        config = CleanConfig.model_validate({"cross_entropy": models | settings})
        check_rule_models(config, corpora, reporter, online=False)
        assert [each.endswith("set `min` or `percentile`") for each in reporter.warnings] == [True] * is_warned


def test_a_vocabulary_of_another_language_is_warned_of(tmp_path: Path) -> None:
    """The tiny models have words of English alone."""
    model = publish_model(tmp_path / "model")
    off = dict.fromkeys(("controls", "empty", "length", "ratio", "copies", "letters", "overlap", "duplicates"))
    rule = {"cross_entropy": {"forward": str(model), "backward": str(model), "percentile": 10}}
    sides = {"english": TEXTS[:2], "greek": ["η θάλασσα είναι μπλε", "ένας σκύλος τρέχει"]}
    for name, texts in sides.items():
        (tmp_path / name).write_text("".join(text + "\n" for text in texts), "utf-8")
    for source, target, expected in (
        ("english", "english", []),
        ("english", "greek", ["forward writes", "backward reads"]),
        ("greek", "english", ["forward reads", "backward writes"]),
    ):
        corpus, reporter = CorpusConfig(source=str(tmp_path / source), target=str(tmp_path / target)), Listening()
        out = tmp_path / f"{source}-{target}"
        config = CleanConfig.model_validate(off | rule)
        clean(config, DataConfig(train=(corpus,)), out, whole_corpora=True, command=["tfm"], reporter=reporter)
        warnings = [each for each in reporter.warnings if "is it of these texts?" in each]
        assert [
            f"{each.partition(':')[0].rpartition('.')[2]} {each.partition('that it ')[2].partition(':')[0]}"
            for each in warnings
        ] == expected, reporter.warnings


def test_a_model_that_has_to_be_told_languages_is_refused(tmp_path: Path) -> None:
    several = tiny_model().source_tokenizer.with_languages("deu", "hin")
    model, one = publish_model(tmp_path / "several", tokenizer=several), publish_model(tmp_path / "one")
    for side in (0, 1):
        (tmp_path / f"text.{side}").write_text(f"{TEXTS[side]}\n", "utf-8")
    data = DataConfig(train=(CorpusConfig(source=str(tmp_path / "text.0"), target=str(tmp_path / "text.1")),))
    for forward, backward in ((model, one), (one, model)):
        config = CleanConfig.model_validate({"cross_entropy": {"forward": str(forward), "backward": str(backward)}})
        with pytest.raises(DataError, match=r"several.* has to be told which: give a model of one direction"):
            clean(config, data, tmp_path / "c", whole_corpora=True, command=["tfm"], reporter=NullReporter())
