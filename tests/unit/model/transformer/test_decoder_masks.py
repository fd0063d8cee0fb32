"""The masks of a decoder: what each row sees, at once and step by step, and that without one a decoder cheats."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers.log_probs import log_softmax
from tfm.model.layout import FlatLayout, Layout
from tfm.model.masks import Mask, strictly_causal_mask
from tfm.model.transformer.decoder_masks import DECODER_MASKS
from tfm.tokenizer.special import BOS_ID, EOS_ID

F64, V, LENGTH = torch.float64, 12, 6
NO_DROPOUT = DropoutConfig(residual=0, embedding=0)


def network(mask: str, architecture: str = "decoder_only", **changes: Any) -> Any:
    stack = StackConfig(layers=2, dim=32, heads=2, feed_forward_dim=64)
    task = "language_model" if architecture == "decoder_only" else "translation"
    config = ModelConfig.model_validate(
        {
            "architecture": architecture,
            "task": task,
            "encoder": stack,
            "decoder": stack,
            "mask": mask,
            "dropout": NO_DROPOUT,
            **changes,
        }
    )
    return build(config, source_vocab=V, target_vocab=V, seed=3)


def seen(mask: Mask, length: int) -> list[list[int]]:
    """The keys that each query sees."""
    bias = mask.bias(length, length, torch.zeros(1))
    assert bias is not None
    return [row.isfinite().nonzero().flatten().tolist() for row in bias.view(length, length)]


def test_a_strict_mask_shows_what_is_before_and_the_first_itself() -> None:
    layout = Layout.from_lengths(torch.tensor([4]))
    assert seen(strictly_causal_mask(layout), 4) == [[0], [0], [0, 1], [0, 1, 2]]
    assert seen(strictly_causal_mask(layout).restrict_to_window(1), 4) == [[0], [0], [1], [2]]


def test_end_to_end_each_sentence_has_a_first_row() -> None:
    layout = FlatLayout(torch.tensor([2, 3]))
    assert seen(strictly_causal_mask(layout), 5) == [[0], [0], [2], [2], [2, 3]]


@pytest.mark.parametrize("architecture", ["decoder_only", "transformer"])
def test_under_a_strict_mask_a_row_takes_no_value_of_its_own(architecture: str) -> None:
    """Row 1 has one key, that of row 0: nothing of itself is in what it gets. Later rows get something of it."""
    stack = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=8)
    model = network("strict", architecture, decoder=stack, encoder=stack, residual="none", positions="none").double()
    layer, layout = (
        (model.layers if architecture == "decoder_only" else model.decoder)[0],
        Layout.from_lengths(torch.tensor([5])),
    )
    rows = torch.randn(5, 16, generator=torch.Generator().manual_seed(1), dtype=F64)
    changed = rows.clone()
    changed[1] += 1
    with torch.no_grad():
        before, after = (layer.attention(each, layout, strictly_causal_mask(layout)) for each in (rows, changed))
    differ = ((before - after).abs().amax(1) > 1e-9).tolist()
    assert differ == [False, False, True, True, True]


def windows_of(text: Tensor, model: Any) -> tuple[Tensor, Tensor]:
    """Log-probabilities of a text (T,) under the network, read at once, and of each piece."""
    layout = Layout.from_lengths(torch.tensor([len(text)]))
    shifted = torch.cat([torch.tensor([BOS_ID]), text[:-1]])
    log_probs = log_softmax(model.output(model.hidden_states(shifted, layout)))
    return log_probs, log_probs[torch.arange(len(text)), text]


def train_on_random_texts(mask: str, updates: int = 140) -> tuple[float, Any]:
    """The loss in nats a piece on new texts, whose pieces are drawn evenly from eight, and the model."""
    torch.manual_seed(7)
    model, generator = network(mask), torch.Generator().manual_seed(5)
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=4e-3), torch.zeros(())
    layout = Layout.from_lengths(torch.tensor([LENGTH + 1] * 16))
    for _ in range(updates):
        texts = torch.randint(4, V, (16, LENGTH), generator=generator)
        ends, begins = torch.full((16, 1), EOS_ID), torch.full((16, 1), BOS_ID)
        read, wanted = torch.cat([begins, texts], 1).flatten(), torch.cat([texts, ends], 1)
        log_probs = log_softmax(model.output(model.hidden_states(read, layout))).view(16, LENGTH + 1, V)
        loss = -log_probs.gather(2, wanted[:, :, None])[:, :LENGTH].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach()), model.eval()


@pytest.mark.slow
def test_without_a_mask_a_decoder_cheats() -> None:
    """Pieces drawn evenly from eight cost ln 8 = 2.08 nats each; a row that sees the next piece says it for less.

    In writing there is no next piece to see: the same network, step by step, gives a text of its own a lower
    probability than knowing nothing does.
    """
    (honest, _), (cheating, model) = train_on_random_texts("causal"), train_on_random_texts("none")
    assert honest > 2.0
    assert cheating < 0.5
    generator = torch.Generator().manual_seed(9)
    costs = []
    for _ in range(20):
        text = torch.randint(4, V, (LENGTH,), generator=generator)
        state, token, cost = model.empty_state(1), BOS_ID, 0.0
        with torch.no_grad():
            for piece in text.tolist():
                predict, state = model.step(torch.tensor([token]), state)
                cost -= float(predict(slice(0, 1))[0, piece])
                token = piece
        costs.append(cost / LENGTH)
    assert sum(costs) / len(costs) > 2.08


def test_without_a_mask_a_step_sees_what_has_been_written() -> None:
    """The last row of a text sees all of it: there, step by step is at once in one layer; before, it is not."""
    stack = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=8)
    model = network("none", decoder=stack).double().eval()
    text = torch.tensor([4, 5, 6, 7])
    state = model.empty_state(1)
    with torch.no_grad():
        whole, _ = windows_of(text, model)
        for number, token in enumerate([BOS_ID, 4, 5, 6]):
            predict, state = model.step(torch.tensor([token]), state)
            same = torch.allclose(predict(slice(0, 1))[0], whole[number], rtol=0, atol=1e-10)
            assert same == (number == 3)


def test_all_masks_are_told_apart() -> None:
    layout = Layout.from_lengths(torch.tensor([3, 3]))
    assert [seen(DECODER_MASKS[name].make_text_mask(layout), 3) for name in ("causal", "strict")] == [
        [[0], [0, 1], [0, 1, 2]],
        [[0], [0], [0, 1]],
    ]
    assert DECODER_MASKS["none"].make_text_mask(layout).bias(3, 3, torch.zeros(1)) is None
