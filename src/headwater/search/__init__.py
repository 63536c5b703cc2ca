"""search: which rows mention it? Full-text search over Delta tables,
by an index that can be behind and is never wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.search.index import SearchIndex
    from headwater.spark.types import DataFrame, SparkSession

__all__ = ["frame", "register"]


def register(session: SparkSession, *, storage_options: Mapping[str, str] | None = None) -> None:
    """Let a Spark session know ``format("headwater")``; sessions of ``hw.spark()`` know it by themselves.

    See `headwater.search.spark.source.register`.
    """
    from headwater.search.spark import source

    source.register(session, storage_options=storage_options)


def frame(
    index: SearchIndex,
    query: str | None = None,
    *,
    session: SparkSession | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> DataFrame:
    """The rows that a search of an index finds, as a lazy Spark DataFrame; see `SearchIndex.spark`."""
    from headwater.search.spark import source

    return source.search_frame(index, query, session=session, columns=columns, options=options)
