"""A test set of which segments have one, two or three references: every score a second time."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.meaning import campaign, scripts
from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import BLEU_TOKENS, tokens_of_words
from tests.meaning.scripts import SCRIPTS
from tests.meaning.test_scores import ROUGE, signed

pytestmark = [pytest.mark.slow, pytest.mark.meaning("scores")]
KEPT = ("Latin", "Arabic", "Thai", "Han")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def others(line: str, number: int) -> list[str]:
    """Up to two more ways to say a line."""
    words = list(line)
    random.Random(f"{line} {number}").shuffle(words)
    shuffled = " ".join("".join(words).split())
    return [line[: len(line) // 2].strip(), shuffled][: number % 3]


@pytest.mark.parametrize("name", KEPT)
def test_scores_of_several_references(name: str, record_property: Any) -> None:
    script = SCRIPTS[name]
    tested = dict(script.pairs(30, 5))
    segments = [[target, *others(target, number)] for number, target in enumerate(tested.values())]
    rows = [(source, each) for source, texts in zip(tested, segments, strict=True) for each in texts]
    pairs = {"train": script.pairs(300, 6), "valid": script.pairs(20, 7), "test": rows}
    recipe = campaign.write_recipe(
        Path("several.toml"), scripts.write_pairs(Path("corpora"), pairs).folder, script.kind
    )
    text = recipe.read_text("utf-8").replace("[data.tests.test]", "[data.tests.test]\nmerge_references = true")
    recipe.write_text(text, encoding="utf-8")
    run = campaign.run(recipe, {"training.max_epochs": 25})
    found = run.scores["test"]
    hypotheses = run.lines("translations/test.txt")
    assert found["num_segments"] == len(hypotheses) == len(tested)
    columns = [[texts[place] if place < len(texts) else None for texts in segments] for place in range(3)]
    metrics = found["metrics"]
    tokens = BLEU_TOKENS[signed(metrics["bleu"])["tok"]]
    tokenized = [[None if each is None else tokens(each) for each in column] for column in columns]
    mine = {
        "bleu": plain.bleu([*map(tokens, hypotheses)], tokenized),
        "chrf": plain.chrf(hypotheses, columns),
        "exact_match": 100 * sum(one in texts for one, texts in zip(hypotheses, segments, strict=True)) / len(tested),
    }
    for metric, order in ROUGE.items():
        if metric in metrics:
            pairs_of = zip(hypotheses, segments, strict=True)
            best = [max(_rouge(order, one, each) for each in texts) for one, texts in pairs_of]
            mine[metric] = sum(best) / len(best)
    assert {metric: metrics[metric]["score"] for metric in mine} == pytest.approx(mine)
    assert mine["bleu"] > 0
    record_property("figures", len(mine))


def _rouge(order: int | None, hypothesis: str, reference: str) -> float:
    return plain.rouge(order, [tokens_of_words(hypothesis)], [tokens_of_words(reference)])
