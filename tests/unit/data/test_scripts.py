"""Scripts of characters are those of the package regex, which is loaded only for texts that may have such letters."""

import subprocess
import sys

import regex

from tfm.data.scripts import (
    SPACELESS_LETTERS,
    SPACELESS_SCRIPTS,
    has_spaceless_script,
    letters_by_script,
    may_have_spaceless_letters,
)

CHARACTERS = "".join(map(chr, range(0x32000)))  # all planes with letters


def test_every_character_is_counted_by_its_script() -> None:
    counts = dict(letters_by_script([CHARACTERS]))
    letters = "".join(regex.findall(r"\p{L}", CHARACTERS))
    for name, characters in {**SPACELESS_SCRIPTS, "Hangul": r"\p{sc=Hangul}"}.items():
        of_script = regex.findall(f"[{characters}]", letters, flags=regex.V1)
        assert counts.pop(name) == len(of_script), name
        letters = letters.translate(dict.fromkeys(map(ord, of_script)))
    assert counts == {"others": len(letters)}


def test_all_letters_of_scripts_without_spaces_are_looked_at() -> None:
    letters = regex.findall(SPACELESS_LETTERS, CHARACTERS, flags=regex.V1)
    assert len(letters) > 90_000
    assert all(map(has_spaceless_script, letters))
    assert not any(map(may_have_spaceless_letters, "a\u00e9\u0416\u05d0\u0639\u0905\u1ea5\u2013\u2026\u201c\u20ac"))


def test_texts_of_other_scripts_load_no_patterns() -> None:
    program = """
import sys
from tfm.data.scripts import find_untokenized_script, has_spaceless_script, num_words, split_words
text = "Der Käfer – so schön! – сидит здесь, ο σκύλος"
print(find_untokenized_script([text]), has_spaceless_script([text]), num_words(text), len(split_words(text)))
print("regex" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None False 10 10\nFalse\n"
