"""Spark's own types, for signatures in rooms that must not import pyspark.

A room above this one may take or return a session or a DataFrame without running anything on it. It names the type
through this module, which loads pyspark only when a name is really looked up, so the rule "pyspark is imported in few
places" holds for annotations as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DataFrame", "SparkSession", "StreamingQuery"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "StreamingQuery":
        from pyspark.sql.streaming.query import StreamingQuery

        return StreamingQuery
    import pyspark.sql

    return getattr(pyspark.sql, name)
