"""Dictionaries, lexicons and vocabularies whose columns stand between spaces."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.data.corpora.paths.test_single_files import advised, corpus
from tfm.data.config import DataConfig
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.errors import DataError

WORDS = "dog cat house tree car man woman child water stone".split()
GERMAN = "Hund Katze Haus Baum Auto Mann Frau Kind Wasser Stein".split()
SPELLED = [(word, " ".join(word)) for word in WORDS]


@pytest.mark.parametrize("name", ["en-de.txt", "en-de.5000-6500.txt", "en-de.5000-6500"])
@pytest.mark.parametrize("separators", [" ", "\t", " \t"])
def test_a_dictionary_of_two_words_a_line_is_read_by_its_columns(name: str, separators: str, tmp_path: Path) -> None:
    """Dictionaries of MUSE were advised as texts alone, or as a side of a corpus; some mix spaces and tabs."""
    pairs = [(one, form) for one, other in zip(WORDS, GERMAN, strict=True) for form in (other, other.lower())]
    lines = [f"{one}{separators[number % len(separators)]}{other}\n" for number, (one, other) in enumerate(pairs)]
    (tmp_path / name).write_text("".join(lines))
    advice = advised(tmp_path / name)
    assert list(read_pairs(corpus(advice))) == pairs
    assert advice.endswith("if its lines are texts" if " " in separators else "source = 0, target = 1 }")
    if separators == " ":
        alone = advised(tmp_path / name, source=None, target="text")
        assert alone == f'{{ source = "none", target = "{tmp_path / name}" }}'


LEXICONS = {
    "lexicon.txt": "<SIL> SIL\n<UNK> SPN\nHELLO hh ah l ow\nWORLD w er l d\nA ah\nTHE dh ah\n",
    "position.txt": "!SIL SIL\n" + "".join(f"{word} {' '.join(f'{c.upper()}_I' for c in word)}\n" for word in WORDS),
    "spelled.txt": "".join(f"{word} {letters}\n" for word, letters in SPELLED),
    "spaces.dict": "".join(f"{word}  {letters.upper()}\n" for word, letters in SPELLED),
    "symbols.dict": "AB a b\nABAISSANT a b E s @\nABAISSEMENT a b E s ^ m @\nABAISSERA a b E s ^ R a\nABANDON a b @ d\n"
    "ABRIT a b R i\nABAT-SON a b a s N\nABAISSEZ a b E s e\n",
    "ipa.dict": "Hund h ʊ n t\nKatze k a t͡s ə\nHaus h aʊ̯ s\nBaum b aʊ̯ m\nAuto aʊ̯ t oː\nMann m a n\nFrau f ʁ aʊ̯\n"
    "Kind k ɪ n t\n",
    "aishell.txt": "SIL sil\n<NOISE> sil\n"
    "啊 aa a1\n啊啊啊 aa a2 aa a2 aa a2\n阿尔 aa a1 ee er3\n爱人 aa ai4 r en2\n安 aa an1\n",
    "hangul.txt": "강아지 강 아 지\n고양이 고 양 이\n나무 나 무\n"
    "사람 사 람\n물고기 물 고 기\n바다 바 다\n하늘 하 늘\n나라 나 라\n",
}


@pytest.mark.parametrize("name", LEXICONS)
def test_a_lexicon_without_stress_is_read_as_words_and_their_phones(name: str, tmp_path: Path) -> None:
    """Lexicons of Kaldi and the Montreal Forced Aligner were advised as texts."""
    (tmp_path / name).write_text(LEXICONS[name], "utf-8")
    expected = [(line.split()[0], " ".join(line.split()[1:])) for line in LEXICONS[name].splitlines()]
    assert list(read_pairs(corpus(advised(tmp_path / name)))) == expected


def test_words_of_a_lexicon_that_stand_for_silence_are_remarked(tmp_path: Path) -> None:
    file = tmp_path / "lexicon.txt"
    file.write_text(LEXICONS["lexicon.txt"])
    table = corpus(advised(file))
    with collect_remarks() as remarks:
        list(read_pairs(table))
    (remark,) = remarks
    assert "2 words stand for silence or noise, as <SIL> does, and would be learned: leave these lines out" in remark
    command = remark.partition("as by ")[2].replace("FILE", str(file))
    kept = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
    assert kept == "".join(f"{line}\n" for line in LEXICONS["lexicon.txt"].splitlines() if line[0] != "<")
    table = corpus(f'{{ format = "labelled", path = "{file}" }}')  # a label before a text
    with collect_remarks() as remarks:
        list(read_pairs(table))
    assert not remarks


PROBABILITIES = {
    "lexiconp.txt": ("<SIL> 1.0 SIL\n", lambda word, number: f"{word} 0.{number}5 "),
    "lexiconp_silprob.txt": ("", lambda word, number: f"{word} 1.0 0.{number}5 0.9 1.1 "),
    "mfa.dict": ("", lambda word, number: f"{word}\t0.99\t0.{number}\t1.0\t1.3e-05\t" if number % 2 else f"{word}\t"),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_probabilities_of_a_lexicon_are_named_with_what_cuts_them(name: str, tmp_path: Path) -> None:
    """They were told as STM, as a table of as many columns, or advised as texts."""
    begin, write = PROBABILITIES[name]
    file = tmp_path / name
    file.write_text(begin + "".join(f"{write(word, number)}{s}\n" for number, (word, s) in enumerate(SPELLED)))
    with pytest.raises(DataError, match=r"is a lexicon with probabilities .*: cut these, as by sed") as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command, keys = str(error.value).partition("as by ")[2].split(", and set ")
    cut = tmp_path / "cut.tsv"
    cut.write_text(
        subprocess.run(command.replace("FILE", str(file)), shell=True, capture_output=True, text=True).stdout
    )
    pairs = list(read_pairs(corpus(f'{{ path = "{cut}", {keys} }}')))
    assert pairs[len(begin.splitlines()) :] == SPELLED


def test_probabilities_in_columns_of_their_own_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "mfa.dict"
    for columns in (1, 4):
        numbers = ["\t".join([f"0.{n}9"] * columns) for n in range(len(SPELLED))]
        rows = zip(SPELLED, numbers, strict=True)
        file.write_text("".join(f"{word}\t{cells}\t{letters}\n" for (word, letters), cells in rows))
        assert list(read_pairs(corpus(advised(file)))) == SPELLED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("".join(f"{word} {1000 - 3 * n}\n" for n, word in enumerate(WORDS)), r"are no texts: cut .* '\{print \$1\}'"),
        (
            "".join(f"   {1000 - 3 * n} {word}\n" for n, word in enumerate(WORDS)),
            r"are no texts: cut .* '\{print \$2\}'",
        ),
        (
            "<eps> 0\n" + "".join(f"{word} {n + 1}\n" for n, word in enumerate(WORDS)),
            "words with their numbers or freq",
        ),
        ("t h\nth e</w>\ni n\na n</w>\ne r\nan d</w>\no n</w>\nh e\n", "is codes of byte-pair encoding"),
        ("t h 30\nth e</w> 29\ni n 20\na n</w> 9\ne r 8\nan d</w> 7\no n</w> 6\nh e 5\n", "is codes of byte-pair"),
        ("10\n" + "".join(f"{word}/SM\n" for word in WORDS), "is words with flags, as of Hunspell: cut the words, as"),
        (
            "".join(f"{word} {word[::-1]} 0.{n}1\n" for n, word in enumerate(WORDS)),
            "with their probabilities, as of Moses",
        ),
        ("<unk>\t0\n<s>\t0\n</s>\t0\n\u2581the\t-3.2\n", "is the vocabulary of a SentencePiece model, and no text"),
    ],
)
def test_vocabularies_are_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, "utf-8")
    with pytest.raises(DataError, match=problem) as error:
        resolve_splits(DataConfig.model_validate({"path": str(tmp_path / "a.txt")}))
    if (command := re.search(r"(?<=as by )(awk|sed) .* FILE", str(error.value))) is not None:
        command_line = command[0].replace("FILE", str(tmp_path / "a.txt"))
        written = subprocess.run(command_line, shell=True, capture_output=True, text=True).stdout
        assert [line.split("\t")[0] for line in written.splitlines()][-len(WORDS) :] == WORDS


@pytest.mark.parametrize("mark", [" : ", " \u2013 ", " - "])
def test_phrases_and_their_translations_around_a_mark_are_read(mark: str, tmp_path: Path) -> None:
    pairs = [(f"the {word}", other) for word, other in zip(WORDS, GERMAN, strict=True)]
    (tmp_path / "a.txt").write_text("".join(f"{one}{mark}{other}\n" for one, other in pairs))
    assert list(read_pairs(corpus(advised(tmp_path / "a.txt")))) == pairs
    (tmp_path / "a.txt").write_text("".join(f"The {one} of it ran away{mark}{other}\n" for one, other in pairs))
    assert "OTHER" in advised(tmp_path / "a.txt")


TEXTS = {
    "tagged": "".join(f"{word} {'NN' if n % 2 else 'VB'}\n" for n, word in enumerate(WORDS)),
    "two tags": "".join(
        f"{word.upper()} {'NN' if n % 2 else 'VB'} {'NP' if n % 3 else 'VP'}\n" for n, word in enumerate(WORDS)
    ),
    "numbered": "".join(f"{n} {word}\n" for n, word in enumerate(WORDS)),
    "numbers": "".join(f"{n} {n + 1} {n + 2}\n" for n in range(30)),
    "characters": "".join(f"{' '.join(word)}\n" for word in WORDS),
    "commands": "jump left\nwalk right\nrun twice\nlook left\njump right\nwalk left\nrun left\nlook right\nturn left\n",
    "vietnamese": "tôi là sinh viên\nanh ấy đi học\nchúng ta ăn cơm\nhôm nay trời đẹp\ncô ấy rất vui\nmẹ tôi nấu ăn\n"
    "nhà tôi ở đây\nbạn có khỏe không\nem bé đang ngủ\nđi chợ mua rau\ncon mèo trắng\nđêm qua mưa to\n",
    "chinese": "我 爱 你\n他们 在 学校\n你 好 吗\n今天 天气 好\n猫 吃 鱼\n狗 跑 了\n明天 见 你\n谢谢 你 们\n再 见 他\n",
    "pinyin": "wo3 ai4 ni3\nta1 men5 zai4\n"
    "ni3 hao3 ma5\njin1 tian1 hao3\nmao1 chi1 yu2\ngou3 pao3 le5\nming2 tian1 jian4\n"
    "xie4 xie4 ni3\n",
    "english": "Where is he\nHe is here\n"
    "Are you sure\nYes I am\nGo to bed\nSit down now\nLook at me\nI see it\nCome here\n",
    "keys": "".join(f"{word}: {other}\n" for word, other in zip(WORDS, GERMAN, strict=True)),
    "sentences": "".join(f"{word} is so big .\n{word.upper()} is .\n" for word in WORDS),
    "few pairs": "a dog\ntwo cats\nthe sea\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_short_texts_are_no_list_of_words(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS[name], "utf-8")
    assert advised(tmp_path / "a.txt").startswith(f'{{ source = "{tmp_path / "a.txt"}", target = "OTHER" }}')
