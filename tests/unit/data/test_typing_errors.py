"""Typing errors: as many as asked for, in any script, never within a character, and the same on every machine."""

import random

import pytest
import regex

from tfm.data.typing_errors import add_typos, add_typos_to_lines

RATES = (0.05, 0.1, 0.2, 0.5, 1.0)
TEXTS = {
    "Devanagari": "क्षत्रिय ने नमस्ते कहा, और हिन्दी में १२३ पुस्तकें पढ़ीं।",
    "Arabic": "القِطُّ جَلَسَ على السَّجَّادةِ، ثمَّ نامَ.",
    "Hebrew": "הֶחָתוּל יָשַׁב עַל הַשָּׁטִיחַ",
    "Thai": "แมวนั่งอยู่บนเสื่อและหลับไป",
    "Han": "我爱北京天安门，天安门上太阳升",
    "Korean": "고양이가 매트 위에 앉았다",
    "jamo": "\u1100\u1161\u11a8 \u1102\u1161\u11ab\u1103\u1161",
    "emoji": "👩\u200d👩\u200d👧 🇩🇪🇫🇷🇮🇳 👍🏽👍🏿 ok",
    "decomposed": "Ile\u0301 de la Cite\u0301 a\u0308o\u0308u\u0308",
    "capitals": "THE CAT SAT ON THE MAT, 1930s H2O",
    "halves": "\u1100x\uac00 \u200dx👩 \U0001f1e9x\U0001f1ea a\u200d\u0301",
}


def characters(text: str) -> list[str]:
    return regex.findall(r"\X", text)


@pytest.mark.parametrize("name", TEXTS)
def test_no_character_is_torn_apart_and_none_comes_from_elsewhere(name: str) -> None:
    text, changed = TEXTS[name], 0
    for rate in RATES:
        for seed in range(20):
            found = add_typos(text, rate, seed)
            assert set(characters(found)) <= set(characters(text))
            assert len(found.split()) == len(text.split()), "no word disappears"
            assert regex.sub(r"\S+", "", found) == regex.sub(r"\S+", "", text), "white space stays"
            changed += found != text
    assert changed > 40


def test_what_comes_in_is_of_the_same_script_and_kind() -> None:
    words = "привет world नमस्ते WORLD 12345".split()
    for seed in range(50):
        for word, typed in zip(words, add_typos(" ".join(words), 0.5, seed).split(), strict=True):
            assert {character[0] for character in characters(typed)} <= {each[0] for each in characters(word)}


def test_it_is_a_pure_function_of_seed_line_and_rate() -> None:
    """The text is written out, so that another machine or version that gives another one is seen."""
    line = "the cat sat on the mat , and the dog barked ."
    assert [add_typos(line, rate, 1) for rate in (0, 0.1, 0.2)] == [
        line,
        "the cat sat on the mat , adn the dog barkede .",
        "the t sat on toae mah , adn the doeg bakrde ..",
    ]
    assert add_typos(line, 0.2, 2) != add_typos(line, 0.2, 1)
    lines = ["", " ", "a", line, "a second line", line, "\u3000"]
    assert add_typos_to_lines(lines, 0.2, 1) == [add_typos(each, 0.2, 1) for each in lines]
    assert add_typos_to_lines(lines[::-1], 0.2, 1) == add_typos_to_lines(lines, 0.2, 1)[::-1]


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_as_many_characters_are_hit_as_asked_for(rate: float) -> None:
    """By the number of edits that lead from one text to the other (Damerau 1964), found by the plain recursion.

    A swap takes the character after it along, which is then not hit itself: of n characters n r / (1 + r / 4) are hit.
    """
    draw = random.Random(2)
    lines = [" ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(3)) for _ in range(150)]
    edits = sum(distance(line, add_typos(line, rate, 3)) for line in lines)
    size = sum(len(line.replace(" ", "")) for line in lines)
    expected = rate / (1 + rate / 4)
    assert edits / size == pytest.approx(expected, abs=4 * (rate * (1 - rate) / size) ** 0.5)


@pytest.mark.parametrize("word", ["cat", "നവന്", "विद्वान्", "नमस्ते"])
def test_words_are_hit_as_often_whatever_their_characters_become_beside_each_other(word: str) -> None:
    """Three characters are all left alone in 1 of 8 cases, or a few more, where a swap has taken one along."""
    assert len(characters(word)) == 3
    changed = sum(add_typos(word, 0.5, seed) != word for seed in range(2000)) / 2000
    assert 0.83 < changed < 0.90


def distance(one: str, two: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours, the fewest that lead from one text to another."""
    rows = [list(range(len(two) + 1))]
    for i, a in enumerate(one, 1):
        rows.append([i])
        for j, b in enumerate(two, 1):
            best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and (a, one[i - 2]) == (two[j - 2], b):
                best = min(best, rows[i - 2][j - 2] + 1)
            rows[i].append(best)
    return rows[-1][-1]


def test_a_higher_rate_has_the_errors_of_a_lower_one() -> None:
    lines = [f"line {number} has words and letters" for number in range(300)]
    clean = [add_typos(line, 0.05, 1) == line for line in lines]
    assert sum(clean) > 30
    assert all(one for one, line in zip(clean, lines, strict=True) if add_typos(line, 0.2, 1) == line)
