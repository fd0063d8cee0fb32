"""The report: all text escaped, nothing loaded from elsewhere, and everything found is on it."""

import json
import math
from html.parser import HTMLParser

from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.evaluation_report import mean_of_directions_tables, render_report, score_rows
from tfm.pipeline.reports.training_curves import curves_svg
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation, mean_scores_by_group
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.registry import Score

NASTY = '<script>alert("1")</script> & $title ${body} </dd>'
METRICS: list[dict[str, object]] = [
    {"event": "valid", "step": step, "loss": 9.0 / step, "perplexity": 9.0, "bleu": step} for step in (1, 2, 3)
]


class Page(HTMLParser):
    """Tags, attributes and text of a page; refuses tags that do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        if tag not in ("meta", "br", "hr"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def evaluation(name: str = "test", sources: list[str] | None = None) -> Evaluation:
    hypotheses = ["ein Hund läuft schnell", NASTY, "x", "die Katze schläft", "\u202eabc"]
    references = [["ein Hund läuft schnell", "alles gut", "y", "die Katze schläft jetzt", "abc"]]
    segments = Segments(name, sources, hypotheses, references)
    extra = {"perplexity": Score(math.inf, "unit:token")}
    return evaluate_segments(segments, EvaluationConfig(samples=3), seed=1, reporter=NullReporter(), extra=extra)


def inputs() -> dict[str, Input]:
    tokenizer = {"fingerprint": "t0ken", "path": "runs/x/tokenizer", "lineage": {}}
    return {
        "model": Input(
            "m0del", "runs/x/model", {"stage": "train", "fingerprint": "m0del", "inputs": {"tok": tokenizer}}
        ),
        "file": Input("f1le", NASTY),
    }


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    one = evaluation(NASTY, [NASTY, "b c", "d e f", "g", "h"])
    page = Page(render_report(NASTY, [one, evaluation("second")], curves=curves_svg(METRICS), inputs=inputs()))
    assert "script" not in page.tags
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert all(address.startswith("#") for address in page.addresses)
    assert page.tags.count("svg") == 1
    assert page.words.count(NASTY) >= 5  # title, headings, hypothesis, source, path of an input
    for text in ("Scores on second", "Quality by source length", "Quality by reference length", "Worst samples"):
        assert text in page.words
    for text in ("made by train", "m0del", "t0ken", "runs/x/tokenizer", "Lineage", "BLEU", "perplexity ↓", "∞"):
        assert text in page.words
    for score in one.scores.values():
        assert score.signature in page.words


def test_a_text_turns_nothing_around_it_and_its_own_joiners_stay() -> None:
    """An override (U+202E) without its end would turn the rest of the line; Persian needs the joiner in می‌روم."""
    texts = ["\u202eabc", "من می\u200cروم\u00a0!"]
    found = evaluate_segments(
        Segments("t\u202e", texts, texts, [texts]), EvaluationConfig(), seed=1, reporter=NullReporter()
    )
    shown = render_report("t", [found], curves=None, inputs={})
    assert "\u202e" not in shown
    assert shown.count("\\u202eabc") >= 3  # source, hypothesis, reference
    assert shown.count(texts[1]) >= 3


def test_what_is_not_there_has_no_heading() -> None:
    segments = Segments("test", None, ["a"], [["a"]])
    bare = evaluate_segments(segments, EvaluationConfig(metrics=("bleu",), samples=0), seed=1, reporter=NullReporter())
    page = Page(render_report("t", [bare], curves=None, inputs={}))
    for heading in ("Training", "Lineage", "Worst", "Random"):
        assert heading not in page.words


def test_a_missing_metric_says_why() -> None:
    segments = Segments("test", None, ["a"], [["a"]])
    missing = {"perplexity": "needs a model"}
    found = evaluate_segments(segments, EvaluationConfig(), seed=1, reporter=NullReporter(), missing_reasons=missing)
    assert score_rows(found)[-1] == ("perplexity ↓", "–", "needs a model")


def test_a_mean_over_directions_is_shown_as_its_scores_are() -> None:
    signatures = {"meteor": "language:eng|no-wordnet", "mqm": "external:mqm|better:lower|stat:mean", "bleu": "tok:{}"}
    evaluations = []
    for name, number, tokenizer in (("eng-deu", 0.84, "13a"), ("eng-zho", 0.8446, "zh")):
        scores = {metric: Score(number, each.format(tokenizer)) for metric, each in signatures.items()}
        direction = tuple(name.split("-"))
        evaluations.append(Evaluation(name, 1, scores, (), "source", (), (), (), direction=direction))  # type: ignore[arg-type]
    ((title, rows),) = mean_of_directions_tables(evaluations)
    assert title == "mean of all directions"
    assert rows[1:] == [("mqm ↓", "0.8423"), ("BLEU", "0.84")]
    means = mean_scores_by_group(evaluations)["all"]
    assert means["bleu"].signature == "mean-of:2-directions|eng-deu(tok:13a)|eng-zho(tok:zh)"
    assert means["mqm"].signature == f"mean-of:2-directions|{signatures['mqm']}"


def test_json_gives_the_same_evaluations_back() -> None:
    found = [evaluation("main", list("abcde")), evaluation("second")]
    content = evaluations_as_json(found)
    assert content["split"] == "main"
    assert list(content["others"]) == ["second"]
    assert content["metrics"]["bleu"] == {
        "score": found[0].scores["bleu"].score,
        "signature": found[0].scores["bleu"].signature,
    }
    assert content["metrics"]["perplexity"]["score"] is None
    assert evaluations_from_json(json.loads(json.dumps(content, allow_nan=False))) == found
