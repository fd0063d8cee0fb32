"""Credentials in text: found by where they stand or how they look, and masked before the text is written or shown.

A URL has them before its host and in its query, a command line behind a name such as `--password` or `api_key=`; the
tokens of well-known services have a shape of their own.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

MASK = "***"
_TOKEN_WORD = (  # no token of a tokenizer
    r"(?<!(?:pad|eos|bos|unk|sep|cls|max|min|per|new|end)[_-])(?<!(?:mask|next|last)[_-])(?<!(?:begin|start|first)[_-])"
    r"token"
)
_CREDENTIAL_WORDS = (
    rf"(?:password|passwd|passphrase|pwd|secret|{_TOKEN_WORD}|credentials?|(?:api|access|secret|private|auth)[_-]?key)"
)
_CREDENTIAL_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s"',;&|(){}\[\]]+)"""


class CredentialPattern(NamedTuple):
    """A pattern of credentials.

    signs: texts in lower case of which every match has one; pattern: that finds them; replacement: what is left of one.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: str


@cache
def _credential_text_patterns() -> tuple[CredentialPattern, ...]:
    """The patterns; compiled when first needed, as most commands print no text."""
    scheme = r"\b([a-z][a-z0-9+.-]+:/{1,3})"  # a URL that was made a path has one slash left
    return (
        # a password may itself have a slash or an @: what follows the colon is no port
        CredentialPattern(
            (":/",), re.compile(rf"{scheme}[^\s'\"/?#@:]*:(?!\d+(?:[/?#\s'\"]|$))[^\s'\"]*@", re.I), rf"\1{MASK}@"
        ),
        CredentialPattern((":/",), re.compile(rf"{scheme}[^\s'\"/?#]*@", re.I), rf"\1{MASK}@"),
        CredentialPattern(
            ("=",),
            re.compile(
                r"([?&;#](?:[\w.%-]*?(?:token|secret|passw(?:or)?d|pwd|key|key-?id|sig|signature|auth|authorization|"
                r"credentials?|jwt)|x-amz-[\w-]+)=)[^&;#\s'\"]+",
                re.I,
            ),
            rf"\1{MASK}",
        ),
        CredentialPattern(
            ("=", '"', "'"),
            re.compile(
                rf"""((?<![\w-])[\w.-]*?{_CREDENTIAL_WORDS}["']?\s?=\s?|["'][\w.-]*{_CREDENTIAL_WORDS}["']\s*:\s*|"""
                rf"""["']--?[\w-]*{_CREDENTIAL_WORDS}["']\s*,\s*){_CREDENTIAL_VALUE}""",
                re.I,
            ),
            rf"\1{MASK}",
        ),
        CredentialPattern(("bearer",), re.compile(r"\b(bearer\s+)[\w.~+/=-]{12,}", re.I), rf"\1{MASK}"),
        CredentialPattern(("eyj",), re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),  # a JSON web token
        CredentialPattern(
            ("hf_", "org_", "gh", "github_pat_", "glpat-", "xox", "akia", "asia", "aiza", "sk-", "rk-", "sk_", "rk_"),
            re.compile(
                r"(?<![A-Za-z0-9])(?:(?:hf|api_org)_[A-Za-z0-9]{16,}|gh[a-z]_[A-Za-z0-9]{10,}|github_pat_\w{10,}|"
                r"glpat-[\w-]{10,}|xox[a-z]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|"
                r"[sr]k-(?:[A-Za-z0-9]+-)*(?=[A-Za-z_]*\d)(?=\d*[A-Za-z_])\w{16,}|[sr]k_(?:live|test)_\w{10,})"
            ),
            MASK,
        ),
    )  # fmt: skip


@cache
def _credential_flag_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """A flag whose value is the next word; NAME=VALUE as a whole word; and the text of `--set` in one word."""
    return (
        re.compile(rf"--?[\w.-]*?{_CREDENTIAL_WORDS}", re.I),
        re.compile(
            rf"((?:--?)?(?:[\w.-]*?{_CREDENTIAL_WORDS}|(?:[\w.-]*[._-])?(?:key|sig|signature|auth))\s*=).+", re.I | re.S
        ),
        re.compile(r"(--set=)(.*)", re.S),
    )


def redact_credentials(text: str) -> str:
    """The text with `***` in place of every credential in it."""
    lowered = text.lower()
    for signs, pattern, replacement in _credential_text_patterns():
        if any(sign in lowered for sign in signs):  # most texts have none: a server writes thousands of lines a minute
            text = pattern.sub(replacement, text)
    return text


def redact_command_line(words: Sequence[str]) -> list[str]:
    """The words of a command line with `***` in place of every credential, also of one that is a word of its own."""
    flag, assignment, setting = _credential_flag_patterns()
    masked, is_value = [], False
    for word in words:
        if is_value and not word.startswith("--"):
            masked.append(MASK)
        elif set_in_one := setting.fullmatch(word):
            masked.append(set_in_one[1] + assignment.sub(rf"\1{MASK}", set_in_one[2]))
        else:
            masked.append(
                redact_credentials(assignment.sub(rf"\1{MASK}", word) if assignment.fullmatch(word) else word)
            )
        is_value = flag.fullmatch(word) is not None
    return masked


def holds_credential(words: Sequence[str]) -> bool:
    """Whether one of some words is or has a credential, or follows the flag of one."""
    flag, _, _ = _credential_flag_patterns()
    pairs = zip(words, words[1:], strict=False)
    is_behind = any(flag.fullmatch(word) and not after.startswith("--") for word, after in pairs)
    return is_behind or any(redact_credentials(word) != word for word in words)
