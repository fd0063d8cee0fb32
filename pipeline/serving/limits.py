"""The limits of a server: each has a number, and each refusal names it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that a server takes of one request, and of all together.

    Args:
        body_bytes: the most bytes of a request's body.
        chars: the most characters of all texts of a request.
        texts: the most texts of a request.
        sentences: the most sentences that all requests together wait for.
        beam: the widest beam that a request may ask for.
        alternatives: the most alternatives of a translation.
        tokens: the most tokens of a completion.
        seconds: the longest that a request is worked on.
        body_seconds: the longest that a body is waited for.
        requests_per_minute: the most requests a minute of a key or, without keys, of an address; None: no limit.
        cached_answers: the most answers that are kept to be given again; 0: none.
        cached_chars: the most characters of these.
    """

    body_bytes: int = 1 << 20
    chars: int = 50_000
    texts: int = 200
    sentences: int = 2_000
    beam: int = 10
    alternatives: int = 9
    tokens: int = 2_000
    seconds: float = 60.0
    body_seconds: float = 10.0
    requests_per_minute: int | None = None
    cached_answers: int = 10_000
    cached_chars: int = 4_000_000
