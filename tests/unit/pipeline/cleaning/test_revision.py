"""The revision of the rules: where a rule judges a pair otherwise, clean text of before must be made anew."""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.recording_reporter import Listening
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import stale_reason
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.registry import RULES_REVISION
from tfm.pipeline.stages import clean as stage

# of scores, verdicts and texts, by revision; a change of one is a new revision, never a new hash of an old one
VERDICT_HASHES = {3: "a6859912e8d5d286", 4: "02da138b37870334", 5: "bcc00b8cd6aeb80d", 6: "ec14ca9b038bb86b"}
RULES = CleanConfig.model_validate(
    {
        "controls": {"action": "remove"},
        "length": {"max": 12},
        "script": {"source": "Latin", "target": "Latin"},
        "numbers": {},
        "markup": {},
        "punctuation": {},
        "boilerplate": {"max": 2},
        "duplicates": {"ignore": "marks"},
    }
)
PAIRS = [
    ("A dog runs .", "Ein Hund rennt ."),
    ("a dog runs", "ein Hund rennt"),
    ("A\x07 cat\u200b sleeps .", "Eine Katze schläft ."),
    ("", "Nichts ."),
    ("one two three four five six seven eight nine ten eleven twelve thirteen", "eins zwei"),
    ("a b c d e f", "x"),
    ("The same sentence .", "The same sentence ."),
    ("12 % & § 17 – 4 / 3", "12 % & § 17 – 4 / 3 = 8"),
    ("In 1984 it rained .", "1985 regnete es ."),
    ("٣ apples .", "3 Äpfel ."),
    ("a " + "123456789" * 30, "ein " + "123456789" * 20 + "2" + "123456789" * 10),
    ("<b>bold</b> words", "fette Wörter"),
    ("See http://example.org/a", "Siehe http://example.org/b"),
    ("Is it late ?", "Es ist spät ."),
    ("It is late。", "Es ist spät ."),
    ("Собака бежит .", "Ein Hund rennt schnell ."),
    ("read more", "mehr lesen"),
    ("Read more", "Mehr lesen"),
    ("read more", "weiter lesen"),
    ("A held-out pair .", "Ein Paar der Tests ."),
    ("A marked\u061c held-out text .", "Ein Text mit Zeichen ."),
    ("An unmarked text .", "Ein Text\u061c ohne Zeichen ."),
    ("A held\u00ad-out\u200b pair .", "Ein anderes Paar ."),
    ("a" + "bcd" * 4000 + "e", "ac" * 6000),
]
TEST_PAIRS = [("A held-out pair .", "Ein Paar der Tests ."), ("A marked\u061c held-out text .", "Ein Text .")]


def write_pairs(folder: Path, name: str, pairs: list[tuple[str, str]]) -> CorpusConfig:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in pairs))
    return CorpusConfig(format="jsonl", path=str(path))


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    train, test = write_pairs(tmp_path, "train", PAIRS), write_pairs(tmp_path, "test", TEST_PAIRS)
    return DataConfig(train=(train,), valid=(test,), tests={"test": test})


def test_other_verdicts_are_another_revision(data: DataConfig, tmp_path: Path) -> None:
    stage.clean(RULES, data, tmp_path / "clean", command=["tfm", "clean"], reporter=Listening())
    scores = pq.read_table(tmp_path / "clean" / "scores.parquet").to_pylist()
    verdicts = [[round(each, 6) if isinstance(each, float) else each for each in row.values()] for row in scores]
    kept = [(tmp_path / "clean" / f"train.0.{side}.txt").read_text("utf-8") for side in ("source", "target")]
    found = hashlib.sha256(json.dumps([verdicts, kept]).encode()).hexdigest()[:16]
    assert VERDICT_HASHES.get(RULES_REVISION) == found, f"raise RULES_REVISION, and add {found}"
    assert max(VERDICT_HASHES) == RULES_REVISION


def test_clean_text_of_an_earlier_revision_is_made_anew(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "clean"
    stage.clean(RULES, data, out, command=["tfm", "clean"], reporter=Listening())
    assert stale_reason(stage.plan_clean(RULES, data, out)) is None
    monkeypatch.setattr(stage, "RULES_REVISION", RULES_REVISION + 1)
    reason = stale_reason(stage.plan_clean(RULES, data, out))
    assert reason is not None
    assert "rules" in reason
