"""`tfm judge make` as a user types it: from runs and from files; what cannot be judged is refused in a line."""

import json
from pathlib import Path

import pytest

from tests.cli.user import tfm, write_lines
from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.judging.campaign import read_campaign
from tfm.pipeline.scoring.evaluation.segments import Segments

SOURCES = [f"source {line}" for line in range(30)]
RIGHT = [f"das ist der richtige Satz {line} dazu" for line in range(30)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with sources, references and what two toolkits made of them."""
    write_lines(tmp_path / "source", SOURCES)
    write_lines(tmp_path / "right", RIGHT)
    for name in ("one", "two"):
        write_lines(tmp_path / name, [f"{name} {text}" for text in RIGHT])
    return tmp_path


def of_files(folder: Path, *words: str | Path) -> tuple[str | Path, ...]:
    systems = (f"--system=mine={folder / 'one'}", f"--system=theirs={folder / 'two'}")
    rest = ("--reference", folder / "right", "--out", folder / "campaign", "--segments", "20", *words)
    return ("judge", "make", "--source", folder / "source", *systems, *rest)


def test_files_of_other_toolkits_are_judged(texts: Path) -> None:
    done = tfm(*of_files(texts, "--kind", "pairwise", "--judges", "3"))
    assert (done.code, done.out) == (0, "")
    assert "judge-3     24          20      2                 2               0" in done.err
    made = read_campaign(texts / "campaign")
    assert made.systems == ("mine", "theirs")
    names = {f"judge-{number}.{ending}" for number in (1, 2, 3) for ending in ("html", "csv")}
    assert {file.name for file in (texts / "campaign").iterdir()} == {
        *names, "campaign.json", "instructions.txt", "pearmut.json",
    }  # fmt: skip
    for name in (*names, "pearmut.json"):
        text = (texts / "campaign" / name).read_text("utf-8")
        assert made.fingerprint in text
        assert not any(word in text for word in ("mine", "theirs", str(texts)))


def test_runs_are_judged_beside_files(texts: Path) -> None:
    for name in ("base", "wide"):
        said = [f"{name}: {text}" for text in RIGHT]
        tests = {each: Segments(each, SOURCES, said, [RIGHT]) for each in ("test", "other")}
        add_texts(make_run(texts / name), tests)
    (texts / "link").symlink_to(texts / "base")
    again = (texts / "base" / "model", texts / "link")  # no other systems
    words = ("judge", "make", texts / "base", texts / "wide" / "model", *again, f"--system=theirs={texts / 'two'}")
    done = tfm(*words, "--kind", "best", "--test", "other", "--segments", "10", "--out", texts / "campaign")
    assert done.code == 0, done.err
    made = read_campaign(texts / "campaign")
    assert made.systems == ("base", "wide", "theirs")
    assert {item.test for item in made.items} == {"other"}
    shown = {(each.system, each.text) for item in made.items for each in item.shown if item.line == made.items[0].line}
    right = RIGHT[made.items[0].line - 1]
    assert shown == {("base", f"base: {right}"), ("wide", f"wide: {right}"), ("theirs", f"two {right}")}


def test_made_again_it_is_the_same_and_another_one_needs_another_folder(texts: Path) -> None:
    words = of_files(texts, "--kind", "esa")
    assert tfm(*words).code == 0
    (texts / "campaign" / "judge-1-answers.json").write_text("{}")
    before = {file.name: file.read_bytes() for file in (texts / "campaign").iterdir()}
    (texts / "campaign" / "judge-1.html").unlink()
    assert tfm(*words).code == 0
    assert {file.name: file.read_bytes() for file in (texts / "campaign").iterdir()} == before
    done = tfm(*words, "--seed", "2")
    assert done.code == 73
    assert "has another campaign, and its answers need campaign.json; choose another folder" in done.err
    assert {file.name: file.read_bytes() for file in (texts / "campaign").iterdir()} == before


@pytest.mark.parametrize("name", ["judge-2.csv", "instructions.txt", "pearmut.json"])
def test_what_somebody_has_filled_in_or_changed_is_not_written_over(texts: Path, name: str) -> None:
    words = of_files(texts, "--kind", "likert")
    assert tfm(*words).code == 0
    file, page = texts / "campaign" / name, texts / "campaign" / "judge-1.html"
    file.write_bytes(file.read_bytes().replace(b"a", b"4"))
    changed = file.read_bytes()
    page.unlink()
    done = tfm(*words)
    assert (done.code, done.err) == (
        73, f"{file}: was changed since it was made; move it elsewhere, or choose another folder\n",
    )  # fmt: skip
    assert file.read_bytes() == changed
    assert not page.exists()
    file.rename(texts / name)
    assert tfm(*words).code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--kind", "esa", "--segments", "31"), 2, "--segments 31: the test set source has 30"),
        (("--kind", "none"), 2, "'none' is not one of"),
        (("--kind", "esa", "--repeats", "0.6"), 2, "--repeats"),
        (("--kind", "esa", "--system", "mine"), 2, "'mine' is not NAME=FILE"),
        (("--kind", "esa", "--system", "mine=other"), 2, "two systems have the same name"),
        (("--kind", "esa", "--system", "x=nowhere"), 65, "nowhere: no such file"),
        (("--kind", "esa", "--test", "x"), 2, "give RUN, whose test set it names"),
        ((), 2, "--kind"),
    ],
)
def test_what_cannot_be_made_is_refused(texts: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = tfm(*of_files(texts, *words))
    assert (done.code, said in done.err) == (code, True), done.err
    assert not (texts / "campaign").exists()


def test_of_a_test_set_of_fewer_than_100_lines_all_are_judged(texts: Path) -> None:
    """It was refused for a number of segments that nobody had given."""
    words = ("judge", "make", "--source", texts / "source", "--system", f"a={texts / 'right'}", "--kind", "likert")
    done = tfm(*words, "--judges", "1", "--out", texts / "campaign")
    assert done.code == 0, done.err
    campaign = read_campaign(texts / "campaign")
    assert {item.line for item in campaign.items if item.is_counted} == {*range(1, 31)}


def test_texts_that_do_not_belong_together_are_refused(texts: Path) -> None:
    write_lines(texts / "two", RIGHT[:29])
    done = tfm(*of_files(texts, "--kind", "esa"))
    assert done.code == 65
    assert "two: has 29 lines, but" in done.err
    make_run(texts / "bare")
    done = tfm("judge", "make", texts / "bare", "--kind", "esa", "--out", texts / "campaign")
    assert done.code == 65
    assert "bare: has no translations/" in done.err
    for name, right in (("base", RIGHT), ("wide", [*RIGHT[:29], "anders"])):
        add_texts(make_run(texts / name), {"test": Segments("test", SOURCES, RIGHT, [right])})
    both = ("judge", "make", texts / "base", texts / "wide", "--kind", "pairwise", "--out", texts / "campaign")
    done = tfm(*both, "--segments", "10")
    assert done.code == 65
    assert "wide cannot be judged beside base: test: the reference of line 30 is another text" in done.err
    done = tfm("judge", "make", texts / "base", "--test", "x", "--kind", "esa", "--out", texts / "campaign")
    assert "base: has no translations of a test set x; it has test" in done.err


def test_the_key_is_json_that_names_who_wrote_what(texts: Path) -> None:
    tfm(*of_files(texts, "--kind", "likert"))
    content = json.loads((texts / "campaign" / "campaign.json").read_text("utf-8"))
    assert (content["format"], content["kind"], content["seed"]) == (1, "likert", 1)
    item = content["items"][0]
    assert {shown["system"] for shown in item["shown"]} <= {"mine", "theirs", None}


def test_texts_that_judges_should_not_read_are_warned_of(texts: Path) -> None:
    """Judges were shown pieces of words, and texts of other lines, without a word."""
    write_lines(texts / "one", [text.replace("richtige", "rich@@ tige") for text in RIGHT])
    write_lines(texts / "two", ["a header", *RIGHT[:-1]])
    done = tfm(*of_files(texts, "--kind", "esa"))
    assert done.code == 0
    assert "mine: 30 of 30 hypotheses hold pieces of subword-nmt (@@)" in done.err
    assert "theirs: 29 of 30 hypotheses are nearer to the reference in the line before theirs" in done.err
