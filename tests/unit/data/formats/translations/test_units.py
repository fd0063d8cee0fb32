"""Translation memories and catalogs: TMX, XLIFF 1.2 and 2.0, PO, as tools write them."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.translations.xml_events import read_events

WILD = Path(__file__).parents[6] / "shared" / "data" / "wild"
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" datatype="plaintext"><prop type="x">of the file</prop></header><body>
<tu tuid="1" creationid="ann"><prop type="domain">pets</prop>
  <tuv xml:lang="en-US"><prop type="domain">no</prop>
  <seg>A <bpt i="1">&lt;b&gt;</bpt>dog<ept i="1">&lt;/b&gt;</ept>.</seg></tuv>
  <tuv xml:lang="de"><seg>Ein <hi type="x">Hund</hi>
 &amp; <ph x="1">{0}<sub>note</sub></ph>mehr.</seg></tuv></tu>
<tu><tuv xml:lang="EN_gb"><seg>Two</seg></tuv>
<tuv xml:lang="de-AT"><seg>Zwei</seg></tuv><tuv xml:lang="de"><seg>zwo</seg></tuv></tu>
<tu creationid="bob"><tuv xml:lang="en"><seg>alone</seg></tuv></tu>
<tu><tuv lang="de"><seg></seg></tuv><tuv lang="en"><seg>empty</seg></tuv></tu>
</body></tmx>
"""
XLIFF_1 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file original="a.html" source-language="en" target-language="de"><header><note>x</note></header><body><group>
<trans-unit id="1" approved="yes"><source>A <g id="1">dog</g><x id="2"/>.</source><seg-source><mrk>no</mrk></seg-source>
  <target state="final">Ein <g id="1">Hund</g><x id="2"/>.</target><note>n</note>
  <alt-trans><source>other</source><target>anderer</target></alt-trans></trans-unit>
</group><trans-unit id="2"><source>Two</source><target state="needs-translation">Zwei</target></trans-unit>
<trans-unit id="3"><source>new</source></trans-unit><trans-unit id="4"><source>new</source><target/></trans-unit>
<bin-unit><bin-source/></bin-unit></body></file></xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de-CH">
<file id="f"><unit id="1"><originalData><data id="d">&lt;b&gt;</data></originalData><segment id="s" state="final">
<source>A <pc id="1" dataRefStart="d">dog</pc><ph id="2"/>.</source>
<target>Ein <mrk id="m">Hund</mrk>.</target></segment>
<ignorable><source> </source><target> </target></ignorable>
<segment><source>Two</source><target>Zwei</target></segment></unit></file></xliff>
"""
PO = r"""# Catalog
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3;\n"

#. for translators
#: a.c:12
#, c-format
msgid "A \"dog\",\n"
"and %d\101\x41\ttail"
msgstr "Ein "

"Hund"

#, c-format, fuzzy
#| msgid "old"
msgid "guessed"
msgstr "geraten"
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "%d plik"
msgstr[1] "%d pliki"
msgstr[2] ""

msgid "untranslated"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "alt"
"""


def read(path: Path, content: str | bytes, **keys: Any) -> list[tuple[str, str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_pairs(CorpusConfig.model_validate({"path": str(path), **keys})))


def test_several_texts_in_a_language_are_counted(tmp_path: Path) -> None:
    """The others were left out without a word."""
    units = '<tuv xml:lang="en-US"><seg>A</seg></tuv><tuv xml:lang="de-DE"><seg>B</seg></tuv>'
    other = '<tuv xml:lang="de-AT"><seg>C</seg></tuv>'
    content = f"<tmx version='1.4'><body><tu>{units}{other}</tu><tu>{units}</tu></body></tmx>"
    file = tmp_path / "a.tmx"
    with collect_remarks() as remarks:
        assert read(file, content, format="tmx", source="en", target="de") == [("A", "B")] * 2
    assert list(remarks) == [f"{file}: 1 segment has several texts in a language, of which the first is read"]
    with collect_remarks() as remarks:
        read(file, content, format="tmx", source="en", target="de-DE")
    assert not remarks


def test_a_translation_memory(tmp_path: Path) -> None:
    file, of_tmx = tmp_path / "a.tmx", {"format": "tmx", "source": "en", "target": "de"}
    whole = [("A dog.", "Ein Hund & mehr."), ("Two", "zwo"), ("empty", "")]
    with collect_remarks() as remarks:
        assert read(file, TMX, **of_tmx) == whole
    assert list(remarks) == [f"{file}: 1 segment without a translation is left out"]
    assert read(file, TMX, **{**of_tmx, "source": "EN-us"})[0] == whole[0]
    assert read(file, TMX, format="tmx", source="de", target="en") == [(target, source) for source, target in whole]
    assert read(file, TMX, format="tmx", source=None, target="de-AT") == [("", "Zwei")]
    for filters in (["domain=pets"], ["creationid!="], ["creationid=ann", "tuid=1"]):
        assert read(file, TMX, **of_tmx, filters=filters) == whole[:1], filters
    assert read(file, TMX, **of_tmx, filters=["creationid="]) == whole[1:]
    assert read(file, TMX, **of_tmx, inline_tags=True)[0] == (
        'A <bpt i="1"><b></bpt>dog<ept i="1"></b></ept>.',
        'Ein <hi type="x">Hund</hi> & <ph x="1">{0}<sub>note</sub></ph>mehr.',
    )
    with pytest.raises(
        DataError, match=r'holds no text in "fr"; set source and target to two of: en-US, de, EN_gb, de-'
    ):
        read(file, TMX, format="tmx", source="en", target="fr")
    for encoding in ("utf-16", "iso-8859-1"):
        text = TMX.replace("UTF-8", encoding).replace("Two", "Zwölf")
        assert read(file, text.encode(encoding), **of_tmx)[1] == ("Zwölf", "zwo")


@pytest.mark.skipif(not WILD.exists(), reason="needs ../shared")
def test_the_memory_among_the_examples() -> None:
    corpus = CorpusConfig(format="tmx", path=str(WILD / "memory.tmx"), source="en", target="de")
    assert list(read_pairs(corpus)) == [("A dog.", "Ein Hund.")]


def test_xliff_of_both_versions(tmp_path: Path) -> None:
    file = tmp_path / "a.xlf"
    with collect_remarks() as remarks:
        assert read(file, XLIFF_1, format="xliff") == [("A dog.", "Ein Hund."), ("Two", "Zwei")]
    assert list(remarks) == [
        f'{file}: targets with state = "needs-translation", which are not translated yet: 1; '
        'filters = ["state!=needs-translation"] leaves them out',
        f"{file}: 2 segments without a translation are left out",
    ]
    with collect_remarks() as remarks:
        read(file, XLIFF_1, format="xliff", filters=["state!=final"])
    assert not any("not translated yet" in each for each in remarks)
    assert read(file, XLIFF_1, format="xliff", source="de", target="en")[1] == ("Zwei", "Two")
    for filters in (["approved=yes"], ["state=final"], ["state!=needs-translation"]):
        assert read(file, XLIFF_1, format="xliff", filters=filters) == [("A dog.", "Ein Hund.")]
    assert len(read(file, XLIFF_1, format="xliff", filters=["original=a.html"])) == 2
    assert read(file, XLIFF_1, format="xliff", inline_tags=True)[0] == (
        'A <g id="1">dog</g><x id="2"/>.',
        'Ein <g id="1">Hund</g><x id="2"/>.',
    )
    assert read(file, XLIFF_2, format="xliff") == [("A dog.", "Ein Hund."), ("Two", "Zwei")]
    assert read(file, XLIFF_2, format="xliff", source="de", target="en")[1] == ("Zwei", "Two")
    assert read(file, XLIFF_2, format="xliff", filters=["state=final"]) == [("A dog.", "Ein Hund.")]
    with pytest.raises(DataError, match='no text in "fr"; set source and target to two of: en, de-CH'):
        read(file, XLIFF_2, format="xliff", target="fr")


def test_a_catalog_of_messages(tmp_path: Path) -> None:
    file = tmp_path / "a.po"
    found = [
        ('A "dog", and %dAA\ttail', "Ein Hund"),
        ("Open", "Öffnen"),
        ("one file", "%d plik"),
        ("%d files", "%d pliki"),
    ]
    with collect_remarks() as remarks:
        assert read(file, PO, format="po") == found
    assert [remark.partition(": ")[2] for remark in remarks] == [
        "2 segments without a translation are left out",
        "1 segment is left out by filters = ['fuzzy!=yes']",
    ]
    assert read(file, PO, format="po", source="msgstr", target="msgid")[1] == ("Öffnen", "Open")
    assert read(file, PO, format="po", filters=["fuzzy=yes"]) == [("guessed", "geraten")]
    assert read(file, PO, format="po", filters=["msgctxt=menu"]) == [("Open", "Öffnen")]
    assert read(file, PO, format="po", filters=["c-format=yes"]) == found[:1]
    assert read(file, 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\n', format="po") == [("as", "b")]


@pytest.mark.parametrize(
    ("rule", "messages"),
    [
        ("n != 1", ["a", "as", "as"]),
        ("(n==0 ? 0 : n==1 ? 1 : 2)", ["as", "a", "as"]),  # as of Arabic
        ("n%0", ["a", "as", "as"]),
        ("__import__('os')", ["a", "as", "as"]),
    ],
)
def test_the_form_for_one_thing_goes_with_the_singular(rule: str, messages: list[str], tmp_path: Path) -> None:
    """The first form of Arabic, for none, was the translation of the message in the singular."""
    header = f'msgid ""\nmsgstr "Plural-Forms: nplurals=3; plural={rule};\\n"\n\n'
    entry = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "0"\nmsgstr[1] "1"\nmsgstr[2] "2"\n'
    expected = list(zip(messages, "012", strict=True))
    assert read(tmp_path / "a.po", header + entry, format="po") == expected


def test_flags_of_an_obsolete_message_are_its_own(tmp_path: Path) -> None:
    """The message behind a fuzzy one that is obsolete was left out as fuzzy."""
    obsolete = '#, fuzzy\n#~ msgid "old"\n#~ msgstr "alt"\n\n'
    live = '#, c-format\nmsgid "%d dogs"\nmsgstr "%d Hunde"\n'
    for text in (obsolete + live, live + obsolete + live.replace("dogs", "cats")):
        assert ("%d dogs", "%d Hunde") in read(tmp_path / "a.po", text, format="po")
        assert len(read(tmp_path / "a.po", text, format="po")) == text.count("\nmsgid")


def test_indented_segments_are_their_text(tmp_path: Path) -> None:
    """Elements over several lines had their indentation as spaces, and one without text was a translation."""
    unit = "<trans-unit><source>{}</source><target>{}</target></trans-unit>"
    pairs = [("\n    A\n    dog\n  ", "\r\n\tEin  <g>\n Hund</g>\n"), (" B ", " C\n"), ("D", "\n   \n"), ("E", "  ")]
    text = f"<xliff><file><body>{''.join(unit.format(*pair) for pair in pairs)}</body></file></xliff>"
    with collect_remarks() as remarks:
        assert read(tmp_path / "a.xlf", text, format="xliff") == [("A dog", "Ein Hund"), (" B ", " C")]
    assert list(remarks) == [f"{tmp_path / 'a.xlf'}: 2 segments without a translation are left out"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('msgid "a', "line 1: is no line of PO"),
        ('"a"\n', "line 1: is text without a keyword"),
        ('msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', "line 3: has msgid twice in one message"),
        ('msgid "a"\n', r"line 1: its message has no translation \(msgstr\)"),
        ('\nmsgstr "a"\n', "line 2: its message has no msgid"),
        (r'msgid "a\q"', r"line 1: '\\\\q' stands for no character"),
        (r'msgid "a\377"', r"line 1: '\\\\377' stands for no character"),
        ('msgid ""\nmsgstr "charset=KOI8-R\\n"\n', r"is in KOI8-R by its header: convert it to UTF-8 by `msgconv"),
    ],
)
def test_catalogs_that_are_damaged(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.po.*{problem}"):
        read(tmp_path / "a.po", text, format="po")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<tmx>", "line 1: not XML: no element found"),
        ("<tmx>\n<a></b>", "line 2: not XML: mismatched tag"),
        ("<xliff/>", "is XML, but no TMX: its first element is 'xliff'"),
        ("source\ttarget\n", "line 1: not XML: syntax error"),
        ('<!DOCTYPE tmx [\n<!ENTITY a "b">]><tmx/>', "line 2: declares or uses the entity 'a', which is not read"),
        ('<!DOCTYPE tmx SYSTEM "x.dtd"><tmx>&nbsp;</tmx>', "line 1: declares or uses the entity 'nbsp'"),
        ('<?xml version="1.0" encoding="Shift-JIS"?><tmx/>', "line 1: .*encoding.*; convert it to UTF-8, as by iconv"),
        ('<?xml version="1.0" encoding="x"?><tmx/>', "line 1: .*encoding.*; convert it to UTF-8, as by iconv"),
        ("<tmx>" * 101, "line 1: its elements are nested more than 100 deep"),
    ],
)
def test_memories_that_are_damaged(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.tmx(, |: ).*{problem}" if "line" in problem else problem):
        read(tmp_path / "a.tmx", text, format="tmx", source="en", target="de")


def test_a_large_memory_is_read_bit_by_bit(tmp_path: Path) -> None:
    file = tmp_path / "a.tmx"
    unit = '<tu><tuv xml:lang="en"><seg>{0}</seg></tuv><tuv xml:lang="de"><seg>{0} {0}</seg></tuv></tu>\n'
    file.write_text("<tmx><body>" + "".join(map(unit.format, range(20_000))) + "</body></tmx>")
    found = read_pairs(CorpusConfig(format="tmx", path=str(file), source="en", target="de"))
    assert next(found) == ("0", "0 0")
    file.write_bytes(file.read_bytes()[: os.path.getsize(file) // 2])
    with pytest.raises(DataError, match="not XML"):
        list(found)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"format": "tmx", "filters": ["state"]}, 'filters`: "state" is not a filter: write NAME=VALUE or NAME!=VALUE'),
        ({"format": "tsv", "filters": ["a=b"]}, "`filters` is for format tmx and xliff and po"),
        ({"format": "po", "inline_tags": True}, "`inline_tags` is for format tmx and xliff"),
        ({"format": "po", "source": "en"}, 'format "po" has no column "en"; it has msgid, msgstr'),
        ({"format": "tmx", "target": "de", "references": ["fr"]}, 'format "tmx" has one for each segment'),
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        CorpusConfig.model_validate({"path": "a", **keys})


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("a&nbsp;b", "write the character in place of an entity of HTML"),
        ("a&#x1F;b", "remove references to control characters"),
        ("a\x1fb", r"tr -d '\000-\010\013\014\016-\037' < FILE"),
        ("a & b", "a bare &"),
        ("a</b>", "xmllint FILE shows the place"),
    ],
)
def test_every_error_of_xml_has_a_remedy(text: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(f"<tmx><body><tu><seg>{text}</seg></tu></body></tmx>", "utf-8")
    with pytest.raises(DataError, match="line 1: not XML: ") as error:
        [*read_events(tmp_path / "a.tmx")]
    assert remedy in str(error.value).partition("; ")[2]


def test_a_file_with_several_target_languages_asks_for_one(tmp_path: Path) -> None:
    """`target` alone would be German in one part of the file, and French in the other."""
    parts = [
        f'<file source-language="en-US" target-language="{code}"><body><trans-unit id="1"><source>dog</source>'
        f"<target>{text}</target></trans-unit></body></file>"
        for code, text in (("de", "Hund"), ("de-AT", "Hundsviech"), ("fr", "chien"))
    ]
    file = tmp_path / "a.xlf"
    assert read(file, f'<xliff version="1.2">{"".join(parts[:2])}</xliff>', format="xliff") == [
        ("dog", "Hund"),
        ("dog", "Hundsviech"),
    ]
    whole = f'<xliff version="1.2">{"".join(parts)}</xliff>'
    with pytest.raises(DataError, match=r"has targets in several languages \(de, fr\): set target to the code of one"):
        read(file, whole, format="xliff")
    assert read(file, whole, format="xliff", target="fr") == [("dog", "chien")]


def test_names_of_messages_in_place_of_texts_are_remarked(tmp_path: Path) -> None:
    file = tmp_path / "a.po"
    with collect_remarks() as remarks:
        read(file, 'msgid "menu.open"\nmsgstr "Open"\n\nmsgid "menu.close_all"\nmsgstr "Close"\n', format="po")
    assert "its sources are names of messages (menu.open), read as texts" in " ".join(map(str, remarks))
    with collect_remarks() as remarks:
        read(file, 'msgid "menu.open"\nmsgstr "Open"\n\nmsgid "Close"\nmsgstr "Zu"\n', format="po")
    assert not remarks
