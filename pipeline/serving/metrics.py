"""Figures of a server for Prometheus."""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counts of requests, and the current state of the server.

    Args:
        gauges: by name, (what it is, () -> its value now).
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, gauges: dict[str, tuple[str, Callable[[], float]]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "tfm_requests", "Requests that were answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "tfm_request_seconds",
            "Seconds from a request to its answer.",
            ["route"],
            buckets=LATENCY_BUCKETS,
            registry=self._registry,
        )
        for name, (description, value) in gauges.items():
            Gauge(f"tfm_{name}", description, registry=self._registry).set_function(value)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            route: its path as the server has it; of one that it does not have, "other".
            status: of HTTP.
            seconds: that it took.
        """
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._registry)
