"""What an online table is made of: the source, its key and columns, and how old a row may be.

It is a part of the files of the record log (`headwater.derived.record_log`), version 1::

    {"version": 1, "source": "<table>", "key": ["<column>", …], "columns": ["<column>", …],
     "schema": "<Delta schema as JSON>", "ttl_ms": <n> or null, "event_time": "<column>" or null,
     "order_by": "<column>" or null, "parts": <n>}

The schema is that of the source on the day of the definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa

from headwater.base.durations import duration_words, parse_duration_ms
from headwater.base.errors import InputError, NotFoundError
from headwater.base.schema import Schema
from headwater.derived.outline import Shape
from headwater.derived.sources import Input
from headwater.lake.snapshot import Snapshot
from headwater.serving.building import stored_schema
from headwater.serving.record_writer import order_words

__all__ = ["Definition", "define"]

_VERSION = 1
_MOST_PARTS = 4_096


@dataclass(frozen=True, slots=True)
class Definition:
    """Rows of a table by a key."""

    source: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    schema: str
    ttl_ms: int | None = None
    event_time: str | None = None
    order_by: str | None = None
    parts: int = 0
    """How many files a base has; 0: one, or by the number of rows where Spark builds it."""

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Definition:
        """Read what `to_json` gives."""
        assert found["version"] == _VERSION, "there is one version so far"
        rest = {name: found[name] for name in ("source", "schema", "ttl_ms", "event_time", "order_by", "parts")}
        return cls(key=tuple(found["key"]), columns=tuple(found["columns"]), **rest)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"version": _VERSION, **asdict(self)}

    @property
    def input(self) -> Input:
        """What is read of the source."""
        return Input(self.source, self.source, _arrow(self.schema), self.read)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: the key, the columns, and those that decide about rows."""
        more = (c for c in (self.event_time, self.order_by) if c is not None)
        return tuple(dict.fromkeys((*self.key, *self.columns, *more)))

    @property
    def stored(self) -> pa.Schema:
        """The columns as they are stored, the key first."""
        return _stored(self.schema, self.read, self.key, self.source)

    @property
    def meaning(self) -> tuple[object, ...]:
        """What two definitions have in common that are the same."""
        return self.source, self.key, self.columns, self.ttl_ms, self.event_time, self.order_by, self.parts

    def statement(self, name: str) -> str:
        """The statement that makes such a table."""
        text = f"CREATE ONLINE TABLE {name} ({', '.join(self.columns)}) FROM {self.source} KEY ({', '.join(self.key)})"
        if self.order_by:
            text += f" ORDER BY {self.order_by}"
        if self.event_time:
            text += f" EVENT TIME {self.event_time}"
        if self.ttl_ms:
            text += f" TTL '{duration_words(self.ttl_ms * 1000)}'"
        return text

    def __str__(self) -> str:
        text = f"{', '.join(self.columns)} of {self.source} by {', '.join(self.key)}"
        if self.order_by:
            text += f", the row with the largest {self.order_by}"
        return f"{text}, for {duration_words(self.ttl_ms * 1000)}" if self.ttl_ms else text


def define(
    base: Snapshot | Shape,
    source: str,
    *,
    key: str | Sequence[str],
    columns: Sequence[str] | None,
    ttl: str | timedelta | None,
    event_time: str | None,
    order_by: str | None,
    parts: int,
) -> Definition:
    """A definition, with everything checked that can be without reading rows."""
    schema, where = base.schema, base.where
    keys = tuple(schema.field(c, where).name for c in ([key] if isinstance(key, str) else key))
    if not keys or len(set(keys)) != len(keys):
        raise InputError.bad_argument("key", key, "the names of the columns that identify a row, each once")
    if columns is None:
        names = tuple(c for c in schema.names if c not in keys)
    else:
        names = tuple(dict.fromkeys(schema.field(c, where).name for c in columns))
        names = tuple(c for c in names if c not in keys)
    named = [schema.field(c, where).name if c is not None else None for c in (event_time, order_by)]
    if ttl is not None and event_time is None:
        raise InputError.bad_argument("ttl", ttl, "with event_time=, the column that says how old a row is")
    if not isinstance(parts, int) or not 0 <= parts <= _MOST_PARTS:
        raise InputError.bad_argument("parts", parts, f"a number up to {_MOST_PARTS}")
    made = Definition(
        source,
        keys,
        names,
        schema.to_json(),
        None if ttl is None else parse_duration_ms(ttl, "ttl"),
        named[0],
        named[1],
        parts,
    )
    stored = made.stored
    reserved = [c for c in stored.names if c.startswith("_") and c in _RESERVED]
    if reserved:
        raise InputError.bad_argument(
            "columns", reserved[0], "another name: answers have a column of their own by this one"
        )
    if named[0] is not None and not _is_time(stored.field(named[0]).type):
        raise InputError.bad_argument("event_time", named[0], "a column of type timestamp or date")
    if named[1] is not None:
        order_words(pa.array([], stored.field(named[1]).type), named[1], where)
    if not stored.names:
        raise NotFoundError.column("", schema.names, where=where)
    return made


@lru_cache(maxsize=64)
def _stored(schema: str, read: tuple[str, ...], key: tuple[str, ...], source: str) -> pa.Schema:
    known = _arrow(schema)
    return stored_schema(pa.schema([known.field(c) for c in read]), key, source)


@lru_cache(maxsize=64)
def _arrow(schema: str) -> pa.Schema:
    return Schema.from_json(schema).arrow


_RESERVED = ("_found", "_status", "_idx", "_event_time")


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
