"""History: what was committed, when, by which operation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.base.errors import NotFoundError
from headwater.base.storage import Storage
from headwater.lake import log

__all__ = ["HistoryEntry", "commit_times", "history"]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of a table."""

    version: int
    timestamp: datetime
    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    engine: str | None
    user_metadata: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "timestamp": self.timestamp.isoformat(timespec="milliseconds"),
            "operation": self.operation,
            "parameters": self.parameters,
            "metrics": self.metrics,
            "engine": self.engine,
            "user_metadata": self.user_metadata,
        }


def history(storage: Storage, limit: int | None = None) -> list[HistoryEntry]:
    """The versions whose log entries are kept, newest first."""
    times = commit_times(storage)
    found = []
    for version in sorted(times, reverse=True)[:limit]:
        try:
            info = log.read_commit(storage, version, times[version]).info
        except NotFoundError:
            break  # cleaned up while we read
        found.append(
            HistoryEntry(
                version,
                datetime.fromtimestamp(times[version] / 1000, UTC),
                str(info.get("operation", "unknown")),
                {k: _value(v) for k, v in (info.get("operationParameters") or {}).items()},
                {k: _value(v) for k, v in (info.get("operationMetrics") or {}).items()},
                info.get("engineInfo"),
                info.get("userMetadata"),
            )
        )
    return found


def commit_times(storage: Storage) -> dict[int, int]:
    """The commit time of each version in ms, growing with the version even where clocks went back."""
    segment = log.list_segment(storage)
    if segment.newest < 0:
        raise log.not_a_table(storage)
    newest = log.load(storage)
    in_commit = newest.metadata.configuration.get("delta.enableInCommitTimestamps") == "true"
    times: dict[int, int] = {}
    previous = -1
    for version in sorted(segment.commits):
        time = segment.commits[version]
        if in_commit:
            time = log.read_commit(storage, version, time).timestamp_ms
        previous = times[version] = max(time, previous + 1)
    return times


def _value(text: Any) -> Any:
    """Numbers and booleans come back as such: the log keeps them as text."""
    if isinstance(text, str):
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return value if isinstance(value, int | float | bool | list | dict) else text
    return text
