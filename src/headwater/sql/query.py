"""Spark SQL queries, read into typed plans.

The problem: one dialect for the laptop and the cluster. The idea: a query is parsed, its names and types are resolved
by Spark's rules, and the outcome is a plan (`headwater.sql.plan`) that an engine writes in its own SQL
(`headwater.sql.duckdb_query`).

Invariants:
1. A query that reads gives Spark's rows, or stops with an error where Spark does; only what is left open there is
   open here: the order of rows without ORDER BY, the last digits of sums of doubles.
2. Nothing is guessed: what is not known is refused with the reason, the place, and the hint ``engine="spark"``.
3. Parameters are typed constants of the plan; no value is ever pasted into text.

>>> import pyarrow as pa
>>> schema = pa.schema([("id", pa.int32()), ("x", pa.int32())])
>>> plan = parse_query("SELECT id, sum(x) FROM t GROUP BY id", lambda *_: schema)
>>> plan.schema.names, plan.schema.types
(['id', 'sum(x)'], [DataType(int32), DataType(int64)])
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headwater.base.errors import Action, ExpressionError, InputError, SchemaError
from headwater.sql.functions.user import UserFunction, functions_by_name
from headwater.sql.intervals.lowering import lowered_plan
from headwater.sql.lexis import scan
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.plan import Plan
from headwater.sql.reader.context import Arguments, Context, Parameters, SchemaOf, TableFunctions
from headwater.sql.reader.queries import read_query
from headwater.sql.reader.resolve import parse_text

__all__ = ["Arguments", "Parameters", "SchemaOf", "TableFunctions", "parse_query"]


def parse_query(
    text: str,
    schema_of: SchemaOf,
    parameters: Parameters | None = None,
    functions: TableFunctions | None = None,
    user_functions: Iterable[UserFunction] = (),
    *,
    now: datetime | None = None,
) -> Plan:
    """Read one query.

    Parameters
    ----------
    text
        Spark SQL: a SELECT, a set operation, VALUES, with or without WITH.
    schema_of
        Gives the schema of a table by name, version and timestamp (both None: the newest version); it raises
        `NotFoundError` for a table that is not there.
    parameters
        A mapping for ``:name``, or a sequence for ``?``.
    functions
        Gives the schema of a table function by name and constant arguments; it raises `Refused` for one it does not
        know.
    user_functions
        Functions in Python that the query may call by their names.
    now
        The instant that ``current_timestamp()`` and its kin stand for (default: when the query is read).

    >>> import pyarrow as pa
    >>> schema = pa.schema([("a", pa.int32())])
    >>> plan = parse_query("SELECT a + :more AS b FROM t VERSION AS OF 3", lambda *_: schema, {"more": 2})
    >>> print(plan.dump(), end="")
    project (a#1 + 2) as b#2
      scan t@3 [a#1]
    """
    scanned = scan(text, query=True)
    if not scanned.sql.strip():
        raise ExpressionError.syntax(text, "the query is empty")
    given: Parameters = {} if parameters is None else parameters
    context = Context(text, scanned, schema_of, given, read_query, functions, functions_by_name(user_functions))
    if now is not None:
        context.now = now
    try:
        parsed = parse_text(text, scanned)
    except ExpressionError as error:
        raise error.advise(Action("spark_if", also=True, when="if Spark takes it as it is")) from None
    except RecursionError:
        raise _too_deep(text) from None
    try:
        plan = lowered_plan(read_query(context, parsed, None))
    except Wrong as wrong:
        raise ExpressionError.wrong(text, wrong.what, wrong.hint, wrong.position) from None
    except Refused as refused:
        raise ExpressionError.refused(text, refused.what, refused.hint, refused.position) from None
    except SchemaError as error:
        raise error.placed_at(text, None) if error.where is None else error from None
    except RecursionError:
        raise _too_deep(text) from None
    unused = [name for name in (given if isinstance(given, dict) else range(len(given))) if name not in context.used]
    if unused:
        raise InputError.bad_argument("parameters", unused[0], "a parameter that the query names")
    return plan


def _too_deep(text: str) -> ExpressionError:
    return ExpressionError.refused(text, "a query nested this deep", "split it with WITH")
