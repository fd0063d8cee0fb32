"""`tfm generate` as a user types it, and the strategies of `tfm translate`."""

import json
import math
import os
import random
import re
import subprocess
from pathlib import Path

import pytest

import tfm as tfm_in_python
from tests.cli.test_numpy_translation import loaded_by
from tests.cli.user import Stages, start, tfm, write_lines

THINGS = "cat dog horse owl bee".split()
LINE = re.compile(rf"the ({'|'.join(THINGS)}) is (old|new)")
RECIPE = """
[tokenizer]
kind = "word"
vocab_size = 60
min_frequency = 1

[data]
batch_tokens = {batch}
train = {{ source = "none", target = "train.txt" }}
valid = {{ source = "none", target = "valid.txt" }}
tests = {{ main = {{ source = "none", target = "valid.txt" }} }}

[model]
architecture = "decoder_only"
task = "language_model"
decoder = {{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 32 }}
dropout = {{ residual = 0.0, embedding = 0.0 }}
max_length = 300
{block}

[training]
max_steps = 150
precision = "fp32"
device = "cpu"
label_smoothing = 0.0

[training.schedule]
name = "cosine"
peak = 0.01
warmup_steps = 10
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of lines and one of running text, both of "the THING is QUALITY"."""
    root, draw = tmp_path_factory.mktemp("generate"), random.Random(3)
    for name, size in (("train", 400), ("valid", 40)):
        lines = [f"the {draw.choice(THINGS)} is {draw.choice(('old', 'new'))}" for _ in range(size)]
        write_lines(root / f"{name}.txt", lines)
    before = Path.cwd()
    os.chdir(root)
    try:
        for name, block in (("lines", ""), ("running", "block = 24")):
            batch = 256 if not block else 96
            Path(f"{name}.toml").write_text(RECIPE.format(batch=batch, block=block), encoding="utf-8")
            for stage in ("tokenize", "preprocess", "train"):
                done = tfm(stage, "--recipe", f"{name}.toml")
                assert done.code == 0, done.err
    finally:
        os.chdir(before)
    return {name: root / "runs" / name for name in ("lines", "running")}


@pytest.mark.slow
def test_each_prompt_is_gone_on_with(models: dict[str, Path]) -> None:
    done = tfm("generate", models["lines"], "--device", "cpu", stdin="the owl\n\nthe bee is\n")
    assert done.code == 0, done.err
    texts = done.out.splitlines()
    assert [text.startswith(prompt) for text, prompt in zip(texts, ("the owl", "", "the bee is"), strict=True)]
    assert all(LINE.fullmatch(text) for text in texts)


@pytest.mark.parametrize("name", ["lines", "running"])
@pytest.mark.few(1)
def test_many_prompts_are_answered_as_each_alone(models: dict[str, Path], name: str, tmp_path: Path) -> None:
    prompts = ["the owl", "the bee", "", "the owl is", "the bee"]
    words = ("generate", models[name], "--device", "cpu", "--max-tokens", "6", "--jsonl")
    alone = [tfm(*words, "--prompt", prompt).out for prompt in prompts]
    file = tmp_path / "prompts.txt"
    file.write_text("\n".join(prompts) + "\n", encoding="utf-8")
    piped = tfm(*words, stdin=file.read_text(encoding="utf-8"))
    assert piped.out.splitlines() == [each.strip() for each in alone]
    with file.open("rb") as stdin, start(*words, folder=tmp_path, stdin=stdin) as process:
        assert process.communicate()[0] == piped.out


@pytest.mark.parametrize("search", [(), ("--beam", "2")], ids=str)
def test_a_prompt_that_cannot_be_read_is_named_by_its_line(models: dict[str, Path], search: tuple[str, ...]) -> None:
    words = ("generate", models["lines"], "--device", "cpu", "--max-tokens", "6", *search)
    done = tfm(*words, stdin="the owl\nthe bee\n" + "cat " * 400 + "\nthe owl\n")
    assert done.code == 65
    assert [text[:7] for text in done.out.splitlines()] == ["the owl", "the bee"]
    assert done.err.startswith("stdin, line 3: the prompt has 400 pieces")


def test_a_prompt_is_answered_before_the_next_is_written(models: dict[str, Path]) -> None:
    words = ("generate", models["lines"], "--device", "cpu", "--max-tokens", "6")
    with start(*words, folder=models["lines"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for prompt in ("the owl", "the bee is"):
            process.stdin.write(prompt + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(prompt)
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("name", ["lines", "running"])
def test_python_gives_what_the_command_prints(models: dict[str, Path], name: str) -> None:
    model, few = tfm_in_python.load(models[name], device="cpu"), ("--max-tokens", "30")
    for prompt in ("the owl", "the bee is\nthe", ""):
        printed = tfm("generate", models[name], "--device", "cpu", "--prompt", prompt, *few).out
        assert model.generate(prompt, max_length=30) + "\n" == printed
    asked = ("generate", models[name], "--device", "cpu", "--prompt", "the", "--samples", "4", "--seed", "7", "--jsonl")
    (entry,) = map(json.loads, tfm(*asked, *few).out.splitlines())
    found = model.generations("the", n_best=4, seed=7, max_length=30)
    for ours, theirs in zip(found, entry["texts"], strict=True):  # by torch, and by numpy
        assert (ours.text, ours.num_tokens) == (theirs["text"], theirs["num_tokens"])
        assert (ours.log_prob, ours.score) == pytest.approx((theirs["log_prob"], theirs["score"]), rel=1e-5)


@pytest.mark.parametrize(("name", "search"), [("lines", {}), ("running", {}), ("lines", {"beam": 2})])
def test_python_takes_prompts_together(models: dict[str, Path], name: str, search: dict[str, int]) -> None:
    model, prompts = tfm_in_python.load(models[name], device="cpu"), ["the owl", "", "the bee is", "the"]
    asked = {"max_length": 12, **search}
    texts, found = model.generate(iter(prompts), **asked), model.generations(prompts, n_best=2, **asked)
    assert texts == [model.generate(prompt, **asked) for prompt in prompts]
    for prompt, n_best in zip(prompts, found, strict=True):
        alone = model.generations(prompt, n_best=2, **asked)
        assert [each.text for each in n_best] == [each.text for each in alone]
        assert [each.log_prob for each in n_best] == pytest.approx([each.log_prob for each in alone], rel=1e-5)
    assert model.generate([], **asked) == model.generations([], **asked) == []
    assert model.generate(["the"], **asked) == texts[3:]
    with pytest.raises(tfm_in_python.TfmError, match=r"n_best \(2\) has no effect: .*; use generations\(\)"):
        model.generate(prompts, n_best=2, **asked)


def test_python_names_the_prompt_that_is_too_long(models: dict[str, Path]) -> None:
    model, long = tfm_in_python.load(models["lines"], device="cpu"), "the " * 400
    with pytest.raises(tfm_in_python.DataError, match=r"^prompts\[1\]: the prompt has 400 pieces"):
        model.generate(["the owl", long])
    with pytest.raises(tfm_in_python.DataError, match=r"^the prompt has 400 pieces"):
        model.generate(long)


@pytest.mark.parametrize("name", ["lines", "running"])
def test_python_scores_texts_as_evaluate_does(models: dict[str, Path], tmp_path: Path, name: str) -> None:
    lines = ["the owl is old", "", "the cat is", "new new the the"]
    file = write_lines(tmp_path / "texts", lines)
    said = tfm("evaluate", "--model", models[name], "--reference", file, "--device", "cpu", "--json")
    printed = {metric: each["score"] for metric, each in json.loads(said.out)["metrics"].items()}
    found = tfm_in_python.load(models[name], device="cpu").score(lines)
    assert {metric: each.score for metric, each in found.figures.items()} == pytest.approx(
        {metric: printed[metric] for metric in found.figures}, rel=1e-12
    )
    assert found.num_tokens.tolist() == [5, 1, 4, 5]
    assert math.exp(-found.log_probs.sum() / 15) == pytest.approx(printed["perplexity"], rel=1e-12)


@pytest.mark.parametrize("name", ["lines", "running"])
def test_half_a_character_is_scored_as_an_unknown_one(models: dict[str, Path], name: str) -> None:
    model = tfm_in_python.load(models[name], device="cpu")
    halves, whole = (model.score(["the owl", text]) for text in ("the \ud800", "the \ufffd"))
    assert halves.log_probs.tolist() == whole.log_probs.tolist()
    assert halves.figures == whole.figures


def test_what_is_drawn_follows_from_prompt_and_seed(models: dict[str, Path]) -> None:
    words = ("generate", models["lines"], "--device", "cpu", "--prompt", "the", "--samples", "8")
    first = tfm(*words).out
    assert len(set(first.splitlines())) > 2
    assert all(LINE.fullmatch(text) for text in first.splitlines())
    assert tfm(*words).out == first
    assert sorted(tfm(*words, "--seed", "2").out.splitlines()) != sorted(first.splitlines())
    one_sample = words[:-2]
    greedy = tfm(*one_sample, "--beam", "1").out
    for certain in (("--temperature", "0"), ("--top-k", "1"), ("--top-p", "0.01")):
        assert tfm(*one_sample, *certain).out == greedy


def test_a_beam_and_what_may_and_must_come_up(models: dict[str, Path]) -> None:
    words = ("generate", models["lines"], "--device", "cpu", "--prompt", "the", "--jsonl", "--beam", "6")
    found = json.loads(tfm(*words, "--samples", "6", "--set", "decoding.length_norm=none").out)
    assert found["prompt"] == "the"
    assert [each["log_prob"] for each in found["texts"]] == sorted(
        (t["log_prob"] for t in found["texts"]), reverse=True
    )
    assert len({each["text"] for each in found["texts"]}) == 6
    forced = json.loads(tfm(*words, "--set", 'decoding.forced=["horse"]').out)["texts"]
    assert " horse is" in forced[0]["text"]
    assert forced[0]["num_tokens"] == 4
    banned = ("--forbidden", "cat", "--forbidden", "owl is", "--set", 'decoding.forbidden=["bee"]')
    texts = json.loads(tfm(*words, "--samples", "6", *banned).out)["texts"]
    assert not any(word in text["text"] for text in texts for word in ("cat", "owl is"))


def test_running_text_goes_on(models: dict[str, Path]) -> None:
    words = ("generate", models["running"], "--device", "cpu", "--prompt", "the owl is old\nthe")
    done = tfm(*words, "--max-tokens", "60")
    assert done.code == 0, done.err
    lines = done.out.removesuffix("\n").split("\n")
    assert lines[0] == "the owl is old"
    assert len(lines) > 11
    assert sum(bool(LINE.fullmatch(line)) for line in lines) > 0.8 * len(lines)
    two = tfm(*words, "--max-tokens", "9", "--samples", "2").out
    assert two.count("---\n") == 1
    one = tfm(*words, "--no-through-ends", "--beam", "2")
    assert one.code == 0, one.err
    refused = tfm(*words, "--beam", "2")
    assert refused.code == 2
    assert "beam search needs an end" in refused.err


def test_choices_are_scored(models: dict[str, Path], tmp_path: Path) -> None:
    file = write_lines(tmp_path / "choices.txt", [" is", " owl", " old"])
    done = tfm("generate", models["lines"], "--device", "cpu", "--prompt", "the cat", "--choices", file)
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert rows[0][2] == " is"
    assert float(rows[0][0]) > -0.1
    assert float(rows[1][0]) < -2
    found = json.loads(
        tfm("generate", models["lines"], "--device", "cpu", "--choices", file, "--jsonl", stdin="the cat\n").out
    )
    assert [each["text"] for each in found["choices"]] == [row[2] for row in rows]
    assert "vocabulary" not in done.err
    refused = tfm("generate", models["lines"], "--choices", file, "--samples", "3")
    assert refused.code == 2
    assert "--samples" in refused.err


@pytest.mark.parametrize(
    ("choices", "code", "problem"),
    [
        ([" is", "", " old"], 65, "choices.txt, line 2: is blank, and a choice adds text to the prompt"),
        ([], 65, "choices.txt: is empty: give a choice a line"),
        ([" is", "old"], 0, 'a prompt ends within a word that a choice goes on with ("catold"): texts are joined as'),
        (
            [" is", " zebra", " gnu"],
            0,
            "2 of 3 choices have pieces that the model's vocabulary lacks (the first in line 2)",
        ),
    ],
)
def test_choices_that_cannot_be_compared_are_told(
    models: dict[str, Path], tmp_path: Path, choices: list[str], code: int, problem: str
) -> None:
    file = write_lines(tmp_path / "choices.txt", choices)
    done = tfm("generate", models["lines"], "--device", "cpu", "--prompt", "the cat", "--choices", file)
    assert done.code == code
    assert problem in " ".join(done.err.split())


@pytest.mark.parametrize("name", ["lines", "running"])
def test_questions_are_answered_from_the_figures_of_choices(models: dict[str, Path], tmp_path: Path, name: str) -> None:
    choices = [" is", " owl", " old"]
    file = write_lines(tmp_path / "choices.txt", choices)
    rows = [{"context": "the cat", "choices": choices, "answer": 0}, {"context": "", "choices": choices, "answer": 2}]
    asked = write_lines(tmp_path / "asked.jsonl", [json.dumps(row) for row in rows])
    words = ("evaluate", "--model", models[name], "--device", "cpu", "--choices", asked, "--out", tmp_path / "out")
    done = tfm(*words, "--json")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["sets"]
    assert list(found["accuracy"]) == ["sum", "mean", "difference"]
    assert found["accuracy"]["sum"]["score"] >= 50
    items = [json.loads(line) for line in (tmp_path / "out" / "items.jsonl").read_text("utf-8").splitlines()]
    scored = tfm("generate", models[name], "--device", "cpu", "--prompt", "the cat", "--choices", file)
    same = {text: float(log_prob) for log_prob, _, text in (line.split("\t") for line in scored.out.splitlines())}
    assert items[0]["log_probs"] == pytest.approx([same[choice] for choice in choices], abs=1e-4)
    assert items[0]["log_probs_alone"] == items[1]["log_probs"] == items[1]["log_probs_alone"]


def test_an_ensemble_writes(models: dict[str, Path]) -> None:
    words = ("generate", models["lines"], "--device", "cpu", "--prompt", "the", "--samples", "3")
    assert tfm(*words, "--ensemble", models["lines"]).out == tfm(*words).out
    refused = tfm(*words, "--ensemble", models["running"])
    assert refused.code == 65
    assert "one of them was trained on running text" in refused.err


@pytest.mark.slow
def test_a_terminal_sees_the_text_as_it_is_written(models: dict[str, Path]) -> None:
    ours, theirs = os.openpty()
    words = ("generate", models["running"], "--device", "cpu", "--prompt", "the owl", "--max-tokens", "600")
    with start(*words, folder=models["running"], stdout=theirs) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
        assert process.wait() == 0, process.stderr and process.stderr.read()
    os.close(ours)
    assert len(parts) > 3
    assert b"".join(parts).decode().replace("\r\n", "\n") == tfm(*words).out


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--beam", "2", "--top-k", "3"), 2, 'top_k (3) is for sampling: it needs strategy = "sample"'),
        (("--temperature", "-1"), 2, "decoding.temperature = -1.0 must be at least 0"),
        (("--temperature", "0", "--samples", "2"), 2, "n_best (2): with temperature 0 all samples are the same"),
        (("--top-k", "1", "--samples", "2"), 2, "n_best (2): with top_k 1 all samples are the same"),
        (("--set", "decoding.max_ratio=1"), 2, "max_ratio counts pieces of a source, and a text that goes on has none"),
        (("--through-ends", "--set", "decoding.min_length=9"), 2, "min_length has no effect on text that continues"),
        (("--prompt", "cat " * 400), 65, "the prompt has 400 pieces, and the model reads 299"),
        (("--beam", "2", "--set", 'decoding.forced=["zebra"]'), 65, 'the forced "zebra" cannot be spelled'),
        (("--set", "decoding.forbidden=cat"), 2, "decoding.forbidden"),
    ],
    ids=["beam", "temperature", "equal", "likeliest", "source", "length", "prompt", "forced", "list"],
)
def test_what_cannot_be_is_told(models: dict[str, Path], words: tuple[str, ...], code: int, reason: str) -> None:
    done = tfm("generate", models["lines"], "--device", "cpu", *words, stdin="the\n")
    assert done.code == code
    assert reason in done.err


def test_words_are_forced_prompt_by_prompt(models: dict[str, Path], tmp_path: Path) -> None:
    words = write_lines(tmp_path / "words", ["owl", "", "bee\tnew"])
    search = ("generate", models["lines"], "--device", "cpu", "--beam", "6")
    done = tfm(*search, "--forced", words, stdin="the\nthe\nthe\n")
    assert done.code == 0, done.err
    first, free, last = done.out.splitlines()
    assert "owl" in first
    assert free == tfm(*search, "--prompt", "the").out.strip("\n")
    assert "bee" in last
    assert "new" in last
    few = tfm(*search, "--forced", words, stdin="the\n" * 4)
    assert few.code == 65
    assert f"{words}: has fewer lines than there are prompts" in " ".join(few.err.split())
    many = tfm(*search, "--forced", words, stdin="the\n" * 2)
    assert many.code == 65
    assert f"{words}: has more lines than there are prompts" in " ".join(many.err.split())
    assert tfm(*search[:4], "--set", "decoding.beam=6", "--prompt", "the").out.strip("\n") == free
    drawn = tfm("generate", models["lines"], "--forced", words, "--prompt", "the")
    assert drawn.code == 2
    assert "forced words need beam search" in drawn.err


def test_a_model_of_translation_does_not_generate(stages: Stages) -> None:
    done = tfm("generate", stages.folder, "--prompt", "eins")
    assert done.code == 65
    assert "was trained for translation, and is not a language model" in done.err


def texts_of(rows: str) -> list[str]:
    return [row.split("\t")[2] for row in rows.splitlines()]


@pytest.mark.slow
def test_translations_are_drawn_forced_and_forbidden(stages: Stages, tmp_path: Path) -> None:
    text, words = "eins zwei\n\ndrei\n", ("translate", stages.folder, "--device", "cpu")
    drawn = (*words, "--strategy", "sample", "--n-best", "3", "--temperature", "1.5", "--top-p", "0.95")
    first = tfm(*drawn, stdin=text)
    assert first.code == 0, first.err
    assert first.out.count("\n") == 7
    assert tfm(*drawn, stdin=text).out == first.out
    searched = tfm(*drawn, "--beam", "4", stdin=text)
    assert (searched.code, searched.out) == (2, "")
    assert "is for searching, and not for --strategy sample" in " ".join(searched.err.split())
    # what is drawn follows from the line, not from where it stands
    alone = tfm(*drawn, stdin="drei\n").out
    assert [row.split("\t")[2] for row in first.out.splitlines()[4:]] == [
        row.split("\t")[2] for row in alone.splitlines()
    ]
    forced = write_lines(tmp_path / "forced", ["five\ttwo", "", "six"])
    found = tfm(*words, "--forced", forced, "--forbidden", "three", stdin=text).out.splitlines()
    assert {"five", "two"} <= set(found[0].split())
    assert found[1] == ""
    assert "six" in found[2].split()
    assert "three" not in " ".join(found)
    assert tfm(*words, "--forced", forced, "--out", tmp_path / "out", stdin=text).code == 0
    for bad, code, reason in (
        (("--forced", forced, "--beam", "1"), 2, "need beam search"),
        (("--forced", write_lines(tmp_path / "few", ["five"])), 65, "fewer lines of forced words"),
        (("--strategy", "smaple"), 2, "it may be 'search', 'sample' or 'mbr'"),
    ):
        done = tfm(*words, *bad, stdin=text)
        assert done.code == code
        assert reason in done.err


def test_models_translate_together(stages: Stages, tmp_path: Path) -> None:
    words = ("translate", stages.folder, "--device", "cpu", "--n-best", "2", "--beam", "2")
    together = tfm(*words, "--ensemble", stages.folder, "--ensemble", stages.folder, stdin="eins zwei\n")
    assert together.code == 0, together.err
    alone = tfm(*words, stdin="eins zwei\n").out
    assert [row.split("\t")[2] for row in together.out.splitlines()] == [
        row.split("\t")[2] for row in alone.splitlines()
    ]
    refused = tfm(*words, "--ensemble", stages.folder / "dataset", stdin="eins\n")
    assert refused.code == 65


@pytest.mark.parametrize("name", ["lines", pytest.param("running", marks=pytest.mark.slow)])
def test_a_small_model_loads_no_torch(models: dict[str, Path], name: str) -> None:
    """Whatever is drawn or searched for, unless it needs what numpy does not have."""
    lines, loaded = loaded_by("generate", models[name], "--max-tokens", "9", stdin="the owl\nthe bee is\n")
    assert loaded == []
    assert lines == tfm("generate", models[name], "--max-tokens", "9", stdin="the owl\nthe bee is\n").out.splitlines()
    assert sum(line.startswith("the") for line in lines) >= 2


@pytest.mark.slow
def test_words_that_are_forbidden_load_torch(models: dict[str, Path]) -> None:
    asked = ("generate", models["lines"], "--prompt", "the owl", "--max-tokens", "9")
    assert "torch" in loaded_by(*asked, "--forbidden", "old")[1]
    assert "torch" in loaded_by(*asked, "--ensemble", models["lines"])[1]
