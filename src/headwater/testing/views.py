"""An oracle for views: random queries over random histories, each step equal to DuckDB's answer for the same plan.

`random_view` draws a query of Spark SQL over three small tables with nulls, duplicates, NaN, negative zeros, decimals,
dates and arrays. It is made of what views are made of: projections, conditions, joins of all kinds, aggregates,
grouping sets, set operations, subqueries, common tables, windows, top-k and explode. `run_view` plays a history on its
circuit (`headwater.testing.circuits`) and compares after every step. A difference is an AssertionError with the query,
the seed, the step and the rows, and the same seed plays it again.

What SQL leaves open the queries leave out, or order by all columns: which of two peers is first, the digits of a
deviation beyond the sixth. Doubles are multiples of a quarter, whose sums are exact in every order.

>>> sql = random_view(3)
>>> run_view(sql, seed=3, steps=2)
2
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.base.errors import ExpressionError, UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, determined
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.plan import Plan, Scan
from headwater.sql.query import parse_query
from headwater.testing.circuits import Draw, Trial, run
from headwater.testing.view_queries import Queries

__all__ = ["DRAWS", "SCHEMAS", "is_determined", "play", "random_view", "run_view"]

SCHEMAS: Mapping[str, pa.Schema] = {
    "t": pa.schema(
        [("k", pa.int32()), ("s", pa.string()), ("v", pa.float64()), ("d", pa.decimal128(8, 2)), ("e", pa.date32())]
    ),
    "u": pa.schema(
        [("k", pa.int32()), ("s", pa.string()), ("n", pa.int64()), ("d", pa.decimal128(8, 2)), ("g", pa.bool_())]
    ),
    "w": pa.schema(
        [
            ("k", pa.int32()),
            ("e", pa.date32()),
            ("v", pa.float64()),
            ("xs", pa.list_(pa.int32())),
            ("n", pa.int64()),
            ("m", pa.timestamp("us")),
        ]
    ),
}
"""The tables that views are drawn over."""

_DAY = date(2024, 2, 28)
_WORDS = [None, "", "a", "B", "ab", "a text that does not fit a slot", "ünï ✓"]
_DOUBLES = [None, 0.0, -0.0, 0.25, -1.5, 2.0, 2.0, 7.75, float("nan")]
_DECIMALS = [None, Decimal("0.00"), Decimal("1.10"), Decimal("-2.55"), Decimal("10.00"), Decimal("123.45")]


def _key(rng: random.Random) -> int | None:
    return rng.choice([None, 0, 1, 1, 2, 3, 4])


def _date(rng: random.Random) -> date | None:
    return rng.choice([None, _DAY + timedelta(days=rng.randint(0, 4)), _DAY - timedelta(days=400)])


def _draw_t(rng: random.Random) -> tuple[Any, ...]:
    return (_key(rng), rng.choice(_WORDS), rng.choice(_DOUBLES), rng.choice(_DECIMALS), _date(rng))


def _draw_u(rng: random.Random) -> tuple[Any, ...]:
    number = rng.choice([None, 0, 1, 2, 5, -3, 10**6])
    return (_key(rng), rng.choice(_WORDS), number, rng.choice(_DECIMALS), rng.choice([None, True, False]))


def _draw_w(rng: random.Random) -> tuple[Any, ...]:
    array = rng.choice([None, (), (1,), (2, None), (3, 1, 3)])
    moment = rng.choice([None, *(datetime.combine(_DAY, time(23, 59, second)) for second in (0, 1, 30))])
    return (_key(rng), _date(rng), rng.choice(_DOUBLES), array, rng.choice([None, 1, 2, 3, -4]), moment)


DRAWS: Mapping[str, Draw] = {"t": _draw_t, "u": _draw_u, "w": _draw_w}
"""A random row of each table."""


def random_view(seed: int) -> str:
    """A query over the tables of `SCHEMAS`; the same for the same seed.

    >>> random_view(1) == random_view(1)
    True
    """
    columns = {name: [(f.name, _TYPES[f.type]) for f in schema] for name, schema in SCHEMAS.items()}
    return Queries(random.Random(seed), columns).query()


_TYPES = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.string(): "text",
    pa.float64(): "double",
    pa.decimal128(8, 2): "decimal",
    pa.date32(): "date",
    pa.bool_(): "bool",
    pa.timestamp("us"): "moment",
    pa.list_(pa.int32()): "array",
}


def plan_of(sql: str) -> Plan:
    """The plan of a query over the tables."""
    return parse_query(sql, lambda name, *_: SCHEMAS[name])


def is_determined(sql: str) -> bool:
    """Whether nothing of a query's answer is left open, such as the order of rows that tie; else views choose by the
    other columns.

    >>> is_determined("SELECT k FROM t"), is_determined("SELECT k, row_number() OVER (ORDER BY k) AS n FROM t")
    (True, False)
    """
    plan = plan_of(sql)
    return determined(plan) == plan


def run_view(sql: str, *, seed: int, steps: int, **options: Any) -> int:
    """Play a history on the circuit of a query, and give the number of steps that were equal to DuckDB's answer.

    ``options`` are those of `headwater.testing.circuits.run`. An ``oracle`` is given the query as it is written.
    """
    plan = plan_of(sql)
    used = {p.relation for p in plan.walk() if isinstance(p, Scan)}

    def built(circuit: Circuit) -> None:
        inputs = {name: circuit.input(name, schema) for name, schema in SCHEMAS.items() if name in used}
        build(circuit, plan, inputs).output("view")

    draws = {name: draw for name, draw in DRAWS.items() if name in used}
    answer = to_duckdb(determined(plan)) if options.get("oracle") is None else sql
    trial = Trial(built, {"view": answer}, draws)
    try:
        return run(trial, steps=steps, seed=seed, **options)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}\n{sql}") from error


def play(seed: int, *, steps: int, **options: Any) -> int | None:
    """Draw a view and play a history on it; None where the view is refused."""
    sql = random_view(seed)
    try:
        return run_view(sql, seed=seed, steps=steps, **options)
    except (UnsupportedError, ExpressionError) as error:
        if error.code in ("E3003", "E3004", "E1305"):
            return None
        raise AssertionError(f"seed {seed}: {error}\n{sql}") from error
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{sql}") from error
