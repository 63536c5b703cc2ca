"""Names of columns that answers have beside those of a table, so that no column of a table may have them."""

from __future__ import annotations

__all__ = ["RESERVED"]

RESERVED = ("_found", "_status", "_idx", "_event_time")
