"""Told which languages it translates, a network does what the plain one of the same weights does with the sequences of
M2M100 and mBART written out."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.plain_model import STACK, VOCAB, network
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused import greedy_search
from tfm.model.fused.decoder_step import fuse_if_supported
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_decoder import EncoderDecoder

PAD, BEGIN, END = 0, 2, 3
TARGET, SOURCE = 20, 21
KINDS: dict[str, dict[str, Any]] = {
    "m2m100": {"positions": "fairseq"},
    "mbart": {"positions": "fairseq", "embedding_norm": True},
}
TEXTS = [[5, 9, 6], [7], [4, 8, 4, 10, 11]]
TARGETS = [[6, 5], [9, 4, 4, 12], []]


def encoder_reads(languages: str, text: list[int], source: int) -> list[int]:
    """As transformers' tokenizers write a source."""
    return [source, *text, END] if languages == "m2m100" else [*text, END, source]


def decoder_reads(languages: str, target: list[int], language: int) -> list[int]:
    """As transformers' models begin a target."""
    return [END, language, *target] if languages == "m2m100" else [language, *target]


def pair(languages: str) -> tuple[EncoderDecoder, EncoderDecoder]:
    """A network that is told its languages, and a plain one of the same weights."""
    told, plain = network(languages=languages, **KINDS[languages]), network(max_length=40, **KINDS[languages])
    plain.load_state_dict(told.state_dict())
    return told.double(), plain.double()


def flat(texts: list[list[int]]) -> tuple[Tensor, Layout]:
    return torch.tensor([each for text in texts for each in text]), Layout.from_lengths(
        torch.tensor([len(each) for each in texts])
    )


def said(plain: EncoderDecoder, languages: str, text: list[int], target: list[int], codes: tuple[int, int]) -> Tensor:
    """What enters the output layer of the plain network after the lead and each piece (len(target) + 1, E)."""
    source, layout = flat([encoder_reads(languages, text, codes[0])])
    heard, heard_layout = flat([decoder_reads(languages, target, codes[1])])
    hidden = plain.decode(heard, heard_layout, plain.encode(source, layout), layout)
    return hidden[-len(target) - 1 :]


@torch.no_grad()
@pytest.mark.parametrize("languages", KINDS)
def test_teacher_forcing_is_the_plain_network_with_the_sequences_written_out(languages: str) -> None:
    told, plain = pair(languages)
    codes = [(SOURCE, TARGET), (TARGET, SOURCE), (SOURCE, 22)]
    sources = [[target, source, *text, END] for text, (source, target) in zip(TEXTS, codes, strict=True)]
    found = told(*flat(sources), *flat([[BEGIN, *each] for each in TARGETS]))
    want = [said(plain, languages, *each) for each in zip(TEXTS, TARGETS, codes, strict=True)]
    torch.testing.assert_close(found, torch.cat(want), rtol=0, atol=1e-12)
    assert (said(plain, languages, TEXTS[0], TARGETS[0], (SOURCE, 22)) - want[0]).abs().max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("languages", KINDS)
def test_so_are_its_steps_also_of_rows_that_are_moved_and_replaced(languages: str) -> None:
    told, plain = pair(languages)
    codes = [(SOURCE, TARGET), (TARGET, SOURCE), (SOURCE, 22)]
    sources = [[target, source, *text, END] for text, (source, target) in zip(TEXTS, codes, strict=True)]
    state, rows = told.start(*flat(sources)), [0, 0, 1, 1, 2, 2]
    state, histories = state.select(torch.tensor(rows)), [[BEGIN]] * 6
    for number in range(6):
        predict, state = told.step(torch.tensor([each[-1] for each in histories]), state)
        for row, (text, history) in enumerate(zip(rows, histories, strict=True)):
            want = said(plain, languages, TEXTS[text], history[1:], codes[text])[-1:]
            torch.testing.assert_close(predict(slice(row, row + 1)), plain.log_probs(want), rtol=0, atol=1e-12)
        moved = ([1, 0, 2, 2, 5, 4] if number % 2 else [0, 0, 3, 2, 4, 5])[: len(rows)]
        state, histories = state.select(torch.tensor(moved)), [[*histories[row], 4 + row + number] for row in moved]
        if number == 2:  # the second text gives its place to the first one, anew
            new = told.start(*flat(sources[:1])).select(torch.tensor([0, 0]))
            state, rows = state.replace(torch.tensor([2, 3]), new), [0, 0, 0, 0, 2, 2]
            histories[2:4] = [[BEGIN], [BEGIN]]
        if number == 4:
            state, rows, histories = state.select(torch.tensor([2, 3, 4, 5])), [0, 0, 2, 2], histories[2:]


@torch.no_grad()
@pytest.mark.parametrize("languages", KINDS)
def test_a_source_without_a_text_is_read_all_the_same(languages: str) -> None:
    told, _ = pair(languages)
    one, other = flat([[END]]), flat([[TARGET, SOURCE, 5, END], [END]])
    heard, both = flat([[BEGIN, 5]]), flat([[BEGIN, 5], [BEGIN, 5]])
    alone = told(*one, *heard)
    assert alone.isfinite().all()
    torch.testing.assert_close(told(*other, *both)[2:], alone, rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("languages", KINDS)
def test_a_target_may_be_as_long_as_any_other_models(languages: str, positions: str) -> None:
    told = network(languages=languages, positions=positions, max_length=6)
    longest = [4] * 5
    hidden = told(*flat([[TARGET, SOURCE, 4, 4, 4, END]]), *flat([[BEGIN, *longest]]))
    state = told.start(*flat([[TARGET, SOURCE, 4, 4, 4, END]]))
    for place, token in enumerate([BEGIN, *longest]):
        predict, state = told.step(torch.tensor([token]), state)
        torch.testing.assert_close(predict(slice(None)), told.log_probs(hidden[place : place + 1]))


@pytest.mark.parametrize("languages", KINDS)
def test_gradients_reach_the_tokens_of_the_lead(languages: str) -> None:
    free = {"dropout": DropoutConfig(residual=0, embedding=0), "tie": "none", "max_length": 16}
    config = ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "languages": languages, **free})
    model: Any = build(config, source_vocab=VOCAB, target_vocab=VOCAB, seed=1)
    model(*flat([[TARGET, SOURCE, 5, END]]), *flat([[BEGIN, 6]])).sum().backward()
    moved = model.target_embedding.table.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    assert moved == ([END, 6, TARGET] if languages == "m2m100" else [6, TARGET])
    assert model.source_embedding.table.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [END, 5, SOURCE]


@torch.no_grad()
@pytest.mark.parametrize("languages", KINDS)
def test_the_fast_ways_leave_it_to_the_model(languages: str) -> None:
    with dispatch.use_compiled_kernels(True):
        told, plain = network(languages=languages), network()
        assert greedy_search.make_greedy_search(told, (PAD, BEGIN, END)) is None
        assert fuse_if_supported(told) is told
        assert (fuse_if_supported(plain) is plain) == (not dispatch.are_kernels_enabled())
