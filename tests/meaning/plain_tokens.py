"""Texts to the tokens that metrics count, by plain loops over characters. Nothing of `tfm` is imported here.

13a is mteval-v13a's tokenisation as sacrebleu words it; zh puts spaces around each Chinese character first. Both were
written from their descriptions, and hold for texts without the character entities of SGML.
"""

import unicodedata

ALWAYS_APART = set('!"#$%&()*+/:;<=>?@[\\]^_`{|}~')
HAN = ((0x2E80, 0x2EFF), (0x3000, 0x303F), (0x3400, 0x4DB5), (0x4E00, 0x9FBB), (0xFF00, 0xFFEF))


def tokens_13a(text: str) -> list[str]:
    """Symbols apart; period and comma unless between digits; a dash after a digit."""
    spaced = "".join(f" {one} " if one in ALWAYS_APART else one for one in f" {text} ")
    apart = ""
    for place, one in enumerate(spaced):
        before, after = spaced[place - 1 : place], spaced[place + 1 : place + 2]
        if one in ".," and not (before in DIGITS and after in DIGITS and before and after):
            apart += f" {one} "
        elif one == "-" and before and before in DIGITS:
            apart += " - "
        else:
            apart += one
    return apart.split()


DIGITS = "0123456789"


def tokens_zh(text: str) -> list[str]:
    """Each Chinese character, full-width form and Chinese mark a token; the rest as 13a has it."""
    return tokens_13a("".join(f" {one} " if is_han(one) else one for one in text))


def is_han(one: str) -> bool:
    return any(low <= ord(one) <= high for low, high in HAN)


def tokens_char(text: str) -> list[str]:
    """Each character but white space."""
    return [one for one in text if not one.isspace()]


def tokens_none(text: str) -> list[str]:
    return text.split()


BLEU_TOKENS = {"13a": tokens_13a, "zh": tokens_zh, "char": tokens_char, "none": tokens_none}


SPACELESS = ("THAI ", "LAO ", "KHMER ", "MYANMAR ", "CJK UNIFIED", "HIRAGANA ", "KATAKANA")  # how names begin
IN_CLUSTER = "\u0e33\u0eb3\uff9e\uff9f"  # letters and marks that never begin a cluster, beside those of category M


def is_spaceless(one: str) -> bool:
    """Whether it is a letter of a script that puts no spaces between words."""
    return unicodedata.category(one)[0] == "L" and unicodedata.name(one, "").startswith(SPACELESS)


def clusters(text: str) -> list[str]:
    """Characters, each with the marks that follow it."""
    found: list[str] = []
    for one in text:
        if found and (unicodedata.category(one)[0] == "M" or one in IN_CLUSTER):
            found[-1] += one
        else:
            found.append(one)
    return found


def tokens_of_words(text: str) -> list[str]:
    """Runs of letters, marks and digits in lower case and NFC; each letter of a script without spaces is one."""
    words, word = [], ""
    for one in clusters(unicodedata.normalize("NFC", text.lower())):
        if is_spaceless(one[0]):
            words += [word, one]
            word = ""
        elif unicodedata.category(one[0])[0] in "LMN":
            word += one
        else:
            words.append(word)
            word = ""
    return [each for each in (*words, word) if each]


def num_words(text: str) -> int:
    """Stretches between white space; each letter of a script without spaces is one."""
    count, inside = 0, False
    for one in clusters(text):
        if is_spaceless(one[0]):
            count, inside = count + 1, False
        elif one.isspace():
            inside = False
        else:
            count, inside = count + (not inside), True
    return count


def tokens_of_ascii(text: str) -> list[str]:
    """Runs of a to z and 0 to 9, lower-cased: what rouge-score keeps."""
    return "".join(one if one in "abcdefghijklmnopqrstuvwxyz0123456789" else " " for one in text.lower()).split()
