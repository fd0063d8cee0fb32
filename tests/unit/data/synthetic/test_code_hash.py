"""The hash of code: names may change, and nothing that the code does."""

import ast
import inspect

import pytest

from tfm.data.synthetic import grammar, programs, string_tasks
from tfm.data.synthetic.code_hash import hash_code

WORDS = '''
"""Some words."""
from other import draw
MAX_WORDS = 3

class Word:
    """A word."""
    stem: str

    def plural(self, end="s"):
        return f"{self.stem}{end}"

def choose(words, number=1):
    return [draw(words).plural(end="en") for _ in range(min(number, MAX_WORDS))]

def refuse(words):
    return []
'''
PHRASES = """
import words

def phrase(some):
    return " ".join(words.choose(some, number=2))
"""


def test_names_docstrings_comments_and_the_order_of_files_do_not_count() -> None:
    first = hash_code([WORDS, PHRASES])
    assert first == hash_code([PHRASES, WORDS])
    renamed = [
        each.replace("choose", "pick").replace("number", "count").replace("MAX_WORDS", "LIMIT").replace("stem", "root")
        for each in (WORDS, PHRASES)
    ]
    assert first == hash_code(renamed)
    assert first == hash_code([WORDS.replace("A word.", "One."), f"# A file of phrases\n{PHRASES}"])
    assert first == hash_code([WORDS, PHRASES.replace("(some)", "(few)").replace("(some,", "(few,")])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MAX_WORDS = 3", "MAX_WORDS = 4"),
        ("min(", "max("),
        ('"en"', '"er"'),
        ("{self.stem}{end}", "{end}{self.stem}"),
        ("words.choose", "words.refuse"),
        ("number=2", "words=2"),
        ('" ".join', '"".join'),
        ("for _ in range(min(number, MAX_WORDS))", "for _ in range(number)"),
        ("def refuse(words):\n    return []", "def refuse(words):\n    return [words]"),
    ],
)
def test_whatever_else_changes_counts(old: str, new: str) -> None:
    changed = [each.replace(old, new) for each in (WORDS, PHRASES)]
    assert changed != [WORDS, PHRASES]
    assert hash_code(changed) != hash_code([WORDS, PHRASES])


def test_each_constant_of_real_code_counts() -> None:
    sources = [inspect.getsource(each) for each in (grammar, programs, string_tasks)]
    before, seen = hash_code(sources), 0
    tree = ast.parse(sources[1])
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings and seen < 12:
            kept, node.value = node.value, "another"
            assert hash_code([sources[0], ast.unparse(tree), sources[2]]) != before
            node.value, seen = kept, seen + 1
    assert hash_code([sources[0], ast.unparse(tree), sources[2]]) == before
    assert seen == 12
