"""Lines that have labels, but no columns of words and labels: they are sentences, or spans with numbers."""

import re
from itertools import islice
from pathlib import Path

from tfm.data.formats.conll.schemes import are_entity_tags
from tfm.data.formats.conll.separators import MAX_ROWS_SAMPLED
from tfm.data.lines import open_lines

TAGGED_WORD_PATTERNS = {mark: re.compile(rf"[^{mark}]+(?:[{mark}][^{mark}]+)+") for mark in ("|", "/", "_")}
"""Words with their labels behind a mark: Anna|NNP|B-PER."""
MIN_WORDS_OF_SENTENCE = 3
"""Fewer words with a mark each, on average, may be a date or a path."""
ENTITY_NAMES = "PER|PERS|LOC|ORG|MISC|GPE|PERSON|LOCATION|ORGANIZATION"
INLINE_TAG_PATTERN = re.compile(
    rf"<(?:{ENTITY_NAMES})>[^<]+</|<START:[\w-]+> |<(?:ENAMEX|NUMEX|TIMEX)\b|\[(?:{ENTITY_NAMES}) [^][]+\]"
)
"""Tags of entities around their words, as of OpenNLP, MUC and NLTK."""
MAX_TEXTS_SAMPLED, MAX_SENTENCES_OF_WORDS = 20, 3
"""Sentences that are looked at for tags around entities, of which most have some; and for marks at every word."""
WEBANNO_BEGIN = "#FORMAT=WebAnno TSV"


def are_tagged_sentences(path: Path) -> bool:
    """Whether the first lines are a sentence each and, behind a tab, as many tags, as of ATIS; the last tag may be the
    sentence's label.
    """
    lines = islice((line.split("\t") for line in open_lines(path) if line.strip()), MAX_ROWS_SAMPLED)
    rows = [[cell.split() for cell in line] for line in lines]
    if not rows or any(len(row) != 2 or len(row[0]) != len(row[1]) for row in rows):
        return False
    tags = [tag for _, labels in rows for tag in labels[:-1]]
    return bool(tags) and are_entity_tags(tags)


def tagged_words_problem(path: Path) -> str | None:
    """Why lines have no columns of words and labels: each is a sentence of words with labels behind a mark, in the
    first of them, or with their tags behind a tab; or spans have numbers, as in WebAnno.
    """
    if next(open_lines(path), "").startswith(WEBANNO_BEGIN):
        return 'is TSV of WebAnno or INCEpTION: export it as CoNLL 2002, and set format = "conll"'
    if are_tagged_sentences(path):
        return 'its lines are sentences with their tags: set format = "tsv", source = 0, target = 1'
    texts = list(islice(filter(str.strip, open_lines(path)), MAX_TEXTS_SAMPLED))
    matches = [match for text in texts if (match := INLINE_TAG_PATTERN.search(text)) is not None]
    if 2 * len(matches) > len(texts):
        remedy = 'write a word and its tag a line, and set format = "conll"'
        return f"its lines are sentences with tags around entities ({matches[0][0][:40]}): {remedy}"
    lines = [text.split() for text in texts[:MAX_SENTENCES_OF_WORDS]]
    words = [word for line in lines for word in line]
    if not lines or len(words) < MIN_WORDS_OF_SENTENCE * len(lines):
        return None
    mark = next((mark for mark, pattern in TAGGED_WORD_PATTERNS.items() if all(map(pattern.fullmatch, words))), None)
    if mark is None:
        return None
    label = "s/[|]/\\t/g" if mark == "|" else rf"s/[{mark}]([^{mark}]*)$/\t\1/"
    remedy = rf"""write a word and its label a line, as by sed -E 's/ +/\n/g; s/$/\n/' FILE | sed -E '{label}'"""
    return f'its lines are sentences of words with their labels ({words[0]:.40}): {remedy}, and set format = "conll"'
