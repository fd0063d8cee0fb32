"""Imported models of many languages through the command line: asked, scored, shown, and trained further."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import tfm as tfm_api
from tests.cli.user import tfm
from tests.huggingface_languages import END, GERMAN, KINDS, LONGEST, language, lead, made
from tests.tiny_model import TEXTS
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.tokenizer.special import UNK_ID

EACH = [pytest.param(kind, marks=[] if kind == "nllb" else pytest.mark.slow) for kind in KINDS]
"""Of longer tests one kind is in the quick suite."""


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return made(request.param, tmp_path_factory.mktemp("told"))


def perplexity_there(model: Any, sources: list[str], targets: list[str]) -> float:
    """exp of the mean cross-entropy of the targets' pieces and end tokens, after what a target begins with."""
    kind, theirs, tokenizer, ours, row = model
    code, total, count = language(tokenizer, kind.codes[1]), 0.0, 0
    for source, target in zip(sources, targets, strict=True):
        said = [row[number] for number in ours.target_tokenizer.encode(target)]
        begun = torch.tensor([[*lead(theirs, code), *said]])
        with torch.no_grad():
            logits = theirs(input_ids=torch.tensor([tokenizer(source).input_ids]), decoder_input_ids=begun).logits[0]
        log_p = logits[-len(said) - 1 :].log_softmax(-1)
        total += sum(float(log_p[place, piece]) for place, piece in enumerate([*said, END]))
        count += len(said) + 1
    return math.exp(-total / count)


@pytest.mark.parametrize("model", EACH, indirect=True)
def test_from_the_command_line(model: Any, tmp_path: Path) -> None:
    kind, _, tokenizer, ours, row = model
    sources, targets = ["a dog runs .", TEXTS[0], TEXTS[1]], [GERMAN[0], GERMAN[1], "ein Hund"]
    for name, lines in (("en", sources), ("de", targets)):
        (tmp_path / f"text.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    told = ("--to", "deu", "--from", kind.codes[0], "--device", "cpu")
    beam = ("--beam", "1", "--max-length", str(LONGEST))
    said = tfm("translate", ours.folder, tmp_path / "text.en", *told, *beam)
    assert said.code == 0, said.err
    ids = ours.source_tokenizer.encode_batch(sources)
    found = decode(ours.model, ids, DecodingConfig(beam=1, max_length=LONGEST))
    control = {*ours.source_tokenizer.languages.values(), UNK_ID}  # M2M100's tokenizer spells them
    written = [[row[number] for number in each[0].ids if number not in control] for each in found]
    spelled = [tokenizer.decode(each, skip_special_tokens=True).strip() for each in written]
    assert [each.strip() for each in said.out.splitlines()] == spelled

    files = ("--source", tmp_path / "text.en", "--reference", tmp_path / "text.de")
    scored = tfm("evaluate", "--model", ours.folder, *files, *told, "--metric", "perplexity", "--json")
    assert scored.code == 0, scored.err
    score = json.loads(scored.out)["metrics"]["perplexity"]["score"]
    assert score == pytest.approx(perplexity_there(model, sources, targets), rel=1e-4)

    asked = tfm_api.load(ours.folder, device="cpu")
    assert asked.translate(sources, beam=1, to="deu", source_language="eng", max_length=LONGEST) == [
        each.removesuffix("\n") for each in said.out.splitlines()
    ]

    read = tfm("attend", ours.folder, "a dog", "--target", "ein Hund", *told, "--json")
    assert read.code == 0, read.err
    code = ours.target_tokenizer.piece(ours.source_tokenizer.encode("a")[0])
    shown = json.dumps(json.loads(read.out)).count(json.dumps(code)[1:-1])
    assert shown

    for args, reason in ((("--to", "deu"), "--from"), (("--from", "eng"), "--to"), ((), "--to")):
        refused = tfm("translate", ours.folder, tmp_path / "text.en", *args, "--device", "cpu")
        assert refused.code == 65
        assert f"say which, {reason}" in " ".join(refused.err.split())


@pytest.mark.parametrize("model", EACH, indirect=True)
def test_fine_tuning_has_the_languages_in_its_sources_or_is_refused(model: Any, tmp_path: Path) -> None:
    ours = model[3]
    for name, text in (("en", "a dog runs\n"), ("de", "ein Hund rennt\n")):
        (tmp_path / f"text.{name}").write_text(text * 40, "utf-8")
    pair = (tmp_path / "text.en", tmp_path / "text.de")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", *pair)]
    files += ["--tokenizer", ours.folder, "--max-length", "30"]
    start = ("--init-from", ours.folder, "--device", "cpu", "--max-steps", "12")

    plain = tfm("preprocess", *files, "--out", tmp_path / "plain")
    assert plain.code == 0, plain.err
    refused = tfm("train", "--data", tmp_path / "plain", *start, "--out", tmp_path / "refused")
    assert refused.code == 2, refused.err
    assert "say which languages each corpus has" in " ".join(refused.err.split())

    told = tfm("preprocess", *files, "--from", "eng", "--to", "deu", "--out", tmp_path / "told")
    assert told.code == 0, told.err
    trained = tfm(
        *("train", "--data", tmp_path / "told", *start, "--out", tmp_path / "run"),
        *("--set", "training.schedule.peak=0.01", "--set", "training.schedule.warmup_steps=1"),
    )
    assert trained.code == 0, trained.err
    after = load_model(tmp_path / "run" / "model", "cpu", torch.float64).for_languages("deu", "eng")
    source, target = after.source_tokenizer.encode("a dog runs"), after.target_tokenizer.encode("ein Hund rennt")
    before, now = (target_log_probs(each.model, [source], [target])[0] for each in (ours, after))
    assert now > before + 0.5


@pytest.mark.parametrize("model", EACH, indirect=True)
def test_scores_of_another_source_language_are_made_anew(model: Any, tmp_path: Path) -> None:
    row = {"source": "a dog runs", "right": "ein Hund rennt", "wrong": "ein Hund schläft"}
    (contrast := tmp_path / "contrast.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    told = ("evaluate", "--model", model[3].folder, "--contrast", contrast, "--to", "deu", "--device", "cpu")
    english = tfm(*told, "--from", "eng", "--out", tmp_path / "scores")
    german = tfm(*told, "--from", "deu", "--out", tmp_path / "scores")
    assert (english.code, german.code) == (0, 0), german.err
    assert "up to date" not in german.err
    assert "up to date" in tfm(*told, "--from", "deu", "--out", tmp_path / "scores").err
