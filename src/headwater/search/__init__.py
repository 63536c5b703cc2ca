"""search: which rows mention it? Full-text search over Delta tables, by an index that can be behind and is never wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.spark.types import SparkSession

__all__ = ["register"]


def register(session: SparkSession, *, storage_options: Mapping[str, str] | None = None) -> None:
    """Let a Spark session know ``format("headwater")``; sessions of ``hw.spark()`` know it by themselves.

    See `headwater.search.spark.source.register`.
    """
    from headwater.search.spark import source

    source.register(session, storage_options=storage_options)
