"""Corpora in ten scripts whose right answer is known: each word of a source stands for one word of the target.

What scripts differ in is there: capitals, marks that combine, writing from right to left, full-width punctuation, words
that no space separates. All text is in Unicode's normal form C, one space at most between words, none at the ends.
"""

import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cli.user import write_lines

UNSEEN = "☃"  # a character that no training text has
SIZES = {"train": 400, "valid": 40, "test": 40}


@dataclass(frozen=True)
class Script:
    """How a language of ours is written. words: source=target; ends: what a sentence ends with; cased: sentences
    begin with a capital; kind: of the tokenizer."""

    name: str
    words: dict[str, str]
    comma: str
    ends: tuple[str, ...]
    kind: str
    space: str = " "
    cased: bool = False

    def pairs(self, count: int, seed: int, shortest: int = 2, longest: int = 6) -> list[tuple[str, str]]:
        """Sentences with their translations; a pure function of what is given."""
        draw = random.Random(f"{self.name} {seed}")
        return [self.pair(draw, draw.randint(shortest, longest)) for _ in range(count)]

    def pair(self, draw: random.Random, num_words: int) -> tuple[str, str]:
        """A sentence of so many words, and its translation word for word."""
        words = draw.choices(list(self.words), k=num_words)
        commas = [self.comma if draw.random() < 0.15 else "" for _ in words[1:]]
        marks = [*commas, draw.choice(self.ends)]
        return self.line(words, marks), self.line([self.words[word] for word in words], marks)

    def line(self, words: Sequence[str], marks: Sequence[str]) -> str:
        """Words and what follows each, as they are written."""
        text = self.space.join(word + mark for word, mark in zip(words, marks, strict=True))
        text = unicodedata.normalize("NFC", text)
        return text[0].upper() + text[1:] if self.cased else text


def _words(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in unicodedata.normalize("NFC", text).split())


SCRIPTS = {
    script.name: script
    for script in (
        Script(
            "Latin",
            _words("häuser=maisons straße=rue über=dessus fünf=cinq örtlich=île süß=doux grün=vert tür=forêt ähre=blé"),
            comma=",",
            ends=(".", "!", "?"),
            kind="bpe",
            cased=True,
        ),
        Script(
            "Cyrillic",
            _words("дом=хата ёлка=ялинка йод=їжак вода=вогонь день=ніч книга=ґанок поле=ліс рука=око снег=дощ"),
            comma=",",
            ends=(".", "!"),
            kind="wordpiece",
            cased=True,
        ),
        Script(
            "Greek",
            _words("σπίτι=οίκος θάλασσα=πόντος ουρανός=αιθέρας ψωμί=άρτος νερό=ύδωρ φως=αυγή δέντρο=δρυς παιδί=τέκνο"),
            comma=",",
            ends=(".", ";"),
            kind="bpe",
            cased=True,
        ),
        Script(
            "Arabic",
            _words("بيت=دار مَدْرَسَة=كُلِّيَّة ماء=نار كتاب=دفتر شمس=قمر ولد=بنت سماء=أرض باب=نافذة كبير=صغير قلب=عقل"),
            comma="،",
            ends=(".", "؟"),
            kind="unigram",
        ),
        Script(
            "Hebrew",
            _words("שָׁלוֹם=בְּרָכָה בית=דירה מים=אש ספר=מחברת שמש=ירח ילד=נער דלת=חלון גדול=קטן לב=ראש יום=לילה"),
            comma=",",
            ends=(".", "?"),
            kind="bpe",
        ),
        Script(
            "Devanagari",
            _words("घर=मकान पानी=आग किताब=क़लम सूरज=चाँद लड़का=लड़की हिन्दी=संस्कृत बड़ा=छोटा दिन=रात पेड़=फूल मित्र=शत्रु"),
            comma=",",
            ends=("।", "?"),
            kind="wordpiece",
        ),
        Script(
            "Thai",
            _words("น้ำ=ค่ำ กิน=นอน ดำ=ทำ คำ=จำ แมว=หมา บ้าน=ร้าน ดี=มี ใจ=ไป ห้า=ป่า รัก=ลูก"),
            comma=" ",
            ends=("", "ๆ"),
            kind="char",
            space="",
        ),
        Script(
            "Han",
            _words("猫=狗 天=地 水=火 山=川 学校=医院 朋友=老师 今日=明天 吃=喝 大=小 中国=北京"),
            comma="，",
            ends=("。", "！", "？"),
            kind="char",
            space="",
        ),
        Script(
            "kana",
            _words("ねこ=いぬ あさ=よる みず=さけ がく=ぷろ パン=ケイ カメラ=テレビ さくら=もみじ はし=つき ゆめ=うそ"),
            comma="、",
            ends=("。", "！"),
            kind="char",
            space="",
        ),
        Script(
            "Hangul",
            _words("고양이=강아지 하늘=바다 물=불 학교=병원 친구=선생 오늘=내일 나무=꽃 책=글 산=강 집=방"),
            comma=",",
            ends=(".", "?"),
            kind="bpe",
        ),
    )
}


@dataclass(frozen=True)
class Corpora:
    """What was written, by split: the sources and the targets, line by line."""

    folder: Path
    pairs: dict[str, list[tuple[str, str]]]

    def sources(self, split: str) -> list[str]:
        return [source for source, _ in self.pairs[split]]

    def targets(self, split: str) -> list[str]:
        return [target for _, target in self.pairs[split]]


def write(folder: Path, script: Script) -> Corpora:
    """train, valid and test, .src and .tgt. In training there are pairs that are to be dropped: two with an empty side,
    one too long, two of unlike sides; in the test two with a character that no training text has."""
    pairs = {split: script.pairs(size, number) for number, (split, size) in enumerate(SIZES.items())}
    (one, other), (long_one, long_other) = script.pairs(1, 9)[0], script.pairs(1, 9, 60, 60)[0]
    unlike = [(one, long_other[: len(other) * 8]), (long_one[: len(one) * 8], other)]
    pairs["train"] += [(one, ""), (" ", other), (long_one, long_other), *unlike]
    pairs["test"] += [(source + UNSEEN, target + UNSEEN) for source, target in script.pairs(2, 8)]
    return write_pairs(folder, pairs)


def write_pairs(folder: Path, pairs: dict[str, list[tuple[str, str]]]) -> Corpora:
    """Some splits as files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    corpora = Corpora(folder, pairs)
    for split in pairs:
        write_lines(folder / f"{split}.src", corpora.sources(split))
        write_lines(folder / f"{split}.tgt", corpora.targets(split))
    return corpora
