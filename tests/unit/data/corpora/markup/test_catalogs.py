"""Catalogs of messages in one language, whose names would be words."""

from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

CATALOGS = {
    "strings.xml": (
        '<?xml version="1.0"?>\n<!-- a -->\n<resources>\n<string name="a">A</string>\n',
        r"messages of one language with their names \(strings of Android\): make PO of both, as by `android2po -t S",
    ),
    "a.resx": ('<?xml version="1.0"?>\n<root>\n  <resheader name="version">\n', r"\(RESX\): .* `resx2po -t SOURCE"),
    "a.arb": ('{\n  "@@locale": "de",\n  "title": "Titel"\n}\n', r"\(ARB\): .* `arb2po -t SOURCE"),
    "a.ts": ("<!DOCTYPE TS>\n<TS version='2.1'>\n", r"is a catalog of Qt: make PO of it, as by `ts2po FILE OUT\.po`"),
    "a.php": ("<?php\n\nreturn [\n    'failed' => 'No.',\n];\n", r"\(PHP\): .* `php2po -t SOURCE"),
    "a.ftl": (
        "# x\nhello = Hello, { $name }!\nbye-now = Bye\n    then\ntab =\n    .label = x\n",
        r"\(Fluent\): .* `fluent2po -t SOURCE",
    ),
    "a.ini": ("[Main]\nhello=Hello\nbye=Good bye\n[Other]\nopen=Open it\n", r"\(INI\): .* `ini2po -t SOURCE"),
    "a.lang": (";Learn more\nMehr erfahren\n\n;About\nÜber\n", r"Mozilla had them .* `mozlang2po FILE OUT\.po`"),
    "en.yml": (
        'en:\n  hello: "Hello world"\n  errors:\n    blank: "is blank"\n',
        r"\(YAML\): .* `yaml2po -t SOURCE",
    ),
    "a.strings": (
        '/* x */\n"a b" = "A";\n"b" = "B \\"c\\"";\n\n"c" = "";\n',
        r"strings of Apple\): .*personality=strings",
    ),
    "a.properties": (
        "# x\ntitle=Titel\nmenu.open = Öffnen\n\nversion=3\n",
        r"properties of Java\): .* `prop2po -t SOURCE",
    ),
}


@pytest.mark.parametrize("name", CATALOGS)
def test_messages_of_one_language_are_named(name: str, tmp_path: Path) -> None:
    """They were advised as texts, and some read with their names."""
    content, problem = CATALOGS[name]
    file = tmp_path / name
    file.write_text(content, "utf-8")
    with pytest.raises(DataError, match=problem):
        resolve_splits(DataConfig(path=str(file)))
    with pytest.raises(DataError, match=problem):
        list(read_pairs(CorpusConfig(source=str(file), target=str(file))))


@pytest.mark.parametrize(
    "text",
    [
        "abc=1\nbcd=2\ncde=3\n",
        "    a = { b }\n    c = 1\n    d(e)\n",
        "x=a\ny=b\nz=c\n",
        "abc=x\nabc=y\nabc=z\n",
        "abc=x\nbcd=y\n",
        '"a" = "b";\nno\nyes\n',
    ],
)
def test_sums_and_programs_are_texts(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    corpus = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "a"))
    assert [source for source, _ in read_pairs(corpus)] == text.splitlines()
