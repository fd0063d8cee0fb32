"""Lines in ten scripts, with the punctuation, digits and spaces that real texts have."""

import random

SAMPLES = (
    "the quick brown foxes don't jump over naïve façades we'll see they've said I'm HERE",
    "быстрые лисы прыгают через ленивых собак и съели ещё пирожок Москва",
    "η γρήγορη αλεπού πηδάει πάνω από το σκυλί Ελλάδα όμως Ἀθῆναι",
    "السلام عليكم ورحمة الله كِتَابٌ مُعَلِّم جديد في المدينة",
    "שלום עולם הספר החדש בעיר הגדולה שָׁלוֹם",
    "नमस्ते दुनिया यह एक किताब है क्षत्रिय विद्यार्थी",
    "สวัสดีชาวโลก หนังสือเล่มใหม่ น้ำตก",
    "안녕하세요 세계 새로운 책이 도시에 있다",
    "こんにちは世界 新しい本 カタカナ ｶﾅ 東京",
    "你好世界 新书在城市里 漢字",
    "Tiếng Việt rất đẹp và phong phú ẩn",
    "გამარჯობა მსოფლიო ახალი წიგნი",
    "Բարեւ աշխարհ նոր գիրք քաղաքում",
)
MARKS = (
    "1984",
    "3.14",
    "007",
    "!",
    "?!",
    "...",
    "(a)",
    "—",
    "“q”",
    "e\u0301",
    "🙂",
    "👩‍👩‍👧",
    "ﬁ",
    "①",
    "x²",
    "C++",
    "http://a.b/c",
)


def lines_of(count: int, seed: int = 0) -> list[str]:
    """So many lines of one to nine words, in one or more scripts."""
    draw = random.Random(seed)
    words = [text.split() for text in SAMPLES]
    found = []
    for _ in range(count):
        script = draw.choice(words)
        line = [
            draw.choice(MARKS) if draw.random() < 0.15 else draw.choice(script if draw.random() < 0.9 else words[0])
            for _ in range(draw.randint(1, 9))
        ]
        line = [word[draw.randrange(len(word)) :] if draw.random() < 0.2 else word for word in line]
        found.append(" ".join(line))
    return found
