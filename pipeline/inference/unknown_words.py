"""Unknown words of a translation, each replaced by the word of the source that it is aligned to (Luong et al. 2015,
"Addressing the Rare Word Problem in Neural Machine Translation").
"""

from collections.abc import Mapping, Sequence

from tfm.pipeline.alignment.extraction import SentencePair, WordAligner
from tfm.pipeline.alignment.word_pieces import UNKNOWN_MARK, PieceToWordMapper, Weights
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import UNK_ID

CHUNK_PAIRS = 512


class UnknownWordReplacer:
    """Replaces unknown words in translations by words of the source.

    The attention that aligns is that of the head trained to align, or the mean of the heads of the last layer.

    Args:
        loaded: the model.
        dictionary: translations of words of the source; a word that it lacks is copied.

    Raises:
        RecipeError: the model's words are not the pieces of its target, or it does not align words.
    """

    def __init__(self, loaded: LoadedModel, dictionary: Mapping[str, str] | None = None) -> None:
        if isinstance(loaded.model, Ensemble):
            raise RecipeError("decoding.replace_unknown: an ensemble has no one attention: give a single model")
        if not loaded.target_tokenizer.is_word_level:
            raise RecipeError(
                f"{loaded.folder}: decoding.replace_unknown is for vocabularies of words (tokenizer.kind = "
                '"word"): this model writes pieces, of which it spells every word. Remove it'
            )
        self._aligner = WordAligner(loaded)
        self._head = self._aligner.choose_head()
        self._words = PieceToWordMapper(loaded.target_tokenizer)
        self._dictionary = dictionary or {}

    def replace_unknown(self, sources: Sequence[str], hypotheses: Sequence[Sequence[int]]) -> dict[int, str]:
        """Return the texts of the hypotheses that have unknown words, by their places.

        Args:
            sources: the text of each hypothesis' source.
            hypotheses: ids.
        """
        rows = [row for row, ids in enumerate(hypotheses) if UNK_ID in ids]
        texts: dict[int, str] = {}
        for first in range(0, len(rows), CHUNK_PAIRS):
            batch = rows[first : first + CHUNK_PAIRS]
            pairs = [SentencePair(sources[row], self._words.decode_marking_unknown(hypotheses[row])) for row in batch]
            attention = self._aligner.attention_weights(pairs, [self._head], truncate=True)
            for row, pair, (weights,) in zip(batch, pairs, attention, strict=True):
                texts[row] = self._replace(pair, weights)
        return texts

    def _replace(self, pair: SentencePair, weights: Weights) -> str:
        target_words, source_words = pair.target.split(), pair.source.split()
        for index, word in enumerate(target_words):
            if word != UNKNOWN_MARK:
                continue
            word_weights = weights[index] if index < len(weights) else weights[:0]
            source = source_words[int(word_weights.argmax())] if word_weights.size and word_weights.max() > 0 else ""
            target_words[index] = self._dictionary.get(source, source)
        return " ".join(filter(None, target_words))
