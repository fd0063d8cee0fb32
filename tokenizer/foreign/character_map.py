"""The compiled normaliser of a SentencePiece model as steps of tokenizer.json, which leave no mark of a letter out.

`tokenizers` looks a letter with its marks up as a whole, takes the first entry that begins it, and drops the rest: of
Vietnamese in decomposed form the tones, of ｶﾞ the sound, of capitals that a model folds their marks. With the form of
Unicode made before, single characters are left to map, and nothing is dropped.
"""

import base64
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

COMPOSED_LETTERS = (("e", "\u0301", "\u00e9"), ("u", "\u0308", "\u00fc"), ("\u03b1", "\u0301", "\u03ac"))
FIRST_NONCHARACTER, NUM_NONCHARACTERS = 0xFDD0, 32
"""Code points that no text has: they stand for characters that a form of Unicode changes and a model does not."""
CODE_POINTS = (*range(0x20, 0xD800), *range(0xE000, 0x30000))
Step = dict[str, Any]


def character_map_steps(charsmap: bytes) -> list[Step]:
    """The steps of a compiled normaliser: before it the form of Unicode that its entries are of, with small letters if
    it folds case. Characters that this form would change otherwise are hidden from it.
    """
    step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    if not _composes_letters(charsmap):
        return [step]
    forms = _compatible_forms(charsmap)
    exceptions = _differing_characters(charsmap, tuple(each["type"] for each in forms))
    if len(exceptions) > NUM_NONCHARACTERS:
        return [{"type": "NFC"}, step]
    hidden = {character: chr(FIRST_NONCHARACTER + number) for number, character in enumerate(exceptions)}
    return [
        *(_replacement(character, stand_in) for character, stand_in in hidden.items()),
        *forms,
        step,
        *(_replacement(stand_in, exceptions[character]) for character, stand_in in hidden.items()),
    ]


def _compatible_forms(charsmap: bytes) -> list[Step]:
    folds_case = _compiled(charsmap).normalize_str("A") == "a"
    return [{"type": name} for name in ("NFKC", *(("Lowercase", "NFKC") if folds_case else ()))]


def _replacement(text: str, content: str) -> Step:
    return {"type": "Replace", "pattern": {"String": text}, "content": content}


def _compiled(charsmap: bytes) -> Any:
    from tokenizers import normalizers

    return normalizers.Sequence([normalizers.Precompiled(charsmap)])


def _composes_letters(charsmap: bytes) -> bool:
    """Whether a compiled normaliser makes one character of a letter and its mark, as all forms of NFC do."""
    compiled = _compiled(charsmap)
    return all(compiled.normalize_str(f"{letter}{mark}") == composed for letter, mark, composed in COMPOSED_LETTERS)


@cache
def _differing_characters(charsmap: bytes, forms: tuple[str, ...]) -> Mapping[str, str]:
    """The characters that a normaliser makes something else of if the forms come before it, and what it makes."""
    from tokenizers import normalizers

    form_normalizer = normalizers.Sequence([getattr(normalizers, name)() for name in forms])
    compiled = _compiled(charsmap)
    differences: dict[str, str] = {}
    for character in map(chr, CODE_POINTS):
        if unicodedata.normalize("NFKC", character) != character or character.lower() != character:
            expected = compiled.normalize_str(character)
            if compiled.normalize_str(form_normalizer.normalize_str(character)) != expected:
                differences[character] = expected
    return differences
