"""Each script is split into words by a tokenizer that can read it; what none can read is left out, and why."""

import random
import unicodedata
from typing import Any

import pytest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from tfm.data.scripts import SPACELESS_SCRIPTS, letters_by_script, num_words
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.evaluation_report import render_report
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.breakdown import breakdown_by_length
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics import bleu_tokenizer, tokenization
from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer
from tfm.pipeline.scoring.metrics.inapplicable_metrics import MAX_WORD_LETTERS, inapplicable_metrics
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, score_texts
from tfm.pipeline.scoring.metrics.tokenization import ROUGE_TOKENIZERS

TEXTS = {
    "Latin": "die schöne Köchin wäscht fünf Äpfel und übt",
    "Cyrillic": "старая собака бежит домой через снег и лес",
    "Greek": "ο σκύλος τρέχει γρήγορα μέσα στο χιόνι σήμερα",
    "Arabic": "الكلب يجري بسرعة عبر الثلج إلى البيت اليوم",
    "Hebrew": "הכלב רץ מהר דרך השלג אל הבית היום",
    "Devanagari": "कुत्ता आज बर्फ में तेज़ी से घर की ओर दौड़ता है",
    "Thai": "สุนัขวิ่งผ่านหิมะกลับบ้านอย่างรวดเร็ววันนี้",
    "Han": "今天一只老狗很快地穿过大雪跑回家里去了",
    "kana": "きょうはいぬがゆきのなかをはやくはしっていえにかえりました",
    "Hangul": "오늘 늙은 개가 눈 속을 빠르게 달려 집으로 돌아갔다",
}
TOKENIZERS = {"Thai": "char", "Han": "zh", "kana": "char", "Hangul": "char"}
CONFIG = EvaluationConfig()


@pytest.fixture(autouse=True)
def without_mecab(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where the extras are not installed."""
    monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer: False)
    monkeypatch.setattr(tokenization, "is_installed", lambda tokenizer: False)


@pytest.mark.parametrize("script", TEXTS)
def test_right_text_scores_all_in_every_script_and_half_of_it_some(script: str) -> None:
    """The law that no metric is silently 0: a metric is at its best for the references, or left out with a reason."""
    text = TEXTS[script]
    references = [[text, text[::-1], text + text]]
    scores = score_texts(references[0], references, CONFIG)
    found = evaluate_segments(
        Segments(script, None, references[0], references), CONFIG, seed=1, reporter=NullReporter()
    )
    assert found.scores == scores
    assert set(scores) | set(found.missing) == set(CONFIG.metrics) - {"perplexity"}
    assert {"bleu", "chrf", "rouge1", "rouge2", "rougeL", "rougeLsum", "exact_match"} <= set(scores)
    assert scores.pop("ter", METRIC_FUNCTIONS["ter"]([""], [[""]], CONFIG)).score == 0
    assert {name: score.score for name, score in scores.items()} == pytest.approx(dict.fromkeys(scores, 100))
    assert f"|tok:{TOKENIZERS.get(script, '13a')}|" in scores["bleu"].signature

    half = [each[: len(each) // 2] for each in references[0]]
    some = score_texts(half, references, CONFIG)
    assert all(0 < some[name].score < 100 for name in some if name != "exact_match")


@pytest.mark.parametrize("script", TEXTS)
def test_rouge_score_s_own_words_are_left_out_where_they_hold_nothing(script: str) -> None:
    config = EvaluationConfig(rouge_tokenize="rouge-score")
    references = [[TEXTS[script]] * 3]
    missing = inapplicable_metrics(references[0], references, config)
    assert ("rouge1" in missing) == (script != "Latin")
    if script != "Latin":
        assert missing["rouge1"] == "no reference has 1 token (tok:rouge-score): it could only be 0"
    mixed = [[TEXTS[script] + " abc"] * 3]
    share = 3 / (3 + sum(letter.isalpha() for letter in TEXTS[script]))
    told = inapplicable_metrics(mixed[0], mixed, config).get("rouge1")
    assert told == (None if script == "Latin" else f"its tokens (tok:rouge-score) hold {100 * share:.0f} % of the "
                    "references' letters as words")  # fmt: skip


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "none"])
@pytest.mark.parametrize("script", ["Thai", "Han", "kana"])
def test_a_tokenizer_that_makes_a_line_one_token_is_left_out(script: str, tokenizer: Any) -> None:
    config = EvaluationConfig(bleu_tokenize=tokenizer, metrics=("bleu", "chrf"))
    lines = [TEXTS[script]] * 3
    assert inapplicable_metrics(lines, [lines], config) == {
        "bleu": f"no reference has 4 tokens (tok:{tokenizer}): it could only be 0"
    }
    clauses = [" ".join([TEXTS[script][:-number]] * 4) for number in (1, 2)]
    why = f"its tokens (tok:{tokenizer}) hold 0 % of the references' letters as words"
    assert inapplicable_metrics(clauses, [clauses], config) == {"bleu": why}
    found = evaluate_segments(Segments("t", None, clauses, [clauses]), config, seed=1, reporter=NullReporter())
    assert (list(found.scores), found.missing) == (["chrf"], {"bleu": why})
    assert {tuple(group.scores) for group in found.lengths} == {("chrf",)}
    assert why.replace("'", "&#x27;") in render_report("t", [found], curves=None, inputs={})


def test_words_that_somebody_put_spaces_between_are_words() -> None:
    words = ["今天 我们 去 学校 读书"] * 2
    for tokenizer in ("13a", "none"):
        config = EvaluationConfig(bleu_tokenize=tokenizer, metrics=("bleu", "chrf++"))
        assert inapplicable_metrics(words, [words], config) == {}
    long = ["今" * MAX_WORD_LETTERS, "今" * (MAX_WORD_LETTERS + 1)]
    config = EvaluationConfig(bleu_tokenize="none", metrics=("bleu",))
    assert [inapplicable_metrics([], [[" ".join([each] * 4)]], config) for each in long] == [
        {},
        {"bleu": "its tokens (tok:none) hold 0 % of the references' letters as words"},
    ]


def test_a_fifth_of_the_letters_must_be_held() -> None:
    config = EvaluationConfig(bleu_tokenize="none", metrics=("bleu",))
    for letters, is_held in (("abcd", True), ("abc", False)):
        text = " ".join([*letters, "1", "今" * (4 * len(letters) if is_held else 4 * len(letters) + 1)])
        assert (inapplicable_metrics([], [[text]], config) == {}) is is_held


def test_references_too_short_for_a_metric_say_so() -> None:
    """BLEU 0.00 beside an exact match of 100 %."""
    config = EvaluationConfig(metrics=("bleu", "rouge1", "rouge2", "exact_match"))
    found = evaluate_segments(
        Segments("t", None, ["one", "two"], [["one", "two"]]), config, seed=1, reporter=NullReporter()
    )
    assert {name: each.score for name, each in found.scores.items()} == {"rouge1": 100, "exact_match": 100}
    assert found.missing == {
        "bleu": "no reference has 4 tokens (tok:13a): it could only be 0",
        "rouge2": "no reference has 2 tokens (tok:unicode): it could only be 0",
    }
    # with one that is long enough, it is a figure
    assert not inapplicable_metrics([], [["one", "one two three four"]], config)


@pytest.mark.parametrize("hypotheses", [["", " "], ["", "one two three four"]])
def test_where_all_references_are_blank_nothing_is_counted_over_the_corpus(hypotheses: list[str]) -> None:
    """BLEU 0.00 of a perfect output of blank lines, whose ROUGE and exact match are 100."""
    config = EvaluationConfig(metrics=("bleu", "bleu_paper", "chrf", "chrf++", "ter", "wer", "rouge1", "exact_match"))
    found = evaluate_segments(Segments("t", None, hypotheses, [["", " "]]), config, seed=1, reporter=NullReporter())
    score = 100 if hypotheses == ["", " "] else 50
    assert {name: each.score for name, each in found.scores.items()} == {"rouge1": score, "exact_match": score}
    assert all(reason.startswith("all references are blank") for reason in found.missing.values())
    # one that is not blank is enough
    assert "chrf" not in inapplicable_metrics([], [["", "one two three four"]], config)


def test_in_scripts_without_spaces_the_longest_line_is_counted_in_their_tokens() -> None:
    config = EvaluationConfig(metrics=("ter", "rougeL"))
    assert inapplicable_metrics(["你"], [["你" * 1000]], config) == {}
    assert inapplicable_metrics(["你" * 1001], [["你"]], config) == {
        "ter": "line 1 has 1,001 words; compared are at most 1,000"
    }
    assert inapplicable_metrics(["มา" * 2501], [["มา"]], config) == {
        "rougeL": "line 1 has 5,002 words; compared are at most 5,000"
    }


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["Hello world"], "13a"),
        (["今天 GPT"], "zh"),
        (["今天の天気"], "ja-mecab"),
        (["ハードウェア"], "ja-mecab"),
        (["我喜欢吃「の」字牌的老式烤牛肉"], "zh"),
        (["오늘 今日"], "ko-mecab"),
        (["สวัสดี"], "char"),
        (["ສະບາຍດີ"], "char"),
        (["ជំរាបសួរ"], "char"),
        (["မင်္ဂလာပါ"], "char"),
        (["བཀྲ་ཤིས"], "char"),
        (["abcdefghi 今天"], "13a"),
        (["abcdef 今天"], "zh"),
        (["12 + 3", ""], "13a"),
        (["日本", "ab c"], "zh"),
    ],
)
def test_the_tokenizer_is_chosen_by_the_letters(texts: list[str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer: True)
    assert choose_tokenizer([texts]).name == name
    assert choose_tokenizer([[unicodedata.normalize("NFD", text) for text in texts]]).name == name
    assert choose_tokenizer([[], texts[::-1]]).name == name


def test_why_a_tokenizer_was_chosen_is_said_with_what_would_be_better() -> None:
    assert choose_tokenizer([["今日の"]]).reason.startswith("100 % of the references' letters are kana or Han; ")
    assert 'pip install "tfm-toolkit[ja]" gives ja-mecab' in choose_tokenizer([["今日の"]]).reason
    assert 'pip install "tfm-toolkit[ko]" gives ko-mecab' in choose_tokenizer([["오늘"]]).reason
    assert choose_tokenizer([["今天 ab"]]).reason == "50 % of the references' letters are Han"


def test_what_was_chosen_is_said_once() -> None:
    said: list[str] = []

    class Told(NullReporter):
        def line(self, text: str) -> None:
            said.append(text)

    lines = ["今天天气很好"] * 30
    evaluate_segments(Segments("test", None, lines, [lines]), CONFIG, seed=1, reporter=Told())
    assert said == ["test: BLEU with tokenizer zh: 100 % of the references' letters are Han"]
    said.clear()
    evaluate_segments(Segments("test", None, ["a b c d"], [["a b c d"]]), CONFIG, seed=1, reporter=Told())
    named = EvaluationConfig(bleu_tokenize="zh")
    evaluate_segments(Segments("test", None, lines, [lines]), named, seed=1, reporter=Told())
    assert said == []


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("ja-mecab", r'pip install "tfm-toolkit\[ja\]"'),
        ("ko-mecab", r'pip install "tfm-toolkit\[ko\]"'),
        ("flores200", "sentencepiece|downloads"),
    ],
)
def test_a_tokenizer_that_is_named_and_not_there_says_what_installs_it(
    name: Any, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "FLORES_MODEL", "/nowhere/flores")
    with pytest.raises(RecipeError, match=rf'(?s)bleu_tokenize = "{name}".*({remedy})'):
        score_texts(["a"], [["a"]], EvaluationConfig(bleu_tokenize=name))


def test_no_tokenizer_is_ever_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "find_spec", lambda module: True)
    monkeypatch.setattr(tokenization, "FLORES_MODEL", "/nowhere/flores")
    with pytest.raises(RecipeError, match="needs /nowhere/flores, which"):
        score_texts(["a"], [["a"]], EvaluationConfig(bleu_tokenize="flores200"))


def test_the_fast_tokenizer_divides_as_sacrebleu_s_does() -> None:
    draw, ours, theirs = random.Random(1), tokenization.Tokenizer13a(), Tokenizer13a()
    letters = "aB1.,-<>&;/'\"_[]`~@\n\t \u3000\xa0\u00e9\u0660\u4e00"
    texts = ["".join(draw.choices(letters, k=draw.randint(0, 14))) for _ in range(20_000)]
    texts += [
        "<skipped>a &quot;b&quot; &amp;lt; -\nc",
        *map(chr, range(0x3000)),
        *(f"a{chr(n)}1" for n in range(0x3000)),
    ]
    assert [ours(text) for text in texts] == [theirs(text) for text in texts]
    assert ours.signature() == theirs.signature()


ASCII = ["The cat's 3.5-inch tail, isn't_it?", "U.S.A. (2nd)", "", "...", "a\tb\x0bc"]


@pytest.mark.parametrize("text", ASCII)
def test_of_ascii_text_both_tokenizers_of_rouge_give_the_same(text: str) -> None:
    both = [list(ROUGE_TOKENIZERS[name].tokenize(text)) for name in ("unicode", "rouge-score")]
    assert both[0] == both[1]


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_of_ascii_text_rouge_is_what_rouge_score_gives(kind: str) -> None:
    hypotheses, references = [*ASCII, "the same"], [[*ASCII[1:], ASCII[0], "the same"]]
    unicode, package = (
        METRIC_FUNCTIONS[kind](hypotheses, references, EvaluationConfig(rouge_tokenize=name))
        for name in ("unicode", "rouge-score")
    )
    assert unicode.score == package.score > 0
    assert unicode.signature == package.signature.replace("tok:[a-z0-9]+", "tok:unicode-words|norm:nfc")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Köln über", ["köln", "über"]),
        (unicodedata.normalize("NFD", "Köln"), ["köln"]),
        ("ΣΊΣΥΦΟΣ", ["σίσυφος"]),
        ("GPT模型 2024年", ["gpt", "模", "型", "2024", "年"]),
        ("น้ำใจ", ["น้ำ", "ใ", "จ"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("カード", ["カ", "ー", "ド"]),
        ("한국어를 배운다", ["한국어를", "배운다"]),
        ("ภาษาไทย๑๒", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย", "๑๒"]),
        ("«да» — нет…", ["да", "нет"]),
    ],
)
def test_words_of_every_script(text: str, words: list[str]) -> None:
    assert list(ROUGE_TOKENIZERS["unicode"].tokenize(text)) == [unicodedata.normalize("NFC", each) for each in words]


def test_length_in_scripts_without_spaces_is_in_characters() -> None:
    assert num_words("ein Hund\u00a0läuft, schnell") == 4
    assert num_words("我有GPT 和 3 只狗。") == 8
    assert num_words("น้ำใจ") == 3
    bins = breakdown_by_length(["我" * n for n in range(1, 7)], ["a b c d"] * 6, [["a b c d"] * 6], CONFIG)
    assert [group.longest for group in bins] == [1, 2, 3, 4, 5, 6]


def test_every_script_without_spaces_has_letters() -> None:
    samples = "漢ㄅ あ ア ก ກ ក က ཀ ꦏ ᬓ ᥐ ᦀ ᨠ ꪀ ꀀ".split()
    assert {letters_by_script([each]).most_common(1)[0][0] for each in samples} == set(SPACELESS_SCRIPTS)
