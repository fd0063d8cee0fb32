"""CANINE: in float64 what plain loops compute, sentence by sentence; nothing crosses from one sentence to another."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.character_models import ALL, EVERY, TAGS, TRANSLATES, encoded, network, upsampled
from tfm.model.build import num_parameters
from tfm.model.characters.downsampling import DownsampledLayout
from tfm.model.layout import FlatLayout, Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import forced_log_probs_by_steps, target_log_probs
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import EOS_ID
from tfm.tokenizer.train import train

TEXTS = ["रानी कुत्ते को", "a", "القط على", "\U0001f469\u200d\U0001f52c x", "猫坐在垫子上。好", "abcdef", ""]
TOKENIZER = train([], TokenizerConfig(kind="codepoint"))
SOURCES = [[*TOKENIZER.encode(text), EOS_ID] for text in TEXTS]
TARGETS = [[2, 5, 6], [2], [2, 7, 7, 4], [2, 9], [2, 4, 5], [2, 10], [2, 3, 3]]


def batch(sources: list[list[int]]) -> tuple[Tensor, Layout]:
    assert isinstance(TOKENIZER, CodePoints)
    return torch.tensor([i for ids in sources for i in ids]), Layout.from_lengths(
        torch.tensor([len(ids) for ids in sources])
    )


def hidden(model: Any, sources: list[list[int]], targets: list[list[int]]) -> list[Tensor]:
    """What enters the output layer, by source: of a target's pieces, of the sentence, or of each character."""
    source, layout = batch(sources)
    if hasattr(model, "start"):
        target, target_layout = batch(targets)
        found = model(source, layout, target, target_layout)
        return list(torch.split(found, [len(target) for target in targets]))
    found = model(source, layout)
    return list(torch.split(found, 1 if len(found) == len(sources) else [len(ids) for ids in sources]))


@pytest.mark.parametrize("task", ALL)
def test_it_is_its_equations(task: str) -> None:
    model = network(ALL[task])
    source, layout = batch(SOURCES)
    with torch.no_grad():
        plain = [encoded(model, ids) for ids in SOURCES]
        if task == "tagging":
            want = torch.stack([row for each in plain for row in upsampled(model, *each)])
            torch.testing.assert_close(model(source, layout), want, rtol=0, atol=1e-10)
        else:
            want = torch.stack([row for _, shorter in plain for row in shorter])
            torch.testing.assert_close(model.encode(source, layout), want, rtol=0, atol=1e-10)
        if task == "classification":
            mean = torch.stack([sum(shorter) / len(shorter) for _, shorter in plain])  # type: ignore[arg-type]
            inner = model.head.inner
            want = torch.tanh(mean @ inner.weight.T + inner.bias)
            torch.testing.assert_close(model(source, layout), want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("task", EVERY)
@pytest.mark.parametrize("changes", [{}, {"positions": "rotary"}, {"norm": "post", "canine": {"rate": 1}}], ids=str)
def test_a_sentence_alone_is_what_it_is_among_others(task: str, changes: dict[str, Any]) -> None:
    if EVERY[task]["architecture"] == "recurrent" and changes.get("positions") == "rotary":
        pytest.skip("refused")
    model = network(EVERY[task], **changes)
    with torch.no_grad():
        together = hidden(model, SOURCES, TARGETS)
        for source, target, found in zip(SOURCES, TARGETS, together, strict=True):
            (alone,) = hidden(model, [source], [target])
            torch.testing.assert_close(found, alone, rtol=0, atol=1e-11)
        turned = hidden(model, SOURCES[::-1], TARGETS[::-1])[::-1]
    torch.testing.assert_close(torch.cat(turned), torch.cat(together), rtol=0, atol=1e-11)


@pytest.mark.parametrize("task", EVERY)
def test_every_part_learns_and_gradients_are_those_of_each_sentence(task: str) -> None:
    model = network(EVERY[task]).train()
    parameters = dict(model.named_parameters())

    def gradients(sources: list[list[int]], targets: list[list[int]]) -> list[Tensor]:
        total = sum((each.sin().sum() for each in hidden(model, sources, targets)), torch.zeros(()))
        found = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters.values(), found, strict=True)]

    torch.manual_seed(0)
    for each in model.modules():
        if hasattr(each, "rate") and type(each).__name__ == "Dropout":
            each.rate = 0.0
    model.eval()
    whole = gradients(SOURCES, TARGETS)
    parts = [gradients([source], [target]) for source, target in zip(SOURCES, TARGETS, strict=True)]
    for name, found, *each in zip(parameters, whole, *parts, strict=True):
        torch.testing.assert_close(found, sum(each), rtol=0, atol=1e-9)
        if not name.startswith("output."):
            assert found.abs().sum() > 0, name


@pytest.mark.parametrize("canine", [{}, {"rate": 1}, {"rate": 3, "upsampling": 5}, {"upsampling": 1}], ids=str)
@pytest.mark.parametrize("normalization", ["layer", "batch"])
def test_a_tagger_in_training_computes_what_it_computes_later(normalization: str, canine: dict[str, int]) -> None:
    changes = {"canine": canine, "normalization": normalization, "dropout": {"residual": 0.0, "embedding": 0.0}}
    model = network(ALL["tagging"], **changes)
    (source, layout), places = batch(SOURCES), torch.tensor([9, 0, 4, 20])
    weights = [each for name, each in model.named_parameters() if not name.startswith("output.")]

    def rows_and_gradients(asked: bool) -> tuple[Tensor, ...]:
        rows = model(source, layout, places) if asked else model(source, layout)[places]
        return rows, *torch.autograd.grad(rows.sin().sum(), weights)

    model.train()
    passes = [rows_and_gradients(True), rows_and_gradients(False)]
    if normalization == "layer":  # batch norm has other statistics later
        model.eval()
        passes += [rows_and_gradients(True), rows_and_gradients(False)]
    for each in passes[1:]:
        torch.testing.assert_close(each, passes[0], rtol=0, atol=1e-11)


def test_every_row_of_the_shorter_sequence_has_its_characters() -> None:
    lengths = torch.tensor([1, 7, 3, 6])
    shorter = DownsampledLayout(Layout.from_lengths(lengths), 3)
    assert shorter.lengths.tolist() == [1, 3, 1, 2]
    rows = torch.arange(1, 18, dtype=torch.float64).unsqueeze(1)
    gathered = [[1, 0, 0], [2, 3, 4], [5, 6, 7], [8, 0, 0], [9, 10, 11], [12, 13, 14], [15, 16, 17]]
    assert shorter.group_rows(rows).tolist() == gathered
    of_rows = [next(place for place, row in enumerate(gathered) if number in row) for number in range(1, 18)]
    assert shorter.repeat_rows(torch.arange(7).unsqueeze(1)).flatten().tolist() == of_rows


@pytest.mark.parametrize("decoder", ["translation", "lstm", "gru, luong"])
@pytest.mark.few(1)
def test_cached_decoding_is_teacher_forcing_and_a_batch_changes_nothing(decoder: str) -> None:
    model = network(EVERY[decoder])
    sources, targets = [ids[:-1] for ids in SOURCES], [target[1:] for target in TARGETS]
    at_once = target_log_probs(model, sources, targets)
    by_steps = forced_log_probs_by_steps(model, sources, targets, device="cpu")
    torch.testing.assert_close(torch.from_numpy(at_once), torch.from_numpy(by_steps), rtol=0, atol=1e-9)
    for config in (DecodingConfig(beam=1, max_length=9), DecodingConfig(beam=3, max_length=9, batch_sentences=2)):
        together = decode(model, sources, config)
        for source, found in zip(sources, together, strict=True):
            if source:
                (alone,) = decode(model, [source], config)
                assert [each.ids for each in alone] == [each.ids for each in found]
                (score,) = target_log_probs(model, [source], [found[0].ids])
                assert abs(found[0].log_prob - score) < 1e-9 or len(found[0].ids) == 9


def test_members_of_an_ensemble_may_have_other_rates() -> None:
    ensemble: Any = Ensemble([network(TRANSLATES), network(TRANSLATES, canine={"rate": 2})])
    one, other = (target_log_probs(each, [SOURCES[0]], [[5]]) for each in ensemble.members)
    found = forced_log_probs_by_steps(ensemble, [SOURCES[0]], [[5]], device="cpu")
    assert min(one[0], other[0]) - 1e-9 < found[0] < max(one[0], other[0]) + 1e-9


def test_there_is_no_table_of_all_characters_anywhere() -> None:
    for about in ALL.values():
        model = network(about)
        assert max(each.numel() for each in (*model.parameters(), *model.buffers())) < 2000
        assert num_parameters(model) < 12_000


def test_a_tagger_may_start_from_a_classifier() -> None:
    """By names and shapes, all but the heads: as `training.init_from` has it."""
    bodies = [
        {name: each.shape for name, each in network(ALL[task]).state_dict().items() if not name.startswith(heads)}
        for task, heads in (("classification", ("head.", "output.")), ("tagging", ("head.", "output.")))
    ]
    assert bodies[0] == bodies[1]
    assert any("tables" in name for name in bodies[0])


@pytest.mark.parametrize("task", ALL)
def test_its_norms_are_those_that_the_recipe_asks_for(task: str) -> None:
    norms = [each for each in network(ALL[task], norm_eps=1e-3).modules() if hasattr(each, "eps")]
    assert len(norms) >= 8
    assert {each.eps for each in norms} == {1e-3}


def test_flat_batches_are_not_read() -> None:
    model = network(TAGS)
    with pytest.raises(AssertionError, match="flat batches are refused"):
        model(torch.tensor(SOURCES[0]), FlatLayout(torch.tensor([len(SOURCES[0])])))
