"""Dictionaries, annotated corpora, features and models that were read as a text a line without a word."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.markup.resources import resource_problem
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

GRAPHS = (
    "# AMR\n\n# ::id a.1\n# ::snt A page .\n(c / page :mod 1)\n\n# ::id a.2\n# ::snt I saw it .\n(s / see-01\n"
    "   :ARG0 (i / i))\n"
)
TREES = "( (S \n    (NP (DT The) (NN dog))\n    (VP (VBZ barks)) ))\n( (S\n   (NP (PRP It))\n   (VP (VBZ is)) ))\n"
FORMS: dict[str, tuple[str, str, str | None]] = {
    "cedict": (
        "# CC-CEDICT\n#! version=1\n% % [pa1] /percent (Tw)/\n中國 中国 [Zhong1 guo2] /China/Middle Kingdom/\n",
        "is a dictionary as CC-CEDICT has it",
        "%\tpercent (Tw)\n中国\tChina\n",
    ),
    "edict": (
        "刖 [げつ] /(n) (arch) cutting off the leg/EntL2/\nああ /(adv) (uk) like that/so/EntL1/\n",
        "is a dictionary as EDICT has it",
        "刖\tcutting off the leg\nああ\tlike that\n",
    ),
    "libsvm": ("+1 1:0.7 2:1\n-1 1:0.5 3:0.3\n", r"numbers of features \(LIBSVM\)", None),
    "vw": (
        "1 |text a great film\n-1 2 'x |text so dull\n",
        "as Vowpal Wabbit has them: .*source = 1, target = 0",
        "1\ta great film\n-1\tso dull\n",
    ),
    "vw numbers": ("1 'id1 | price:.23 sqft:.25\n0 'id2 | price:.18 sqft:.15\n", "Vowpal Wabbit", None),
    "arpa": ("\\data\\\nngram 1=4\nngram 2=3\n\n\\1-grams:\n-1.0\t<s>\t-0.3\n", r"n-grams \(ARPA\)", None),
    "amr": (GRAPHS, "is AMR", "A page .\t(c / page :mod 1)\nI saw it .\t(s / see-01 :ARG0 (i / i))\n"),
    "scan": ("IN: jump OUT: I_JUMP\nIN: walk OUT: I_WALK\n", "as SCAN", "jump\tI_JUMP\nwalk\tI_WALK\n"),
    "babi": (
        "1 Mary sat.\n2 Where is Mary? \tthere\t1\n1 Ann ran.\n2 Who ran? \tAnn\t1\n",
        "as bAbI",
        "Mary sat. Where is Mary? \tthere\nAnn ran. Who ran? \tAnn\n",
    ),
    "parlai": (
        "text:hello\tlabels:hi\tepisode_done:False\ntext:how\tlabels:good\tepisode_done:True\n",
        "is dialogues of ParlAI",
        "hello\thi\nhow\tgood\n",
    ),
    "dailydialog": ("a b __eou__ c __eou__ d __eou__\ne __eou__ f __eou__\n", "__eou__", "a b\tc\nc\td\ne\tf\n"),
    "birkbeck": ("$Ann\nAn\n$be\nbee\nbea\n$see\nsea\n", "misspelled", "An\tAnn\nbee\tbe\nbea\tbe\nsea\tsee\n"),
    "semeval": (
        '1\t"An <e1>arm</e1> of a <e2>man</e2>."\nPart(e1,e2)\nComment: x\n\n2\t"The <e1>a</e1> <e2>b</e2>"\nOther\n',
        "relations of entities, as SemEval",
        '"An <e1>arm</e1> of a <e2>man</e2>."\tPart(e1,e2)\n"The <e1>a</e1> <e2>b</e2>"\tOther\n',
    ),
    "tanaka": (
        "A: 彼は学生です。\tHe is a student.#ID=1_2\nB: 彼 は\nA: 雨だ。\tIt rains: a #1.#ID=3_4\nB: 雨\n",
        "as of the Tanaka corpus",
        "彼は学生です。\tHe is a student.\n雨だ。\tIt rains: a #1.\n",
    ),
    "persona": (
        "1 your persona: i ski.\n2 hi 1 .\thello\t\ta|b\n1 your persona: no.\n2 why\tso\t\tc\n",
        "as of PersonaChat",
        "hi 1 .\thello\nwhy\tso\n",
    ),
    "candidates": (
        "1 hi\thello\t\ta|b\n2 why\tso\t\tc|d\n1 no\tyes\t\te|f\n",
        "as of PersonaChat",
        "hi\thello\nwhy\tso\nno\tyes\n",
    ),
    "usfm": ("\\id GEN\n\\c 1\n\\v 1 In the beginning\n\\v 2 And\n", "is USFM", "In the beginning\nAnd\n"),
    "toolbox": ("\\lx kaka\n\\ps n\n\\ge bird\n", "Toolbox", None),
    "wordfast": (
        "%20070101~120000\t%User\t%TU=1\t%EN-US\t%Wordfast\t%DE-DE\t%---\n"
        "20070101~120000\tWF\t0\tEN-US\tHello\tDE-DE\tHallo\t\n",
        "translation memory of Wordfast",
        "Hello\tHallo\n",
    ),
    "trees": (
        TREES,
        "is trees over several lines",
        "( (S (NP (DT The) (NN dog)) (VP (VBZ barks)) ))\n( (S (NP (PRP It)) (VP (VBZ is)) ))\n",
    ),
    "parsed": (
        "\n( (S (NP-SBJ (NP Pierre Vinken)\n             ,\n             old)\n     (VP will) .))\n",
        "is trees over several lines",
        "( (S (NP-SBJ (NP Pierre Vinken) , old) (VP will) .))\n",
    ),
    "yaml": ("- source: Hello\n  target: Hallo\n- source: No\n  target: Nein\n", "is YAML", None),
    "yaml lists": ("conversations:\n- - What is it?\n  - A film.\n- - No.\n  - Why?\n", "is YAML", None),
    "yaml of Rasa": ("nlu:\n- intent: greet\n  examples: |\n    - hey\n    - hi there\n", "is YAML", None),
}


@pytest.mark.parametrize("name", FORMS)
def test_files_of_lines_that_are_no_texts_are_named(name: str, tmp_path: Path) -> None:
    """They were read as texts, and advised as such."""
    content, problem, made = FORMS[name]
    file = tmp_path / "a.txt"
    file.write_text(content, "utf-8")
    with pytest.raises(DataError, match=problem) as error:
        list(read_pairs(CorpusConfig(source=str(file), target=str(file))))
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig(path=str(file)))
    if made is not None:
        command = str(error.value).partition("as by ")[2].partition(", and set")[0].replace("FILE", str(file))
        assert subprocess.run(command, shell=True, capture_output=True, text=True).stdout == made


@pytest.mark.parametrize(
    "text",
    [
        "(TOP (S (NP (DT The) (NN dog)) (VP (VBZ barks))))\n(TOP (S (NP (PRP It))))\n",
        "(defun f (x)\n  (+ x 1))\n",
        "Ingredients:\n- two eggs\n- flour\n",
        "- a thing\n- another\n  - within\n",
        "- Without norms the model learns nothing: no sentence\n  is right. With them: all\n- So it is.\n",
        "Customer: hello\nAgent: how can I help?\nCustomer: no\n",
        "a: b\nc: d\ne: f\n",
        "1 | 2\n3 | 4\n",
        "see 1:2 and 3:4\n1 2:3 is a verse\n",
        "IN: this\nOUT: that\n",
        "$5 is much\n$6 is more\n",
        "1 apple\n2 pears\n3 plums\n",
        "\\begin{a}\n\\end{a}\n",
        "a [b] /c/ d\ne f [g] /h\n",
    ],
)
def test_texts_that_only_resemble_them_are_texts(text: str) -> None:
    assert resource_problem(text.splitlines()) is None
