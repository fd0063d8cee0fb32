"""The reasons why a request gets no answer, each with its status of HTTP and one sentence."""

from collections.abc import Mapping


class Problem(Exception):
    """A request that is refused, or cannot be answered.

    Args:
        status: of HTTP.
        sentence: the cause and the remedy.
        headers: further ones of the response.
    """

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


def bad_request(message: str) -> Problem:
    """A request that says something wrong."""
    return Problem(400, message)


def queue_full(seconds: int) -> Problem:
    """Too much is asked for at once."""
    return Problem(
        503, f"more sentences wait than this server takes: ask again in {seconds} s", {"Retry-After": str(seconds)}
    )


def server_fault(message: str) -> Problem:
    """The server has failed; another attempt may succeed."""
    return Problem(503, message, {"Retry-After": "1"})


def request_timeout(seconds: float) -> Problem:
    """A request takes longer than requests may."""
    return Problem(
        504,
        f"the answer took longer than {seconds:g} s and was given up: send less text at once, or, while the models are "
        "loaded, ask again when /health answers ok",
    )


class ClientDisconnected(Exception):
    """The client has hung up: nobody waits for the answer."""
