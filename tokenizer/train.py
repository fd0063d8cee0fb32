"""Training a tokenizer on text that streams by: what is kept is how often each word was seen, never the text."""

from collections import Counter
from collections.abc import Iterable

import tokenizers

from tokenizer.config import TokenizerConfig
from tokenizer.kinds import KINDS
from tokenizer.normalization import normalizer, spellable
from tokenizer.special import SPECIALS
from tokenizer.tokenizer import Tokenizer

# How many different unnormalised words may wait; in a script without spaces a "word" is a whole line.
WAITING = 200_000


class TokenizerTrainer:
    """Counts the words of texts, then learns a tokenizer from them: `add` each text, `learn` once."""

    def __init__(self, config: TokenizerConfig) -> None:
        self._config = config
        self._kind = KINDS[config.kind]
        self._normalizer = normalizer(config)
        self._first: Counter[str] = Counter()
        self._later: Counter[str] = Counter()
        self._words: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the words of one text."""
        # Cut at spaces first: normalising and cutting a word once, not each time it comes, is several times
        # faster, and neither ever looks across a space.
        first, *later = text.strip(" ").split(" ")
        self._first[first] += 1
        self._later.update(later)
        if len(self._first) + len(self._later) > WAITING:
            self._fold()

    @property
    def num_words(self) -> int:
        """How many different words were seen."""
        self._fold()
        return len(self._words)

    def learn(self) -> Tokenizer:
        """The tokenizer; ids 0 to 3 are the control tokens, then the order that `tokenizer.learn` states."""
        self._fold()
        whole = tokenizers.Tokenizer(self._kind.learn(self._words, self._config))
        whole.normalizer = self._normalizer
        if self._kind.pre_tokenizer is not None:
            whole.pre_tokenizer = self._kind.pre_tokenizer
        whole.decoder = self._kind.decoder
        whole.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in SPECIALS])
        return Tokenizer(whole)

    def _fold(self) -> None:
        for lead, waiting in (("", self._first), (" ", self._later)):
            for word, count in waiting.items():
                normalized = self._normalizer.normalize_str(spellable(word))
                if normalized:
                    for piece in self._cut(lead + normalized):
                        self._words[piece] += count
            waiting.clear()

    def _cut(self, text: str) -> list[str]:
        if self._kind.pre_tokenizer is None:
            return [text]
        return [word for word, _ in self._kind.pre_tokenizer.pre_tokenize_str(text)]


def train(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """A tokenizer learned from texts, each looked at once and not kept."""
    trainer = TokenizerTrainer(config)
    for text in texts:
        trainer.add(text)
    return trainer.learn()
