"""A module is had without its packages, and the packages are whole for whoever imports them later."""

import ast
import subprocess
import sys

import pytest

PROGRAM = """
import sys

import pytest
from tfm.pipeline.scoring.bare_packages import import_without_package_code

with import_without_package_code("nltk", "nltk.stem"):
    from nltk.stem.porter import PorterStemmer as bare
loaded = sorted({name.split(".")[0] for name in sys.modules} & {"nltk", "sklearn", "pandas", "scipy"})

import nltk
from nltk.metrics.association import BigramAssocMeasures
from nltk.stem.porter import PorterStemmer

with import_without_package_code("nltk", "nltk.stem"):  # now it is there
    from nltk.stem.porter import PorterStemmer as again
words = "relational conditionally hopping flies dying generously".split()
stems = [[stemmer().stem(word) for word in words] for stemmer in (bare, PorterStemmer)]
print([loaded, again is PorterStemmer, *stems, round(float(BigramAssocMeasures.fisher(10, (20, 30), 1000)), 6),
       nltk.TreebankWordTokenizer().tokenize("don't")])
"""


@pytest.mark.slow
def test_what_is_imported_later_is_whole() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded, same, bare, real, scipys, tokens = ast.literal_eval(done.stdout)
    assert loaded == []
    assert same
    assert bare == real == ["relat", "condit", "hop", "fli", "die", "gener"]
    assert scipys == 1.0
    assert tokens == ["do", "n't"]
