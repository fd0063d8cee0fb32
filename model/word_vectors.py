"""Word vectors: skip-gram and CBOW (Mikolov et al. 2013a), networks of two tables with no layer between them.

The input vector v_w of a word predicts its neighbors, the output vector v'_w is predicted; the output vectors are the
weight of the output layer. The word vectors of every other network are found here too.
Legend: N words · P pairs of a word and a neighbor · n predictions · D width · V vocabulary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfm.model.layers.dropout import DropoutRng
from tfm.model.layers.linear import Linear

PredictionInputs = tuple[Tensor, Tensor, Tensor]
PredictionRule = Callable[[nn.Embedding, Tensor, Tensor, Tensor], PredictionInputs]


class WordVectors(nn.Module):
    """Words and their neighbors -> the input of the output layer, and the words to predict.

    frequencies (V,): the share of each word in the training text, 0 for pieces that are no words; even shares until
    the text is known.

    Args:
        table: the input vectors.
        output: the output layer.
        reading: function that pairs predicting and predicted words, one of READINGS.
        dropout_rng: fixes every draw.
        max_length: most words of a sentence.
    """

    frequencies: Tensor

    def __init__(
        self, *, table: nn.Embedding, output: Linear, reading: PredictionRule, dropout_rng: DropoutRng, max_length: int
    ) -> None:
        super().__init__()
        self.table, self.output, self.reading = table, output, reading
        self.dropout_rng, self.max_length = dropout_rng, max_length
        self.register_buffer("frequencies", torch.full((table.num_embeddings,), 1 / table.num_embeddings))

    def forward(self, words: Tensor, centres: Tensor, neighbours: Tensor) -> PredictionInputs:
        """Return the vectors that predict, and the places of the words that they predict.

        Args:
            words: ids (N,).
            centres: places (P,) of words.
            neighbours: places (P,) of their neighbors.

        Returns:
            Rows (n, D); the place (n,) of the word whose window each is of; the place (n,) of the word to predict.
        """
        return self.reading(self.table, words, centres, neighbours)


def predict_neighbours(table: nn.Embedding, words: Tensor, centres: Tensor, neighbours: Tensor) -> PredictionInputs:
    """Skip-gram: the vector of a word predicts each of its neighbors, p(w_j | w_i): n = P.

    Args:
        table: the input vectors.
        words: ids (N,).
        centres: places (P,) of words.
        neighbours: places (P,) of their neighbors.

    Returns:
        Rows (n, D); the place (n,) of the word whose window each is of; the place (n,) of the word to predict.
    """
    return table(words.index_select(0, centres)), centres, neighbours


def predict_centre(table: nn.Embedding, words: Tensor, centres: Tensor, neighbours: Tensor) -> PredictionInputs:
    """CBOW: the mean of its neighbors' vectors predicts a word: n words, those that have neighbors.

    Args:
        table: the input vectors.
        words: ids (N,).
        centres: places (P,) of words.
        neighbours: places (P,) of their neighbors.

    Returns:
        Rows (n, D); the place (n,) of the word whose window each is of; the place (n,) of the word to predict.
    """
    rows = table(words.index_select(0, neighbours))
    sums = rows.new_zeros(len(words), rows.shape[1]).index_add(0, centres, rows)
    num_neighbours = torch.bincount(centres, minlength=len(words))
    has_context = num_neighbours.nonzero().squeeze(1)
    return sums.index_select(0, has_context) / num_neighbours[has_context].unsqueeze(1), has_context, has_context


PREDICTION_RULES: dict[str, PredictionRule] = {"skip_gram": predict_neighbours, "cbow": predict_centre}


def neighbour_pairs(sentence: Tensor, window_sizes: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Return the places (P,) of words and of their neighbors, words of one sentence at most `window_sizes` apart.

    Args:
        sentence: (N,), the number of each word's sentence, whose words stand together.
        window_sizes: (N,), from 1 to `window`.
        window: the largest reach.
    """
    positions = torch.arange(len(sentence), device=sentence.device)
    centres, neighbours = [positions[:0]], [positions[:0]]
    for distance in range(1, min(window, len(sentence) - 1) + 1):
        left, right = positions[:-distance], positions[distance:]
        is_same_sentence = sentence[:-distance] == sentence[distance:]
        for centre, neighbour in ((left, right), (right, left)):
            is_reached = is_same_sentence & (window_sizes[centre] >= distance)
            centres.append(centre[is_reached])
            neighbours.append(neighbour[is_reached])
    return torch.cat(centres), torch.cat(neighbours)


def embedding_table(model: Any, side: str) -> nn.Module:
    """Return the table of a network's vectors of a side's words: ids (N,) -> (N, E); a network with one table has it
    for both sides.
    """
    holder = getattr(model, f"{side}_embedding", None) or getattr(model, "embedding", model)
    table: nn.Module = holder.table
    return table
