"""The columns of a view's table: what they may be called, and of which types they may be.

What follows a view reads its changes, in which Delta and Headwater put columns of their own beside those of the table.
So a view can have none of those names.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import HeadwaterError, SchemaError
from headwater.base.schema import normalize_type
from headwater.lake.changes import WEIGHT
from headwater.lake.data_files import CHANGE_TYPE
from headwater.lake.feed import COMMIT_TIMESTAMP, COMMIT_VERSION
from headwater.sql.select_items import check_names
from headwater.sql.tokens import tokenize

__all__ = ["check_output", "place_of"]

_TAKEN = {CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP, WEIGHT}


def check_output(schema: pa.Schema, sql: str) -> None:
    """Raise if a table cannot have the columns that a query gives."""
    check_names(schema.names, sql)
    for f in schema:
        if f.name.lower() in _TAKEN:
            raise SchemaError.reserved_column(f.name).placed_at(sql, place_of(sql, f.name))
        try:
            normalize_type(f.type)
        except HeadwaterError as e:
            raise e.placed_at(sql, place_of(sql, f.name)) from None


def place_of(sql: str, name: str) -> int | None:
    """Where a name stands in a text; the last place, since what is outermost stands last. None where it does not.

    >>> place_of("SELECT a, b AS A FROM t", "a")
    15
    """
    last = name.rpartition(".")[2].lower()
    found = [t.start for t in tokenize(sql) if t.kind in ("word", "name") and str(t.value).lower() == last]
    return found[-1] if found else None
