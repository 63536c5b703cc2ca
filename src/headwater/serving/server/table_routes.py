"""The routes about tables: list and describe them, create and drop them, write and delete their rows.

Only tables that were made by this API take rows by it; the others follow their sources. What changes anything runs in a
thread, since it writes files.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, RequestError
from headwater.base.frontier import Frontier
from headwater.serving.dtypes import dtype_name, parse_dtype
from headwater.serving.server.fetching import header_text, read_object
from headwater.serving.server.media import body_form
from headwater.serving.server.murr import table_schema
from headwater.serving.server.reply import JSON, Reply
from headwater.serving.server.rows_body import ROW_FORMS, read_deleted, read_rows
from headwater.serving.server.served import NewTable, Served, TableWrite
from headwater.serving.server.target import query_texts, read_field

if TYPE_CHECKING:
    from headwater.serving.server.call import Call
    from headwater.serving.version import TableVersion

__all__ = ["compact", "create", "delete_rows", "describe", "drop", "list_tables", "schema", "versions", "write_rows"]

_DEFINITION = ("key", "columns", "ttl", "event_time")
_COLUMN = ("dtype", "nullable", "key", "strict")
_MOST_COLUMNS = 10_000
_LONGEST_HEADER = 8_192
"""A list of very many tables has their frontiers in its body alone."""


async def list_tables(call: Call) -> Reply:
    """All tables that the sender may read."""
    query_texts(call.query, ())
    tables = call.service.tables.by_name
    visible = call.service.access.visible(call.headers, "read", sorted(tables))
    listed = [(tables[name], tables[name].following.current) for name in visible if name in tables]
    loaded = [version for _, version in listed if version is not None]
    if call.is_murr:
        reply = _json({served.name: table_schema(version) for served, version in listed if version is not None})
    else:
        reply = _json({"tables": [_facts_at(served, version) for served, version in listed]})
    frontier = header_text(str(_reached_by_all(loaded)))
    if 0 < len(frontier) <= _LONGEST_HEADER:
        reply.headers += ((b"x-frontier", frontier),)
    return reply


def _reached_by_all(versions: Iterable[TableVersion]) -> Frontier:
    """Of each source the version that all tables have reached which it goes into."""
    found: dict[str, int] = {}
    for one in versions:
        for source, number in one.frontier.items():
            found[source] = min(number, found.get(source, number))
    return Frontier(found)


async def describe(call: Call) -> Reply:
    """What is known of a table."""
    call.require("read")
    query_texts(call.query, ())
    served = await call.served()
    return _json(_facts(served), served.following.current)


async def schema(call: Call) -> Reply:
    """The key and the columns of a table."""
    call.require("read")
    query_texts(call.query, ())
    version = (await call.loaded()).following.current
    assert version is not None
    return _json(table_schema(version) if call.is_murr else _schema_of(version), version)


async def versions(call: Call) -> Reply:
    """The versions that can still answer, newest first."""
    call.require("read")
    query_texts(call.query, ())
    served = await call.served()
    recent = served.following.recent
    return _json({"versions": [_version_facts(one) for one in recent]}, recent[0] if recent else None)


async def create(call: Call) -> Reply:
    """Make a table whose rows come by this API."""
    call.require("admin")
    query_texts(call.query, ())
    body_form(call.headers.get(b"content-type"), ("json",))
    definition = _read_definition(await call.body())
    name = call.table
    assert name is not None
    tables = call.service.tables
    await call.in_thread(lambda: tables.backing.create(name, definition))
    served = await call.in_thread(lambda: tables.look_for(name))
    assert served is not None
    reply = _json(_facts(served), served.following.current)
    reply.status = 201
    return reply


async def drop(call: Call) -> Reply:
    """Delete a table that was made by this API."""
    call.require("admin")
    query_texts(call.query, ())
    served = await call.served()
    tables = call.service.tables
    await call.in_thread(lambda: tables.backing.drop(served.name))
    tables.forget(served.name)
    return Reply(204, ())


async def write_rows(call: Call) -> Reply:
    """Insert rows, or replace those with the same keys."""
    call.require("write")
    query_texts(call.query, ())
    form = body_form(call.headers.get(b"content-type"), ROW_FORMS)
    served = await call.served()
    _check_writable(served)
    body, limits, tables = await call.body(), call.service.options.limits, call.service.tables

    def work() -> TableWrite:
        known = tables.backing.definition(served.name)
        rows = read_rows(form, body, known.schema, limits, ignore_others=call.is_murr)
        return tables.backing.write(served.name, rows)

    done = await call.in_thread(work)
    served.metrics.wrote(done.rows)
    return await _written(call, served, done, {"rows": done.rows})


async def delete_rows(call: Call) -> Reply:
    """Delete rows by their keys."""
    call.require("write")
    form = body_form(call.headers.get(b"content-type"), ROW_FORMS)
    query_texts(call.query, ())
    served = await call.served()
    _check_writable(served)
    body, limits, tables = await call.body(), call.service.options.limits, call.service.tables

    def work() -> TableWrite:
        known = tables.backing.definition(served.name)
        return tables.backing.delete(served.name, read_deleted(form, body, known.key, known.schema, limits))

    done = await call.in_thread(work)
    served.metrics.deleted(done.rows)
    return await _written(call, served, done, {"keys": done.rows})


async def compact(call: Call) -> Reply:
    """Let the base take in the overlays now, as after many rows were written."""
    call.require("write")
    query_texts(call.query, ())
    served = await call.served()
    _check_writable(served)
    tables = call.service.tables

    def work() -> None:
        tables.backing.compact(served.name)
        served.advance()

    await call.in_thread(work)
    return _json(_facts(served), served.following.current)


async def _written(call: Call, served: Served, done: TableWrite, facts: dict[str, Any]) -> Reply:
    """The answer to a write, once this process serves it."""
    await call.in_thread(served.advance)
    headers = (JSON, (b"x-frontier", header_text(done.frontier)), (b"x-version", str(done.version).encode()))
    return Reply(200, headers, orjson.dumps({**facts, "version": done.version, "frontier": done.frontier}))


# -- what is told of a table -------------------------------------------------------------------------------------------


def _json(document: Any, version: TableVersion | None = None) -> Reply:
    headers: tuple[tuple[bytes, bytes], ...] = (JSON,)
    if version is not None:
        headers += ((b"x-frontier", header_text(str(version.frontier))), (b"x-version", str(version.number).encode()))
    return Reply(200, headers, orjson.dumps(document))


def _check_writable(served: Served) -> None:
    if not served.facts.writable:
        raise RequestError.read_only(served.name, "they come from its source")


def _facts(served: Served) -> dict[str, Any]:
    return _facts_at(served, served.following.current)


def _facts_at(served: Served, version: TableVersion | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": served.name,
        "loaded": version is not None,
        "writable": served.facts.writable,
        "problem": served.problem,
    }
    if version is None:
        return about
    return {**about, **_schema_of(version), **_version_facts(version)}


def _schema_of(version: TableVersion) -> dict[str, Any]:
    return {
        "key": list(version.key),
        "columns": {f.name: {"dtype": dtype_name(f.type), "nullable": f.nullable} for f in version.schema},
        "ttl_s": None if version.ttl_ms is None else version.ttl_ms / 1000,
        "event_time": version.event_time,
    }


def _version_facts(version: TableVersion) -> dict[str, Any]:
    committed = datetime.fromtimestamp(version.committed_ms / 1000, UTC)
    return {
        "version": version.number,
        "frontier": str(version.frontier),
        "reach": str(version.reach),
        "committed": committed.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "rows": version.rows,
        "overlay_rows": version.overlay_rows,
        "layers": version.layers,
        "bytes": version.bytes,
    }


# -- definitions -------------------------------------------------------------------------------------------------------


def _read_definition(body: bytes) -> NewTable:
    """What a table is to be like: key, columns, and how old rows may be."""
    document = read_object(body, _DEFINITION)
    columns = document.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise RequestError.parameter("columns", str(columns), 'columns by name: {"id": {"dtype": "int64"}}')
    key = document.get("key")
    if isinstance(key, str):
        key = [key]
    marked = [name for name, given in columns.items() if isinstance(given, dict) and given.get("key") is True]
    key = marked if key is None else key
    if not isinstance(key, list) or not key or not all(isinstance(name, str) for name in key):
        raise RequestError.parameter("key", str(key), "the name of a column, or several in an array")
    if len(set(key)) != len(key):
        raise RequestError.parameter("key", ", ".join(key), "each column once")
    if marked and set(marked) != set(key):
        raise RequestError.parameter("key", ", ".join(key), f"the columns that say so themselves: {', '.join(marked)}")
    if len(columns) > _MOST_COLUMNS:
        raise RequestError.parameter("columns", f"{len(columns)} columns", f"{_MOST_COLUMNS} at most")
    for name in key:
        if name not in columns:
            raise NotFoundError.column(name, list(columns), where="key")
    names = [*key, *(name for name in columns if name not in key)]
    fields = [_field(name, columns[name], is_key=name in key) for name in names]
    event_time = document.get("event_time")
    if event_time is not None and (not isinstance(event_time, str) or event_time not in columns):
        raise RequestError.parameter("event_time", str(event_time), "the name of a column")
    return NewTable(tuple(key), pa.schema(fields), _ttl_ms(document.get("ttl")), event_time)


def _field(name: str, given: Any, *, is_key: bool) -> pa.Field:
    if not name or name.startswith("_") or len(name) > 200 or not name.isprintable():
        raise RequestError.parameter("columns", name, "names that do not begin with _")
    if isinstance(given, str):
        given = {"dtype": given}
    if not isinstance(given, dict) or not isinstance(given.get("dtype"), str):
        raise RequestError.parameter(f"columns.{name}", str(given), 'a type: {"dtype": "float32"}')
    for option in given:
        if option not in _COLUMN:
            raise RequestError.unknown_parameter(option, _COLUMN)
    if not isinstance(given.get("key", False), bool):
        raise RequestError.parameter(f"columns.{name}.key", str(given["key"]), "true or false")
    if given.get("strict", True) is not True:
        raise RequestError.parameter(f"columns.{name}.strict", str(given["strict"]), "true: cast values before writing")
    nullable = given.get("nullable", not is_key)
    if not isinstance(nullable, bool) or (nullable and is_key and "nullable" in given):
        raise RequestError.parameter(f"columns.{name}.nullable", str(nullable), "true or false; a key is never null")
    try:
        kind = parse_dtype(given["dtype"])
    except InputError as error:
        raise RequestError.parameter(f"columns.{name}.dtype", given["dtype"], _expected(error)) from None
    if is_key and pa.types.is_list(kind):
        raise RequestError.parameter(f"columns.{name}.dtype", given["dtype"], "a type that is no list, for a key")
    return pa.field(name, kind, nullable)


def _expected(error: InputError) -> str:
    return (error.hint or "a type").removeprefix("expected ")


def _ttl_ms(given: Any) -> int | None:
    """How old a row may be: a number of seconds."""
    if given is None:
        return None
    seconds: float = read_field("wait", given) if isinstance(given, (int, float)) else 0.0
    if not 0 < seconds < 1e10 or isinstance(given, bool):
        raise RequestError.parameter("ttl", str(given), "a number of seconds")
    return round(seconds * 1000)
