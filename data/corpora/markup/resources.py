"""Dictionaries, annotated corpora, features and models that are files of lines, but not of a text a line: named with
what makes texts of them.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from tfm.data.corpora.markup.patterns import reason_by_head
from tfm.data.corpora.markup.speech import EOL
from tfm.data.corpora.tables.layouts import LANGUAGE_CODE

NUMBER = r"[-+]?[0-9][0-9.]*"
MIN_YAML_LINES = 3
TSV_ADVICE = 'and set format = "tsv"'
REASONS_BY_PATTERN: Mapping[re.Pattern[str], str] = {
    re.compile(r"#!MLF!#"): (
        "is labels of HTK (MLF): write those of each recording in a line, as by awk '/^[#\"]/ {next} "
        '$0 == "." {print ""; next} {printf "%s ", (NF > 2 ? $3 : $1)}\' FILE'
    ),
    re.compile(rf'(?:\( *\S+ +"[^\n]*" *\) *{EOL}){{2}}'): (
        "is transcripts with names of recordings, as of Festival: cut the texts, as by "
        r"""sed -E 's/^\( *[^ ]+ +"(.*)" *\) *$/\1/' FILE"""
    ),
    re.compile(rf"# CC-CEDICT|(?:\S+ \S+ \[[^\]\n]*\] /.*/[ \t]*{EOL}){{2}}"): (
        "is a dictionary as CC-CEDICT has it: make TSV of words and their first translations, as by "
        r"sed -nE 's|^[^# ]+ ([^ ]+) \[[^]]*\] /([^/]*).*|\1\t\2|p' FILE, " + TSV_ADVICE
    ),
    re.compile(rf"(?:.*/EDICT.*\n)?(?:\S+ (?:\[[^\]\n]+\] )?/\([^)\n]+\) .*/[ \t]*{EOL}){{2}}"): (
        "is a dictionary as EDICT has it: make TSV of words and their first translations, as by "
        r"sed -nE 's|^([^ ]+) [^/]*/(\([^)]*\) *)*([^/]*).*|\1\t\3|p' FILE, " + TSV_ADVICE
    ),
    re.compile(rf"(?:[^:<\n]+(?:<[\w.@-]+>)*:(?:[<>]:)?[^:<\n]+(?:<[\w.@-]+>)+{EOL}){{2}}"): (
        "is a dictionary as lt-expand of Apertium writes it: make TSV of it, as by "
        r"sed -E 's/<[^<>:]*>//g; s/:([<>]:)?/\t/' FILE, which cuts its tags, " + TSV_ADVICE
    ),
    re.compile(rf'(?:;.*\n|MNCL\n)*(?:\( *"[^"\n]+" +\S+ +\(.*\) *\) *{EOL}){{2}}'): (
        "is a lexicon of Festival: make TSV of it, as by "
        r"""sed -nE 's/^\( *"([^"]+)" +[^ ]+ +(.*)\) *$/\1\t\2/; /\t/ {s/[()]//g; s/ +[0-9]\b//g; s/ +$//; p}' FILE, """
        + TSV_ADVICE
    ),
    re.compile(rf"(?:[0-9]+(?:\\[^\\\n]*){{3,}}{EOL}){{2}}"): (
        r"is a lexicon whose columns stand between backslashes, as CELEX: make TSV of it, as by tr '\\' '\t' < FILE, "
        + TSV_ADVICE
    ),
    re.compile(rf"[1-4A-Z][A-Z0-9]{{2}} 1:1 .+\n(?:[1-4A-Z][A-Z0-9]{{2}} [0-9]+:[0-9]+ .+{EOL}){{2}}"): (
        "has names of verses before its texts, which would be words: cut them, as by "
        "sed -E 's/^[^ ]+ [0-9]+:[0-9]+ //' FILE, in files that have the same verses"
    ),
    re.compile(r"###[0-9]+\n(?:[A-Z]+\t.*\n)+"): (
        "is sentences with their classes below numbers of abstracts (PubMed RCT): leave these out, as by "
        r"sed -nE '/\t/p' FILE, " + TSV_ADVICE + ", source = 1, target = 0"
    ),
    re.compile(r"[0-9]+\|t\|.*\n[0-9]+\|a\|"): (
        "is PubTator, texts and spans of their entities: write a word and its tag a line, and set format = " + '"conll"'
    ),
    re.compile(rf"(?:(?:\S+:(?:O|[BI]-\S+) )+<=> \S+ *{EOL}){{2}}"): (
        "is words with their tags, and intents behind <=>: make TSV of words and tags, as by "
        """awk '{text = tags = ""; for (i = 1; $i != "<=>"; i++) {n = match($i, /:[^:]*$/); """
        """text = text (i > 1 ? " " : "") substr($i, 1, n - 1); tags = tags (i > 1 ? " " : "") substr($i, n + 1)} """
        r"""print text "\t" tags}' FILE, """ + TSV_ADVICE
    ),
    re.compile(
        rf"(?:#.*\n)*(?:[a-z][0-9]{{2}}-[0-9]{{3}}[a-z]?(?:-[0-9]{{2}}){{1,2}} (?:ok|err)(?: -?[0-9]+){{5}}"
        rf".*{EOL}){{2}}"
    ): (
        "is texts of pictures, as of IAM: write metadata.csv beside these, as by "
        r"""awk 'BEGIN {print "file_name,text"} /^#/ {next} {text = $NF; gsub(/\|/, " ", text); """
        r"""gsub(/"/, "\"\"", text); print $1 ".png,\"" text "\""}' FILE"""
    ),
    re.compile(rf"(?:\[[0-9, ]*\]:\[[0-9, ]*\](?::[0-9.]+)?{EOL}){{2}}"): (
        "holds links of sentences by their numbers, not texts: give the texts that were aligned"
    ),
    re.compile(rf"(?:{NUMBER}(?:,[0-9]+)*(?: [0-9]+:[-+0-9.eE]+)+ *{EOL}){{2}}"): (
        "holds numbers of features (LIBSVM), which are no texts: give the texts that they were computed from"
    ),
    re.compile(
        rf"(?:{NUMBER}(?: [0-9.]+){{0,2}} ?(?:'?[\w.-]+ ?)?\|"
        rf"(?:[A-Za-z]\w*(?::[0-9.]+)? .*|\w*(?: \S+:[-0-9.]+)+.*){EOL}){{2}}"
    ): (
        "is labels and features as Vowpal Wabbit has them: make TSV of labels and texts, as by "
        r"sed -E 's/^([^ ]+)[^|]*\|[^ ]* +/\1\t/' FILE, and set format = " + '"tsv", source = 1, target = 0'
    ),
    re.compile(r"\s*\\data\\[ \t]*\n\s*ngram 1="): "is a language model of n-grams (ARPA), not a text",
    re.compile(r"(?:#.*\n|[ \t]*\n)*# ::(?:id|snt) "): (
        "is AMR, sentences and graphs: make TSV of them, as by awk '/^# ::snt / {text = substr($0, 9)} "
        r"""/^#/ {next} NF {gsub(/^ +/, ""); graph = graph (graph ? " " : "") $0; next} """
        r"""graph {print text "\t" graph; graph = ""} END {if (graph) print text "\t" graph}' FILE, """ + TSV_ADVICE
    ),
    re.compile(rf"(?:IN: .* OUT: .*{EOL}){{2}}"): (
        r"holds both sides in a line, as SCAN: make TSV of it, as by sed -E 's/^IN: (.*) OUT: /\1\t/' FILE, "
        + TSV_ADVICE
    ),
    re.compile(rf"1 .*\n(?:[0-9]+ .*\n)*[0-9]+ .*\t.*\t[0-9 ]+{EOL}"): (
        "is stories with questions, as bAbI: make TSV of texts and answers, as by awk -F'\\t' '/^1 / {story = \"\"} "
        r"""{sub(/^[0-9]+ /, "")} NF > 1 {print story $1 FS $2; next} {story = story $0 " "}' FILE, """ + TSV_ADVICE
    ),
    re.compile(r"text:[^\t\n]*\t(?:eval_)?labels:"): (
        "is dialogues of ParlAI, whose cells begin with their names: cut these, as by "
        r"sed -E 's/^text:([^\t]*)\t[a-z_]+:([^\t]*).*/\1\t\2/' FILE, " + TSV_ADVICE
    ),
    re.compile(rf"(?:.* __eou__[ \t]*{EOL}){{2}}"): (
        "holds a dialogue a line, its turns before __eou__: make TSV of turns and answers, as by "
        r"""awk -F' *__eou__ *' '{for (i = 1; i < NF - 1; i++) print $i "\t" $(i + 1)}' FILE, """ + TSV_ADVICE
    ),
    re.compile(rf"(?:\$[A-Za-z'-]+\n(?:[^$\n]+{EOL})+){{3}}"): (
        "is words (behind $) and how they were misspelled: make TSV of them, as by "
        r"""awk '/^\$/ {word = substr($0, 2); next} {print $1 "\t" word}' FILE, """ + TSV_ADVICE
    ),
    re.compile(rf'[0-9]+\t".*<e1>.*\n.*\n(?:Comment.*)?{EOL}'): (
        "is sentences with relations of entities, as SemEval: make TSV of them, as by "
        r"""awk -F'\t' 'NF > 1 {text = $2; getline; print text FS $1}' FILE, """ + TSV_ADVICE
    ),
    re.compile(r"1 (?:your|partner's) persona: |1 [^\t\n]*\t[^\t\n]*\t\t[^\t\n]*\|.*\n2 "): (
        "is dialogues of numbered lines, as of PersonaChat: make TSV of what is said and answered, as by "
        r"""awk -F'\t' 'NF > 1 {sub(/^[0-9]+ /, ""); print $1 FS $2}' FILE, """ + TSV_ADVICE
    ),
    re.compile(r"A: .*\t.*#ID=[0-9_]+[ \t]*\nB: "): (
        "is sentences and their words as of the Tanaka corpus: make TSV of it, as by "
        r"sed -nE 's/^A: ([^\t]*)\t(.*)#ID=.*/\1\t\2/p' FILE, " + TSV_ADVICE
    ),
    re.compile(r"\\id [0-9A-Z]{3}\b"): (
        r"is USFM, verses with marks: write the verses, one a line, as by sed -nE 's/^\\v [0-9]+ //p' FILE"
    ),
    re.compile(r"\\_sh |\\lx .*\n\\"): (
        "is a lexicon with marks of fields (Toolbox): write the fields that are read and wanted into columns of TSV"
    ),
    re.compile(r"%[0-9]{8}~[0-9]{6}\t"): (
        "is a translation memory of Wordfast: cut both texts, as by sed 1d FILE | cut -f5,7, " + TSV_ADVICE
    ),
}
"""Why a file whose first lines match is no text a line, and what to do."""

TREE_BEGIN = re.compile(r"[ \t]*\( ?\(?[A-Z][^\s()]*")
YAML_KEY = re.compile(
    r"(?P<indent> *)(?P<items>(?:- +)*)(?P<key>['\"]?[A-Za-z_][\w./-]*(?: [\w./-]+){0,2}['\"]?):(?P<value> .*)?"
)
YAML_ITEM = re.compile(r"(?P<indent> *)-(?: .*)?")


def resource_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but of a dictionary, an annotated corpus, features or a model; None if they are texts.

    lines: the first of a file.
    """
    return reason_by_head(lines, REASONS_BY_PATTERN) or _tree_problem(lines) or _yaml_problem(lines)


def _tree_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but trees of syntax, each over several lines, as of the Penn Treebank; None if not."""
    first, second = [*(line for line in lines if line.strip()), "", ""][:2]
    is_open = TREE_BEGIN.match(first) is not None and first.count("(") > first.count(")")
    is_second_of_tree = second.lstrip().startswith("(") or first.lstrip().startswith("( (")
    if not is_open or not second.startswith((" ", "\t")) or not is_second_of_tree:
        return None
    remedy = (
        r"""awk '{gsub(/^[ \t]+|[ \t]+$/, "")} $0 == "" {next} {open += gsub(/\(/, "(") - gsub(/\)/, ")"); """
        r"""printf "%s%s", $0, (open ? " " : "\n")}' FILE"""
    )
    return f"is trees over several lines each, as of the Penn Treebank: write each in one line, as by {remedy}"


def _yaml_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but YAML; None if they are not: each is a key, an item or indented, and something stands
    below a key or beside it in an item.
    """
    filled = [line for line in lines if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---"]
    if len(filled) < MIN_YAML_LINES or filled[0].startswith(" "):
        return None
    keys = [YAML_KEY.fullmatch(line) for line in filled]
    items = [YAML_ITEM.fullmatch(line) for line in filled]
    if not all(key or item or line.startswith("  ") for key, item, line in zip(keys, items, filled, strict=True)):
        return None
    for (key, _), (next_key, item) in pairwise(zip(keys, items, strict=True)):
        if key is None or (next_key or item) is None:
            continue
        depth = len(key["indent"]) + len(key["items"])
        is_parent = key["value"] is None and key["key"].islower() and " " not in key["key"]
        indent = len((next_key or item)["indent"])  # type: ignore[index]
        if (is_parent and (indent > depth or item)) or (key["items"] and next_key and indent == depth):
            return _yaml_reason(keys[0], keys[1])
    return None


def _yaml_reason(first: re.Match[str] | None, second: re.Match[str] | None) -> str:
    is_of_language = first is not None and first["value"] is None and LANGUAGE_CODE.fullmatch(first["key"]) is not None
    if is_of_language and second is not None and not second["items"]:
        remedy = "make PO of both, as by `yaml2po -t SOURCE TARGET OUT.po` of translate-toolkit"
        return f'holds messages of one language with their names (YAML): {remedy}, and set format = "po"'
    remedy = """python -c 'import json, yaml; print(json.dumps(yaml.safe_load(open("FILE"))))' > OUT.json"""
    return (
        f'is YAML, and its keys would become words: write it as JSON, as by {remedy}; format = "jsonl" reads its rows'
    )
