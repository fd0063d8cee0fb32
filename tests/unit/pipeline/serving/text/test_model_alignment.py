"""The alignment of a translation is the attention of the rows that predict its pieces."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from torch import float64

from tests.tiny_model import numpy_of, tiny_model
from tfm.pipeline.attention_page.reading import trace_attention
from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.serving.text.alignment import align_words, find_words
from tfm.pipeline.serving.text.model_alignment import align_by_attention
from tfm.pipeline.serving.text.numpy_alignment import align_by_numpy

SOURCE, TARGET = "a dog sleeps .", "dog a ."


@pytest.mark.parametrize("architecture", ["transformer", "decoder_only", "recurrent"])
def test_a_row_predicts_a_piece_and_a_column_is_of_a_piece_of_the_source(architecture: str) -> None:
    positions = {"positions": "none", "recurrent": {"attention": "bahdanau"}} if architecture == "recurrent" else {}
    loaded = tiny_model(architecture=architecture, task="translation", dtype=float64, **positions)
    found = align_by_attention(loaded, SOURCE, TARGET)
    assert found is not None
    assert "".join(SOURCE[start:end].strip() for start, end in found.source_spans) == SOURCE.replace(" ", "")
    assert "".join(TARGET[start:end].strip() for start, end in found.target_spans) == TARGET.replace(" ", "")
    sources, targets = loaded.source_tokenizer.encode(SOURCE), loaded.target_tokenizer.encode(TARGET)
    read = trace_attention(loaded, SOURCE, sources, targets)
    kind = "decoder" if architecture == "decoder_only" else "cross"
    weights = np.mean([layer.weights.mean(0) for layer in read.layers(kind)], 0)
    for row, expected in enumerate(found.weights):
        place = row if kind == "cross" else len(sources) + 1 + row  # source and its end token, then begin token
        assert expected == pytest.approx(weights[place, : len(sources)])
    assert found.weights.shape == (len(targets), len(sources))


def test_a_text_without_pieces_or_longer_than_the_model_reads_has_none() -> None:
    loaded = tiny_model(dtype=float64)
    assert align_by_attention(loaded, SOURCE, "") is None
    assert align_by_attention(loaded, "a " * loaded.model.max_length, TARGET) is None


def test_words_have_the_weights_of_their_pieces() -> None:
    loaded = tiny_model(dtype=float64)
    found = align_by_attention(loaded, SOURCE, "a a")
    assert found is not None
    words = align_words(SOURCE, "a a", found)
    for start, end in find_words(SOURCE):
        inside = [start < last and first < end for first, last in found.source_spans]
        expected = found.weights[:, inside].sum(1) / found.weights.sum(1)
        assert words.source_shares(start, end) == pytest.approx(expected)


@pytest.mark.parametrize("row", ["reads", "predicts"])
def test_the_head_that_was_trained_to_align_gives_the_weights(row: Literal["reads", "predicts"]) -> None:
    loaded = tiny_model(dtype=float64)
    guided = replace(loaded, guided=GuidedAlignmentConfig(links="links", row=row))
    found = align_by_attention(guided, SOURCE, TARGET)
    assert found is not None
    sources, targets = loaded.source_tokenizer.encode(SOURCE), loaded.target_tokenizer.encode(TARGET)
    head = trace_attention(loaded, SOURCE, sources, targets).layers("cross")[0].weights[0]
    first = 1 if row == "reads" else 0
    assert found.weights == pytest.approx(head[first : first + len(targets), : len(sources)])
    model = NumpyModel(numpy_of(loaded), *[loaded.source_tokenizer] * 2, guided=guided.guided)
    by_numpy = align_by_numpy(model, SOURCE, TARGET)
    assert by_numpy is not None
    assert by_numpy.weights == pytest.approx(found.weights, abs=1e-6)


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary"}])
def test_numpy_aligns_as_torch_does(changes: dict[str, Any]) -> None:
    loaded = tiny_model(dtype=float64, **changes)
    model = NumpyModel(numpy_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    expected, found = align_by_attention(loaded, SOURCE, TARGET), align_by_numpy(model, SOURCE, TARGET)
    assert expected is not None
    assert found is not None
    assert found.weights == pytest.approx(expected.weights, abs=1e-6)  # the recorder of torch keeps float32
    assert (found.source_spans, found.target_spans) == (expected.source_spans, expected.target_spans)
    assert align_by_numpy(model, SOURCE, "") is None
