"""Steps of a received tokenizer that would take forever, or all memory, are refused before they are tried."""

import json

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from tfm.tokenizer.foreign.step_checks import check_steps_bounded, has_nested_quantifier
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer

PUBLISHED = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2
    r"(?i:'s|'t|'re|'ll)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+(?!\S)|\s+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"\d{1,3}(?=(?:\d{3})*\b)",
    " {2,}",
    "(ab)+",
)
ENDLESS = ("(a+)+$", "(.|.)*$", "(?:(.*)*)*x", r"(?:\s*a)*b", "((a)+)+", "(a{1,50}){2,}", "(?:[a](b)*)+",
           r"(?<x>a\g<x>?)b", r"(\(+)*", "((a+))+")  # fmt: skip


def tokenizer() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer(models.WordLevel({each: i for i, each in enumerate((*SPECIAL_TOKENS, "a"))}, "<unk>"))


def test_patterns_that_try_every_division_are_told_from_those_of_published_tokenizers() -> None:
    assert [each for each in PUBLISHED if has_nested_quantifier(each)] == []
    assert [each for each in ENDLESS if not has_nested_quantifier(each)] == []


@pytest.mark.parametrize("pattern", ENDLESS)
def test_such_a_pattern_is_refused_wherever_it_stands(pattern: str) -> None:
    regex = Regex(pattern)
    whole = [tokenizer() for _ in range(4)]
    whole[0].pre_tokenizer = pre_tokenizers.Split(regex, "isolated")
    whole[1].pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Split(regex, "removed")]
    )
    whole[2].normalizer = normalizers.Sequence([normalizers.Sequence([normalizers.Replace(regex, "")])])
    whole[3].decoder = decoders.Replace(regex, "")
    for each in whole:
        with pytest.raises(ValueError, match="repeats what repeats"):
            Tokenizer.from_json(each.to_str())


def test_steps_that_multiply_a_text_are_refused_before_any_text_is_read() -> None:
    steps = [normalizers.Replace("a", "a" * 10) for _ in range(12)]
    whole, other, both = tokenizer(), tokenizer(), tokenizer()
    whole.normalizer = normalizers.Sequence(steps)
    other.decoder = decoders.Sequence([decoders.Replace("a", "a" * 10) for _ in range(12)])
    both.normalizer = normalizers.Sequence([normalizers.Replace(Regex(""), "xy") for _ in range(20)])
    for each in (whole, other, both):
        with pytest.raises(ValueError, match="makes a text too long"):
            check_steps_bounded(each)


def test_what_published_tokenizers_do_to_a_text_is_no_problem() -> None:
    whole = tokenizer()
    llama = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    albert = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    for steps in (llama, albert, [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]):
        whole.normalizer = normalizers.Sequence(steps)
        check_steps_bounded(whole)


def test_a_tokenizer_that_panics_is_an_error_of_ours(capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(tokenizer().to_str())
    document["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////8="}
    with pytest.raises(ValueError, match=r"\S"):
        Tokenizer.from_json(json.dumps(document))
