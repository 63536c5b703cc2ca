"""Many expressions over one table in DuckDB: the answers of `evaluate`, without a query for each.

A query costs milliseconds before its first row, and the tables of expressions have thousands of lines. So many expressions are columns
of one query. Where a batch fails it is halved until the culprit is alone; the culprit's rows are tried all at once where DuckDB can do that,
and halved where it cannot. That is right because a row's answer depends on nothing but the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.expressions import Expression, failure
from headwater.sql.udfs import install

__all__ = ["Answers", "evaluate_all"]

Answers = Callable[[pa.ChunkedArray], list[object]]

_MOST = 16
_ROW = "row_of_the_batch_"
_numbers = itertools.count()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def evaluate_all(expressions: Sequence[Expression], table: pa.Table, answers: Answers) -> list[list[object]]:
    """Each expression's values, as ``answers`` makes them of a column; an ExpressionError stands for a row that fails."""
    name = f"batched_rows_{next(_numbers)}"
    con = _database()
    con.register(name, table.append_column(_ROW, pa.array(range(table.num_rows), pa.int64())))
    try:
        one = _Batches(con, name, table.num_rows, answers)
        several = [expressions[at : at + _MOST] for at in range(0, len(expressions), _MOST)]
        return [column for batch in several for column in one.columns(batch)]
    finally:
        con.unregister(name)


class _Batches:
    def __init__(self, con: duckdb.DuckDBPyConnection, name: str, rows: int, answers: Answers) -> None:
        self._con, self._name, self._rows, self._answers = con, name, rows, answers

    def columns(self, batch: Sequence[Expression]) -> list[list[object]]:
        try:
            return self._asked(batch)
        except duckdb.Error:
            middle = len(batch) // 2
            if middle:
                return self.columns(batch[:middle]) + self.columns(batch[middle:])
            return [self._tried(batch[0]) or self._halved(batch[0], 0, self._rows)]

    def _asked(self, batch: Sequence[Expression], where: str = "") -> list[list[object]]:
        written = [self._written(expression) for expression in batch]
        items = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(written))
        found = self._con.sql(f"SELECT {items} FROM {self._name}{where}").to_arrow_table()
        return [self._values(c, e) for c, e in zip(found.columns, batch, strict=True)]

    def _tried(self, expression: Expression) -> list[object] | None:
        """All rows at once, the failing ones as nulls where values are structs: DuckDB refuses that for some functions."""
        written = self._written(expression)
        sql = f"SELECT TRY(struct_pack(v := {written})) AS c FROM {self._name}"
        try:
            found = self._con.sql(sql).to_arrow_table().column(0).combine_chunks()
        except duckdb.Error:
            return None
        passed = iter(self._values(pa.chunked_array([pc.struct_field(found.drop_null(), "v")]), expression))
        error = failure(expression.text, duckdb.Error("tried"))
        return [next(passed) if ok else error for ok in found.is_valid().to_pylist()]

    def _halved(self, expression: Expression, begin: int, end: int) -> list[object]:
        try:
            return self._asked([expression], f" WHERE {_ROW} >= {begin} AND {_ROW} < {end}")[0]
        except duckdb.Error as error:
            if end - begin == 1:
                return [failure(expression.text, error)]
            middle = (begin + end) // 2
            return self._halved(expression, begin, middle) + self._halved(expression, middle, end)

    def _written(self, expression: Expression) -> str:
        sql = expression.duckdb_for(dict.fromkeys({alias for alias, _ in expression.columns}, self._name))
        install(self._con, sql)
        return sql

    def _values(self, column: pa.ChunkedArray, expression: Expression) -> list[object]:
        return self._answers(column if column.type == expression.dtype else column.cast(expression.dtype))
