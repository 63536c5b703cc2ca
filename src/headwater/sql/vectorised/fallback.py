"""What has no kernel is asked of DuckDB: all such parts of one region in one query, for the rows that reach them.

A part is a piece of the typed tree in which everything that has a kernel was replaced by a column; those columns are
computed first and handed over as Arrow. DuckDB does not say which row failed, so that is found by halving the rows:
errors are rare and may cost more.

Invariant: the rows that are handed over are exactly those that count, so that a row that was not reached cannot fail.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.sql.duckdb_form import render
from headwater.sql.evaluation import failure
from headwater.sql.nodes import Node
from headwater.sql.quoting import quote_identifier
from headwater.sql.udfs import install
from headwater.sql.vectorised.frame import Frame, RowFailed, Step
from headwater.sql.vectorised.vector import Vector, dense, inner, nulls, vector_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["Group"]

_RELATION = "headwater_rows"
_lock = threading.Lock()
_numbers = itertools.count()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


class Group:
    """The parts of one region that are asked together; ``inputs`` are computed first and are columns ``c0``, ``c1``,
    …
    """

    __slots__ = ("dtypes", "inputs", "names", "parts", "region", "relation", "slot", "sql")

    def __init__(self, slot: int, region: int) -> None:
        self.slot = slot
        self.region = region
        self.parts: list[Node] = []
        self.dtypes: list[pa.DataType] = []
        self.names: list[str] = []
        self.inputs: list[Step] = []
        self.relation = f"{_RELATION}_{next(_numbers)}"
        self.sql = ""

    def finish(self) -> None:
        """Write the query, once all parts are known."""
        spelled = [f"{render(p, {None: self.relation})} AS v{i}" for i, p in enumerate(self.parts)]
        self.sql = f"SELECT {', '.join(spelled)} FROM {quote_identifier(self.relation)}"

    def ask(self, frame: Frame) -> Sequence[Vector]:
        """The parts' values, computed once a run."""
        found = frame.memo[self.slot]
        if found is None:
            before = frame.active
            frame.active = frame.actives[self.region]
            found = frame.memo[self.slot] = self._asked(frame)
            frame.active = before
        assert isinstance(found, list)
        return found

    def _asked(self, frame: Frame) -> list[Vector]:
        columns = [dense(step(frame), frame.rows).to_arrow() for step in self.inputs]
        # A table without columns has no rows for DuckDB, so there is always one.
        names = self.names or ["row"]
        table = pa.table(columns or [pa.nulls(frame.rows, pa.int8())], names=names)
        active = frame.active
        if active is None:
            return [inner(vector_of(c)) for c in self._query(table, None)]
        rows = np.flatnonzero(active)
        if len(rows) == 0:
            return [nulls(t, frame.rows) for t in self.dtypes]
        found = self._query(table.take(pa.array(rows)), rows)
        places = np.zeros(frame.rows, np.int64)
        places[rows] = np.arange(len(rows))
        spread = pa.array(places, mask=~active)
        return [inner(vector_of(c.take(spread))) for c in found]

    def _query(self, table: pa.Table, rows: np.ndarray | None) -> list[pa.ChunkedArray]:
        import duckdb

        try:
            return self._run(table)
        except duckdb.Error as error:
            at = self._first_failing(table)
            raise RowFailed(at if rows is None else int(rows[at]), reason_of(error)) from None

    def _run(self, table: pa.Table) -> list[pa.ChunkedArray]:
        with _lock:
            database = _database()
            install(database, self.sql)
            cursor = database.cursor()
        try:
            cursor.register(self.relation, table)
            found = cursor.sql(self.sql).to_arrow_table()
        finally:
            cursor.close()
        return [c if c.type == t else c.cast(t) for c, t in zip(found.columns, self.dtypes, strict=True)]

    def _first_failing(self, table: pa.Table) -> int:
        import duckdb

        low, high = 0, table.num_rows  # the first `low` rows pass, the first `high` do not
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self._run(table.slice(low, middle - low))
                low = middle
            except duckdb.Error:
                high = middle
        return low


def reason_of(error: Exception) -> str:
    """Why DuckDB failed, in plain words."""
    message = failure("", error).message
    return message.split("failed: ", 1)[-1]
