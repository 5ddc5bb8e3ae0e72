"""What the service counts, for Prometheus; a registry of its own, so that several can live in one process."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The service's counters."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kinds: Any = {"registry": self.registry, "namespace": "newfound"}
        self.images = Counter("images", "Images that were observed, by what became of them", ["result"], **kinds)
        self.categories = Gauge("categories", "Living categories, known and discovered", **kinds)
        self.observe_seconds = Histogram("observe_seconds", "From a request's arrival to its answer", **kinds)
        self.queue_length = Gauge("queue_length", "Images that wait for the encoder", **kinds)
        self.batch_size = Histogram("batch_size", "Images encoded together", buckets=_BATCHES, **kinds)
        self.rejected = Counter("rejected", "Requests answered with 429", **kinds)

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)
