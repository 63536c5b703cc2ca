"""Running SQL: a script is read statement by statement, and each kind of statement has one function that runs it.

`run` is open: a room that brings a statement of its own registers how it runs with ``@run.register``, and how it
is read with `headwater.sql.statements.reader`. The statements of this room are in `headwater.query.statements`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import HeadwaterError, InputError
from headwater.query.engines.engine import Engine
from headwater.query.result import Result
from headwater.query.session import Session
from headwater.sql.fragment import Parameters
from headwater.sql.statements import Statement, read_script

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["GUARDS", "EngineName", "run", "run_script", "run_text"]

EngineName = Literal["duckdb", "datafusion", "spark"]
Dialect = Literal["spark", "native"]
_ENGINES = {
    "duckdb": ("headwater.query.engines.duckdb", "DuckDBEngine"),
    "datafusion": ("headwater.query.engines.datafusion", "DataFusionEngine"),
    "spark": ("headwater.query.spark.engine", "SparkEngine"),
}


GUARDS: list[Callable[[Statement, Session], None]] = []
"""Called with each statement before it runs; one that must not run is stopped by an error."""


@singledispatch
def run(statement: Statement, session: Session) -> Result:
    """Run one statement."""
    raise NotImplementedError(f"{type(statement).__name__} is read, but nobody has registered how it runs")


def engine_of(name: str) -> Engine:
    """The engine of that name."""
    if name not in _ENGINES:
        raise InputError.bad_argument("engine", name, '"duckdb", "datafusion" or "spark"')
    module, kind = _ENGINES[name]
    engine: Engine = getattr(import_module(module), kind)()
    return engine


def run_script(
    lake: DerivingLake,
    text: str,
    *,
    engine: EngineName = "duckdb",
    dialect: Dialect = "spark",
    parameters: Parameters | None = None,
) -> Iterator[Result]:
    """Run the statements of a script one after the other, each when its result is asked for.

    All of them are read before the first one runs, so that a script with a misspelled statement changes nothing.
    """
    try:
        yield from _results(lake, text, engine, dialect, parameters)
    except HeadwaterError as error:
        error.on("sql")
        raise


def _results(
    lake: DerivingLake, text: str, engine: EngineName, dialect: Dialect, parameters: Parameters | None
) -> Iterator[Result]:
    if not isinstance(text, str):
        raise InputError.bad_argument("text", text, "SQL text")
    if dialect not in ("spark", "native"):
        raise InputError.bad_argument("dialect", dialect, '"spark" or "native"')
    session = Session(lake, engine_of(engine))
    if dialect == "native":
        from headwater.query.native import run_native

        yield run_native(session, text, parameters)
        return
    import_module("headwater.query.statements")
    for statement in read_script(text, parameters):
        for guard in GUARDS:
            guard(statement, session)
        yield run(statement, session)


def run_text(
    lake: DerivingLake,
    text: str,
    *,
    engine: EngineName = "duckdb",
    dialect: Dialect = "spark",
    parameters: Parameters | None = None,
) -> Result:
    """Run a script, and give the result of its last statement."""
    last: Result | None = None
    for result in run_script(lake, text, engine=engine, dialect=dialect, parameters=parameters):
        if last is not None:
            last.close()
        last = result
    if last is None:
        raise InputError.bad_argument("text", text, "at least one statement")
    return last
