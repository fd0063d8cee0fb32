"""P(o | c): the probability that skip-gram gives to a word as a neighbor of another (Mikolov et al. 2013a, eq. 2).

    P(o | c) = exp(u_o . v_c) / sum over all w of exp(u_w . v_c)

u are the vectors by which words are predicted, v those by which they predict.
"""

from dataclasses import dataclass

import torch

from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.neighbours import WordVectors
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS


@dataclass(frozen=True)
class NeighbourProbability:
    """A word as the neighbor of another.

    Args:
        center: the word that predicts (c).
        outside: the word that is predicted (o).
        dot: u_o . v_c.
        probability: P(o | c) of the softmax over all pieces, also of a model that learned with noise words.
        rank: 1 for the likeliest neighbor of c among all words.
    """

    center: str
    outside: str
    dot: float
    probability: float
    rank: int


def neighbour_probability(loaded: LoadedModel, center: str, outside: str) -> NeighbourProbability:
    """Return the probability of a word as a neighbor of another, by a model of skip-gram or CBOW.

    Args:
        loaded: the model; CBOW predicts a word from one neighbor.
        center: c.
        outside: o.

    Raises:
        DataError: the model has no u and v.
        RecipeError: a word has no vector.
    """
    if not TASK_SPECS[loaded.config.task].within_window:
        raise DataError(
            f"was trained for {loaded.config.task}: P(o | c) is of skip-gram and CBOW, whose words have two vectors",
            file=loaded.folder,
        )
    words = WordVectors.from_model(loaded, "source")
    for word in (center, outside):
        if word not in words.rows:
            raise RecipeError(words.unknown_word_message(word))
    v_c, row = words[center], words.rows[outside]
    with torch.inference_mode():
        logits = loaded.model.output(torch.from_numpy(v_c)[None].to(loaded.model.output.weight))[0].double()
        log_probs = logits.log_softmax(-1)
    word_logits = logits[list(words.rows.values())]
    return NeighbourProbability(
        center,
        outside,
        float(logits[row]),
        float(log_probs[row].exp()),
        1 + int((word_logits > logits[row]).sum()),
    )
