"""Further forms of published sets as `data.path`: what is advised reads them, or what makes rows of them is named."""

import csv
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.data.corpora.paths.test_single_files import advised, corpus
from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

TEXTS = [f"A {one} and a {other}." for one in ("dog", "cat", "man") for other in ("tree", "house", "car", "door")]
FILES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "trec_coarse.label": (
        "".join(f"{('LOC', 'HUM', 'NUM')[n % 3]} {text}\n" for n, text in enumerate(TEXTS)),
        [(text, ("LOC", "HUM", "NUM")[n % 3]) for n, text in enumerate(TEXTS)],
    ),
    "trec_fine.label": (
        "".join(f"{('LOC', 'HUM', 'NUM')[n % 3]}:k{'abcdefghijkl'[n]} {text}\n" for n, text in enumerate(TEXTS)),
        [(text, f"{('LOC', 'HUM', 'NUM')[n % 3]}:k{'abcdefghijkl'[n]}") for n, text in enumerate(TEXTS)],
    ),
    "polarity.txt": (
        "".join(f"{('Negative', 'positive')[n % 2]} {text}\n" for n, text in enumerate(TEXTS)),
        [(text, ("Negative", "positive")[n % 2]) for n, text in enumerate(TEXTS)],
    ),
    "emotion.txt": (
        "".join(f"{text};{('joy', 'anger', 'love')[n % 3]}\n" for n, text in enumerate(TEXTS)),
        [(text, ("joy", "anger", "love")[n % 3]) for n, text in enumerate(TEXTS)],
    ),
    "quran.txt": (
        "".join(f"{n // 5 + 1}|{n % 5 + 1}|{text}\n" for n, text in enumerate(TEXTS)),
        [("", t) for t in TEXTS],
    ),
    "bible.csv": (
        "id,b,c,v,t\n"
        + "".join(f"10{n // 5}0{n % 5},1,{n // 5 + 1},{n % 5 + 1},{text}\n" for n, text in enumerate(TEXTS)),
        [("", text) for text in TEXTS],
    ),
    "sorted.tsv": (
        "".join(f"{n + 1}\t{1 + n // 6}\t{text}\n" for n, text in enumerate(TEXTS)),
        [(text, str(1 + n // 6)) for n, text in enumerate(TEXTS)],
    ),
    "xnli.tsv": ("premise\thypo\tlabel\nA dog.\tAn animal.\tentailment\n", [("A dog. An animal.", "entailment")]),
    "sick.txt": (
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\tA dog.\tNo dog.\t3.3\tNEUTRAL\n",
        [("A dog. No dog.", "NEUTRAL")],
    ),
    "ubuntu.csv": ("Context,Utterance,Label\nHow?,So.,1.0\n", [("How? So.", "1.0")]),
    "spider.json": (
        json.dumps([{"db_id": "x", "query": "SELECT a", "question": "Which a?"}]),
        [("Which a?", "SELECT a")],
    ),
    "conala.json": (
        json.dumps([{"intent": "add 1", "rewritten_intent": None, "snippet": "x += 1", "question_id": 5}]),
        [("add 1", "x += 1")],
    ),
    "reviews.jsonl": (
        json.dumps({"review_id": "de_1", "stars": 3, "review_body": "It is so so.", "review_title": "So so"}) + "\n",
        [("It is so so.", "3")],
    ),
    "tweets.csv": (
        "tweet_id,airline_sentiment,negativereason,name,text\n570,neutral,,jn,What did you say?\n",
        [("What did you say?", "neutral")],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_advised_reads_the_columns_that_are_meant(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    (tmp_path / name).write_text(content, "utf-8")
    assert list(read_pairs(corpus(advised(tmp_path / name)))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{text.upper()}\n" for text in TEXTS),
        "".join(f"A{'BCDEFGHIJKLM'[n]} {text}\n" for n, text in enumerate(TEXTS)),
        "".join(f"{text}; so\n" for text in TEXTS),
        "".join(f"{text.lower()}, {'yes' if n % 2 else 'no'}\n" for n, text in enumerate(TEXTS)),
        "".join(f"{n % 3} {n} {n + 1}\n" for n in range(12)),
    ],
)
def test_texts_that_begin_or_end_alike_are_texts(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert advised(tmp_path / "a.txt").startswith('{ source = "/')


NAMED: dict[str, tuple[str, str]] = {
    "aishell.txt": (
        "BAC009S0002W0122 而 对 楼市\nBAC009S0002W0123 也 成为\nBAC009S0002W0124 自 六月\n",
        r"has names of utterances beside the texts \(BAC009S0002W0122\)",
    ),
    "test.e": (
        "<s snum=0001> hear ! </s>\n<s snum=0002> Mr. Speaker . </s>\n",
        "has tags around its sentences: cut these, as by sed",
    ),
    "a.rttm": ("SPEAKER f1 1 0.10 2.30 <NA> <NA> spk1 <NA> <NA>\n" * 2, "is RTTM, which has times of speakers and no"),
    "apertium.dix": (
        '<?xml version="1.0"?>\n<dictionary>\n  <alphabet/>\n  <sdefs><sdef n="n"/></sdefs>\n',
        "is a dictionary of Apertium: write its entries, as by lt-expand",
    ),
    "expanded": ("dog<n><sg>:Hund<n><sg>\ncat<n>:>:Katze<n><f>\n", "as lt-expand of Apertium writes it: make TSV"),
    "analysed": ("dogs:dog<n><pl>\nwent:<:go<vblex><past>\n", "as lt-expand of Apertium writes it: make TSV of it"),
    "celex.cd": ("1\\dog\\94\\1\\dQg\\[CVC]\n2\\cat\\9\\1\\k&t\\[CVC]\n", "between backslashes, as CELEX: make TSV"),
    "festival.scm": (
        'MNCL\n("dog" nn (((d o) 1) ((g) 0)))\n("a" dt (((@) 0)))\n',
        "is a lexicon of Festival: make TSV of it, as by sed",
    ),
    "vpl.txt": ("GEN 1:1 In the\nGEN 1:2 And the\n1CH 1:1 Adam\n", "has names of verses before its texts"),
    "rct.txt": (
        "###24293578\nOBJECTIVE\tTo see a dog .\nRESULTS\tYes .\n\n###24854809\nMETHODS\tSeen .\n\n",
        "below numbers of abstracts .PubMed RCT.: leave these out",
    ),
    "pubtator.txt": (
        "1000|t|A dog\n1000|a|It ran.\n1000\t0\t5\tA dog\tSpecies\t9615\n",
        "is PubTator, texts and spans",
    ),
    "intents": (
        "add:O x:y:B-artist <=> AddToPlaylist\nplay:O it:O <=> PlayMusic\n",
        "is words with their tags, and intents behind <=>: make TSV",
    ),
    "lines.txt": (
        '#--- lines.txt ---#\n#\na01-000u-00 ok 154 19 408 746 1661 A|"MOVE"|to\na01-000u-01 err 1 1 3 4 5 stop\n',
        r"is texts of pictures, as of IAM: write metadata\.csv beside these",
    ),
    "words.txt": (
        "a01-000u-00-00 ok 154 408 768 27 51 AT A\na01-000u-00-01 ok 154 507 766 213 48 NN MOVE\n",
        r"is texts of pictures, as of IAM: write metadata\.csv beside these",
    ),
    "vecalign": ("[0]:[0]:0.1\n[1]:[1, 2]:0.2\n[]:[3]:0.3\n", "holds links of sentences by their numbers, not texts"),
}


@pytest.mark.parametrize("name", NAMED)
def test_forms_that_hold_no_texts_a_line_are_named(name: str, tmp_path: Path) -> None:
    """They were advised as texts, or as a table whose columns were wrong."""
    content, problem = NAMED[name]
    file = tmp_path / name
    file.write_text(content, "utf-8")
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    with pytest.raises(DataError, match=problem):
        list(read_pairs(CorpusConfig(source=str(file), target=str(file))))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aishell.txt", "而 对 楼市\n也 成为\n自 六月\n"),
        ("test.e", "hear !\nMr. Speaker .\n"),
        ("expanded", "dog\tHund\ncat\tKatze\n"),
        ("analysed", "dogs\tdog\nwent\tgo\n"),
        ("celex.cd", "1\tdog\t94\t1\tdQg\t[CVC]\n2\tcat\t9\t1\tk&t\t[CVC]\n"),
        ("festival.scm", "dog\td o g\na\t@\n"),
        ("vpl.txt", "In the\nAnd the\nAdam\n"),
        ("rct.txt", "OBJECTIVE\tTo see a dog .\nRESULTS\tYes .\nMETHODS\tSeen .\n"),
        ("intents", "add x:y\tO B-artist\nplay it\tO O\n"),
        ("words.txt", 'file_name,text\na01-000u-00-00.png,"A"\na01-000u-00-01.png,"MOVE"\n'),
    ],
)
def test_the_command_that_is_named_writes_texts(name: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(NAMED[name][0], "utf-8")
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub(r" FILE\b.*", f" {file}", str(error.value).partition("as by ")[2])
    assert subprocess.run(command, shell=True, capture_output=True, text=True).stdout == expected


def test_quotation_marks_in_texts_of_pictures_are_doubled(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(NAMED["lines.txt"][0])
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub(r" FILE$", f" {file}", str(error.value).partition("as by ")[2])
    rows = subprocess.run(command, shell=True, capture_output=True, text=True).stdout.splitlines()
    assert list(csv.DictReader(rows)) == [
        {"file_name": "a01-000u-00.png", "text": 'A "MOVE" to'},
        {"file_name": "a01-000u-01.png", "text": "stop"},
    ]
