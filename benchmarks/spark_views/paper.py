"""What a run on many executors would cost, on paper: what was measured of a row, a shard and a run (`spark_views.per_row`), times how many there are.

Nothing here was run on such a cluster. The model is linear, and knows no stragglers, no failing machines, and no network that is full; every machine
is taken to hold one executor, and none of the state before a refresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.incremental.views.spark.choice import shard_count
from headwater.observe.format import human_bytes, human_count

from .per_row import FETCHED, through

__all__ = ["Cluster", "Line", "paper_of", "table_of"]

_SHARE_BYTES = 32 << 20
_MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, a view, and a change of it."""

    executors: int = 100
    cores: int = 4
    """Of each executor, each with one of Spark's tasks."""
    orders: int = 10_000_000_000
    changed: int = 10_000_000

    @property
    def tasks(self) -> int:
        """What ``spark.sql.shuffle.partitions`` would be: two for each core."""
        return 2 * self.executors * self.cores


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of the first build and of a refresh, and how it comes about."""

    what: str
    build: float
    refresh: float
    unit: str
    """"bytes", "count" or "seconds"."""
    formula: str


def _of_a_row(figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was measured of a row. What a changed row costs is seen best in the curve, which has the largest changes; where
    both were measured, in refreshes that always exchange their rows, as those of the paper do.
    """
    of: Mapping[str, Any] = figures["sections"]["paper"]
    curve = figures["sections"].get("curve", {})
    if len(curve) < 2:
        return of
    points = sorted(
        (float(share) * figures["rows"], found.get("exchange", found["spark"])[0]) for share, found in curve.items()
    )
    return {**of, "refresh_cpu_seconds_of_a_row": through(points[0], points[-1])[1]}


def paper_of(figures: Mapping[str, Any], cluster: Cluster) -> list[Line]:
    """The quantities, by all figures of a run."""
    of = _of_a_row(figures)
    rows, changed = cluster.orders, cluster.changed
    shards, shards_then = (
        shard_count(rows, cluster.tasks, follows=False),
        shard_count(changed, cluster.tasks, follows=True),
    )
    state = rows * of["state_bytes"]
    of_runs, of_runs_then = (of["requests"][what]["runs, written"][1] for what in ("build", "refresh"))
    runs, runs_then = of_runs * shards, of_runs_then * shards_then
    of_shard = of["refresh_cpu_seconds_of_a_shard"]
    cpu = rows * of["build_cpu_seconds"] + shards * of_shard
    fixed = of["refresh_cpu_seconds"]
    cpu_then = fixed + shards_then * of_shard + changed * of["refresh_cpu_seconds_of_a_row"]
    cores = cluster.executors * cluster.cores
    fetched = state * of["refresh_state_opened"]
    base, each = of["memory_base_bytes"], of["memory_bytes"]
    asked, asked_then = _requests(of, "build", shards), _requests(of, "refresh", shards_then)
    splits = rows * of["source_file_bytes"] / _SHARE_BYTES
    fetches = of["requests"]["refresh"][FETCHED][1] / of_runs
    return [
        Line(
            "shards",
            shards,
            shards_then,
            "count",
            "`shard_count`: a shard for 500,000 rows, at least one a task, at most 4,096",
        ),
        Line(
            "CPU",
            cpu,
            cpu_then,
            "seconds",
            f"rows × {of['build_cpu_seconds'] * _MEGA:.2f} µs + shards × {of_shard * 1e3:.0f} ms; then {fixed:.1f} s + shards × "
            f"{of_shard * 1e3:.0f} ms + changed rows × {of['refresh_cpu_seconds_of_a_row'] * _MEGA:.2f} µs",
        ),
        Line(
            "time, if all cores are busy",
            cpu / cores,
            fixed + (cpu_then - fixed) / cores,
            "seconds",
            f"CPU / {cores:,} cores; what is fixed of a refresh is not divided",
        ),
        Line(
            "read of the sources",
            rows * of["source_file_bytes"],
            changed * of["source_file_bytes"],
            "bytes",
            f"rows × {of['source_file_bytes']:.1f} B of file",
        ),
        Line(
            "through the shuffle",
            rows * of["shuffled_bytes"],
            changed * of["refresh_shuffled_bytes"],
            "bytes",
            f"rows × {of['shuffled_bytes']:.0f} B; changed rows × {of['refresh_shuffled_bytes']:.0f} B",
        ),
        Line(
            "left by jobs for later ones",
            rows * of["left_bytes"],
            changed * of["refresh_left_bytes"],
            "bytes",
            f"rows × {of['left_bytes']:.0f} B; changed rows × {of['refresh_left_bytes']:.0f} B",
        ),
        Line(
            "state written",
            state,
            changed * of["refresh_state_bytes"],
            "bytes",
            f"rows × {of['state_bytes']:.0f} B; changed rows × {of['refresh_state_bytes']:.0f} B",
        ),
        Line(
            "state fetched by a machine that has none",
            0,
            fetched,
            "bytes",
            f"state × {of['refresh_state_opened']:.2f} that a job opens: a machine fetches whole runs",
        ),
        Line("the same, by all machines", 0, fetched * cluster.executors, "bytes", f"× {cluster.executors} executors"),
        Line(
            "run files in the manifest",
            runs,
            runs + runs_then,
            "count",
            f"shards × {of_runs:.0f}; those of the refresh, shards × {of_runs_then:.0f}, beside them",
        ),
        Line(
            "manifest",
            runs * of["manifest_bytes_of_a_run"],
            (runs + runs_then) * of["manifest_bytes_of_a_run"],
            "bytes",
            f"runs × {of['manifest_bytes_of_a_run']:.0f} B; written once, with the commit",
        ),
        Line(
            "S3 requests that write",
            asked["written"],
            asked_then["written"],
            "count",
            f"{_formula(of, 'build', 'written')}; then {_formula(of, 'refresh', 'written')}",
        ),
        Line(
            "S3 requests that read, without state",
            asked["read"] + splits,
            asked_then["read"],
            "count",
            f"{_formula(of, 'build', 'read')} + one for each {_SHARE_BYTES >> 20} MiB; then {_formula(of, 'refresh', 'read')}",
        ),
        Line(
            "S3 requests that fetch state, all machines",
            0,
            runs * fetches * cluster.executors,
            "count",
            f"runs × {fetches:.1f} × {cluster.executors} executors that have none",
        ),
        Line(
            "S3 requests that delete",
            asked["deleted"],
            asked_then["deleted"],
            "count",
            f"{_formula(of, 'build', 'deleted')}; then {_formula(of, 'refresh', 'deleted')}",
        ),
        Line(
            "memory of an executor's tasks",
            cluster.cores * (base + rows / shards * each),
            cluster.cores * (base + changed / shards_then * each),
            "bytes",
            f"{cluster.cores} tasks × ({base / 2**20:.0f} MiB + rows of a shard × {each:.0f} B)",
        ),
    ]


def _kinds(of: Mapping[str, Any], what: str, deed: str) -> tuple[float, float]:
    """Fixed requests, and those of a shard."""
    chosen = [v for name, v in of["requests"][what].items() if name.endswith(deed)]
    return sum(v[0] for v in chosen), sum(v[1] for v in chosen)


def _requests(of: Mapping[str, Any], what: str, shards: int) -> dict[str, float]:
    return {deed: (k := _kinds(of, what, deed))[0] + k[1] * shards for deed in ("read", "written", "deleted")}


def _formula(of: Mapping[str, Any], what: str, deed: str) -> str:
    fixed, each = _kinds(of, what, deed)
    return f"{fixed:.0f} + shards × {each:.1f}" if each else f"{fixed:.0f}"


def table_of(lines: Sequence[Line], cluster: Cluster | None = None) -> str:
    """The lines as a table of Markdown."""
    of = cluster or Cluster()
    head = f"| | first build, {human_count(of.orders)} rows | refresh, {human_count(of.changed)} changed rows | computed as |"
    rows = [
        f"| {one.what} | {_shown(one.build, one.unit)} | {_shown(one.refresh, one.unit)} | {one.formula} |"
        for one in lines
    ]
    return "\n".join([head, "|---|---|---|---|", *rows])


def _shown(value: float, unit: str) -> str:
    if not value:
        return "-"
    if unit == "bytes":
        return human_bytes(round(value))
    if unit == "count":
        return human_count(round(value))
    return f"{value / 3600:,.1f} h" if value >= 3600 else f"{value / 60:.1f} min" if value >= 120 else f"{value:.1f} s"
