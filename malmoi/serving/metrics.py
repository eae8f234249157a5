"""What `/metrics` tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

from malmoi.serving.models import ServedModel

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# One name for all that is no path of ours: a scanner must not make a thousand time series.
_OTHER = "other"


class Metrics:
    """The numbers of one server, in a registry of its own.

    Attributes:
        paths: those that are told apart.
    """

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self._registry = CollectorRegistry()
        self.paths: frozenset[str] = frozenset()
        self._models = Info("malmoi_model", "What predicts.", ["name"], registry=self._registry)
        self._requests = Counter(
            "malmoi_requests_total", "Requests.", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "malmoi_request_seconds",
            "From the head of a request to the end of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batches = Histogram(
            "malmoi_batch_texts", "Texts of a batch.", buckets=_TEXTS, registry=self._registry
        )
        self._waiting = Gauge(
            "malmoi_waiting_requests",
            "Requests that are computed or wait for it.",
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        known = path if path in self.paths else _OTHER
        self._requests.labels(known, str(status)).inc()
        self._seconds.labels(known).observe(seconds)

    def batch(self, texts: int) -> None:
        """Count a batch."""
        self._batches.observe(texts)

    def watch_waiting(self, count: Callable[[], int]) -> None:
        """Ask `count` for the number of waiting requests whenever somebody reads the numbers."""
        self._waiting.set_function(count)

    def text(self, models: Iterable[ServedModel]) -> bytes:
        """Everything, in the format of Prometheus; the models are those that answer now."""
        for served in models:
            self._models.labels(served.name).info(
                {
                    "model": served.classifier.name,
                    "version": served.version,
                    "engine": served.classifier.engine,
                }
            )
        return generate_latest(self._registry)
