"""Files with tags that would be read as words of a text a line."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

SEGMENTS = '<doc docid="a"><seg id="1">A</seg></doc>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'<srcset setid="x" srclang="any">{SEGMENTS}</srcset>\n', "is a test set as WMT had it"),
        (f'<refset setid="x">\n{SEGMENTS}</refset>\n', "is a test set as WMT had it, in SGML or XML: write the text"),
        (f'<?xml version="1.0"?>\n<!DOCTYPE mteval SYSTEM "a.dtd">\n<mteval>{SEGMENTS}', "is a test set as WMT had it"),
        ("<url>http://a</url>\n<keywords>x</keywords>\nHello\n", "has lines of tags, as talks of IWSLT and Europarl"),
        (
            " <title>A title</title>\n<description>A talk</description>\nHello\n",
            "leave these out of both files, as by grep -v",
        ),
        ("S This are it .\nA 1 2|||R:VERB:SVA|||is|||REQUIRED|||-NONE-|||0\n\n", "is M2, sentences with corrections"),
        ('<?xml version="1.0"?>\n<tmx version="1.4">\n', 'is a translation memory: in a corpus set format = "tmx"'),
        ('<?xml version="1.0"?>\n<!-- by\nOPUS -->\n<!DOCTYPE tmx SYSTEM "a.dtd">\n<tmx>\n', 'format = "tmx" and path'),
        ('<xliff version="1.2">\n', 'is a translation memory: in a corpus set format = "xliff"'),
        ('<?xml version="1.0"?>\n<x:xliff xmlns:x="a">\n', 'set format = "xliff"'),
        ('msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "a"\nmsgstr "b"\n', 'set format = "po" and path'),
        ("# A Translator\n" * 50 + '#, fuzzy\nmsgid ""\nmsgstr ""\n', 'set format = "po"'),
        ('\n#: a.c:1\nmsgctxt "c"\nmsgid "a"\n"b"\nmsgid_plural "c"\nmsgstr[0] "d"\n', 'set format = "po"'),
        ("-- MySQL dump 10.13  Distrib 8.0\n--\n", "is a dump of a database in SQL: export the table as CSV"),
        ("--\n-- PostgreSQL database dump\n--\n", "is a dump of a database"),
        ("INSERT INTO `t` VALUES (1,'a','b');\n", "is a dump of a database"),
        (
            '<?xml version="1.0"?>\n<dataset id="wmttest2022">\n  <collection id="general">\n    <doc id="a">\n',
            "as WMT had it",
        ),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>\n<colHAREM versao="x">\n', "is XML or HTML, whose tags would be"),
        ("the 0.1 0.2 0.3 0.4\nof 0.2 0.1 0.4 0.3\n", "is word vectors, and no text"),
        ("2 4\nthe 0.1 -0.2 0.3 1.5e-05 \nof 0.2 0.1 0.4 0.3 \n", "is word vectors"),
        ("\\begin{tabular}{lr}\nName & BLEU \\\\\n", "is LaTeX, whose commands"),
        ("% a paper\n\n\\documentclass{article}\n", "is LaTeX"),
        ("#version: 0.2\nt h\nth e</w>\n", "is codes of byte-pair encoding"),
        ("#version: 0.2 - Trained by `huggingface/tokenizers`\nĠ t\nh e\n", "is codes of byte-pair encoding"),
        ("IQ== 0\nIg== 1\nIw== 2\nJA== 3\n", "is ranks of tiktoken"),
        ("<html lang='en'>\n<p>a\n", "is XML or HTML"),
        (
            '<benchmark><entries>\n<entry eid="1" size="1">\n<lex>A is C.</lex>\n</entry>\n',
            "is XML or HTML, whose tags",
        ),
        (
            "<!-- edited by\nAnna -->\n<Session>\n\t<Posts>\n\t\t<Post>hi</Post>\n\t</Posts>\n",
            "is XML or HTML, whose tags would be words",
        ),
        ('<doc id="12" url="https://a" title="A">\nA\n\nA dog.\n</doc>\n', "as WikiExtractor writes them: .*grep -vE"),
        ('<CHAPTER ID="001">\nHello\n', "has lines of tags, as talks of IWSLT and Europarl have them"),
        ("<!DOCTYPE html>\n<html>\n", "is XML or HTML, whose tags would be words: write its texts"),
        ("2347 a 2347-a 0.06 3.47 i've\n2347 a 2347-a 3.47 11.04 <o,f0> i find\n", "is STM, segments with speakers"),
        ("2347 a inter_segment_gap 0 1.06\n2347 a 2347-a 1.06 3.47 i've\n", "is STM"),
        ("f1 1 1.0 0.2 JAVA 0.98 lex unknown\nf1 1 1.2 0.2 b -1.0\n", "is CTM"),
        (
            ";; a comment\nfile 1 spk 16.531 17.350  one\n;;file 1\nfile 1 spk 20.8 21.7\n",
            r"is STM.* as by sed -E '/\^;;\|ignore",
        ),
        ("t A  1.05  0.11 a \nt A  1.28  0.11 The \n", "is CTM"),
        ("84-121-0000 GO\n84-121-0001\n84-122-0000 DO IT\n", r"names of utterances .*\(84-121-0000\).* 's/\^\[\^ \]"),
        ("so { it / a } was (spk-01)\nwhen (spk-02)\n(spk-03)\n", r"names of utterances .*\(\(spk-01\)\), which would"),
        (";; a comment\na b (4T0C0201)\na (4T0C0202)\nc (4t0c0203)\n", r"names of utterances .* '/\^;;/d; s/ "),
        (" f1 1 1.0 0.2 JAVA\n;; more\n f1 1 1.2 0.2 b\n", "is CTM"),
        (';; LABEL "O" "Overall" "Overall Scores"\n', "is STM"),
        ("file1 1 0.00 0.05 a\nfile1 1 0.05 0.05 b 0.98\n", "is CTM, a word a line with its time: write the words of"),
        ("0 ||| a b ||| LM= -1 ||| -2.0\n0 ||| a c ||| LM= -2 ||| -3.0\n", "is a list of n best with their numbers"),
        ("S-0\tEin Hund\nT-0\tA dog\nH-0\t-0.3\tA dog\n", r"is what fairseq-generate prints: .* grep \^H- FILE"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello\n\n", "is subtitles with their times: write the text of each"),
        ("WEBVTT - x\n\n00:01.000 --> 00:02.000\nHello\n", "is subtitles"),
        (
            "# text = a\n1-2\tim" + "\t_" * 8 + "\n1\tin" + "\t_" * 8 + "\n",
            'is CoNLL-U: in a corpus set format = "conllu"',
        ),
        ("EU NNP B-ORG\nsays VBZ O\n\n", 'has a word and its tag a line.* in a corpus set format = "conll"'),
        ("0:00:01.000,0:00:02.000\nHello\n\n", "is subtitles"),
        ("T1\tPER 0 4\tAnna\nR1\tIn Arg1:T1 Arg2:T2\n", r"is standoff of brat.*/spans_to_conll\.py"),
        ("T1\tPER 0 4;8 9\tAnna\n", "is standoff of brat"),
        ("a b\rc d\re\r", "its lines end in CR alone: convert them to LF"),
        ("a b\r\r\nc d\r\r\n", "its lines end in CR CR LF: convert them to LF, as by sed"),
    ],
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_files_of_tags_are_refused_by_name(text: str, reason: str, side: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(text.encode())
    (tmp_path / "b").write_text("x\n" * text.count("\n"))
    files = {"source": str(tmp_path / "b"), "target": str(tmp_path / "b")} | {side: str(tmp_path / "a")}
    with pytest.raises(DataError, match=reason):
        list(read_pairs(CorpusConfig.model_validate(files)))


def test_text_that_begins_with_an_angle_bracket_is_text(tmp_path: Path) -> None:
    lines = [
        "<b> bold",
        "S is a letter .",
        "1",
        "a b 1.0 2.0",
        "a b c 1.0 and 2.0",
        ";; a",
        "WEBVTT is a format",
        "A 1 2 3",
        "< url >",
        "<s> x </s>",
        "At 10:30 we met",
        "MON 10:30 we met",
        "SPEAKER A says 3 words",
        "1|t|a",
        "### 5",
    ]
    for line in lines:
        (tmp_path / "a").write_text(f"{line}\n{line}\n")
        keys = {"source": str(tmp_path / "a"), "target": str(tmp_path / "a")}
        assert list(read_pairs(CorpusConfig.model_validate(keys))) == [(line, line)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02 rain\n2024-01-03 sun\n2024-01-04 wind\n",
        "COVID-19 spreads\nCOVID-19 ends\nThe end\n",
        "COVID-19 spreads\nCOVID-19 ends\nCOVID-19 is back\n",
        "B-52\nF-16\nA-10\n",
        "a dog (v1.0)\na cat (x2)\na cow (y3)\n",
        "a dog (1)\na cat (2)\na cow (3)\n",
        "A3-a x\nA3-b y\n",
    ],
)
def test_dates_and_names_of_things_are_no_names_of_utterances(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    keys = {"source": str(tmp_path / "a"), "target": str(tmp_path / "a")}
    assert [source for source, _ in read_pairs(CorpusConfig.model_validate(keys))] == text.splitlines()


@pytest.mark.parametrize("text", ["3-1 2-2\n0-0 1-1\n5-4 after extra time\n", "1-2\n3-4\n", "\n\n\n", "a\r\r\nb\n"])
def test_what_only_begins_as_alignments_or_line_ends_do_is_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text, newline="")
    keys = {"source": str(tmp_path / "a"), "target": str(tmp_path / "a")}
    assert [source for source, _ in read_pairs(CorpusConfig.model_validate(keys))] == text.replace("\r\n", "\n").split(
        "\n"
    )[:-1]


def test_the_command_of_trees_writes_labels_and_texts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("(3 (2 It) (4 (4 (2 's) (4 good)) (2 .)))\n(1 (2 No) (1 bad))\n")
    with pytest.raises(DataError, match=r"is trees with labels.* and set format = \"labelled\"") as error:
        list(read_pairs(CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))))
    command = str(error.value).partition("as by ")[2].partition(", and")[0].replace("FILE", str(tmp_path / "a"))
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout == "3 It 's good .\n1 No bad\n"


def test_the_command_of_stm_leaves_the_texts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        ";; CATEGORY 0\na 1 s 0.0 2.5 <o,f0> so it was\na\t1\ts\t2.5\t3.1\tthis\na 1 s 3.1 4.0\n"
        "a 1 s 4.0 5.0 <o> ignore_time_segment_in_scoring\na 1 inter_segment_gap 5.0 6.0\n"
    )
    with pytest.raises(DataError) as error:
        list(read_pairs(CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))))
    command = str(error.value).partition("as by ")[2].replace("FILE", str(tmp_path / "a"))
    assert subprocess.run(command, shell=True, capture_output=True, text=True).stdout == "so it was\nthis\n\n"


def test_strings_of_a_web_page_are_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<title>Shop</title>\nAdd to basket\n")
    keys = {"source": str(tmp_path / "a"), "target": str(tmp_path / "a")}
    assert [source for source, _ in read_pairs(CorpusConfig.model_validate(keys))] == [
        "<title>Shop</title>",
        "Add to basket",
    ]


def test_a_model_of_texts_alone_may_learn_pages(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<!DOCTYPE html>\n<html>\n")
    corpus = CorpusConfig.model_validate({"source": None, "target": str(tmp_path / "a")})
    assert [target for _, target in read_pairs(corpus)] == ["<!DOCTYPE html>", "<html>"]


@pytest.mark.few(2)
@pytest.mark.parametrize("begin", ["a b 1.0 2.0 c ", "a b c 1.0 2.0 d ", "S-0\tx ", "0 ||| a "])
def test_a_long_line_that_begins_like_a_transcript_is_text(begin: str, tmp_path: Path) -> None:
    text = begin + "S-1\ty 1 ||| a b 1.0 2.0 " * 100_000
    (tmp_path / "a").write_text(f"{text}\n")
    corpus = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))
    assert list(read_pairs(corpus)) == [(text, text)]


def test_texts_alone_may_be_latex(tmp_path: Path) -> None:
    text = "\\begin{proof}\nBy induction.\n\\end{proof}\n"
    (tmp_path / "a").write_text(text)
    corpus = CorpusConfig(source=None, target=str(tmp_path / "a"))
    assert [target for _, target in read_pairs(corpus)] == text.splitlines()


def test_the_command_of_test_sets_writes_their_segments(tmp_path: Path) -> None:
    """SGML has ampersands escaped or not; of XML the source or either reference is written."""
    sgml = '<refset setid="x">\n<doc docid="a">\n<seg id="1"> A &amp; B </seg>\n</hl><p>\n<SEG id="2">C & D\n</SEG>\n'
    refs = "".join(
        f'<ref lang="de" translator="{name}"><p><seg id="1">{name} &amp; B</seg>\n<seg id="2">Öl</seg></p></ref>\n'
        for name in "AC"
    )
    source = '<src lang="en"><p><seg id="1">one</seg></p></src>'
    xml = f'<?xml version="1.0" encoding="utf-8"?>\n<dataset id="x">\n<doc id="a">{source}{refs}</doc></dataset>\n'
    for text, chosen, written in (
        (sgml, ("", ""), "A & B\nC & D\n"),
        (xml, ("", ""), "A & B\nÖl\n"),
        (xml, ("ref[1]", "ref[2]"), "C & B\nÖl\n"),
        (xml, ("ref[1]", "src"), "one\n"),
    ):
        (tmp_path / "a").write_text(text, "utf-8")
        with pytest.raises(DataError) as error:
            list(read_pairs(CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))))
        command = str(error.value).partition("as by ")[2].partition("FILE")[0] + str(tmp_path / "a")
        done = subprocess.run(command.replace(*chosen), shell=True, capture_output=True, text=True)
        assert done.stdout == written, done.stderr
