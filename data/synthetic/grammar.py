"""The built-in English-German corpus: a synchronous grammar; each English sentence has exactly one German translation.

The splits are chosen by a hash of the English sentence, so they are disjoint whatever their sizes. The split
"combinations" has the sentences in which a lexeme occurs in a construction in which no other split has it.
The constructions are in data/synthetic/language/: simple.py, relative.py, subordinate.py.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b

from tfm.data.errors import DataError
from tfm.data.synthetic.language import lexicon, relative, simple, subordinate
from tfm.data.synthetic.language.phrases import Draw
from tfm.data.synthetic.language.sentence import Sentence

SPLITS = ("train", "valid", "test", "combinations")

Construction = Callable[[Draw], Sentence]

# Each construction and how often it comes up, in hundredths.
CONSTRUCTIONS: tuple[tuple[Construction, int], ...] = (
    (simple.statement, 11),
    (simple.negation, 9),
    (simple.modal, 9),
    (simple.fronted, 8),
    (simple.question, 8),
    (simple.who, 4),
    (simple.what, 4),
    (simple.where, 3),
    (simple.when_clause_sentence, 2),
    (simple.why, 2),
    (simple.predicate, 5),
    (simple.comparison, 3),
    (simple.existence, 3),
    (simple.age, 2),
    (simple.price, 2),
    (relative.relative_clause_on_subject, 6),
    (relative.relative_clause_on_object, 5),
    (subordinate.conjunction_last, 4),
    (subordinate.conjunction_first, 3),
    (subordinate.that_clause, 3),
    (subordinate.to_infinitive, 2),
    (subordinate.purpose, 1),
    (subordinate.coordination, 1),
)
_CONSTRUCTIONS_BY_WEIGHT = tuple(construction for construction, weight in CONSTRUCTIONS for _ in range(weight))

# What a clause can be, as constructions name it in `Sentence.uses`.
CLAUSES = (
    *("statement", "negation", "modal", "fronted", "question", "who", "what", "where", "when", "why"),
    *("predicate", "comparison", "existence", "age", "price", "coordination"),
    *("subject relative", "object relative", "prepositional relative", "genitive relative"),
    *("subordinate", "that clause", "infinitive", "purpose"),
)
_HELD_OUT_SHARE = 0.04


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


_LEXEMES = (
    *(noun.lexeme for noun in lexicon.NOUNS),
    *(adjective.lexeme for adjective in lexicon.ADJECTIVES),
    *(verb.lexeme for verb in lexicon.VERBS),
)
# The pairs (lexeme, clause) that train, valid and test do without, chosen by their hash.
HELD_OUT = frozenset(
    (lexeme, clause)
    for lexeme in _LEXEMES
    for clause in CLAUSES
    if _hash(f"{lexeme} in {clause}") < _HELD_OUT_SHARE * 2**64
)


def split_of(sentence: Sentence, fingerprint: int) -> str:
    """The split that `sentence` belongs to; `fingerprint` is the hash of its English."""
    if not sentence.uses.isdisjoint(HELD_OUT):
        return "combinations"
    return ("valid", "test", *("train",) * 8)[fingerprint % 10]


def sentences(split: str, size: int, seed: int) -> Iterator[Sentence]:
    """Yield different sentences, the same ones for the same arguments; a longer run begins alike.

    Args:
        split: one of SPLITS.
        size: the number of sentences.
        seed: of the draws.

    Raises:
        DataError: there is no such split.
    """
    if split not in SPLITS:
        raise DataError(f"the built-in grammar has no split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = Draw(f"{split} {seed}")
    seen: set[int] = set()
    while len(seen) < size:
        sentence = draw.one(_CONSTRUCTIONS_BY_WEIGHT)(draw)
        fingerprint = _hash(sentence.english)
        if fingerprint in seen or split_of(sentence, fingerprint) != split:
            continue
        seen.add(fingerprint)
        yield sentence


def generate(split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of English and German, a pure function of the arguments.

    Args:
        split: one of SPLITS.
        size: the number of pairs.
        seed: of the draws.
    """
    for sentence in sentences(split, size, seed):
        yield sentence.english, sentence.german
