"""The built-in English-German corpus: a synchronous grammar; each English sentence has exactly one German translation.

The splits are chosen by a hash of the English sentence, so they are disjoint whatever their sizes. The split
"combinations" has the sentences in which a lexeme occurs in a construction in which no other split has it.
The constructions are in data/synthetic/language/: simple.py, relative.py, subordinate.py.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b

from tfm.data.errors import DataError
from tfm.data.synthetic.language import lexicon, relative, simple, subordinate
from tfm.data.synthetic.language.phrases import SeededRandom
from tfm.data.synthetic.language.sentence import Sentence

SPLITS = ("train", "valid", "test", "combinations")

Construction = Callable[[SeededRandom], Sentence]

# Each construction and how often it comes up, in hundredths.
CONSTRUCTIONS: tuple[tuple[Construction, int], ...] = (
    (simple.statement, 11),
    (simple.negated_statement, 9),
    (simple.modal_statement, 9),
    (simple.fronted_statement, 8),
    (simple.yes_no_question, 8),
    (simple.subject_question, 4),
    (simple.object_question, 4),
    (simple.place_question, 3),
    (simple.time_question, 2),
    (simple.reason_question, 2),
    (simple.quality_statement, 5),
    (simple.comparison, 3),
    (simple.existence_statement, 3),
    (simple.age_statement, 2),
    (simple.price_statement, 2),
    (relative.relative_clause_on_subject, 6),
    (relative.relative_clause_on_object, 5),
    (subordinate.trailing_subordinate_clause, 4),
    (subordinate.leading_subordinate_clause, 3),
    (subordinate.that_clause, 3),
    (subordinate.infinitive_sentence, 2),
    (subordinate.purpose_sentence, 1),
    (subordinate.coordination, 1),
)
_CONSTRUCTIONS_BY_WEIGHT = tuple(construction for construction, weight in CONSTRUCTIONS for _ in range(weight))

# What a clause can be, as constructions name it in `Sentence.uses`.
CLAUSE_KINDS = (
    *("statement", "negation", "modal", "fronted", "question", "who", "what", "where", "when", "why"),
    *("predicate", "comparison", "existence", "age", "price", "coordination"),
    *("subject relative", "object relative", "prepositional relative", "genitive relative"),
    *("subordinate", "that clause", "infinitive", "purpose"),
)
_HELD_OUT_SHARE = 0.04


def _hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


_LEXEMES = (
    *(noun.lexeme for noun in lexicon.NOUNS),
    *(adjective.lexeme for adjective in lexicon.ADJECTIVES),
    *(verb.lexeme for verb in lexicon.VERBS),
)
# The pairs (lexeme, clause) that train, valid and test do without, chosen by their hash.
HELD_OUT_LEXEME_CLAUSES = frozenset(
    (lexeme, clause)
    for lexeme in _LEXEMES
    for clause in CLAUSE_KINDS
    if _hash_text(f"{lexeme} in {clause}") < _HELD_OUT_SHARE * 2**64
)


def split_of(sentence: Sentence, fingerprint: int) -> str:
    """The split that `sentence` belongs to; `fingerprint` is the hash of its English."""
    if not sentence.uses.isdisjoint(HELD_OUT_LEXEME_CLAUSES):
        return "combinations"
    return ("valid", "test", *("train",) * 8)[fingerprint % 10]


def generate_sentences(split: str, size: int, seed: int) -> Iterator[Sentence]:
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
    draw = SeededRandom(f"{split} {seed}")
    seen: set[int] = set()
    while len(seen) < size:
        sentence = draw.choice(_CONSTRUCTIONS_BY_WEIGHT)(draw)
        fingerprint = _hash_text(sentence.english)
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
    for sentence in generate_sentences(split, size, seed):
        yield sentence.english, sentence.german
