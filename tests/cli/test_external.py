"""External metrics at the command line: in tables, scores.json, segments.jsonl and the report, failed ones too."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import ROOT, tfm, write_lines
from tfm.pipeline.external_metric import ExternalMetric
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.metrics.external.scores import external_scores

COMET = ROOT / "docs" / "external" / "comet_scores.py"
BERT = ROOT / "docs" / "external" / "bert_scores.py"
SCRIPT = """
import json, sys
for line in sys.stdin:
    segment = json.loads(line)
    print({} if segment["hypothesis"] in segment["references"] else 0.25)
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Hypotheses and references, of which half are equal, and two metrics: one that works, one that does not."""
    monkeypatch.chdir(tmp_path)
    write_lines(Path("hypotheses"), ["ein Hund", "", "כלב רץ", "ROT"])
    write_lines(Path("references"), ["ein Hund", "", "כלב", "rot"])
    Path("score.py").write_text(SCRIPT.format(1))
    metrics = [
        {"name": "same", "command": f"{sys.executable} -I -S score.py"},
        {"name": "broken", "command": [sys.executable, "-I", "-S", "-c", "raise SystemExit('no GPU')"]},
    ]
    tables = ", ".join(
        "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in metric.items()) + "}" for metric in metrics
    )
    files = ("--hypotheses", "hypotheses", "--reference", "references", "--metric", "chrf")
    return (*files, "--set", f"evaluation.external=[{tables}]")


def scores(folder: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(folder) / "scores.json").read_text("utf-8"))
    return content


def test_an_external_metric_stands_beside_the_others(words: tuple[str, ...]) -> None:
    done = tfm("evaluate", *words, "--out", "scores")
    assert done.code == 0, done.err
    found = scores("scores")
    assert found["metrics"]["same"]["score"] == (1 + 1 + 0.25 + 0.25) / 4
    assert found["metrics"]["same"]["signature"].startswith("external:same|nrefs:1|command:")
    assert list(found["metrics"]) == ["chrf", "same"]
    assert found["missing"] == {"broken": "ended with exit code 1: no GPU"}
    rows = [json.loads(line) for line in Path("scores/segments.jsonl").read_text("utf-8").splitlines()]
    assert [row["external"] for row in rows] == [{"same": 1.0}, {"same": 1.0}, {"same": 0.25}, {"same": 0.25}]
    assert "references: broken ended with exit code 1: no GPU" in done.err
    assert "scores do not include broken. Fix its command, delete scores and evaluate again" in done.err
    assert "0.6250" in done.out
    page = Path("scores/report.html").read_text("utf-8")
    for text in ("same</td>", "0.6250", "external:same|nrefs:1|", "ended with exit code 1: no GPU"):
        assert text in page


def test_scores_are_made_again_where_a_command_or_its_script_changed(words: tuple[str, ...]) -> None:
    def evaluate(*more: str) -> str:
        done = tfm("evaluate", *words, *more, "--out", "scores")
        assert done.code == 0, done.err
        return done.err

    evaluate()
    before = scores("scores")["metrics"]["same"]
    again = evaluate()
    assert "nothing to do" in again
    assert "scores do not include broken" in again
    Path("score.py").write_text(SCRIPT.format(3))
    assert "input external same: score.py changed" in evaluate()
    after = scores("scores")["metrics"]["same"]
    assert after["score"] == (3 + 3 + 0.25 + 0.25) / 4
    assert after["signature"] != before["signature"]
    assert "config changed: evaluation.external" in evaluate("--set", "evaluation.external.0.higher_is_better=false")
    page = Path("scores/report.html").read_text("utf-8")
    assert "same ↓</td>" in page
    assert "|better:lower|" in scores("scores")["metrics"]["same"]["signature"]


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ('evaluation.external=[{name="bleu", command="x"}]', 'another metric of the name "bleu"'),
        ('evaluation.external=[{name="m", comand="x"}]', "did you mean evaluation.external.0.command?"),
        ('evaluation.external=[{name="m", command="x", limit=0}]', "must be more than 0"),
        ('evaluation.external=[{name="m"}]', "command is missing"),
        ('evaluation.external=[{name="m", command="\'"}]', "No closing quotation"),
    ],
)
def test_what_is_wrong_is_a_usage_error(words: tuple[str, ...], setting: str, hint: str) -> None:
    done = tfm("evaluate", *words, "--set", setting)
    assert done.code == 2
    assert hint in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_a_recipe_has_them_as_tables_and_is_told_of_a_command_that_is_not_there(recipe: Path) -> None:
    text = '\n[[evaluation.external]]\nname = "comet"\ncommand = "no-such-command --batch 8"\nlimit = 60\n'
    recipe.write_text(recipe.read_text("utf-8") + text, encoding="utf-8")
    shown = json.loads(tfm("recipe", recipe).out)["evaluation"]["external"]
    assert shown == [{"name": "comet", "command": ["no-such-command", "--batch", "8"], "limit": 60.0,
                      "higher_is_better": True}]  # fmt: skip
    schema = json.loads(tfm("recipe", "--schema").out)
    assert [each["type"] for each in schema["$defs"]["ExternalMetric"]["properties"]["command"]["anyOf"]] == [
        "string",
        "array",
    ]
    done = tfm("run", recipe, "--set", "evaluation.metrics=['chrf']")
    assert done.code == 0, done.err
    assert "there is no command 'no-such-command'" in done.err.partition("[1/5]")[0]
    assert scores("runs/tiny/scores")["missing"]["comet"].startswith("cannot be started: no-such-command: No such")


def test_the_script_for_comet_calls_its_package_as_that_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COMET's own environment cannot be had here: a module of its name notes what it is asked and counts letters."""
    (tmp_path / "comet.py").write_text(
        "from types import SimpleNamespace as Of\nprint('hello')\n"
        "def download_model(name): return name + '/model.ckpt'\n"
        "def load_from_checkpoint(path):\n    assert path == 'Unbabel/wmt22-comet-da/model.ckpt'\n"
        "    return Of(predict=predict)\n"
        "def predict(data, batch_size, gpus):\n    assert (batch_size, gpus) == (4, 0)\n    print('predicting')\n"
        "    return Of(scores=[len(row['src']) + len(row['mt']) / 10 + len(row['ref']) / 100 for row in data])\n"
    )
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "cuda.py").write_text("def is_available(): return False\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    comet = ExternalMetric(name="comet", command=(sys.executable, "-S", str(COMET), "--batch-size", "4"))
    references = [["abc", "a", "ab"], ["abcd", "", "a"]]
    found = external_scores([comet], "test", ["ab", "", "ק"], ["a", "bc", ""], references, NullReporter())
    assert list(found.numbers["comet"]) == pytest.approx([2.14, 0.21, 1.02], rel=1e-12)
    without = external_scores([comet], "test", None, ["a"], [["a"]], NullReporter())
    assert without.missing["comet"] == "ended with exit code 1: COMET needs sources: give --source FILE"


def test_the_script_for_bertscore_calls_its_package_as_that_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of its name notes what it is asked, and gives the share of references that are the hypothesis."""
    (tmp_path / "bert_score.py").write_text(
        "print('hello')\nclass Tensor(list):\n    def tolist(self): return list(self)\n"
        "def score(cands, refs, lang, batch_size, rescale_with_baseline):\n"
        "    assert (lang, batch_size, rescale_with_baseline) == ('de', 4, True)\n    print('scoring')\n"
        "    found = [each.count(one) / len(each) for one, each in zip(cands, refs, strict=True)]\n"
        "    return None, None, Tensor(found)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = (sys.executable, "-S", str(BERT), "--lang", "de", "--batch-size", "4", "--rescale")
    bert = ExternalMetric(name="bertscore", command=words)
    found = external_scores([bert], "test", None, ["a", "b"], [["a", "b"], ["c", ""]], NullReporter())
    assert list(found.numbers["bertscore"]) == [50.0, 100.0]
