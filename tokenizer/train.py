"""Training a tokenizer on streamed text: only the count of each word is kept, never the text."""

from collections import Counter
from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.config import LabelKind, TokenizerConfig
from tfm.tokenizer.kinds import KINDS
from tfm.tokenizer.labels import NORMALIZERS, names_in
from tfm.tokenizer.normalization import normalizer, spellable
from tfm.tokenizer.sentinels import add_sentinels
from tfm.tokenizer.special import SPECIALS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

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
        if self._kind.learn is None:
            return
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
        """The tokenizer; ids 0 to 3 are the control tokens, then the order that `tokenizer.learn` states, then
        sentinels."""
        self._fold()
        if self._kind.learn is None:
            return CodePoints(self._normalizer)
        room = self._config.vocab_size - self._config.sentinels
        learned = self._kind.learn(self._words, self._config.model_copy(update={"vocab_size": room}))
        whole = tokenizers.Tokenizer(learned)
        whole.normalizer = self._normalizer
        if self._kind.pre_tokenizer is not None:
            whole.pre_tokenizer = self._kind.pre_tokenizer
        whole.decoder = self._kind.decoder
        return _with_specials(whole, self._config.sentinels)

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


class NamesTrainer:
    """Counts the names in texts, then makes their vocabulary: all of them, the most frequent numbered first."""

    def __init__(self, kind: LabelKind) -> None:
        self._kind = kind
        self._seen: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the names of one text."""
        self._seen.update(names_in(spellable(text), self._kind))

    @property
    def num_words(self) -> int:
        """How many different names were seen."""
        return len(self._seen)

    def learn(self) -> Tokenizer:
        """The tokenizer of the names."""
        names = sorted(self._seen, key=lambda name: (-self._seen[name], name))
        pieces = [*SPECIALS, *(" " + name for name in names)]
        whole = tokenizers.Tokenizer(models.WordLevel({name: i for i, name in enumerate(pieces)}, unk_token=UNK))
        whole.normalizer = NORMALIZERS[self._kind]
        split = self._kind == "tags"
        whole.pre_tokenizer = pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="always", split=split)
        # the first piece's space alone goes: a label may hold some
        whole.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        return _with_specials(whole)


def _with_specials(whole: tokenizers.Tokenizer, sentinels: int = 0) -> Tokenizer:
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in SPECIALS])
    add_sentinels(whole, sentinels)
    return Tokenizer(whole)


def train(texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """A tokenizer learned from texts, each read once and not kept."""
    trainer = TokenizerTrainer(config)
    for text in texts:
        trainer.add(text)
    return trainer.learn()
