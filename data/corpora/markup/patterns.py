"""Forms of text with tags or times that are known by how a file begins, and what makes texts of them."""

import re
from collections.abc import Mapping, Sequence

from tfm.data.corpora.markup.speech import CTM_REASON, EOL, STM_REASON, TIME

TALK_TAG = "<(?:url|keywords|speaker|talkid|title|description|reviewer|translator)>"
XML_DATASET = r"dataset\b[^>]*>\s*<(collection|doc)\b"
XML_DATASET_PATTERN = re.compile(rf"\s*(<\?xml[^>]*>\s*)?<{XML_DATASET}", re.IGNORECASE)
TEST_SET_PATTERN = re.compile(
    rf"\s*(<\?xml[^>]*>\s*)?<((!doctype\s+)?(mteval|srcset|refset|tstset)\b|{XML_DATASET})", re.IGNORECASE
)
"""How a test set of WMT or IWSLT in SGML or XML begins; those since 2021 have all sides in one file of XML."""
TEST_SET_REASON = (
    "is a test set as WMT had it, in SGML or XML: write the text of its <seg>, one a line, into a file, as by"
)
XML_PROLOG = r"\s*(<\?[^>]*>\s*|<!--(?:(?!-->)[\s\S])*-->\s*|<!DOCTYPE [^>]*>\s*)*"
STRING_LINES = r'[ \t]*\n([ \t]*".*"[ \t]*\n)*'
NO_PROBABILITY = r"(?!\S+[ \t]+[0-9]*\.[0-9])"
"""In place of a channel a lexicon has the probability of a pronunciation."""
MEMORY_REASON = (
    'is a translation memory: in a corpus set format = "{}" and path in place of source and target; else write its '
    "texts, one a line, into a file"
)
REASONS_BY_PATTERN: Mapping[re.Pattern[str], str] = {
    XML_DATASET_PATTERN: (
        f"{TEST_SET_REASON} python3 -c 'import sys; from xml.etree import ElementTree as E; "
        '[print(*"".join(s.itertext()).split()) for s in E.parse(sys.stdin.buffer).iterfind(".//ref[1]//seg")]\' <FILE '
        "(ref[2]: the second reference; src, hyp: other sides)"
    ),
    TEST_SET_PATTERN: (
        f"{TEST_SET_REASON} python3 -c 'import html, re, sys; [print(*html.unescape(s).split()) "
        'for s in re.findall("(?is)<seg\\\\b[^>]*>(.*?)</seg", sys.stdin.read())]\' <FILE'
    ),
    re.compile(rf"(?:.*\n)?\s*{TALK_TAG}.*\n\s*{TALK_TAG}|<CHAPTER ID="): (
        "has lines of tags, as talks of IWSLT and Europarl have them: leave these out of both files, as by grep -v '^<'"
    ),
    re.compile(rf"(<(?P<tag>s|seg|sent|sentence) [a-z]+=[^>]*>.*</(?P=tag)>[ \t]*{EOL}){{2}}"): (
        "has tags around its sentences: cut these, as by sed -E 's/^<[^>]*> *//; s/ *<\\/[a-z]+>[ \\t]*$//' FILE"
    ),
    re.compile(rf"{XML_PROLOG}<dictionary\b[^>]*>\s*<(alphabet|sdefs|pardefs|section)\b"): (
        "is a dictionary of Apertium: write its entries, as by lt-expand FILE (lttoolbox)"
    ),
    re.compile(r'<doc id="[^"]*" (?:url|title)='): (
        "has lines of tags around its articles, as WikiExtractor writes them: leave these out, as by "
        "grep -vE '^</?doc\\b' FILE"
    ),
    re.compile(rf"(\([0-4] \([0-4] .*\){EOL}){{2}}"): (
        "is trees with labels, as of the Stanford Sentiment Treebank: make a label and a text a line of them, as by "
        "sed -E 's/^\\(([0-4]) /\\1 /; s/\\([0-4] //g; s/\\)//g' FILE, and set format = \"labelled\""
    ),
    re.compile(r"S .*\nA -?[0-9]+ -?[0-9]+\|\|\|"): (
        "is M2, sentences with corrections: write the sentences into a file, and the corrected ones into another"
    ),
    re.compile(
        r"(--.*\n)*(-- (MySQL|MariaDB|PostgreSQL|SQLite)\b.* dump|PRAGMA foreign_keys=|INSERT INTO \S+.* VALUES\b)"
    ): ("is a dump of a database in SQL: export the table as CSV"),
    re.compile(rf"{XML_PROLOG}<tmx\b"): MEMORY_REASON.format("tmx"),
    re.compile(rf"{XML_PROLOG}<(\w+:)?xliff\b"): MEMORY_REASON.format("xliff"),
    re.compile(
        rf'(#.*\n|[ \t]*\n)*(msgctxt ".*"{STRING_LINES})?msgid ".*"{STRING_LINES}(msgid_plural|msgstr(\[0\])?) "'
    ): MEMORY_REASON.format("po"),
    re.compile(
        rf"([0-9]+ [0-9]+[ \t]*\n)?((?![0-9.-]+\s)\S+([ \t]-?[0-9]+\.[0-9]+(e-?[0-9]+)?){{4,}}[ \t]*{EOL}){{2}}"
    ): (
        "is word vectors, and no text: `tfm embed` reads them, and model.source_vectors and model.target_vectors of a "
        "recipe do"
    ),
    re.compile(r"(;;.*\n)*(SPEAKER|SPKR-INFO|LEXEME|NON-SPEECH)([ \t]+\S+){2}([ \t]+([0-9.]+|<NA>)){2}[ \t]+<NA>"): (
        "is RTTM, which has times of speakers and no texts"
    ),
    re.compile(
        rf"((;;.*\n)*(?=.*[0-9]\.[0-9]){NO_PROBABILITY}(\S+[ \t]+){{3}}{TIME}[ \t]+{TIME}([ \t].*)?"
        rf"{EOL}){{2}}|;; (CATEGORY|LABEL) "
    ): STM_REASON,
    re.compile(
        rf"((;;.*\n)*[ \t]*(?=.*[0-9]\.[0-9]){NO_PROBABILITY}(\S+[ \t]+){{2}}({TIME}[ \t]+){{2}}"
        rf"\S+([ \t]+-?[0-9.]+.*)?[ \t]*{EOL}){{2}}"
    ): CTM_REASON,
    re.compile(rf"([0-9]+ \|\|\| .*{EOL}){{2}}"): (
        "is a list of n best with their numbers, as of Moses: write one text of each number, one a line, into a file"
    ),
    re.compile(rf"([A-Z] ?\|.*\n|20[0-9-]+ .*\n)*([STHDP]-[0-9]+\t.*{EOL}){{2}}"): (
        "is what fairseq-generate prints: take its hypotheses, as by grep ^H- FILE | sort -V | cut -f3"
    ),
    re.compile(r"(WEBVTT\b.*\n|1\n(?=[0-9:]+[,.]))(.*\n)*?[0-9:]+[,.][0-9]{3} --> "): (
        "is subtitles with their times: write the text of each, one a line, into a file"
    ),
    re.compile(
        rf"\[Script Info\]|(\{{[0-9]+\}}\{{[0-9]+\}}.*{EOL}){{2}}|(\[[0-9]+:[0-9.:]+\].*{EOL}){{2}}"
        rf"|[0-9]+:[0-9]+:[0-9.]+,[0-9]+:[0-9]+:[0-9.]+{EOL}"
    ): ("is subtitles or lyrics with their times: write the text of each, one a line, into a file"),
    re.compile(r'File type = "ooTextFile|@UTF8\n@|@Begin\n'): (
        "is a transcript with times and codes (Praat's TextGrid, CHAT): write its texts, one a line, into a file"
    ),
    re.compile(r"#version: ?0\.[0-9]+\b.*\n\S+ \S+\n"): (
        "is codes of byte-pair encoding (merges.txt, subword-nmt), and no text: `tfm tokenize --from FILE` reads them"
    ),
    re.compile(r"[A-Za-z0-9+/]+={1,2} 0\n[A-Za-z0-9+/]+={0,2} 1\n[A-Za-z0-9+/]+={0,2} 2\n"): (
        "is ranks of tiktoken, and no text: `tfm tokenize --from FILE` reads them"
    ),
    re.compile(r"<unk>\t0\n<s>\t0\n</s>\t0\n"): (
        "is the vocabulary of a SentencePiece model, and no text: `tfm tokenize --from` reads the .model beside it"
    ),
    re.compile(r"# Sentence pair \([0-9]+\) source length"): (
        "is what GIZA++ aligned: give the two files of texts that it was made of"
    ),
    re.compile(r"T[0-9]+\t\S+ [0-9]+ [0-9]+(;[0-9]+ [0-9]+)*\t"): (
        "is standoff of brat, whose text is in the .txt beside it: write a word and its tag a line, as "
        'docs/external/spans_to_conll.py of tfm does, and set format = "conll"'
    ),
    re.compile(r"(#.*\n)*1(-[0-9]+)?\t([^\t\n]*\t){5}([0-9]+|_)\t([^\t\n]*\t){2}[^\t\n]*(\n|\Z)"): (
        'is CoNLL-U: in a corpus set format = "conllu"; else write the words or labels of a sentence in a line'
    ),
    re.compile(r"(%.*\n|[ \t]*\n)*@relation\s", re.IGNORECASE): (
        "is ARFF: export it as CSV, as by weka.core.converters.CSVSaver"
    ),
}
"""Why a file whose first lines match is no text a line, and what to do."""


def reason_by_head(lines: Sequence[str], reasons: Mapping[re.Pattern[str], str]) -> str | None:
    """The first of reasons whose pattern the beginning of a file matches. lines: the first of it."""
    head = "\n".join(lines)
    return next((reason for pattern, reason in reasons.items() if pattern.match(head)), None)
