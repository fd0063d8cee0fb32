"""Who may ask a server, and how often."""

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tfm.data.lines import open_lines
from tfm.pipeline.errors import DataError
from tfm.pipeline.serving.problems import Problem

MIN_KEY_CHARS = 8
MAX_REMEMBERED_CALLERS = 10_000


@dataclass(frozen=True)
class ApiKey:
    """A key as the server keeps it.

    Args:
        digest: of the key; the key itself is not kept.
        label: by which logs name it.
        requests_per_minute: the limit of this key; None: that of the server.
    """

    digest: bytes
    label: str
    requests_per_minute: int | None = None


def read_keys(file: Path) -> list[ApiKey]:
    """Read the keys in a file: a line each, KEY [LABEL [REQUESTS_PER_MINUTE]]; empty lines and # are skipped.

    Raises DataError for a line that is none, which it does not show.
    """
    keys: list[ApiKey] = []
    lines: dict[bytes, int] = {}
    for number, line in enumerate(open_lines(file), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words[0]) < MIN_KEY_CHARS:
            raise DataError(
                f"a key has fewer than {MIN_KEY_CHARS} characters: make a longer one", file=file, line=number
            )
        if len(words) > 3 or (len(words) == 3 and not (words[2].isdecimal() and int(words[2]) > 0)):
            raise DataError("write KEY [LABEL [REQUESTS_PER_MINUTE]] on a line", file=file, line=number)
        label, digest = words[1] if len(words) > 1 else f"key {len(keys) + 1}", _digest(words[0])
        if (first_number := lines.setdefault(digest, number)) != number:
            raise DataError(f"the key is already on line {first_number}: remove one of the two", file=file, line=number)
        keys.append(ApiKey(digest, label, int(words[2]) if len(words) > 2 else None))
    if not keys:
        raise DataError("has no key: write one on a line", file=file)
    return keys


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


class AccessControl:
    """The keys of a server, and how many requests each may still make.

    Args:
        keys: the keys; None: everyone may ask.
        requests_per_minute: the most requests of a key or, without keys, of an address; None: no limit.
        clock: () -> seconds.
    """

    def __init__(
        self,
        keys: Sequence[ApiKey] | None,
        requests_per_minute: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._rate, self._clock = keys, requests_per_minute, clock
        self._rate_budgets: OrderedDict[str | bytes, tuple[float, float]] = OrderedDict()

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return self._keys is not None

    def replace_keys(self, keys: Sequence[ApiKey]) -> None:
        """Take other keys from now on."""
        self._keys = keys

    def admit(self, key: str | None, address: str) -> str:
        """Count a request, and return the label of its caller.

        Args:
            key: that the request names; None: it names none.
            address: from which it comes.

        Raises:
            Problem: it has no key, a wrong one, or its caller asks too often.
        """
        api_key = None if self._keys is None else self._find_key(key)
        caller, budget = (address, address) if api_key is None else (api_key.label, api_key.digest)
        rate = self._rate if api_key is None or api_key.requests_per_minute is None else api_key.requests_per_minute
        if rate is not None:
            self._take_from_rate_budget(budget, rate)
        return caller

    def _find_key(self, key: str | None) -> ApiKey:
        """The key that is named. All are compared, each in the same time, so that no answer tells how near one is."""
        if key is None:
            sentence = "this server needs a key: send api_key, or Authorization: Bearer KEY"
            raise Problem(401, sentence, {"WWW-Authenticate": "Bearer"})
        digest, matching_key = _digest(key), None
        for candidate in self._keys or ():
            if hmac.compare_digest(candidate.digest, digest):
                matching_key = candidate
        if matching_key is None:
            raise Problem(403, "the key is not one of this server's: ask its operator for one")
        return matching_key

    def _take_from_rate_budget(self, caller: str | bytes, rate: int) -> None:
        """Take one of the requests of a key or an address, which come back evenly over a minute."""
        now = self._clock()
        budget, last_time = self._rate_budgets.pop(caller, (float(rate), now))
        budget = min(float(rate), budget + (now - last_time) * rate / 60)
        self._rate_budgets[caller] = (budget - 1 if budget >= 1 else budget), now
        if len(self._rate_budgets) > MAX_REMEMBERED_CALLERS:
            self._rate_budgets.popitem(last=False)
        if budget < 1:
            seconds = max(1, round((1 - budget) * 60 / rate + 0.5))
            sentence = f"more than {rate} requests a minute: ask again in {seconds} s"
            raise Problem(429, sentence, {"Retry-After": str(seconds)})
