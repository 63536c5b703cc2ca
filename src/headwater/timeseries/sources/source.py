"""What a source is: rows that tasks can read in shares, without a driver that holds them.

`tasks` says how many shares there are and how one is read; `size` is what is known of the whole before anything is
read, for deciding how many tasks an exchange should feed; `sample` reads a little, for finding keys that have very many
rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.sql.conjuncts import Conjunct
from headwater.timeseries.node import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Size", "Source", "Tasks"]


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is, as far as it is known: rows, and bytes in memory."""

    rows: int | None
    bytes: int | None

    def __add__(self, other: Size) -> Size:
        rows = None if self.rows is None or other.rows is None else self.rows + other.rows
        size = None if self.bytes is None or other.bytes is None else self.bytes + other.bytes
        return Size(rows, size)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Shares of the rows: ``work(n)`` reads the n-th of ``count``."""

    count: int
    work: Callable[[int], Iterator[pa.Table]]


class Source(Node):
    """The beginning of a plan."""

    @property
    @abstractmethod
    def size(self) -> Size: ...

    def rows_about(self) -> int | None:
        """About how many rows there are, if that can be told from little of it; else None."""
        return self.size.rows

    def tasks(self) -> Tasks | None:
        """How tasks read it; None if only Spark can."""
        return None

    @abstractmethod
    def spark(self, session: SparkSession) -> DataFrame:
        """The rows as a frame of Spark's."""

    def sample(self, rows: int) -> pa.Table | None:
        """About so many rows from all over it; None if that costs as much as reading it."""
        return None

    def narrowed(self, names: list[str]) -> Source:
        """The same rows with these columns only, if it can read less for that."""
        return self

    def coded(self, names: Sequence[str]) -> Source:
        """The same source, free to give the texts of these columns as dictionaries."""
        return self

    def skipping(self, conjuncts: tuple[Conjunct, ...]) -> Source:
        """The same source, free to leave out rows that do not meet all of these; it need not leave out any."""
        return self
