"""`tfm compare` of files and of folders of `tfm evaluate --out`: sacrebleu's figures and tests, without a run."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from tests.cli.user import Result, tfm, write_lines
from tests.html_elements import Elements

WORDS = "the a dog cat bird ran sat here over there . and two small".split()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """A source, two references and two systems, in files of these names."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    texts = {
        name: [" ".join(draw.choices(WORDS, k=draw.randint(5, 12))) for _ in range(120)] for name in ("src", "ref")
    }
    texts["ref2"] = [" ".join(word for word in text.split() if draw.random() < 0.9) for text in texts["ref"]]
    for name, kept in (("one", 0.9), ("two", 0.75)):
        texts[name] = [" ".join(word for word in text.split() if draw.random() < kept) for text in texts["ref"]]
    for name, lines in texts.items():
        write_lines(Path(name), lines)
    return texts


def compared(*words: str | Path) -> Result:
    done = tfm("compare", *words)
    assert done.code == 0, done.err
    return done


def figures(*words: str | Path) -> dict[str, Any]:
    content = json.loads(compared(*words, "--json").out)
    return {run["name"]: run["figures"] for run in content["runs"]}


@pytest.mark.slow
def test_figures_and_tests_are_sacrebleus(files: dict[str, list[str]]) -> None:
    systems = [(name, files[name]) for name in ("one", "two")]
    found = figures("--source", "src", "--reference", "ref", "A=one", "B=two", "--metric", "bleu", "--metric", "chrf")
    for kind, key in (("bs", "p_bootstrap"), ("ar", "p_randomisation")):
        metrics = {"bleu": BLEU(references=[files["ref"]]), "chrf": CHRF(references=[files["ref"]])}
        samples = 1000 if kind == "bs" else 10_000
        theirs = PairedTest(systems, metrics, None, test_type=kind, n_samples=samples)()[1]  # type: ignore[arg-type]
        for name, results in theirs.items():
            if name == "System":
                continue
            metric = "bleu" if "BLEU" in name.upper() else "chrf"
            for run, result in zip(("A", "B"), results, strict=True):
                assert found[run][f"test.{metric}"]["value"] == pytest.approx(result.score, abs=1e-9)
            versus = found["B"][f"test.{metric}"]["versus"]
            assert versus[key] == pytest.approx(results[1].p_value, abs=2e-3), key


@pytest.mark.slow
def test_several_references_and_every_metric_of_evaluate(files: dict[str, list[str]]) -> None:
    metrics = [word for name in ("bleu", "wer", "cer", "rouge1", "exact_match", "ter") for word in ("--metric", name)]
    given = ("--reference", "ref", "--reference", "ref2", *metrics)
    found = figures(*given, "one", "two")
    said = json.loads(tfm("evaluate", "--hypotheses", "two", *given, "--json").out)["metrics"]
    for name, entry in said.items():
        assert found["two"][f"test.{name}"]["value"] == entry["score"]
        assert found["two"][f"test.{name}"]["signature"].startswith(entry["signature"])
    assert found["two"]["test.wer"]["versus"]["stands"]


@pytest.mark.slow
def test_folders_of_evaluate_are_compared_as_their_files_are(files: dict[str, list[str]]) -> None:
    for name in ("one", "two"):
        words = ("--hypotheses", name, "--source", "src", "--reference", "ref", "--metric", "bleu", "--metric", "ter")
        assert tfm("evaluate", *words, "--out", f"{name}-scores").code == 0
    of_files = figures("--source", "src", "--reference", "ref", "A=one", "B=two", "--metric", "bleu", "--metric", "ter")
    of_folders = figures("A=one-scores", "B=two-scores")
    assert of_folders == of_files
    assert figures("one-scores", "two-scores").keys() == {"one-scores", "two-scores"}
    again = figures("--reference", "ref2", "A=one-scores", "B=two", "--metric", "bleu")
    assert again["A"]["test.bleu"]["value"] != of_files["A"]["test.bleu"]["value"]


@pytest.mark.slow
def test_the_page_latex_markdown_and_the_ledger(files: dict[str, list[str]]) -> None:
    words = ("--source", "src", "--reference", "ref", "A=one", "B=two", "--metric", "bleu", "--baseline", "B")
    done = compared(*words, "--html", "page.html")
    page = Elements(Path("page.html").read_text("utf-8"))
    for heading in ("Figures", "Is the difference from B real?", "Where they differ: ref"):
        assert heading in page.texts["h2"]
    assert "ref: this test set was scored 2 times, by 2 models of this folder" in done.err
    assert "2 times, by 2 models" in compared(*words).err, "who sees the same again learns nothing new"
    write_lines(Path("one"), files["one"][::-1])
    assert "3 times, by 3 models" in compared(*words).err
    latex = compared(*words, "--latex").out
    assert r"\begin{tabular}" in latex
    assert "% bleu: nrefs:1|" in latex
    assert "| A |" in compared(*words, "--markdown").out
    rows = compared(*words, "--sort", "bleu").out.splitlines()[3:5]
    assert [row.split()[0] for row in rows] == ["B", "A"]


def test_a_system_has_its_own_name_in_the_caption_of_a_table(files: dict[str, list[str]]) -> None:
    """A system `a` without an interval was `A` at the beginning of a sentence."""
    for name in ("ref", "one", "two"):
        write_lines(Path(name), files[name][:30])
    latex = compared("--reference", "ref", "a=one", "b=two", "--metric", "bleu", "--latex").out
    assert " a, b: bleu: no interval" in latex
    assert "caption{Scores on ref (30 segments)" in latex


def test_an_external_metric_is_computed_and_tested(files: dict[str, list[str]]) -> None:
    script = "import json, sys\nfor line in sys.stdin: print(len(json.loads(line)['hypothesis']))\n"
    Path("count.py").write_text(script)
    metric = f'evaluation.external=[{{name="letters", command="{sys.executable} -I -S count.py"}}]'
    found = figures("--reference", "ref", "one", "two", "--metric", "bleu", "--set", metric)
    assert found["one"]["test.letters"]["value"] == pytest.approx(sum(map(len, files["one"])) / 120)
    assert found["two"]["test.letters"]["versus"]["stands"]
    alone = figures("--reference", "ref", "one", "two", "--metric", "letters", "--set", metric)
    assert {name: run.keys() for name, run in alone.items()} == {name: {"test.letters"} for name in ("one", "two")}
    said = tfm(
        "evaluate", "--hypotheses", "one", "--reference", "ref", "--metric", "letters", "--set", metric, "--json"
    )
    assert json.loads(said.out)["metrics"].keys() == {"letters"}, said.err


def test_folders_keep_their_scores_and_compare_without_a_source(files: dict[str, list[str]]) -> None:
    """--source and --set changed nothing, unsaid; one folder with its source was not tested beside one without."""
    for name in ("ref", "src", "one", "two"):
        write_lines(Path(name), files[name][:30])
    for name, source in (("one", ("--source", "src")), ("two", ())):
        words = ("--hypotheses", name, *source, "--reference", "ref", "--metric", "bleu", "--metric", "exact_match")
        assert tfm("evaluate", *words, "--out", f"{name}-scores").code == 0
    for words in (("one-scores", "two-scores"), ("two-scores", "one-scores")):
        second = figures(*words)[words[1]]
        for name in ("test.bleu", "test.exact_match"):
            assert second[name]["comparable"]
            assert second[name]["versus"]["p"] is not None
    done = tfm("evaluate", "--hypotheses", "one", "--reference", "ref", "--set", "evaluation.metrics=[]")
    assert done.code == 2
    assert "evaluation.metrics = [] is no score: give --metric NAME" in done.err
    for flag in (("--source", "src"), ("--set", "evaluation.lowercase=true")):
        done = tfm("compare", "one-scores", "two-scores", *flag)
        assert done.code == 2
        assert "is for texts that are scored by --reference" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("A=one", "B=nothing", "--reference", "ref"), 65, "nothing: there is no such file"),
        (("A=one", "A=two", "--reference", "ref"), 2, 'two outputs are called "A"'),
        (("A=one", "B=short", "--reference", "ref"), 65, "short: has 1 line, but ref has 120"),
        (("A=one", "B=two"), 2, "give --reference FILE"),
        (("A=one", "--reference", "ref", "--baseline", "C"), 2, "the outputs are A"),
        (("A=one", "--reference", "ref", "--test", "x"), 2, "outputs have one test set"),
        (("A=one", "--reference", "ref", "--plot", "x.svg"), 2, "outputs have one test set"),
        (("A=one", "--reference", "ref", "--metric", "blue"), 2, "bleu"),
        (("=one", "--reference", "ref"), 65, "its name is missing"),
        (("A\nB=one", "--reference", "ref"), 2, 'an output is called "A\\nB", which no table can show'),
        (("\x1b[1mA=one", "--reference", "ref"), 2, 'an output is called "\\x1b[1mA"'),
        (("A=empty", "--reference", "ref"), 65, "it has no manifest.json"),
    ],
)
def test_what_is_wrong_is_said(files: dict[str, list[str]], words: tuple[str, ...], code: int, said: str) -> None:
    write_lines(Path("short"), ["x"])
    Path("empty").mkdir()
    done = tfm("compare", *words)
    assert done.code == code, done.err
    assert said in done.err


def test_a_folder_that_was_changed_or_links_out_is_refused(files: dict[str, list[str]]) -> None:
    words = ("--hypotheses", "one", "--reference", "ref", "--metric", "chrf")
    assert tfm("evaluate", *words, "--out", "scores").code == 0
    place = Path("scores").resolve() / "hypotheses.txt"
    place.write_text("x\n" * 120)
    assert tfm("compare", "A=scores", "--reference", "ref").code == 65
    place.unlink()
    place.symlink_to(Path("two").resolve())
    assert tfm("compare", "A=scores").code == 65
    assert "two" not in tfm("compare", "A=scores", "--json").out


def test_outputs_in_pieces_are_warned_of(files: dict[str, list[str]]) -> None:
    write_lines(Path("pieces"), [line.replace("dog", "do@@ g").replace("cat", "c@@ at") for line in files["one"]])
    said = compared("--reference", "ref", "A=one", "B=pieces").err
    assert "B: " in said
    assert "hypotheses hold pieces of subword-nmt (@@): join them" in said
    assert "A: " not in said.partition("scoring")[0]
    write_lines(Path("xml"), ['<?xml version="1.0"?>', *files["one"][1:]])
    refused = tfm("compare", "--reference", "ref", "A=xml")
    assert refused.code == 65
    assert "xml: is XML or HTML, whose tags would be words" in refused.err


def test_tags_of_entities_are_words_only_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLEU of lines of tags is no score of a tagger, whose entities --metric entity_f1 counts."""
    monkeypatch.chdir(tmp_path)
    write_lines(Path("ref"), ["B-PER I-PER O B-LOC"] * 6)
    write_lines(Path("one"), ["B-PER I-PER O O"] * 6)
    said = (
        "warning: ref: its references are tags of entities, scored as words: entity_f1 (evaluation.metrics, --metric)"
    )
    for words in (("compare", "A=one"), ("evaluate", "--hypotheses", "one")):
        done = tfm(*words, "--reference", "ref", "--metric", "bleu")
        assert (done.code, said in done.err) == (0, True)
        done = tfm(*words, "--reference", "ref", "--metric", "entity_f1")
        assert (done.code, "scored as words" in done.err) == (0, False)
    assert figures("A=one", "--reference", "ref", "--metric", "entity_f1")["A"]["test.entity_f1"]["value"] == (
        pytest.approx(200 / 3)
    )


def test_a_metric_that_cannot_be_computed_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(Path("ref"), ["a b", "c d"])
    done = tfm("compare", "--reference", "ref", "A=ref", "--metric", "bleu")
    assert done.code == 2
    assert "--metric bleu: bleu is not computed: no reference has 4 tokens" in done.err


def test_figures_of_summaries_are_those_of_evaluate(files: dict[str, list[str]]) -> None:
    metrics = [word for name in ("novelty", "length", "compression") for word in ("--metric", name)]
    given = ("--source", "src", "--reference", "ref", *metrics)
    found = figures(*given, "one", "two")
    said = json.loads(tfm("evaluate", "--hypotheses", "two", *given, "--json").out)["metrics"]
    assert {*said} == {"novelty", "length", "compression"}
    for name, entry in said.items():
        assert found["two"][f"test.{name}"]["value"] == entry["score"]
    for metric, reason in (
        ("novelty", "give --source FILE"),
        ("perplexity", "`tfm evaluate --model DIR --out FOLDER`"),
    ):
        done = tfm("compare", "one", "two", "--reference", "ref", "--metric", metric)
        assert done.code == 2
        assert f"--metric {metric}: " in done.err
        assert reason in done.err


def test_warnings_about_texts_are_those_of_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank references, tokenised hypotheses, a single label, and labels that are no tags."""
    monkeypatch.chdir(tmp_path)
    write_lines(Path("ref"), ["", *["the dog runs home."] * 119])
    write_lines(Path("tok"), ["the dog runs home ."] * 120)
    write_lines(Path("tags"), ["B-PER O"] * 9)
    write_lines(Path("odd"), ["B-PER X1"] * 9)
    for reference, output, metric in (("ref", "tok", "bleu"), ("tags", "odd", "entity_f1"), ("ref", "tok", "accuracy")):
        given = ("--reference", reference, "--metric", metric)
        warnings = [
            {
                line.partition(": ")[2].partition(": ")[2]
                for line in done.err.splitlines()
                if line.startswith("warning: ")
            }
            for done in (tfm("evaluate", "--hypotheses", output, *given), tfm("compare", f"A={output}", *given))
        ]
        assert warnings[0]
        assert warnings[0] <= warnings[1], (reference, warnings)
