"""Table properties: the ``delta.*`` settings a table carries, checked before they are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.base.errors import InputError, did_you_mean

__all__ = ["DEFAULTS", "check", "duration_ms"]

# New tables mark deleted rows instead of rewriting files; everything here can be overridden at create().
DEFAULTS: Mapping[str, str] = {"delta.enableDeletionVectors": "true"}

_BOOLEANS = {
    "delta.appendOnly",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableExpiredLogCleanup",
    "delta.enableInCommitTimestamps",
    "delta.enableTypeWidening",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.randomizeFilePrefixes",
}
_INTEGERS = {"delta.checkpointInterval", "delta.dataSkippingNumIndexedCols", "delta.randomPrefixLength"}
_DURATIONS = {
    "delta.deletedFileRetentionDuration": 7 * 24 * 3_600_000,
    "delta.logRetentionDuration": 30 * 24 * 3_600_000,
}
_CHOICES = {
    "delta.columnMapping.mode": ("none", "name", "id"),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.isolationLevel": ("Serializable", "WriteSerializable"),
}
_OTHERS = {
    "delta.columnMapping.maxColumnId",
    "delta.dataSkippingStatsColumns",
    "delta.targetFileSize",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
}
_UNITS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_UNITS |= {"week": 7 * 86_400_000}
_INTERVAL = re.compile(r"^\s*(?:interval\s+)?(\d+)\s+([a-z]+?)s?\s*$", re.IGNORECASE)


def _parse_duration(text: str) -> int | None:
    m = _INTERVAL.match(text)
    return int(m[1]) * _UNITS[m[2].lower()] if m and m[2].lower() in _UNITS else None


def duration_ms(configuration: Mapping[str, str], name: str) -> int:
    """A retention of the table in milliseconds.

    >>> duration_ms({"delta.logRetentionDuration": "interval 2 days"}, "delta.logRetentionDuration")
    172800000
    """
    parsed = _parse_duration(configuration.get(name, ""))
    return _DURATIONS[name] if parsed is None else parsed


def check(properties: Mapping[str, str]) -> None:
    """Raise for a ``delta.*`` property that is unknown or has a value it cannot have; others are free text."""
    known = _BOOLEANS | _INTEGERS | set(_DURATIONS) | set(_CHOICES) | _OTHERS
    for name, value in properties.items():
        if not isinstance(value, str):
            raise InputError.bad_property(name, str(value), f"text, such as {str(value).lower()!r}")
        if name in _BOOLEANS and value.lower() not in ("true", "false"):
            raise InputError.bad_property(name, value, "true or false")
        if name in _INTEGERS and not value.lstrip("-").isdigit():
            raise InputError.bad_property(name, value, "a whole number")
        if name in _DURATIONS and _parse_duration(value) is None:
            raise InputError.bad_property(name, value, "a length of time such as 'interval 7 days'")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise InputError.bad_property(name, value, " or ".join(_CHOICES[name]))
        if name.startswith("delta.") and name not in known and not name.startswith("delta.constraints."):
            near = did_you_mean(name, known)
            raise InputError.bad_property(name, value, f"a known property{f': did you mean {near}?' if near else ''}")
