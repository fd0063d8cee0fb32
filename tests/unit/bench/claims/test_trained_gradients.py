"""The claim of gradients after training: its readers read text by text, and learn."""

import pytest
import torch

from bench.claims.recurrence import trained_gradients
from bench.claims.recurrence.gradients import depth_norms, gradient_norms


def test_a_batch_of_texts_is_read_as_each_text_alone() -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 5, 8)
    for name, reader in trained_gradients.make_readers(8, 2, 11).items():
        together = reader.reading(3, 5)(rows.flatten(0, 1)).view(3, 5, 8)
        alone = torch.stack([reader.reading(1, 5)(each) for each in rows])
        assert torch.allclose(together, alone, atol=1e-5), name


def test_norms_by_depth_are_those_of_the_layers_that_a_reader_reads_with() -> None:
    torch.manual_seed(0)
    (reader,) = trained_gradients.make_transformers({"pre-norm": {"norm": "pre"}}, 8, 3, 11).values()
    rows = torch.randn(6, 8)
    state = torch.get_rng_state()
    by_distance = torch.tensor(gradient_norms(reader.reading(1, 6), rows))
    torch.set_rng_state(state)
    assert depth_norms([*reader.layers], rows)[0] == pytest.approx(float(by_distance.norm()), rel=1e-4)


def test_readers_learn_a_text_that_repeats_itself() -> None:
    words = torch.arange(4).repeat(50)
    for name, reader in trained_gradients.make_readers(16, 1, 4).items():
        torch.manual_seed(1)
        first = trained_gradients.train_reader(reader, words, length=12, updates=1)
        assert trained_gradients.train_reader(reader, words, length=12, updates=60) < first / 2, name


def test_each_network_has_its_share_and_its_loss() -> None:
    found = trained_gradients.measure(dim=8, length=102, layers=1, depth=2, draws=1, updates=1)
    assert len(trained_gradients.figures(found)) == 2 * (len(found["by_distance"]) + len(found["by_depth"]))
