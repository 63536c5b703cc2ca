"""A view played over a history that ends in given tables, and Spark's rows of the same query over those tables.

On the way there rows are inserted twice, deleted and inserted again, and other rows come and go, so that whatever a circuit keeps is also taken
back. The changes that it gives are added up here, by value: what remains has to be one copy of each row.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.sql.oracle import comparable

from headwater.base.schema import spark_type
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, check
from headwater.sql.plan import Scan
from headwater.sql.query import parse_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Answer", "History", "by_bits", "circuit_of", "in_order", "play", "small", "spark_answer"]

Row = tuple[Any, ...]


@dataclass(frozen=True)
class History:
    """A table as it is in the end, and rows that are there only for a while."""

    final: pa.Table
    passing: pa.Table

    def steps(self) -> Iterator[list[tuple[pa.Table, int]]]:
        """Some rows with their weights for each step."""
        late, early = _every(self.final, 2, 0), _every(self.final, 2, 1)
        back, first, second = _every(early, 2, 0), _every(self.passing, 2, 0), _every(self.passing, 2, 1)
        yield [(early, 1), (first, 1), (back, 1)]
        yield [(back, -2), (second, 1), (late, 2), (_every(first, 3, 0), -1)]
        yield [(back, 1), (late, -1), (_every(first, 3, 1), -1), (_every(first, 3, 2), -1), (second, -1)]


@dataclass(frozen=True)
class Answer:
    """Names, types as Spark writes them, and columns of values that compare."""

    names: list[str]
    types: list[str]
    rows: list[Row]


def _every(table: pa.Table, step: int, start: int) -> pa.Table:
    return table.take(pa.array(range(start, table.num_rows, step), pa.int64()))


def circuit_of(sql: str, schemas: Mapping[str, pa.Schema]) -> Circuit:
    """The circuit of a query as a view has it: checked, and built."""
    plan = parse_query(sql, lambda name, *_: schemas[name.lower()])
    check(plan, sql)
    circuit = Circuit("view")
    used = {p.relation for p in plan.walk() if isinstance(p, Scan)}
    inputs = {n: circuit.input(n, s) for n, s in schemas.items() if n in used}
    build(circuit, plan, inputs).output("view")
    return circuit


def play(circuit: Circuit, histories: Mapping[str, History], values: Any = comparable) -> Answer:
    """The rows that a view has in the end."""
    rows: Counter[Row] = Counter()
    names = [n for n in circuit.inputs if n in histories]
    schema: pa.Schema | None = None
    for changes in zip(*(histories[n].steps() for n in names), strict=True) if names else [()]:
        given = {}
        for name, parts in zip(names, changes, strict=True):
            whole = pa.concat_tables([t for t, _ in parts])
            weights = [w for t, w in parts for _ in range(t.num_rows)]
            given[name] = whole.append_column("_weight", pa.array(weights, pa.int64()))
        out = circuit.step(given)["view"].to_arrow()
        schema = out.drop_columns(["_weight"]).schema
        for row, weight in zip(_rows(out.drop_columns(["_weight"]), values), out["_weight"].to_pylist(), strict=True):
            rows[row] += weight
    assert schema is not None
    left = {r: w for r, w in rows.items() if w}
    assert all(w > 0 for w in left.values()), f"rows that are not there: {[r for r, w in left.items() if w < 0]}"
    types = ["void" if pa.types.is_null(f.type) else spark_type(f.type).replace("`", "") for f in schema]
    return Answer(schema.names, types, in_order([r for r, w in left.items() for _ in range(w)]))


def small(session: SparkSession) -> None:
    """Settings for queries of a few rows: no plans that change while they run."""
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")


def spark_answer(session: SparkSession, sql: str, values: Any = comparable) -> Answer:
    """Spark's rows of the query."""
    frame = session.sql(sql)
    types = [f.dataType.simpleString() for f in frame.schema]
    return Answer([f.name for f in frame.schema], types, in_order(_rows(frame.toArrow(), values)))


def _rows(table: pa.Table, values: Any) -> list[Row]:
    columns = [[values(v) for v in _plain(c).to_pylist()] for c in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Counts of days and microseconds, which have no bounds; Python's dates have."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def by_bits(value: object) -> object:
    """A value that compares as its bits do, except that there is one NaN."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, list | tuple):
        return tuple(by_bits(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, by_bits(v)) for k, v in value.items())
    return str(value) if isinstance(value, Decimal) else value


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=repr)
