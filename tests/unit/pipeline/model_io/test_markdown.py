"""Names from received files stay text in a model card: in its YAML, its tables and its lines."""

from pathlib import Path

import pytest

from tests.huggingface_models import KINDS, published
from tfm.pipeline.artifacts.manifest import Input, open_artifact
from tfm.pipeline.model_io.huggingface.card import ModelCard, card_text
from tfm.pipeline.model_io.markdown import code_span, escape_markdown, to_yaml_value

EVIL = (
    "x\n---\n# Owned\n<script>alert(1)</script>",
    "a | b | c\r\n| d",
    "`code` <img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](http://evil/p.png)",
    "\u2028---\u2029...\x85license: evil\x00\x1b[2J\ud800",
    'quote" : [1, 2]\\',
    "https://evil.example www.evil.example &lt;b&gt; ~~a~~ **b** _c_ $x$",
    "x" * 10_000,
    "",
)


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_text_is_one_line_without_markup(text: str) -> None:
    shown, code, value = escape_markdown(text), code_span(text), to_yaml_value([text])
    for line in (shown, code, value):
        assert line.isprintable()
    assert not {"<", ">"} & {*shown}
    assert "http:" not in shown
    assert "www." not in shown
    for place, character in enumerate(shown):
        assert character not in "`*_[]|!#~$" or shown[place - 1] == "\\"
    assert code.count("`") == 2
    assert "|" not in code.replace(r"\|", "")
    assert max(len(shown), len(code)) < 1000


def test_a_card_is_not_broken_out_of(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="comes with transformers, of the extra `dev`")
    published(tmp_path / "model", **KINDS["GPT-2"][1])
    made = open_artifact(tmp_path / "model")
    inputs = {f"corpus: {text}": Input.from_value(text) for text in EVIL}
    made.inputs.update(inputs)
    figures = {text: {f"bleu{text}": (0.5, text)} for text in EVIL}
    for text in EVIL:
        card = ModelCard((text,), text, text, figures)
        lines = card_text(card, made, class_name="GPT2LMHeadModel", task="text-generation", usage_code="").split("\n")
        end = lines.index("---", 1)
        head = yaml.safe_load("\n".join(lines[1:end]))
        assert {*head} <= {"language", "license", "library_name", "pipeline_tag", "tags", "model-index"}
        assert len(head["model-index"][0]["results"]) == len(figures)
        body = lines[end + 1 :]
        assert "\n".join(lines).isprintable() or all(line.isprintable() for line in lines)
        assert [line for line in body if line.startswith("#")][1:] == ["## Use", "## Scores", "## Made from"]
        assert not any("<" in line.split("`")[0] for line in body)
        cells = [line.replace(r"\|", "").count("|") for line in body if line.startswith("|")]
        assert {*cells} == {5}
