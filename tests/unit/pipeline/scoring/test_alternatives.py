"""Which of some texts is likelier: log p as plain code finds it text by text, in batches of any kind; shares,
intervals, ties; lines that are none are refused."""

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import binomtest, chi2

from tests.tiny_model import tiny_model
from tfm.data.errors import DataError
from tfm.data.synthetic import registry
from tfm.model.layout import Layout
from tfm.pipeline.decoding import teacher_forcing
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring import alternatives
from tfm.pipeline.scoring.alternative_files import (
    AlternativeItem,
    AlternativeKind,
    AlternativeSet,
    built_in_sets,
    is_built_in,
    parse_item,
    read_alternatives,
)
from tfm.pipeline.scoring.alternative_scores import (
    SCORING_RULES,
    InputWarnings,
    ScoredItem,
    alternatives_as_json,
    input_warning_messages,
    item_as_json,
    proportion_interval,
    score_table_rows,
    tie_split_accuracy,
    wilson_interval,
)
from tfm.pipeline.scoring.alternatives import score_alternatives
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

LM: dict[str, Any] = {"architecture": "decoder_only", "task": "language_model", "dtype": torch.float64}


@pytest.fixture(scope="module")
def lines() -> LoadedModel:
    return tiny_model(**LM)


@pytest.fixture(scope="module")
def running() -> LoadedModel:
    """A language model of running text, in windows of 12 pieces."""
    return tiny_model(**LM, block=12)


@pytest.fixture(scope="module")
def pairs() -> LoadedModel:
    return tiny_model(dtype=torch.float64)


def questions(*asked: tuple[str, list[str]]) -> AlternativeSet:
    rows_ = [{"context": context, "choices": choices, "answer": 0} for context, choices in asked]
    return AlternativeSet("some", tuple(parse_item(row, line, "choices") for line, row in enumerate(rows_, 1)))


def contrasts(*asked: tuple[str, list[str]]) -> AlternativeSet:
    rows_ = [{"source": source, "right": right, "wrong": wrong} for source, (right, *wrong) in asked]
    return AlternativeSet("some", tuple(parse_item(row, line, "contrast") for line, row in enumerate(rows_, 1)))


def plain(loaded: LoadedModel, ids: list[int]) -> float:
    """log p of a text's pieces after the begin token, by itself, the whole vocabulary written out."""
    if not ids:
        return 0.0
    with torch.inference_mode():
        read = torch.tensor([BOS_ID, *ids[:-1]])
        logits = loaded.model.output(loaded.model.hidden_states(read, Layout.from_lengths(torch.tensor([len(ids)]))))
        shares = logits.double().exp() / logits.double().exp().sum(1, keepdim=True)
    return math.fsum(math.log(shares[row, piece]) for row, piece in enumerate(ids))


def plain_pair(loaded: LoadedModel, source: list[int], target: list[int]) -> float:
    """log p(target, end | source), step by step."""
    state = loaded.model.start(torch.tensor([*source, EOS_ID]), Layout.from_lengths(torch.tensor([len(source) + 1])))
    total, token = 0.0, BOS_ID
    with torch.inference_mode():
        for wanted in [*target, EOS_ID]:
            predict, state = loaded.model.step(torch.tensor([token]), state)
            total, token = total + float(predict(slice(None))[0, wanted]), wanted
    return total


ASKED = (
    ("a dog", [" runs", " sits by the sea .", " !"]),
    ("the sea is", [" cold", " asleep and a dog", "", " cold !"][:2]),
    ("", ["two dogs", "snow"]),
    ("two dogs and a cat sit", [" by", " through the snow , asleep", " a"]),
)


@pytest.mark.parametrize("name", ["lines", "running"])
def test_the_sum_is_log_p_of_context_and_choice_less_log_p_of_the_context(
    name: str, request: pytest.FixtureRequest
) -> None:
    loaded = request.getfixturevalue(name)
    asked = [each for each in ASKED if name == "lines" or len(each[0].split()) < 4]
    scored, told = score_alternatives(loaded, questions(*asked), "choices", NullReporter())
    encode = loaded.target_tokenizer.encode
    for (context, choices), found in zip(asked, scored, strict=True):
        before = plain(loaded, encode(context))
        for choice, log_prob, pieces, alone in zip(
            choices, found.log_probs, found.pieces, found.log_probs_alone or (), strict=True
        ):
            whole = encode(context + choice)
            assert log_prob == pytest.approx(plain(loaded, whole) - before, rel=1e-10)
            assert alone == pytest.approx(plain(loaded, encode(choice)), rel=1e-10)
            assert pieces == len(whole) - len(encode(context))
    assert (told.num_cut_contexts, told.word_joins) == (0, [])


def test_where_a_choice_goes_on_within_a_word_all_are_scored_from_the_same_piece(lines: LoadedModel) -> None:
    """ "a do" and "g" are one word, of which the context's own pieces are none: " d", "o"."""
    encode = lines.target_tokenizer.encode
    context, choices = "a do", ["g runs", "or", " dog"]
    assert encode("a dog")[: len(encode("a do"))] != encode("a do")
    (found,), told = score_alternatives(lines, questions((context, choices)), "choices", NullReporter())
    shared = plain(lines, encode("a"))
    for choice, log_prob, pieces in zip(choices, found.log_probs, found.pieces, strict=True):
        assert log_prob == pytest.approx(plain(lines, encode(context + choice)) - shared, rel=1e-10)
        assert pieces == len(encode(context + choice)) - 1
    assert told.word_joins == ["dog"]
    assert '("dog")' in input_warning_messages(told, [found.item])[0]


@pytest.mark.parametrize(
    ("context", "choice", "is_glued"),
    [
        ("the", "sea", True),
        ("the", " sea", False),
        ("the ", "sea", False),
        ("the (", "sea", False),
        ("", "sea", False),
        ("Я иду", "домой", True),
        ("Я иду", " домой", False),
        ("مرحبا", "يا", True),
        ("पानी", "है", True),
        ("ဒီရေ", "က", False),
        ("天空是", "蓝色的", False),
        ("空は", "青い", False),
        ("ฟ้า", "สี", False),
        ("하늘은", "파랗다", True),
    ],
)
def test_texts_that_would_make_one_word_are_told_in_scripts_with_spaces(
    lines: LoadedModel, context: str, choice: str, is_glued: bool
) -> None:
    _, told = score_alternatives(lines, questions((context, [choice, " !"])), "choices", NullReporter())
    assert len(told.word_joins) == is_glued


def test_a_translation_is_scored_whole_with_its_end(pairs: LoadedModel) -> None:
    asked = (("a dog runs", ["two dogs", "the sea is cold !", "snow"]), ("the sea", ["a cat", "a dog ."]))
    encode = pairs.source_tokenizer.encode
    for kind, of in (("choices", questions(*asked)), ("contrast", contrasts(*asked))):
        scored, _ = score_alternatives(pairs, of, kind, NullReporter())  # type: ignore[arg-type]
        for (source, texts), found in zip(asked, scored, strict=True):
            assert found.log_probs_alone is None
            assert found.pieces == tuple(len(encode(text)) + 1 for text in texts)
            for text, log_prob in zip(texts, found.log_probs, strict=True):
                assert log_prob == pytest.approx(plain_pair(pairs, encode(source), encode(text)), rel=1e-10)


def test_a_text_of_a_contrast_set_is_scored_whole_by_a_language_model(lines: LoadedModel) -> None:
    texts = ["the sea is cold !", "the sea cold is !"]
    (found,), _ = score_alternatives(lines, contrasts(("", texts)), "contrast", NullReporter())
    for text, log_prob in zip(texts, found.log_probs, strict=True):
        assert log_prob == pytest.approx(plain(lines, [*lines.target_tokenizer.encode(text), EOS_ID]), rel=1e-10)


@pytest.mark.parametrize("name", ["lines", "pairs"])
def test_figures_do_not_depend_on_batches_or_neighbours(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = request.getfixturevalue(name)
    asked = [each for each in ASKED if each[0]]
    together, _ = score_alternatives(loaded, questions(*asked), "choices", NullReporter())
    for tokens, chunk in ((1, 1), (7, 3), (10_000, 4)):
        monkeypatch.setattr(teacher_forcing, "MAX_BATCH_TOKENS", tokens)
        monkeypatch.setattr(alternatives, "REQUESTS_PER_CHUNK", chunk)
        others, _ = score_alternatives(loaded, questions(*reversed(asked)), "choices", NullReporter())
        for one, other in zip(together, reversed(others), strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, rel=1e-11)
            assert (one.log_probs_alone or ()) == pytest.approx(other.log_probs_alone or (), rel=1e-11)


@pytest.mark.parametrize("changes", [LM, {"dtype": torch.float64}], ids=["language model", "translation"])
def test_an_ensemble_of_a_model_with_itself_says_the_same_and_of_two_the_mean_of_probabilities(
    changes: dict[str, Any],
) -> None:
    one, other = tiny_model(**changes), tiny_model(**changes)
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter.mul_(1.1)
    found = []
    asked = questions(*(each for each in ASKED if each[0]))
    for members in ((one,), (other,), (one, one), (one, other)):
        model: Any = members[0].model if len(members) == 1 else Ensemble([each.model for each in members])
        loaded = LoadedModel(model, one.source_tokenizer, one.target_tokenizer, one.config, one.folder)
        found.append(score_alternatives(loaded, asked, "choices", NullReporter())[0])
    for first, second, same, both in zip(*found, strict=True):
        assert same.log_probs == pytest.approx(first.log_probs, rel=1e-9)
        for a, b, c in zip(first.log_probs, second.log_probs, both.log_probs, strict=True):
            assert c != pytest.approx(a, rel=1e-6)
            # of each piece, log((p + q) / 2) lies between the mean of log p and log q, and the greater of them
            assert c > (a + b) / 2


def test_a_context_that_is_too_long_is_cut_from_the_left_equally_for_all_choices(running: LoadedModel) -> None:
    encode = running.target_tokenizer.encode
    context, choices = "the sea is cold , two dogs and a cat", [" runs", " sit by the snow"]
    wholes = [encode(context + choice) for choice in choices]
    too_many = max(map(len, wholes)) - 12
    assert too_many > 2
    (found,), told = score_alternatives(running, questions((context, choices)), "choices", NullReporter())
    shown = encode(context)[too_many:]
    for whole, log_prob in zip(wholes, found.log_probs, strict=True):
        assert log_prob == pytest.approx(plain(running, whole[too_many:]) - plain(running, shown), rel=1e-10)
    assert told.num_cut_contexts == 1
    content = alternatives_as_json(questions((context, choices)), "choices", [found], told)
    assert content["cut"] == 1
    assert "|cut:1|" in content["accuracy"]["sum"]["signature"]
    assert "1 of 1 context is longer than the model reads" in input_warning_messages(told, [found.item])[0]


def test_a_source_that_is_too_long_is_cut_at_its_end_as_in_translating(pairs: LoadedModel) -> None:
    encode, texts = pairs.source_tokenizer.encode, ["a dog", "two dogs"]
    source = "the sea " * 60
    (found,), told = score_alternatives(pairs, contrasts((source, texts)), "contrast", NullReporter())
    for text, log_prob in zip(texts, found.log_probs, strict=True):
        assert log_prob == pytest.approx(plain_pair(pairs, encode(source)[:95], encode(text)), rel=1e-10)
    assert told.num_cut_contexts == 1


def test_what_has_no_probability_is_refused_with_its_line(
    lines: LoadedModel, running: LoadedModel, pairs: LoadedModel
) -> None:
    fine = ("a dog", [" runs", " sits"])
    refused: list[tuple[LoadedModel, AlternativeKind, AlternativeSet, str]] = [
        (lines, "choices", questions(fine, ("a dog", [" runs", ""])), 'some, line 2: the text "" has no pieces'),
        (lines, "contrast", contrasts(("a dog", ["x", "y"])), 'line 1: a language model has no source, .*"a dog"'),
        (running, "choices", questions(fine, ("a", [" sea" * 13, " dog"])), "line 2: .* has 13 pieces, .* at most 12"),
        (running, "contrast", contrasts(("", ["sea " * 12, "dog"])), "line 1: .* has 12 pieces, .* at most 11"),
        (pairs, "contrast", contrasts(("", ["a dog", "two dogs"])), "line 1: a translation model needs a source"),
        (pairs, "choices", questions(("a dog", ["sea " * 96, "dog"])), "line 1: .* has 96 pieces, .* at most 95"),
    ]
    for loaded, kind, items, message in refused:
        with pytest.raises(DataError, match=message):
            score_alternatives(loaded, items, kind, NullReporter())
    labels = tiny_model(architecture="encoder_only", task="tagging")
    with pytest.raises(DataError, match="was trained for tagging"):
        score_alternatives(labels, questions(fine), "choices", NullReporter())


@pytest.mark.parametrize("begin_token", [False, True])
def test_a_masked_model_scores_each_piece_given_all_others(begin_token: bool) -> None:
    loaded = tiny_model(
        architecture="encoder_only", task="masked_language_model", dtype=torch.float64, begin_token=begin_token
    )
    encode = loaded.source_tokenizer.encode

    def pll(ids: list[int], first: int = 0) -> float:
        """Piece by piece, by itself, the whole vocabulary written out."""
        total = 0.0
        for place in range(first, len(ids)):
            read = torch.tensor([*ids[:place], PAD_ID, *ids[place + 1 :], EOS_ID])
            with torch.inference_mode():
                logits = loaded.model.output(loaded.model(read, Layout.from_lengths(torch.tensor([len(read)]))))
            row = logits[place].double().exp()
            total += math.log(row[ids[place]] / row.sum())
        return total

    scored, told = score_alternatives(loaded, questions(*ASKED), "choices", NullReporter())
    for (context, choices), found in zip(ASKED, scored, strict=True):
        for choice, log_prob, alone in zip(choices, found.log_probs, found.log_probs_alone or (), strict=True):
            assert log_prob == pytest.approx(pll(encode(context + choice), len(encode(context))), rel=1e-9)
            assert alone == pytest.approx(pll(encode(choice)), rel=1e-9)
    shares = alternatives_as_json(questions(*ASKED), "choices", scored, told)["accuracy"]
    assert shares["mean"]["signature"].startswith("choices|compared:pseudo-log-p-a-piece|end:no|")
    pair = contrasts(("", ["a dog runs", "two dogs sit"]))
    (whole,), told = score_alternatives(loaded, pair, "contrast", NullReporter())
    assert whole.log_probs == pytest.approx([pll(encode("a dog runs")), pll(encode("two dogs sit"))], rel=1e-9)
    assert "|end:no|" in alternatives_as_json(pair, "contrast", [whole], told)["accuracy"]["sum"]["signature"]
    assert len(scored[0].log_probs) == len(set(scored[0].log_probs))


def test_unknown_pieces_are_told_and_texts_of_equal_pieces_share_what_they_get(lines: LoadedModel) -> None:
    asked = questions(("a dog", [" Ж", " Щ", " runs"]))
    (found,), told = score_alternatives(lines, asked, "choices", NullReporter())
    assert found.log_probs[0] == found.log_probs[1]
    assert told.num_unknown == 1
    assert "|unknown:1|" in alternatives_as_json(asked, "choices", [found], told)["accuracy"]["sum"]["signature"]
    assert "does not know" in input_warning_messages(told, asked.items)[0]


# ---- Shares -----------------------------------------------------------------------------------------


def item(answer: int, count: int, category: str | None = None, line: int = 1) -> AlternativeItem:
    texts = tuple(f"text {number}" for number in range(count))
    row = {"context": "so", "choices": [*texts], "answer": answer, "category": category}
    return parse_item({name: value for name, value in row.items() if value is not None}, line, "choices")


def test_the_three_rules_are_three() -> None:
    """By hand: the sum prefers the short text, the mean the long one, the difference what is likelier than alone."""
    scored = ScoredItem(item(0, 3), (-3.0, -8.0, -6.0), (2, 8, 3), (-3.5, -7.9, -9.0))
    assert [max(range(3), key=list(SCORING_RULES[name](scored)).__getitem__) for name in SCORING_RULES] == [0, 1, 2]
    assert list(SCORING_RULES["mean"](scored)) == [-1.5, -1.0, -2.0]
    assert list(SCORING_RULES["difference"](scored)) == pytest.approx([0.5, -0.1, 3.0])


def test_those_who_tie_share() -> None:
    assert tie_split_accuracy([-1.0, -2.0, -1.0, -1.0], 0) == pytest.approx(1 / 3)
    assert tie_split_accuracy([-1.0, -2.0, -1.0], 1) == 0
    assert tie_split_accuracy([-2.0, -1.0], 1) == 1


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (0, 40), (7, 9), (500, 1000), (999, 1000)])
def test_the_interval_is_wilsons(right: int, count: int) -> None:
    expected = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right, count) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.few(3)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 50, 51, 400])
def test_the_interval_of_a_share_is_exact_or_wilsons_but_at_its_ends(count: int) -> None:
    for right in range(count + 1):
        low, high = proportion_interval(right, count)
        method = "exact" if count < 5 else "wilson"
        expected = binomtest(right, count).proportion_ci(0.95, method=method)
        few = 0 if count < 5 else 2 if count <= 50 else 3
        poisson_low, poisson_high = (chi2.ppf(0.05, 2 * each) / (2 * count) for each in (right, count - right))
        assert low == pytest.approx(poisson_low if 0 < right <= few else expected.low, abs=1e-9)
        assert high == pytest.approx(1 - poisson_high if 0 < count - right <= few else expected.high, abs=1e-9)


def test_shares_chance_categories_and_failures() -> None:
    """Counted by hand: 2.5 of 4 right; chance (1/2 + 1/2 + 1/4 + 1/2) / 4."""
    items = (item(0, 2, "א", 1), item(1, 2, "א", 2), item(3, 4, "Ж", 5), item(0, 2, None, 6))
    figures = ((-1.0, -2.0), (-1.0, -1.0), (-4.0, -5.0, -6.0, -1.0), (-3.0, -2.0))
    scored = [ScoredItem(each, of, (1,) * len(of)) for each, of in zip(items, figures, strict=True)]
    found = alternatives_as_json(AlternativeSet("some", items), "choices", scored, InputWarnings())
    share = found["accuracy"]["sum"]
    assert (found["count"], found["chance"], share["score"]) == (4, 43.75, 62.5)
    assert (share["low"] / 100, share["high"] / 100) == pytest.approx(proportion_interval(2.5, 4))
    assert "|count:4|chance:43.75|" in share["signature"]
    assert list(found["accuracy"]) == ["sum", "mean"]
    assert found["missing"].keys() == {"difference"}
    assert {name: part["accuracy"]["sum"]["score"] for name, part in found["categories"].items()} == {"Ж": 100, "א": 75}
    assert [(each["line"], each["right"], each["likeliest"]) for each in found["failures"]] == [
        (2, "text 1", "text 0"),
        (6, "text 0", "text 1"),
    ]
    assert json.loads(json.dumps(found)) == found
    assert [row[:4] for row in score_table_rows(found)[:2]] == [
        ("sum", 4, "43.75", "62.50"),
        ("mean a piece", 4, "43.75", "62.50"),
    ]
    assert [row[0] for row in score_table_rows(found)[2:4]] == ["sum: Ж", "mean a piece: Ж"]


def test_a_category_says_what_of_its_own_items_was_cut_or_unknown() -> None:
    items = (item(0, 2, "a", 1), item(0, 2, "a", 2), item(0, 2, "b", 3), item(0, 2, "c", 4))
    scored = [ScoredItem(each, (-1.0, -2.0), (1, 1)) for each in items]
    found = alternatives_as_json(
        AlternativeSet("some", items), "choices", scored, InputWarnings(cut_lines={2, 3}, unknown_lines={2})
    )
    assert "|cut:2|unknown:1|" in found["accuracy"]["mean"]["signature"]
    signatures = {name: part["accuracy"]["sum"]["signature"] for name, part in found["categories"].items()}
    assert "|cut:1|unknown:1|" in signatures["a"]
    assert "|cut:1|ties" in signatures["b"]
    assert "|chance:50|ties" in signatures["c"]


# ---- Files ------------------------------------------------------------------------------------------

QUESTION = {"context": "天は", "choices": ["青い", "重い"], "answer": 0}
CONTRAST = {"source": "IT", "right": "SIE", "wrong": "ER"}
WRONG: list[tuple[AlternativeKind, object, str]] = [
    ("choices", {**QUESTION, "answer": 2}, '"answer" is 2: give the place of the right choice, 0 to 1'),
    ("choices", {**QUESTION, "answer": -1}, '"answer" is -1'),
    ("choices", {**QUESTION, "answer": True}, '"answer" is true'),
    ("choices", {**QUESTION, "answer": "青い"}, '"answer" is "青い"'),
    ("choices", {**QUESTION, "choices": ["青い"]}, '"choices" has 1 text: give two or more'),
    ("choices", {**QUESTION, "choices": "青い"}, '"choices" is "青い", not a list of texts'),
    ("choices", {**QUESTION, "choices": ["青い", 3]}, 'text 2 of "choices" is 3, not a text'),
    ("choices", {**QUESTION, "choices": ["a", "b", "a"]}, '"a" comes twice'),
    ("choices", {**QUESTION, "context": None}, '"context" is null, not a text'),
    ("choices", {**QUESTION, "id": [1]}, r'"id" is \[1\], not a text or a whole number'),
    ("choices", {**QUESTION, "category": 3}, '"category" is 3, not a text'),
    ("choices", CONTRAST, 'there is no "context"; it has source, right, wrong'),
    ("choices", [1, 2], r"\[1, 2\] is not a JSON object"),
    ("contrast", {**CONTRAST, "wrong": []}, '"wrong" is empty'),
    ("contrast", {**CONTRAST, "wrong": "SIE"}, '"SIE" comes twice'),
    ("contrast", {**CONTRAST, "source": 1}, '"source" is 1, not a text'),
    ("contrast", {"source": "x", "right": "y"}, 'there is no "wrong"'),
    ("contrast", {**CONTRAST, "right": "\ud800"}, '"right" contains half a surrogate pair'),
    ("contrast", {}, 'there is no "wrong"; it has nothing'),
]


@pytest.mark.parametrize(("kind", "row", "message"), WRONG)
def test_a_line_that_is_none_is_refused(tmp_path: Path, kind: AlternativeKind, row: object, message: str) -> None:
    file = tmp_path / "asked.jsonl"
    fine = QUESTION if kind == "choices" else CONTRAST
    file.write_text(f"{json.dumps(fine)}\n\n{json.dumps(row)}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"asked.jsonl, line 3: {message}"):
        read_alternatives(file, kind)


PUBLISHED: dict[str, dict[str, Any]] = {
    "premise": {"premise": "It is", "choice1": "blue.", "choice2": "late.", "question": "effect", "label": 1},
    "ctx": {"ctx": "It is", "endings": ["blue.", "late."], "label": "1"},
    "question_stem": {
        "question_stem": "It is",
        "choices": {"text": ["blue.", "late."], "label": "AB"},
        "answerKey": "B",
    },
    "correct_answer": {
        "question": "It is",
        "correct_answer": "late.",
        "distractor1": "b",
        "distractor2": "c",
        "distractor3": "d",
    },
    "choices[]": {"question": "It is", "choices": ["blue.", "late."], "answer": 1},
    "sentence_good": {"sentence_good": " late.", "sentence_bad": "blue."},
    "csv.reader": {},
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
@pytest.mark.parametrize("key", PUBLISHED)
def test_what_writes_lines_of_published_sets_stands_in_the_manual(key: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "scores" / "likelier.md").read_text("utf-8")
    lines = page.partition("```sh\n")[2].partition("```")[0]
    commands = [line for line in lines.splitlines() if line.startswith("jq")]
    command = next((line for line in commands if key in line), lines[lines.index("python -c") :])
    content = "It is,blue.,late.,B\n" if key == "csv.reader" else json.dumps({**PUBLISHED[key]}) + "\n"
    if key == "question_stem":
        content = content.replace('"AB"', '["A", "B"]')
    (tmp_path / "FILE").write_text(content, "utf-8")
    command = command.replace("python -c", f"{sys.executable} -c", 1)
    written = subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    (tmp_path / "asked.jsonl").write_text(written, "utf-8")
    (item,) = read_alternatives(tmp_path / "asked.jsonl", "contrast" if key == "sentence_good" else "choices").items
    assert (item.context or "It is", item.alternatives[item.answer]) == ("It is", " late.")


def test_lines_of_another_form_are_refused_with_the_right_one(tmp_path: Path) -> None:
    for text in ("question,A,B,C,D,answer\n", '{"question": "x"}\n', "[1]\n"):
        (tmp_path / "asked").write_text(text, "utf-8")
        for kind, form in (("choices", '{"context": "...", "choices": '), ("contrast", '{"right": "...", "wrong": ')):
            with pytest.raises(DataError, match=re.escape(f"; a line is {form}")):
                read_alternatives(tmp_path / "asked", kind)  # type: ignore[arg-type]


def test_what_is_no_json_or_no_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    for text, message in (
        ("{'context': 1}\n", "line 1: not JSON"),
        ("[" * 100_000, "line 1: not JSON"),
        ("\n", "no line"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=message):
            read_alternatives(file, "choices")
    with pytest.raises(DataError, match="no such file"):
        read_alternatives(tmp_path / "none.jsonl", "choices")


def test_lines_are_read_as_they_are(tmp_path: Path) -> None:
    """A byte order mark, \\r\\n, empty lines, other keys, wrong texts as one or several, a source that is left out."""
    file = tmp_path / "asked.jsonl"
    lines_ = [{**CONTRAST, "id": 0, "more": [1]}, {"right": " שלום\n", "wrong": ["א", ""], "category": ""}]
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(line) for line in lines_)
    file.write_text(text, encoding="utf-8", newline="")
    first, second = read_alternatives(file, "contrast").items
    assert (first.line, first.context, first.alternatives, first.answer) == (1, "IT", ("SIE", "ER"), 0)
    assert first.row == {**CONTRAST, "id": 0}
    assert (second.line, second.context, second.alternatives) == (3, "", (" שלום\n", "א", ""))
    assert second.category is None


def test_the_built_in_contrast_set_is_of_the_sentences_of_a_recipes_test_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfm.data.corpora.sources import read_pairs
    from tfm.data.corpus_config import CorpusConfig

    monkeypatch.chdir(tmp_path)
    assert is_built_in("it", "contrast")
    assert not is_built_in("it", "choices")
    found = built_in_sets("it")
    assert [each.name for each in found] == ["it test", "it combinations"]
    for each in found:
        split = each.name.removeprefix("it ")
        corpus = CorpusConfig(format="generated", path="it", split=split, size=registry.NUM_CONTRAST_EXAMPLES)
        assert [(item.context, item.alternatives[item.answer]) for item in each.items] == list(read_pairs(corpus))
        assert {item.category for item in each.items} == {"subject", "object", "same gender"}


def test_items_with_their_figures_are_items_again(tmp_path: Path, lines: LoadedModel) -> None:
    asked = contrasts(("", ["the sea", "sea the"]), ("", ["a dog", "dog a"]))
    scored, _ = score_alternatives(lines, asked, "contrast", NullReporter())
    file = tmp_path / "items.jsonl"
    file.write_text(
        "".join(json.dumps({"set": "some", **item_as_json(each)}) + "\n" for each in scored), encoding="utf-8"
    )
    again = read_alternatives(file, "contrast")
    assert [each.alternatives for each in again.items] == [each.alternatives for each in asked.items]
    assert json.loads(file.read_text().splitlines()[1])["log_probs"] == list(scored[1].log_probs)
