"""Functions that DuckDB cannot express, written in Python over Arrow columns.

The problem: Java's patterns for dates, its case mapping, its regular expressions and Spark's hashes have no form in
DuckDB's SQL. The idea: one Python function a value, wrapped to take and give Arrow columns, under a name that begins
with ``hw_``. A form writes that name into the SQL; whoever runs the SQL calls `install(connection, sql)` first, which
registers just those functions that the text names. DuckDB wants concrete types, so a function is registered once for
each signature.

Invariants:
1. A function is pure: the same arguments give the same value, and a null argument gives a null (unless ``strict`` is
   off).
2. A value that Spark refuses is refused with `Failed`, whose words reach the user through `evaluation.failure`.
3. Nothing outlives the interpreter: a connection with Python functions that is still open at exit would make nanobind
   complain on stderr, so at exit the functions are taken off again. For that, ``connection`` is the one that owns the
   database, not a cursor that is closed after the query; its cursors see the functions too.
"""

from __future__ import annotations

import atexit
import inspect
import re
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors.expression import REMEDY
from headwater.base.schema import duckdb_type

if TYPE_CHECKING:
    import duckdb

__all__ = ["UDFS", "Failed", "Udf", "define", "install", "used"]

# The same mark as `casts.ERROR_MARK`, which imports more than this file may.
_MARK = "headwater!"
_NAME = re.compile(r"\bhw_\w+")


class Failed(ValueError):
    """A value for which Spark stops with an error; ``remedy`` says what to do where the expression is at fault."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{_MARK}{reason}{REMEDY}{remedy}" if remedy else f"{_MARK}{reason}")


@dataclass(frozen=True, slots=True)
class Udf:
    """``call`` takes Python values, one a parameter; ``parameters`` are DuckDB's names of their types."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    arrow: pa.DataType
    call: Callable[..., Any]
    strict: bool = True

    def vectorised(self, *columns: Any) -> pa.Array:
        """The function over Arrow columns, which is what DuckDB calls.

        >>> UDFS["hw_test_double"] = Udf("hw_test_double", ("INTEGER",), "INTEGER", pa.int32(), lambda x: 2 * x)
        >>> UDFS.pop("hw_test_double").vectorised(pa.array([1, None])).to_pylist()
        [2, None]
        """
        call, strict = self.call, self.strict
        rows = zip(*(c.to_pylist() for c in columns), strict=True)
        if len(columns) == 1 and strict:
            return pa.array([None if x is None else call(x) for (x,) in rows], self.arrow)
        values = [None if strict and None in row else call(*row) for row in rows]
        return pa.array(values, self.arrow)


UDFS: dict[str, Udf] = {}


def define(name: str, parameters: str, returns: pa.DataType, call: Callable[..., Any], *, strict: bool = True) -> str:
    """Enter a function into the registry, and give its name in SQL; parameters are DuckDB's type names.

    >>> define("test_more", "INTEGER", pa.int32(), lambda x: x + 1)
    'hw_test_more'
    >>> del UDFS["hw_test_more"]
    """
    full = f"hw_{name}"
    found = Udf(full, tuple(parameters.split()), duckdb_type(returns), returns, call, strict)
    known = UDFS.setdefault(full, found)
    assert (known.parameters, known.returns) == (found.parameters, found.returns), f"{full} has two signatures"
    return full


def used(sql: str) -> list[Udf]:
    """The functions that a text of DuckDB's SQL names.

    >>> used("SELECT hw_nothing(1)")
    []
    """
    return [UDFS[name] for name in dict.fromkeys(_NAME.findall(sql)) if name in UDFS]


def _with_arity(udf: Udf) -> Callable[..., pa.Array]:
    """The function with as many parameters as DuckDB is told of: it looks."""

    def call(*columns: Any) -> pa.Array:
        return udf.vectorised(*columns)

    kind = inspect.Parameter.POSITIONAL_ONLY
    names = [inspect.Parameter(f"x{i}", kind) for i in range(len(udf.parameters))]
    call.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return call


_lock = threading.Lock()
_installed: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def install(connection: duckdb.DuckDBPyConnection, sql: str | None = None) -> None:
    """Register the functions that ``sql`` names (all, when it is None) on the connection that owns the database.

    >>> import duckdb
    >>> with duckdb.connect(":memory:") as con:
    ...     install(con, "SELECT 1")
    """
    wanted: Iterable[Udf] = UDFS.values() if sql is None else used(sql)
    wanted = list(wanted)
    if not wanted:
        return
    import duckdb

    with _lock:
        known = _installed.setdefault(connection, set())
        for udf in wanted:
            if udf.name in known:
                continue
            try:
                connection.create_function(  # type: ignore[call-overload]
                    udf.name,
                    _with_arity(udf),
                    list(udf.parameters),
                    udf.returns,
                    type="arrow",
                    null_handling="special",
                )
            except (duckdb.CatalogException, duckdb.NotImplementedException) as error:
                # Another connection to the same database was first.
                if "already" not in str(error):
                    raise
            known.add(udf.name)


@atexit.register
def _take_off() -> None:
    import duckdb

    for connection, names in list(_installed.items()):
        for name in names:
            try:
                connection.remove_function(name)
            except duckdb.Error:
                break  # it is closed
