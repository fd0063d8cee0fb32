"""A file as `data.path`: the corpus that is advised in its place reads it, and a header is never data."""

import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpora.tables.lines import LONG_DELIMITERS
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.lines import MAX_LINE_BYTES

PAIR = ("A small dog.", "Ein Hund.")
PandasOrientation = Literal["columns", "split", "index", "table"]
FILES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "header.tsv": ("text\tlabel\nA dog.\tpos\nA cat.\tneg\n", [("A dog.", "pos"), ("A cat.", "neg")]),
    "header.txt": ("english\tyoruba\nA dog.\tAjá\n", [("A dog.", "Ajá")]),
    "no_header.tsv": ("A dog.\tpos\nA cat.\tpos\n", [("A dog.", "pos"), ("A cat.", "pos")]),
    "repeated.tsv": ("yes\tja\nno\tnein\nyes\tja\n", [("yes", "ja"), ("no", "nein"), ("yes", "ja")]),
    "ag.csv": ('"3","Fears, after talks"\n"4","E-mail scam"\n', [("Fears, after talks", "3"), ("E-mail scam", "4")]),
    "semicolon.csv": ("en;de\nA dog;Ein Hund\n", [("A dog", "Ein Hund")]),
    "quoted.tsv": ('text\tlabel\n"A ""dog"""\tx\n', [('A "dog"', "x")]),
    "a.jsonl": ('{"text": "A dog.", "label": 1}\n', [("A dog.", "1")]),
    "a.json": ('[{"text": "A dog.", "label": "x"}]', [("A dog.", "x")]),
    "hub.jsonl": ('{"id": 1, "translation": {"en": "A dog.", "ha": "Kare."}}\n', [("A dog.", "Kare.")]),
    "unnamed": ('{"text": "A dog.", "label": "x"}\n', [("A dog.", "x")]),
    "bio.txt": ("Anna B-PER\nlacht O\n\n", [("Anna lacht", "B-PER O")]),
    "a.conll": ("Anna NN B-PER\n", [("Anna", "B-PER")]),
    "a.conllu": ("1\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n", [("dog", "NOUN")]),
    "fasttext.txt": ("__label__pos A dog.\n", [("A dog.", "pos")]),
    "sst.txt": ("1 A dog .\n0 No\n1 x\n0 y\n", [("A dog .", "1"), ("No", "0"), ("x", "1"), ("y", "0")]),
    "phones.tsv": ("aanbod\taː n b ɔ t\naard\taː r t\n", [("aanbod", "aː n b ɔ t"), ("aard", "aː r t")]),
    "memory.tmx": (
        '<tmx><tu><tuv lang="en"><seg>A</seg></tuv><tuv lang="de-AT"><seg>B</seg></tuv></tu></tmx>',
        [("A", "B")],
    ),
    "memory.xml": (
        '<?xml version="1.0"?>\n<tmx ><tu><tuv lang="en"><seg>A</seg></tuv>'
        '<tuv lang="de"><seg>B</seg></tuv></tu></tmx>',
        [("A", "B")],
    ),
    "a.xlf": ("<xliff><unit><segment><source>A</source><target>B</target></segment></unit></xliff>", [("A", "B")]),
    "a.po": ('msgid "A"\nmsgstr "B"\n', [("A", "B")]),
    "excel.csv": ("sep=;\r\nenglish;german\r\nA dog;Hund\r\n", [("A dog", "Hund")]),
    "pandas.csv": (",english,german\n0,A dog,Hund\n1,A cat,Katze\n", [("A dog", "Hund"), ("A cat", "Katze")]),
    "r.tsv": ("english\tgerman\n1\tA dog\tHund\n2\tA cat\tKatze\n", [("A dog", "Hund"), ("A cat", "Katze")]),
    "sentences.csv": (
        "sentence_id,text,label\n1,a dog here,pos\n2,a cat here,neg\n3,one,pos\n4,no dog,neg\n",
        [("a dog here", "pos"), ("a cat here", "neg"), ("one", "pos"), ("no dog", "neg")],
    ),
    "sentence_words.csv": ("sentence,text,label\n1,Yes,x\n2,No,y\n", [("Yes", "x"), ("No", "y")]),
    "tabs_behind.txt": ("EU\tB-ORG\t\nsays\tO\t\n\n", [("EU says", "B-ORG O")]),
    "trailing.csv": ("english,german,\nA dog,Hund,\n", [("A dog", "Hund")]),
    "spaces.csv": ("english, german\nA dog, Hund\n", [("A dog", " Hund")]),
    "mrpc.txt": ("Quality\t#1 String\t#2 String\n1\tA dog.\tDogs.\n", [("A dog. Dogs.", "1")]),
    "tatoeba.tsv": ("12\tA dog.\t7\tHund.\n13\tA cat.\t8\tKatze.\n", [("A dog.", "Hund."), ("A cat.", "Katze.")]),
    "by_language.tsv": ("1\teng\tA dog.\tx y\n2\teng\tA cat.\tz\n", [("A dog.", "x y"), ("A cat.", "z")]),
    "class_first.tsv": ("0\tA\n1\tB\n1\tC\n0\tD\n", [("A", "0"), ("B", "1"), ("C", "1"), ("D", "0")]),
    "spam.csv": (
        "class,text\nham,A\nspam,B\nham,C\nham,D\n",
        [("A", "ham"), ("B", "spam"), ("C", "ham"), ("D", "ham")],
    ),
    "ontonotes_conll": (
        "#begin document (a/0); part 000\na/0 0 0 In IN (TOP(S* - - - A * *\na/0 0 1 Rome NNP *)) - - - A (GPE) *\n\n",
        [("In Rome", "IN NNP")],
    ),
    "germeval.tsv": ("# \thttp://a\t\n1\tIn\tO\n2\tKiel\tB-LOC\n3\t.\tO\n\n", [("In Kiel .", "O B-LOC O")]),
    "types.txt": (
        "Ana\tPESSOA\nri\tO\n.\tO\n\nEla\tO\nri\tO\n.\tO\n",
        [("Ana ri .", "PESSOA O O"), ("Ela ri .", "O O O")],
    ),
    "eng.trn": (
        "go\twent\tV;PST\ngo\tgoes\tV;PRS;3;SG\nbe\twas\tV;PST;1+3;SG\n",
        [("go V;PST", "went"), ("go V;PRS;3;SG", "goes"), ("be V;PST;1+3;SG", "was")],
    ),
    "features_second.tsv": (
        "go\tV;non{NOM(3,SG)};PST\twent\ngo\tV.PTCP;PRS\tgoing\n",
        [("go V;non{NOM(3,SG)};PST", "went"), ("go V.PTCP;PRS", "going")],
    ),
    "named_features.tsv": ("lemma\tform\tfeatures\ngo\twent\tV;PST\n", [("go V;PST", "went")]),
    "sentiment.jsonl": (
        "".join(f'{{"id": "doc-{n}", "text": "A {n}", "label": "{"pos" if n % 2 else "neg"}"}}\n' for n in range(4)),
        [("A 0", "neg"), ("A 1", "pos"), ("A 2", "neg"), ("A 3", "pos")],
    ),
    "pandas_sentiment.csv": (
        ",text,label\n0,A,pos\n1,B,neg\n2,C,pos\n3,D,neg\n",
        [("A", "pos"), ("B", "neg"), ("C", "pos"), ("D", "neg")],
    ),
    "meta.jsonl": ('{"meta": {"n": 1}, "text": "A dog.", "label": "x"}\n', [("A dog.", "x")]),
    "tokens.jsonl": ('{"id": "0", "tokens": ["A", "dog"], "tags": ["O", "O"]}\n', [("A dog", "O O")]),
    "escaped.csv": ('text,label\n"A \\"dog\\", or so",x\nB,y\n', [('A "dog", or so', "x"), ("B", "y")]),
    "kaggle.csv": (
        "Sentence #,Word,POS,Tag\nSentence: 1,London,NNP,B-geo\n,is,VBZ,O\nSentence: 2,No,UH,O\n",
        [("London is", "B-geo O"), ("No", "O")],
    ),
    "alpaca.json": ('[{"instruction": "Add.", "input": "1 2", "output": "3"}]', [("Add. 1 2", "3")]),
    "nli.tsv": (
        "language\tgold_label\tsentence1\tsentence2\nar\tneutral\tA\tB\nde\tneutral\tC\tD\n",
        [("A B", "neutral"), ("C D", "neutral")],
    ),
    "cola.tsv": (
        "gj04\t1\t\tA dog\ngj04\t0\t*\tDog the\ngj04\t1\t\tTwo cats\ngj04\t0\t*\tCat two\n",
        [("A dog", "1"), ("Dog the", "0"), ("Two cats", "1"), ("Cat two", "0")],
    ),
    "crawl.txt": (
        "http://a.de\thttp://a.en\tEin Hund\tA dog\nhttp://b.de\thttp://b.en\tDie Katze\tA cat\n",
        [("Ein Hund", "A dog"), ("Die Katze", "A cat")],
    ),
    "misspelled.txt": ("abilty->ability\nteh->the\n", [("abilty", "ability"), ("teh", "the")]),
    "ding.txt": ("Abend {m} :: evening\nA :: A; a\n", [("Abend {m}", "evening"), ("A", "A; a")]),
    "sentiment140.csv": (
        "".join(
            f'"{4 * (n % 2)}","14678{n}","Mon Apr 06 22:19:4{n} PDT 2009","NO","u{n}x","a b {n}"\n' for n in range(6)
        ),
        [(f"a b {n}", f"{4 * (n % 2)}") for n in range(6)],
    ),
    "fast_align.txt": ("A dog. ||| Ein Hund!\nNo ||| Nein\n", [("A dog.", "Ein Hund!"), ("No", "Nein")]),
    "movies.txt": ('A|| "B"::Comedy\nC::Drama\n', [('A|| "B"', "Comedy"), ("C", "Drama")]),
    "carets.csv": ("english^german\nA dog, no~^Ein Hund\n", [("A dog, no~", "Ein Hund")]),
    "commented.tsv": (
        "# by hand\n# 2024\nenglish\tgerman\nA dog\tHund\nA\tB\nC\tD\n",
        [("A dog", "Hund"), ("A", "B"), ("C", "D")],
    ),
    "anki.txt": (
        "#separator:tab\n#html:true\n#columns:Front\tBack\ndog\tHund\ncat\tKatze\nman\tMann\n",
        [("dog", "Hund"), ("cat", "Katze"), ("man", "Mann")],
    ),
    "choice.jsonl": ('{"text": "A", "options": [], "accept": ["x"], "answer": "accept"}\n', [("A", "x")]),
    "trailing_rows.csv": ("id,text,label\n1,A dog,x,\n2,No,y,\n", [("A dog", "x"), ("No", "y")]),
    "twice.csv": ("text,text,label\nA dog,Hund,x\nNo,Nein,y\n", [("A dog", "x"), ("No", "y")]),
    "joined.csv": ("text,label\nA dog,x\ntext,label\nNo,y\n", [("A dog", "x"), ("No", "y")]),
    "qqp.tsv": ("id\tquestion1\tquestion2\tis_duplicate\n1\tA?\tB?\t0\n", [("A? B?", "0")]),
    "qnli.tsv": ("index\tquestion\tsentence\tlabel\n0\tA?\tB.\tentailment\n", [("A? B.", "entailment")]),
    "squad.jsonl": (
        '{"id": "x1", "context": "Ann.", "question": "Who?", "answers": {"text": ["Ann"], "answer_start": [0]}}\n',
        [("Who? Ann.", "Ann")],
    ),
    "eng_sentences.tsv": ("".join(f"{n}\teng\tA dog {n}\n" for n in range(4)), [("", f"A dog {n}") for n in range(4)]),
    "sentences_of_tatoeba.csv": (
        "1\teng\tA\n2\tdeu\tB\n3\teng\tC\n4\tdeu\tD\n",
        [("A", "eng"), ("B", "deu"), ("C", "eng"), ("D", "deu")],
    ),
    "common_voice.tsv": (
        "client_id\tpath\tsentence\n" + "".join(f"a{n}\tb_{n}.mp3\tA dog {n}\n" for n in range(4)),
        [("", f"A dog {n}") for n in range(4)],
    ),
    "x.conll": (
        "1\tZij\tzij\tPron\tPron\t_\t2\tsu\t_\t_\n2\tzag\tzie\tV\tV\t_\t0\tROOT\t_\t_\n\n",
        [("Zij zag", "Pron V")],
    ),
    "2009.conll": (
        "1\tAnn\tann\tann\tNNP\tNNP\t_\t_\t2\t2\tSBJ\tSBJ\t_\t_\n\n"
        "1\tSee\tsee\tsee\tVB\tVB\t_\t_\t0\t0\tROOT\tROOT\tY\tsee.01\tA0\n\n",
        [("Ann", "NNP"), ("See", "VB")],
    ),
    "docstart.txt": ("-DOCSTART- -X- -X-\n\nEU NNP B-NP\nsays VBZ -X-\n\n", [("EU says", "B-NP -X-")]),
    "atis.iob": (
        "BOS hi EOS\tO O greeting\nBOS to EOS\tO B-x y\n",
        [("BOS hi EOS", "O O greeting"), ("BOS to EOS", "O B-x y")],
    ),
    "behind.txt": ("a dog __label__x\nno __label__y\n", [("a dog", "x"), ("no", "y")]),
    "trec.label": (
        "".join(f"{'HUM:ind' if n % 2 else 'LOC:city'} Who {n} ?\n" for n in range(4)),
        [(f"Who {n} ?", "HUM:ind" if n % 2 else "LOC:city") for n in range(4)],
    ),
    "cmudict-0.7b": (";;; # CMU\nA  AH0\nABACK  AH0 B # x\n", [("A", "AH0"), ("ABACK", "AH0 B")]),
    "sigmorphon2016": (
        "go\tpos=V,tense=PST\twent\nbe\tpos=V\tbe\n",
        [("go pos=V,tense=PST", "went"), ("be pos=V", "be")],
    ),
    "reviews.txt": (
        "text,label\n" + "".join(f'"A dog, {each}",{"pos" if each % 2 else "neg"}\n' for each in range(4)),
        [(f"A dog, {each}", "pos" if each % 2 else "neg") for each in range(4)],
    ),
    "bars": (
        "".join(f"a dog {each}|Hund {each}\n" for each in range(4)),
        [(f"a dog {n}", f"Hund {n}") for n in range(4)],
    ),
    "indented.txt": (
        '[\n {"en": "A dog", "de": "Hund"},\n {"en": "No", "de": "Nein"}\n]\n',
        [("A dog", "Hund"), ("No", "Nein")],
    ),
    "semicolons.tsv": ("en;de\n" + "a dog;ein Hund\n" * 4, [("a dog", "ein Hund")] * 4),
    "objects.csv": ('{"en": "A dog", "de": "Hund"}\n', [("A dog", "Hund")]),
    "carriage_return.csv": ("text,label\nfoo\rbar,x\nok,y\n", [("foo\rbar", "x"), ("ok", "y")]),
    "long_cell.csv": (f"text,label\n{'a ' * 100_000}b,x\nok,y\n", [(f"{'a ' * 100_000}b", "x"), ("ok", "y")]),
    "deep.jsonl": ('{"id": 1, "text": {"raw": {"en": "A dog", "de": "Hund"}}}\n', [("A dog", "Hund")]),
    "nested.jsonl": ('{"id": 1, "text": {"en": "A dog", "de": "Hund"}}\n', [("A dog", "Hund")]),
    "regions.tmx": (
        '<tmx version="1.4"><body><tu><tuv xml:lang="en-US"><seg>A</seg></tuv>'
        '<tuv xml:lang="de"><seg>B</seg></tuv></tu>'
        '<tu><tuv xml:lang="EN-GB"><seg>C</seg></tuv><tuv xml:lang="de"><seg>D</seg></tuv></tu></body></tmx>',
        [("A", "B"), ("C", "D")],
    ),
    "portugal.tmx": (
        '<tmx version="1.4"><body><tu><tuv xml:lang="pt-PT"><seg>A</seg></tuv>'
        '<tuv xml:lang="pt-BR"><seg>B</seg></tuv></tu></body></tmx>',
        [("A", "B")],
    ),
    "decimal.csv": (
        "text;score\nA;0,5\nB;1,5\nC;2,5\nD;3,5\n",
        [("A", "0,5"), ("B", "1,5"), ("C", "2,5"), ("D", "3,5")],
    ),
    "separated.csv": ("sep=;\ntext;label\nA;x\nB;y\nC;z\n", [("A", "x"), ("B", "y"), ("C", "z")]),
    "wikipron.tsv": ("dog\td ɒ g\ncat\tk æ t\n", [("dog", "d ɒ g"), ("cat", "k æ t")]),
    "ipa.tsv": ("word\tphones\ndog\td ɒ g\ncat\tk æ t\n", [("dog", "d ɒ g"), ("cat", "k æ t")]),
    "sorted.csv": ("text,category\nA,x\nB,x\nC,x\nD,x\n", [("A", "x"), ("B", "x"), ("C", "x"), ("D", "x")]),
    "counts.csv": (
        ",count,class,tweet\n0,3,2,A\n1,3,1,B\n2,4,1,C\n3,4,1,D\n",
        [("A", "2"), ("B", "1"), ("C", "1"), ("D", "1")],
    ),
    "emotions.tsv": (
        "So sad.\t25\tedgur5b\nWell done!\t4,27\tee84bjg\nI do not know\t27\tedcu99z\nAh\t27\teddddddd\n",
        [("So sad.", "25"), ("Well done!", "4,27"), ("I do not know", "27"), ("Ah", "27")],
    ),
    "treebank.txt": (
        "".join(f"SNT.80188.{number}\tDog {number} sleeps here.\n" for number in range(6)),
        [("", f"Dog {number} sleeps here.") for number in range(6)],
    ),
    "kilograms.tsv": (
        "".join(f"{number}kg\t{word} kilograms\n" for number, word in enumerate("zero one two three".split())),
        [(f"{number}kg", f"{word} kilograms") for number, word in enumerate("zero one two three".split())],
    ),
    "recordings.tsv": (
        "path\tsentence\ttranslation\tclient\na1.mp3\tEin Hund.\tA dog.\tx\nb2.mp3\tEine Katze.\tA cat.\ty\n",
        [("Ein Hund.", "A dog."), ("Eine Katze.", "A cat.")],
    ),
    "signs.csv": (
        "name|video|speaker|orth|translation\nr1|r1/1/*.png|Signer08|ZWEI HUND|zwei hunde\n"
        "v2|v2/1/*.png|Signer04|ORT REGEN|mancherorts regen\n",
        [("ZWEI HUND", "zwei hunde"), ("ORT REGEN", "mancherorts regen")],
    ),
    "paraphrases.tsv": (
        "你好吗\t你怎么样\t1\n我去学校\t他去学校\t0\n很好\t不错\t1\n白天\t黑夜\t0\n",
        [("你好吗 你怎么样", "1"), ("我去学校 他去学校", "0"), ("很好 不错", "1"), ("白天 黑夜", "0")],
    ),
    "phrases.tsv": (
        "PhraseId\tSentenceId\tPhrase\tSentiment\n1\t1\tA good film\t3\n2\t1\tA film\t2\n3\t2\tNo\t1\n4\t2\tBad\t1\n"
        "5\t3\tSo so\t2\n6\t3\tAh\t3\n",
        [("A good film", "3"), ("A film", "2"), ("No", "1"), ("Bad", "1"), ("So so", "2"), ("Ah", "3")],
    ),
    "parts.jsonl": (
        "".join(
            json.dumps({"id": n, "partition": part, "theme": theme, "text_en": f"A dog {n}."}) + "\n"
            for n, (part, theme) in enumerate(zip(("train", "test", "dev", "train"), "aabb", strict=True))
        ),
        [(f"A dog {n}.", theme) for n, theme in enumerate("aabb")],
    ),
    "numbers.jsonl": (
        "".join(f'{{"number": "{n}", "word": "{word}"}}\n' for n, word in (("1st", "first"), ("2nd", "second"))),
        [("1st", "first"), ("2nd", "second")],
    ),
    "named.csv": (
        "id,text\nab,A dog.\nbd,A cat.\nxy,No.\nyz,Yes.\n",
        [("", x) for x in ("A dog.", "A cat.", "No.", "Yes.")],
    ),
    "manifest.json": (
        "".join(
            json.dumps({"audio": f"/d/{n}.wav", "duration": n / 2, "text": f"A dog {n}."}) + "\n" for n in range(5)
        ),
        [("", f"A dog {n}.") for n in range(5)],
    ),
    "pictures.csv": (
        "image_name| comment_number| comment\n" + "".join(f"{n // 2}.jpg| {n % 2}| A dog {n}.\n" for n in range(6)),
        [("", f" A dog {n}.") for n in range(6)],
    ),
    "pictures.txt": (
        "".join(f"{n}_a.jpg#{n}\tA dog {n}.\n" for n in range(5)),
        [("", f"A dog {n}.") for n in range(5)],
    ),
    "related.tsv": (
        "".join(f"main-captions\tMSRvid\t2012\t000{n}\t{n}.000\tA dog {n}.\tThe cat {n}.\n" for n in range(4)),
        [(f"A dog {n}.", f"The cat {n}.") for n in range(4)],
    ),
    "repeated.csv": (
        "en,de,en\na dog,ein Hund,dogs\na cat,eine Katze,cats\n",
        [("a dog", "ein Hund"), ("a cat", "eine Katze")],
    ),
    "repeated_names.csv": (
        "Quelle;Ziel;Quelle\n" + "".join(f"a dog {n};der Hund {n};x\n" for n in range(5)),
        [(f"a dog {n}", f"der Hund {n}") for n in range(5)],
    ),
    "repeated_cells.csv": (
        "radio,radio,rádió\nhotel,Hotel,szálloda\ntaxi,Taxi,taxi\nbar,Bar,bár\n",
        [("radio", "radio"), ("hotel", "Hotel"), ("taxi", "Taxi"), ("bar", "Bar")],
    ),
    "turkers.tsv": (
        "".join(f"{n}\tA dog {n}.\t" + "\t".join(f"The dog {n}, {k}." for k in range(8)) + "\n" for n in range(1, 6)),
        [(f"A dog {n}.", f"The dog {n}, 0.") for n in range(1, 6)],
    ),
    "e2e.txt": (
        "".join(f"name : A{n}{' | area : b' * (n % 2 + 1)}||There is {n}.\n" for n in range(6)),
        [(f"name : A{n}{' | area : b' * (n % 2 + 1)}", f"There is {n}.") for n in range(6)],
    ),
    "bars.txt": (
        "".join(f"a dog {n}|der Hund {n}||x\n" for n in range(6)),
        [(f"a dog {n}", f"der Hund {n}") for n in range(6)],
    ),
    "name_below.csv": (
        "sent_A,sent_B,category\n"
        + "".join(f"A dog {n}.,A cat {n}.,{'category' if n == 7 else n}\n" for n in range(40)),
        [(f"A dog {n}.", f"A cat {n}.") for n in range(40)],
    ),
    "voices.tsv": (
        "client_id\tpath\tsentence\tup_votes\tdown_votes\tgender\n"
        + "".join(f"ab{n}f\tvoice_{n}.mp3\tThe dog {n} runs.\t2\t{n % 2}\t{'fm'[n % 2]}\n" for n in range(9)),
        [("", f"The dog {n} runs.") for n in range(9)],
    ),
    "long_sentence.txt": (
        "".join(f"w{n} {'NOUN' if n % 2 else 'VERB'}\n" for n in range(80)) + "\nA DET\ndog NOUN\n",
        [
            (" ".join(f"w{n}" for n in range(80)), " ".join(["VERB", "NOUN"] * 40)),
            ("A dog", "DET NOUN"),
        ],
    ),
    "words.csv": ("word\ndog\ncat\n", [("", "dog"), ("", "cat")]),
}


def advised(file: Path, **keys: str | None) -> str:
    with pytest.raises(DataError, match=r"is a file, and data\.path is a folder .* set data\.train = {") as error:
        resolve_splits(DataConfig.model_validate({"path": str(file), **keys}))
    assert "\n" not in str(error.value)
    return str(error.value).partition("data.train = ")[2]


def corpus(table: str) -> CorpusConfig:
    match = re.match(r"{.*?}", table)
    assert match is not None
    found = tomllib.loads(f"train = {match[0]}")["train"]
    return CorpusConfig.model_validate(found | ({"source": None} if found.get("source") == "none" else {}))


@pytest.mark.parametrize("name", FILES)
def test_what_is_advised_reads_the_file(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    (tmp_path / name).write_text(content, "utf-8")
    assert list(read_pairs(corpus(advised(tmp_path / name)))) == expected


def test_running_text_whose_paragraphs_end_alike_has_no_words_in_lines(tmp_path: Path) -> None:
    """It was advised as CoNLL, of which only the numbers were read."""
    lines = [f"Line {number} of the story goes on.\n" + "\n" * (number % 4 == 3) for number in range(40)]
    (tmp_path / "book.txt").write_text("".join(lines))
    assert "OTHER" in advised(tmp_path / "book.txt")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", '{\n "open": "Open",\n "close": "Close",\n "title": "My app"\n}\n', "json2po"),
        ("a.json", '{"menu": {"open": "Open", "close": "Close"}, "title": "My app"}\n', "json2po"),
        ("a.json", '{"A dog": "Hund", "A cat here": "Katze", "No no": "Nein"}', "to_entries"),
        ("a.json", '{"en": ["A dog", "No"], "de": ["Ein Hund", "Nein"]}', "a table by columns"),
        ("a.json", '{"en": {"0": "A dog", "1": "No"}, "de": {"0": "Ein Hund", "1": "Nein"}}', "as pandas writes it"),
        ("a.json", '[["Ann sleeps", {"entities": [[0, 3, "PER"]]}]]', "spans_to_conll.py"),
        (
            "snips.json",
            '{"Play": [{"data": [{"text": "Play "}, {"text": "a", "entity": "x"}]}, {"data": [{"text": "No"}]}]}',
            "spans of entities .*spans_to_conll.py",
        ),
        ("a.jsonl", '["Ann sleeps", {"entities": [[0, 3, "PER"]]}]\n["No", {"entities": []}]\n', "spans_to_conll.py"),
        ("a.json", '[["good", {"cats": {"POS": 1, "NEG": 0}}]]', "max_by"),
        (
            "a.json",
            '{"a1": {"text": "A", "label": "x"}, "b2": {"text": "B", "label": "y"}}',
            r"row at each key.*'\.\[\]'",
        ),
        ("a.json", '{\n "n 1": {"log": [1]},\n "n 2": {"log": [2]}\n}', "row at each key"),
        ("a.json", '{\n "val": [["A dog", "x"]],\n "train": [["B", "y"]]\n}', r"pairs \(val, train\).*'\.train\[\]"),
        ("a.json", '{"oos-val": [["A dog", "x"]], "n": []}', r"arrays of pairs.*'\.\[\"oos-val\"\]\[\] "),
        (
            "a.json",
            '{"train": [{"text": "A"}], "dev": [{"text": "B"}]}',
            r"second array.*'\.\[\"dev\"\]\[\]'",
        ),
        (
            "dart.json",
            '[{"tripleset": [["A", "b", "C"]], "x": true, "annotations": [{"source": "s", "text": "A dog"}]}]',
            r"as DART: write a row for each text, as by jq -c '\.\[\] \| ",
        ),
        (
            "webnlg.json",
            '{"entries": [{"1": {"lexicalisations": [], "modifiedtripleset": []}}, '
            '{"2": {"lexicalisations": [], "modifiedtripleset": []}}]}',
            r"as WebNLG: write a row for each text, as by jq -c '\.entries",
        ),
        (
            "lingua.json",
            '{"https://a": {"s": {"summary": "Do it.", "document": "A."}, "t": {"summary": "No.", "document": "B."}}}',
            r"rows at keys of its keys: .* jq -c '\.\[\]\[\]'",
        ),
        ("a.json", '[["A dog", "Hund"]]', r"jq -c '\.\[\] \| {source"),
        ("a.jsonl", '["A dog", "Hund"]\n["No", "Nein"]\n', "jq -c '{source"),
        ("a.jsonl", '{"messages": [{"role": "user", "content": "A"}]}\n', "turns of conversations"),
        ("a.json", '[{"turns": [{"speaker": "USER", "utterance": "A"}]}]', "turns of conversations.*utterance"),
        ("a.json", '[{"id": "1", "conversations": [{"from": "human", "value": "A"}]}]', "turns of conversations"),
        ("a.json", '{"data": [{"title": "T", "paragraphs": [{"qas": [], "context": "C"}]}]}', "as SQuAD"),
        ("a.json", '[{"annotations": [{"result": [{"value": {"choices": ["x"]}}]}]}]', "JSON-MIN"),
        ("a.sub", "{0}{25}A dog\n{30}{40}No\n", "subtitles"),
        ("a.lrc", "[00:11.00]A dog\n[00:12.00]No\n", "subtitles or lyrics"),
        ("a.ass", "[Script Info]\nTitle: x\n", "subtitles or lyrics"),
        ("a.TextGrid", 'File type = "ooTextFile"\n', "TextGrid"),
        ("a.A3.final", "# Sentence pair (1) source length 2 target length 1 alignment score : 0.1\nA\n", "GIZA"),
        ("naacl.wa", "1 1 1 S\n1 2 2 P\n", "links of words"),
        ("pharaoh", "0-0 1-1\n0-0 1?2\n", "links of words"),
        ("single", "0-0\n\n0-0 1-1\n", "links of words"),
        ("weather.arff", "% A comment\n\n@RELATION weather\n@attribute text string\n", "is ARFF: export it as CSV"),
    ],
)
def test_what_holds_no_rows_of_texts_is_named(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / name)}))
    keys = {"format": "jsonl", "path": str(tmp_path / name)} if ".json" in name else {"target": str(tmp_path / name)}
    if ".json" in name:
        column = next((key for key in ("messages", "conversations", "turns") if key in content), "text")
        if '"data"' not in content and "annotations" not in content:
            with pytest.raises(DataError, match=problem):
                list(read_pairs(CorpusConfig.model_validate({**keys, "source": None, "target": column})))
    else:
        with pytest.raises(DataError, match=problem):
            list(read_pairs(CorpusConfig.model_validate({**keys, "source": None})))


@pytest.mark.parametrize(
    "entities",
    [
        {"name": {"Ann": [[0, 2]]}},
        [{"start": 0, "end": 3, "entity": "name"}],
        [{"start": 0, "end": 3, "entity_group": "PER", "score": 0.9}],
        [{"text": "Ann", "entity": "name"}, {"text": " sleeps"}],
    ],
)
def test_entities_of_published_sets_and_programs_are_named(entities: object, tmp_path: Path) -> None:
    """As of CLUENER, Rasa, pipelines of transformers, SNIPS."""
    (tmp_path / "a.json").write_text(f"{json.dumps({'text': 'Ann sleeps', 'label': entities})}\n" * 2)
    corpus = CorpusConfig(format="jsonl", path=str(tmp_path / "a.json"), source="text", target="label")
    for read in (resolve_splits, lambda _: list(read_pairs(corpus))):
        with pytest.raises(DataError, match=r"holds spans of entities .*docs/external/spans_to_conll\.py"):
            read(DataConfig.model_validate({"path": corpus.path}))


def test_captions_of_coco_are_named_with_what_makes_rows_of_them(tmp_path: Path) -> None:
    captions = [{"image_id": 7, "id": 1, "caption": "A dog."}, {"image_id": 5, "id": 2, "caption": "A cat."}]
    images = [{"id": 5, "file_name": "b.jpg"}, {"id": 7, "file_name": "a.jpg"}]
    file = tmp_path / "captions.json"
    file.write_text(json.dumps({"info": {"year": 2014}, "images": images, "licenses": [], "annotations": captions}))
    with pytest.raises(DataError, match=r"as COCO: write metadata\.jsonl beside these, as by jq") as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = str(error.value).partition("as by ")[2].replace("FILE", str(file))
    if shutil.which("jq"):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
        assert [*map(json.loads, done.stdout.splitlines())] == [
            {"file_name": "a.jpg", "text": "A dog."},
            {"file_name": "b.jpg", "text": "A cat."},
        ]


@pytest.mark.parametrize("ending", ["", "\n"])
def test_captions_of_coco_in_one_long_line_are_named_too(ending: str, tmp_path: Path) -> None:
    """The published files have 60 MB in a line, the pictures before the captions."""
    picture = {"license": 5, "file_name": "b.jpg", "coco_url": "http://images.cocodataset.org/" + "x" * 20_000, "id": 5}
    captions = [{"image_id": 5, "id": 1, "caption": "A dog."}]
    file = tmp_path / "captions.json"
    content = {"info": {"year": 2014}, "images": [picture] * 1000, "licenses": [], "annotations": captions}
    file.write_text(json.dumps(content) + ending)
    assert file.stat().st_size > MAX_LINE_BYTES
    with pytest.raises(DataError, match=r"as COCO: write metadata\.jsonl beside these, as by jq"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    corpus = CorpusConfig.model_validate({"format": "jsonl", "path": str(file), "source": "id", "target": "caption"})
    with pytest.raises(DataError, match=r"as COCO: write metadata\.jsonl beside these, as by jq"):
        [*read_pairs(corpus)]


TABLE = [("english", "german"), ("a dog", "ein Hund"), ("two cats", "zwei Katzen"), ("the old man", "der alte Mann")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("".join(f"{english:15}{german}\n" for english, german in TABLE), r"fixed width: .*pandas\.read_fwf"),
        ("Unit 3\n" + "".join(f"{english},{german}\n" for english, german in TABLE), r"a line above .*\(Unit 3\)"),
        ("Unit 3\n\nA\n" + "".join(f"{a};{b}\n" for a, b in TABLE), "2 lines above the table"),
        ("Unit 3\t\n\t\n" + "".join(f"{a}\t{b}\n" for a, b in TABLE), "a line above the table"),
        ("| english | german |\n|:--|---|\n| a | b |\n", "is a table of Markdown: make TSV of it, as by sed"),
        ("english,german\r\r\na,b\r\r\n", "end in CR CR LF"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_tables_of_another_layout_are_named(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, newline="")
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / name)}))
    keys = {"format": name[2:], "path": str(tmp_path / name), "source": "english", "target": "german"}
    if "\t\n" not in content or name == "a.tsv":
        with pytest.raises(DataError, match=problem):
            list(read_pairs(CorpusConfig.model_validate(keys)))


def test_what_is_done_with_a_table_of_another_layout_makes_one_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("".join(f"| {a} | {b} |\n" for a, b in [TABLE[0], ("---", ":-:"), *TABLE[1:]]))
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / "a.md")}))
    command = str(error.value).partition("as by ")[2].replace("FILE", str(tmp_path / "a.md"))
    (tmp_path / "a.tsv").write_text(subprocess.run(command, shell=True, capture_output=True, text=True).stdout)
    assert list(read_pairs(corpus(advised(tmp_path / "a.tsv", source="english", target="german")))) == TABLE[1:]


@pytest.mark.parametrize(
    "content",
    ["hello,\nthe world,die Welt\na dog,ein Hund\n", "yes\na,b\n", "a | b\nc | d\n", "a dog\n" * 5, "---\n" * 5],
)
def test_a_table_with_a_cell_missing_has_no_title(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert advised(tmp_path / "a.csv").startswith('{ format = "csv"')


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a", "a.txt"])
def test_a_file_in_another_encoding_is_named_before_its_columns(name: str, tmp_path: Path) -> None:
    """Columns by number were advised: the header was not read."""
    (tmp_path / name).write_bytes("english\tgerman\na puppy\tein Hündchen\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 2, byte 14: not UTF-8 .*iconv -f ENCODING -t UTF-8 FILE"):
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / name)}))


def test_a_table_sorted_by_its_labels_has_a_column_of_labels(tmp_path: Path) -> None:
    """Its first rows are of one class, which was taken for a column of no use."""
    (tmp_path / "a.csv").write_text("".join(f'"Text {n}, or so",{"pos" if n < 400 else "neg"}\n' for n in range(800)))
    assert advised(tmp_path / "a.csv").endswith("source = 0, target = 1 }")


def test_a_single_row_is_one(tmp_path: Path) -> None:
    for row in ({"source": "a", "target": "b"}, {"instruction": "a b", "input": "c", "output": "d"}):
        (tmp_path / "a.jsonl").write_text(json.dumps(row))
        assert len(list(read_pairs(corpus(advised(tmp_path / "a.jsonl"))))) == 1
    (tmp_path / "a.jsonl").write_text('{"first": "a b", "second": "c", "third": "d"}')
    keys = {"format": "jsonl", "path": str(tmp_path / "a.jsonl"), "source": "first", "target": "third"}
    assert list(read_pairs(CorpusConfig.model_validate(keys))) == [("a b", "d")]


def test_a_table_of_whole_sentences_is_none_of_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FILES["sentences.csv"][0])
    assert advised(tmp_path / "a.csv").startswith('{ format = "csv"')


def test_a_first_row_that_may_be_data_is_answered_with_both(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("dog\tHund\ncat\tKatze\n", "utf-8")
    assert advised(file).endswith(
        'source = 0, target = 1 }, or source = "dog", target = "Hund" if its first row is a header'
    )
    assert advised(file, source="dog", target="Hund").endswith(
        "or source = 0, target = 1 if its first row is not a header"
    )
    file.write_text("dog;Hund;\ncat;Katze;\n", "utf-8")
    assert advised(file.rename(tmp_path / "a.csv")).endswith(
        'source = 0, target = 1 }, or source = "dog", target = "Hund" if its first row is a header'
    )
    file.write_text("en\tde\nA dog.\tEin Hund.\n", "utf-8")
    assert advised(file).endswith('target = "de" }, or source = 0, target = 1 if its first row is not a header')
    file.write_text("id\ten\tde\n1\tA dog.\tEin Hund.\n", "utf-8")
    assert 'source = "en", target = "de" }, or source = 1, target = 2 if' in advised(file, source="en", target="de")


def test_columns_of_a_list_are_those_that_are_advised_where_the_file_has_them(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"question": "Who?", "context": "Ann.", "answer": "Ann"}\n', "utf-8")
    config = {"path": str(file), "source": ["question", "context"], "target": "answer"}
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig.model_validate(config))
    table = str(error.value).partition("data.train = ")[2]
    assert list(read_pairs(corpus(table))) == [("Who? Ann.", "Ann")]
    file = tmp_path / "inflection"
    file.write_text("go\twent\tV;PST\n", "utf-8")
    assert advised(file).endswith("source = [0, 2], target = 1 } (its columns are 0 to 2)")


def test_parquet_and_files_that_are_damaged(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["A"], "label": ["x"]}), tmp_path / "a.parquet")
    (tmp_path / "b").write_bytes((tmp_path / "a.parquet").read_bytes())
    classes = {"idx": [0, 1, 2, 3], "sentence": ["A", "B", "C", "D"], "label": [0, 1, 1, 0]}
    pq.write_table(pa.table(classes), tmp_path / "glue.parquet")
    assert [*read_pairs(corpus(advised(tmp_path / "glue.parquet")))][:2] == [("A", "0"), ("B", "1")]
    pq.write_table(pa.table({"translation": [{"en": "A", "de": "B"}]}), tmp_path / "opus.parquet")
    assert list(read_pairs(corpus(advised(tmp_path / "opus.parquet")))) == [("A", "B")]
    for name in ("a.parquet", "b"):
        assert list(read_pairs(corpus(advised(tmp_path / name)))) == [("A", "x")]
    for name, said in {"c.parquet": '"parquet"', "c.tmx": '"tmx"'}.items():
        (tmp_path / name).write_bytes(b"\xff\1{")
        assert f"format = {said}, path" in advised(tmp_path / name)
    (tmp_path / "numbered.txt").write_text("1 one\n2 two\n3 three\n")
    assert "OTHER" in advised(tmp_path / "numbered.txt")
    assert advised(tmp_path / "numbered.txt", source=None, target="text") == (
        f'{{ source = "none", target = "{tmp_path / "numbered.txt"}" }}'
    )


def write_spans(folder: Path) -> None:
    """Entities as doccano, spaCy, prodigy and Label Studio export them."""
    span = {"start": 6, "end": 11, "label": "ORG"}
    value = {"start": 6, "end": 11, "text": "Apple", "labels": ["ORG"]}
    studio = {"id": 1, "data": {"text": "Hello Apple"}, "annotations": [{"result": [{"value": value}]}]}
    texts = {
        "doccano.jsonl": [{"text": "No.", "label": []}, {"text": "EU says", "label": [[0, 2, "ORG"]]}],
        "prodigy.jsonl": [{"text": "Hello Apple", "spans": [span]}, {"text": "Hello", "spans": []}],
        "one.jsonl": [{"text": "EU", "entities": [{"id": 0, "start_offset": 0, "end_offset": 2, "label": "ORG"}]}],
    }
    for name, rows in texts.items():
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "studio.json").write_text(json.dumps([studio, studio], indent=2))
    (folder / "spacy.json").write_text(json.dumps([{"text": "Apple", "entities": [[0, 5, "ORG"]]}]))


def test_files_of_programs_that_texts_are_exported_from_are_named_at_once(tmp_path: Path) -> None:
    """A workbook was advised as one side of a corpus of texts."""
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        for name in ("xl/workbook.xml", "[Content_Types].xml"):
            archive.writestr(name, "x")
    (tmp_path / "excel.txt").write_bytes("a\tb\n".encode("utf-16"))
    (tmp_path / "excel.csv").write_bytes("a,b\n".encode("utf-16"))
    write_spans(tmp_path)
    for orient in get_args(PandasOrientation):
        frame = pd.DataFrame({"text": ["a", "b"], "label": [0, 1]}, [5, 6])
        frame.to_json(tmp_path / f"{orient}.json", orient=orient)
    (tmp_path / "a.stm").write_text("a 1 b 15.43 20.79 <o> so it was\na 1 b 21.00 24.11 <o> when\n")
    (tmp_path / "a.mo").write_bytes(b"\xde\x12\x04\x95\x00\x00")
    for name, problem in {
        "a.xlsx": "is an Excel workbook: save the sheet as CSV UTF-8",
        "excel.txt": "is UTF-16, as Excel's Unicode text is",
        "a.mo": "is a compiled catalog of gettext: give its .po",
        "doccano.jsonl": r"'label' holds spans of entities \(\[0, 2, \"ORG\"\]\): write a word and its tag a line",
        "spacy.json": r"'entities' holds spans of entities \(\[0, 5, \"ORG\"\]\)",
        "columns.json": "is a table as pandas writes it by to_json: write its rows, by to_json",
        "split.json": "is a table as pandas writes it",
        "index.json": "is one object with a row at each key",
        "table.json": "is a table as pandas writes it",
        "prodigy.jsonl": r"'spans' holds spans of entities \({\"start\": 6",
        "studio.json": r"'annotations' holds spans of entities \({\"start\": 6",
        "one.jsonl": r"holds spans of entities \({\"id\": 0, \"start_offset\": 0",
        "excel.csv": "is UTF-16, as Excel's Unicode text is",
        "a.stm": "is STM, segments with speakers, times and labels",
    }.items():
        with pytest.raises(DataError, match=f"{name}: {problem}"):
            resolve_splits(DataConfig(path=str(tmp_path / name)))


@pytest.mark.parametrize("mark", LONG_DELIMITERS)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.tab", "a.txt", "a"])
def test_a_delimiter_of_several_characters_is_advised_whatever_the_name(name: str, mark: str, tmp_path: Path) -> None:
    """In what is called TSV the bars of ` ||| ` were advised, by which all targets are empty."""
    pairs = [(f"a dog {number} runs", f"ein Hund {number} rennt") for number in range(6)]
    (tmp_path / name).write_text("".join(f"{mark.join(pair)}\n" for pair in pairs))
    advice = advised(tmp_path / name)
    assert f'delimiter = "{mark}"' in advice
    assert list(read_pairs(corpus(advice))) == pairs
