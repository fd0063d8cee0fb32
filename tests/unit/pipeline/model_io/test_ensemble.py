"""Several models as one; the laws of the search with them are in tests/invariants/test_decoding.py."""

import math
import shutil
from pathlib import Path

import pytest
import torch

from tests.invariants.test_decoding import HashModel
from tests.recording_reporter import Listening
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layout import Layout
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.model_io.ensemble import Ensemble, load_ensemble
from tfm.pipeline.model_io.loaded_model import load_model, save_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.translate import plan_file_translation, translate_file
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.train import train

LINES = ["a cat sat", "", "the dog", "a dog sat on the cat"]


def make(folder: Path, *, seed: int = 1, dim: int = 8, lines=LINES, separate=False, **changes) -> Path:
    """A published model of random weights."""
    folder.mkdir()
    tokenizer = train(lines, TokenizerConfig(kind="char", min_frequency=1))
    save_pair(tokenizer, train(lines, TokenizerConfig(kind="char", min_frequency=1)) if separate else tokenizer, folder)
    stack = StackConfig(layers=1, dim=dim, heads=2, feed_forward_dim=16)
    config = ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "tie": "none", "max_length": 24, **changes}
    )
    model = build(config, source_vocab=tokenizer.vocab_size, target_vocab=tokenizer.vocab_size, seed=seed)
    with publish(Plan("train", folder / "model", {}, {}, seed), command=["tfm", "train"]) as draft:
        save_model(draft.folder, config, model.state_dict(), folder)
    return folder / "model"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return {
        "one": make(root / "one"),
        "wide": make(root / "wide", seed=2, dim=16, separate=True),
        "decoder": make(root / "decoder", seed=3, architecture="decoder_only"),
        "gru": make(root / "gru", seed=4, architecture="recurrent", positions="none"),
        "language": make(root / "language", architecture="decoder_only", task="language_model"),
        "running": make(root / "running", architecture="decoder_only", task="language_model", block=9),
        "classes": make(root / "classes", architecture="encoder_only", task="classification"),
        "other": make(root / "other", lines=["other characters"]),
    }


def test_probabilities_are_averaged():
    members = [HashModel(9, seed) for seed in range(3)]
    source, layout = torch.tensor([4, 5, EOS_ID]), Layout.from_lengths(torch.tensor([3]))
    ensemble = Ensemble(members)
    predict, state = ensemble.step(torch.tensor([BOS_ID]), ensemble.start(source, layout))
    each = [member.step(torch.tensor([BOS_ID]), member.start(source, layout))[0](slice(None)) for member in members]
    torch.testing.assert_close(predict(slice(None)), torch.stack(each).exp().mean(0).log(), atol=1e-12, rtol=0)
    assert len(state.states) == 3
    assert math.isclose(predict(slice(None)).exp().sum().item(), 1, abs_tol=1e-12)
    assert Ensemble([HashModel(max_length=9), HashModel(max_length=7)]).max_length == 7


def test_models_of_several_sizes_and_kinds_translate_together(folders):
    names = ["one", "wide", "decoder", "gru"]
    loaded = load_ensemble([folders[name] for name in names], "cpu")
    members = [load_model(folders[name], "cpu") for name in names]
    config = DecodingConfig(beam=3, max_length=9)
    together = [each.text for (each,) in translate_lines(loaded, LINES, config, reporter=NullReporter())]
    alone = [
        [each.text for (each,) in translate_lines(member, LINES, config, reporter=NullReporter())] for member in members
    ]
    assert together not in alone
    assert [bool(text) for text in together] == [bool(line) for line in LINES]


def test_one_model_is_itself(folders):
    assert not isinstance(load_ensemble([folders["one"]], "cpu").model, Ensemble)
    twice = load_ensemble([folders["one"]] * 2, "cpu")
    config = DecodingConfig(beam=3, n_best=3, max_length=9)
    once = load_model(folders["one"], "cpu")
    for loaded in (twice, once):
        loaded.model.double()
    for some, others in zip(
        translate_lines(twice, LINES, config, reporter=NullReporter()),
        translate_lines(once, LINES, config, reporter=NullReporter()),
        strict=True,
    ):
        assert [each.text for each in some] == [each.text for each in others]
        assert [each.score for each in some] == pytest.approx([each.score for each in others], abs=1e-9)


@pytest.mark.parametrize(
    ("names", "effects"),
    [
        (("one", "gru"), []),
        (("one", "one"), ["is in the ensemble more than once, so that it alone gives the probabilities"]),
        (("one", "gru", "one"), ["is in the ensemble more than once, so that it has the weight of several models"]),
        (("one", "copy", "gru"), ["/one/model, so that it has the weight of several models"]),
        (("one", "one", "copy"), ["is in the ensemble more than once", "/one/model, so that it alone gives"]),
    ],
)
def test_a_model_that_is_in_an_ensemble_twice_is_warned_of(folders, tmp_path, names, effects):
    shutil.copytree(folders["one"], tmp_path / "copy")
    paths = [tmp_path / "copy" if name == "copy" else folders[name] for name in names]
    load_ensemble(paths, "cpu", reporter=(reporter := Listening()))
    assert len(reporter.warnings) == len(effects)
    for warning, effect in zip(reporter.warnings, effects, strict=True):
        assert effect in warning


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("one", "other"), "no ensemble with .*one/model: its source tokenizer is different"),
        (("one", "language"), "no ensemble with .*one/model: it was trained for language_model, not translation"),
        (("language", "running"), "one of them was trained on running text, and the other on lines"),
        (("classes", "classes"), "was trained for classification, but an ensemble needs models that generate text"),
    ],
)
def test_what_does_not_go_together_is_refused(folders, names, reason):
    with pytest.raises(DataError, match=reason):
        load_ensemble([folders[name] for name in names], "cpu")


def test_the_narrowest_window_of_running_text_counts(folders, tmp_path):
    wide = make(tmp_path / "wide", architecture="decoder_only", task="language_model", block=12)
    loaded = load_ensemble([wide, folders["running"]], "cpu")
    assert loaded.config.block == 9
    assert len(loaded.model.empty_state(2, torch.device("cpu")).states) == 2


def test_translations_of_an_ensemble_tell_their_models(folders, tmp_path):
    source, words, out = tmp_path / "in.txt", tmp_path / "words.txt", tmp_path / "out"
    source.write_text("".join(line + "\n" for line in LINES))
    words.write_text("dog\n\ncat\tsat\n\n")
    config = DecodingConfig(beam=3, max_length=20)
    translate_file(
        folders["one"], source, config, out, command=["tfm"], reporter=NullReporter(), device="cpu",
        ensemble=[folders["gru"]], forced=words,
    )  # fmt: skip
    first, second, third, _ = (out / "hypotheses.txt").read_text().splitlines()
    assert " dog" in first
    assert second == ""
    assert " cat" in third
    assert " sat" in third
    todo = plan_file_translation(folders["one"], source, config, out, forced=words, ensemble=[folders["gru"]])
    assert set(todo.inputs) == {"model", "model 2", "source", "forced"}
