"""Prometheus metrics of a project's refreshes, and the small server that shows them.

What was done is counted as runs end (`observe_run`); how fresh the nodes are is worked out when somebody asks, so that
the age of a node grows while nothing happens. The server listens on the loopback interface unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from headwater.base.errors import HeadwaterError, InputError, SetupError
from headwater.base.packages import required

if TYPE_CHECKING:
    from headwater.pipeline.project_status import ProjectStatus
    from headwater.pipeline.run import Run

__all__ = ["ProjectMetrics", "observe_run", "serve_metrics"]

_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
_active: list[ProjectMetrics] = []


class Measured(Protocol):
    """A project, as its metrics see it."""

    @property
    def name(self) -> str:
        """What it is called."""

    def status(self) -> ProjectStatus:
        """How fresh its nodes are."""


class ProjectMetrics:
    """The metrics of one project, in a registry of their own."""

    def __init__(self, project: Measured) -> None:
        client: Any = required("prometheus_client", "metrics", extra="serve")
        self.project = project
        self.registry = client.CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        node = ("project", "node")
        self.seconds = client.Histogram(
            "headwater_refresh_seconds", "Seconds that refreshes took.", (*node, "mode"), buckets=_BUCKETS, **own
        )
        self.cpu = client.Counter("headwater_refresh_cpu_seconds", "CPU seconds of refreshes.", node, **own)
        self.rows = client.Counter("headwater_refresh_rows", "Rows that refreshes touched.", (*node, "mode"), **own)
        self.failures = client.Counter("headwater_refresh_failures", "Refreshes that failed.", (*node, "code"), **own)
        self.runs = client.Counter("headwater_runs", "Refreshes of the whole project.", ("project", "ok"), **own)
        self.registry.register(self)

    def collect(self) -> Iterable[Any]:
        """How fresh the nodes are now."""
        from prometheus_client.core import GaugeMetricFamily

        freshness = GaugeMetricFamily(
            "headwater_freshness_seconds", "Age of the oldest change that is not reflected.", labels=["project", "node"]
        )
        lag = GaugeMetricFamily(
            "headwater_version_lag", "Versions behind a source.", labels=["project", "node", "source"]
        )
        stale = GaugeMetricFamily(
            "headwater_stale", "1 where a node misses its target or is held back.", labels=["project", "node"]
        )
        name = self.project.name
        try:
            found = self.project.status()
        except HeadwaterError:  # whoever refreshes says so; a scrape is not the place
            return [freshness, lag, stale]
        for one in found.values():
            if one.lag_seconds is not None:
                freshness.add_metric([name, one.name], one.lag_seconds)
            stale.add_metric([name, one.name], float(one.stale))
            for source, count in one.lag.items():
                if count is not None:
                    lag.add_metric([name, one.name, source], count)
        return [freshness, lag, stale]

    def describe(self) -> Iterable[Any]:
        """Nothing: asking for the status when the metrics are registered would be early."""
        return []

    def observe(self, run: Run) -> None:
        """Count a run."""
        for one in run.values():
            node = (run.project, one.name)
            if one.refresh is not None and one.state in ("done", "noop"):
                self.seconds.labels(*node, one.refresh.mode).observe(one.seconds)
                self.rows.labels(*node, one.refresh.mode).inc(one.refresh.rows_out)
            if one.error is not None:
                self.failures.labels(*node, one.error.code).inc()
            self.cpu.labels(*node).inc(max(0.0, one.cpu_seconds))
        self.runs.labels(run.project, str(run.ok).lower()).inc()

    def text(self) -> str:
        """All of them, as Prometheus reads them."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry).decode()


def observe_run(run: Run) -> None:
    """Count a run in all metrics that are being shown for its project."""
    for one in _active:
        if one.project.name == run.project:
            one.observe(run)


@contextmanager
def serve_metrics(project: Measured, address: str) -> Iterator[str]:
    """Show the metrics of a project's runs inside the block; gives their URL."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise InputError.bad_argument("--metrics", address, "a port, or host:port")
    metrics = ProjectMetrics(project)
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(int(port), addr=host, registry=metrics.registry)
    except OSError as error:
        raise SetupError.cannot_listen(host, int(port), error.strerror or str(error)) from None
    _active.append(metrics)
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        _active.remove(metrics)
        server.shutdown()
        server.server_close()
        thread.join()
