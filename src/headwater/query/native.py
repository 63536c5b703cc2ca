"""Native SQL: an engine's own dialect, over the lake's tables as they are now."""

from __future__ import annotations

from headwater.base.errors import InputError, UnsupportedError
from headwater.query.result import Result
from headwater.query.session import Session
from headwater.query.sources import Source, TableSource
from headwater.sql.fragment import Parameters

__all__ = ["run_native"]


def run_native(session: Session, text: str, parameters: Parameters | None) -> Result:
    """Run one query in the engine's own SQL."""
    if parameters:
        raise InputError.bad_argument("parameters", parameters, 'none: they are for dialect="spark"')
    engine = session.engine
    named_tables, native = getattr(engine, "named_tables", None), getattr(engine, "native", None)
    if named_tables is None or native is None:
        raise UnsupportedError.native(engine.name)
    lake = session.lake
    known = {name.lower(): name for name in lake.tables()}
    tables: dict[str, Source] = {}
    for written in named_tables(text):
        name = known.get(written.lower())
        if name is not None:
            now = lake.table(name).snapshot
            tables[written] = TableSource(now, tuple(now.schema.names))
    running = native(text, tables)
    return Result(running.reader, statement="SELECT", cancel=running.cancel, close=running.close)
