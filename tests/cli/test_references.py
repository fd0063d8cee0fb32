"""Test sets of several references in a recipe: every stage keeps them, and the scores are sacrebleu's own."""

import json
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tests.cli.user import tfm, write_lines

SOURCES = ["ein Hund", "eine Katze", "ein Hund ", "ein Vogel"]
FIRST = ["a dog is over there", "a cat is over there", "the dog is over there", "a bird is over there"]
SECOND = ["one dog is over there", "", "one hound is over there", "a small bird is over there"]


def of_lists(rows: list[list[str]], number: int) -> list[str | None]:
    return [row[number] if number < len(row) else None for row in rows]


def test_scores_are_of_all_references(recipe: Path, corpora: Path, tmp_path: Path) -> None:
    for name, lines in (("t.de", SOURCES), ("t.en.1", FIRST), ("t.en.2", SECOND)):
        write_lines(tmp_path / name, lines)
    records = [{"de": s, "en": [a, b][: 2 if b else 1]} for s, a, b in zip(SOURCES, FIRST, SECOND, strict=True)]
    write_lines(tmp_path / "t.jsonl", [json.dumps(record) for record in records])
    tests = f"""
[data.tests.files]
source = "{tmp_path}/t.de"
references = ["{tmp_path}/t.en.1", "{tmp_path}/t.en.2"]

[data.tests.lists]
format = "jsonl"
path = "{tmp_path}/t.jsonl"
source = "de"
target = "en"
lists = "references"

[data.tests.repeated]
source = "{tmp_path}/t.de"
target = "{tmp_path}/t.en.1"
merge_references = true
"""
    text = recipe.read_text("utf-8")
    recipe.write_text(text.replace("[model]", f"{tests}\n[model]"), encoding="utf-8")
    metrics = 'evaluation.metrics=["bleu", "chrf", "ter", "exact_match"]'
    done = tfm("run", recipe, "--set", metrics, "--set", 'evaluation.bleu_tokenize="13a"')
    assert done.code == 0, done.err

    merged = [["a dog is over there", "the dog is over there"], ["a cat is over there"], ["a bird is over there"]]
    several = [[each for each in pair if each] for pair in zip(FIRST, SECOND, strict=True)]
    run, scores = tmp_path / "runs" / "tiny", json.loads((tmp_path / "runs/tiny/scores/scores.json").read_text())
    for name, rows in (("files", several), ("lists", several), ("repeated", merged)):
        hypotheses = (run / "translations" / f"{name}.txt").read_text("utf-8").splitlines()
        references = [of_lists(rows, number) for number in range(2)]
        found = scores["others"][name]["metrics"]
        for metric, own in (("bleu", BLEU(tokenize="13a")), ("chrf", CHRF()), ("ter", TER())):
            expected = own.corpus_score(hypotheses, references)  # type: ignore[arg-type]
            assert abs(found[metric]["score"] - expected.score) < 1e-9
            assert "nrefs:var" in found[metric]["signature"]
        equal = sum(given in row for given, row in zip(hypotheses, rows, strict=True))
        assert found["exact_match"]["score"] == 100 * equal / len(rows)
    assert (run / "translations" / "repeated.source.txt").read_text("utf-8").splitlines() == [
        "ein Hund", "eine Katze", "ein Vogel",
    ]  # fmt: skip
    assert (run / "translations" / "repeated.reference.2.txt").read_text("utf-8").splitlines() == [
        "the dog is over there",
        "",
        "",
    ]
    assert not (run / "translations" / "main.reference.2.txt").exists()
    again = tfm("run", recipe, "--set", metrics, "--set", 'evaluation.bleu_tokenize="13a"')
    assert again.err.count("nothing to do") == 5
    whole = tfm("inspect", run / "dataset")
    assert whole.code == 0, whole.err
