"""Native SQL: an engine's own dialect, over the lake's tables as they are now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.base.errors import Action, ExpressionError, HeadwaterError, InputError, NotFoundError
from headwater.lake.published import check_built
from headwater.query.result import Result
from headwater.query.session import Session
from headwater.query.sources import Source, TableSource
from headwater.sql.fragment import Parameters

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake

__all__ = ["run_native"]

_NO_TABLE = re.compile(
    r"table (?:with name )?['\"]?(?:datafusion\.public\.)?([^\s'\"]+)['\"]? (?:does not exist|not found)",
    re.IGNORECASE,
)


def run_native(session: Session, text: str, parameters: Parameters | None) -> Result:
    """Run one query in the engine's own SQL."""
    if parameters:
        raise InputError.bad_argument("parameters", parameters, "none: only Spark SQL has them here")
    engine = session.engine
    lake = session.lake
    known = {name.lower(): name for name in lake.catalog.names()}
    tables: dict[str, Source] = {}
    missing: list[str] = []
    try:
        for written in engine.named_tables(text):
            name = known.get(written.lower())
            if name is None:
                missing.append(written)
                continue
            now = lake.table(name).snapshot
            check_built(name, now)
            tables[written] = TableSource(now, tuple(now.schema.names))
        running = engine.native(text, tables)
    except ExpressionError as error:
        raise _told(error, text, missing, lake) from None
    return Result(running.reader, statement="SELECT", cancel=running.cancel, close=running.close)


def _told(error: ExpressionError, text: str, missing: list[str], lake: OpenLake) -> HeadwaterError:
    """An error of the engine; one about a table that is not there names those that are."""
    if error.code != "E1309":
        return error
    named = _NO_TABLE.search(error.message)
    if named is not None:
        name = next((m for m in missing if named[1].lower() in (m.lower(), m.lower().rpartition(".")[2])), None)
        if name is not None:
            at = text.lower().find(name.lower())
            found = NotFoundError.table(name, lake.catalog.names(), lake.location)
            return found.placed_at(text, at) if at >= 0 else found
    return error if error.advice else error.advise(Action("native_query"))
