"""Hidden states are the rows of the network, read one text at a time and layer by layer."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.layout import Layout
from tfm.model.masks import causal_mask, padding_mask
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.hidden_states import TEXTS_PER_BATCH, encode_texts, similar_pairs
from tfm.tokenizer.special import BOS_ID, EOS_ID

F64 = torch.float64
MODELS: dict[str, dict[str, Any]] = {
    "translation": {},
    "post-norm": {"norm": "post"},
    "masked": {"architecture": "encoder_only", "task": "masked_language_model"},
    "begin token": {"architecture": "encoder_only", "task": "classification", "begin_token": True},
    "language model": {"architecture": "decoder_only", "task": "language_model"},
    "decoder-only translation": {"architecture": "decoder_only"},
}


def rows_by_hand(loaded: Any, text: str, layer: int | None) -> torch.Tensor:
    """The rows of one text, its layers applied one after the other."""
    model, config, ids = loaded.model, loaded.config, loaded.source_tokenizer.encode(text)
    before = [BOS_ID] if config.begin_token or config.task == "language_model" else []
    after = [] if config.task == "language_model" else [EOS_ID]
    layout = Layout.from_lengths(torch.tensor([len(before) + len(ids) + len(after)]), "cpu")
    causal = config.architecture == "decoder_only"
    embedding = model.source_embedding if config.architecture == "transformer" else model.embedding
    rows = embedding(torch.tensor([*before, *ids, *after]), layout.positions)
    for each in (model.layers if causal else model.encoder)[:layer]:
        rows = each(rows, layout, (causal_mask if causal else padding_mask)(layout))
    if layer is None:
        rows = (model.norm if causal else model.encoder_norm)(rows)
    return rows[len(before) : len(before) + len(ids)]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layer", [None, 0, 1, 2])
def test_the_vectors_are_those_of_the_layer(name: str, layer: int | None) -> None:
    loaded = tiny_model(dtype=F64, **MODELS[name])
    for text, found in zip(TEXTS, encode_texts(loaded, TEXTS, layer=layer, unit="piece"), strict=True):
        with torch.no_grad():
            wanted = rows_by_hand(loaded, text, layer).numpy()
        assert found.text == text
        assert "".join(found.tokens).strip() == text
        np.testing.assert_allclose(found.vectors, wanted, rtol=1e-6)


def recurrent_rows_by_hand(loaded: Any, text: str, layer: int | None) -> torch.Tensor:
    """The rows of one text by a recurrent encoder, step by step in each direction."""
    model, ids = loaded.model, torch.tensor([*loaded.source_tokenizer.encode(text), EOS_ID])
    rows = model.source_embedding(ids, torch.arange(len(ids)))
    for parts in model.encoder.layers[:layer]:
        by_direction = []
        for part, backward in zip(parts, model.encoder.backward, strict=True):
            states, hidden = part.zero_states(rows, 1), []
            for row in rows.flip(0) if backward else rows:
                states = part.step(part.input(row[None]), states)
                hidden.append(states[0][0])
            by_direction.append(torch.stack(hidden[::-1] if backward else hidden))
        rows = torch.cat(by_direction, -1)
    return rows[:-1]


@pytest.mark.parametrize("recurrent", [{}, {"cell": "gru", "reverse_source": True}, {"bidirectional": True}])
@pytest.mark.parametrize("layer", [None, 0, 1, 2])
def test_a_recurrent_encoder_gives_its_states(recurrent: dict[str, Any], layer: int | None) -> None:
    loaded = tiny_model(dtype=F64, architecture="recurrent", recurrent=recurrent)
    for text, found in zip(TEXTS, encode_texts(loaded, TEXTS, layer=layer, unit="piece"), strict=True):
        with torch.no_grad():
            wanted = recurrent_rows_by_hand(loaded, text, layer).numpy()
        assert "".join(found.tokens).strip() == text
        np.testing.assert_allclose(found.vectors, wanted, rtol=1e-6, atol=1e-9)


def test_words_and_texts_have_the_mean_of_their_pieces() -> None:
    loaded = tiny_model(dtype=F64)
    texts = [*TEXTS, "a dog"] * (TEXTS_PER_BATCH // 2)
    pieces, words, wholes = (encode_texts(loaded, texts, layer=1, unit=unit) for unit in ("piece", "word", "text"))
    for text, piece, word, whole in zip(texts, pieces, words, wholes, strict=True):
        assert word.tokens == text.split()
        assert whole.tokens == [text]
        np.testing.assert_allclose(whole.vectors, piece.vectors.mean(0, dtype=np.float64)[None], rtol=1e-5, atol=1e-7)
        starts = [place for place, token in enumerate(piece.tokens) if token.startswith(" ")]
        parts = np.split(piece.vectors.astype(np.float64), starts[1:])
        np.testing.assert_allclose(word.vectors, [part.mean(0) for part in parts], rtol=1e-5, atol=1e-7)


def test_a_word_differs_by_its_context_and_not_in_the_embedding_alone() -> None:
    loaded = tiny_model(dtype=F64, positions="none")
    texts = ["a dog runs .", "two dog sit ."]
    inside, alone = (encode_texts(loaded, texts, layer=layer, unit="word") for layer in (2, 0))
    assert np.array_equal(alone[0].vectors[1], alone[1].vectors[1])
    (dog, dot) = sorted(similar_pairs(alone, "word", 10), key=lambda each: each.first == ".")
    assert (dog.first, dog.second, dog.in_first, dog.in_second) == ("dog", "dog", 1, 2)
    assert dot.cosine == pytest.approx(1)
    one, other = inside[0].vectors[1].astype(float), inside[1].vectors[1].astype(float)
    cosine = one @ other / np.sqrt((one @ one) * (other @ other))
    (dog, _) = sorted(similar_pairs(inside, "word", 10), key=lambda each: each.first == ".")
    assert dog.cosine == pytest.approx(cosine, abs=1e-6)
    assert dog.cosine < 0.999


def test_pairs_are_of_all_texts_or_within_one() -> None:
    found = encode_texts(tiny_model(), TEXTS, layer=None, unit="text")
    assert [{each.in_first, each.in_second} for each in similar_pairs(found, "text", 2)] != []
    assert len(similar_pairs(found, "text", 10)) == 3
    words = encode_texts(tiny_model(), TEXTS[:1], layer=None, unit="word")
    assert len(similar_pairs(words, "word", 100)) == 7 * 6 // 2


@pytest.mark.parametrize(
    ("changes", "text", "layer", "problem"),
    [
        ({}, "a dog", 3, r"layer \(3\) is too large: this model has 2"),
        ({}, " ", None, "has no pieces: it has no vectors"),
        ({}, "dog " * 96, None, "the model reads at most 95"),
        ({"architecture": "recurrent"}, "a dog", 3, r"layer \(3\) is too large: this model has 2"),
    ],
)
def test_what_has_no_vectors_is_refused(changes: dict[str, Any], text: str, layer: int | None, problem: str) -> None:
    with pytest.raises((DataError, RecipeError), match=problem):
        encode_texts(tiny_model(**changes), [text], layer=layer, unit="piece")
