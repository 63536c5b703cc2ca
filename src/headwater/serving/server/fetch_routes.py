"""The routes that fetch: one table, or several of one frontier.

One table is `fetching`, which this waits for where it cannot answer at once: for a frontier, or for a table that
another process has just made. Large requests are computed in a thread, so that small ones go on.

Several tables are looked up by the same keys, each by its own key columns, at the newest versions that agree on every
source that two of them share (`common_versions`). Their columns stand in one batch, as `table.column`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from headwater.base.errors import HeadwaterError, LimitError, NotFoundError, RequestError
from headwater.base.frontier import Frontier
from headwater.serving.frame_reading import read_batches
from headwater.serving.projection import FetchOptions
from headwater.serving.server.answer_body import BESIDE, parquet_bytes
from headwater.serving.server.fetching import header_text, json_keys, read_object
from headwater.serving.server.json_values import json_column
from headwater.serving.server.media import MEDIA, answer_form, body_form
from headwater.serving.server.reply import Reply
from headwater.serving.server.served import Served, check_reachable, reached
from headwater.serving.server.target import Target, check_table_name, query_texts, read_field, read_target
from headwater.serving.store import common_versions

if TYPE_CHECKING:
    from headwater.serving.server.call import Call
    from headwater.serving.version import TableVersion

__all__ = ["fetch", "fetch_several"]

_IN_THREAD_BYTES = 256 << 10
_MOST_TABLES = 64
_OPTIONS = ("tables", "found", "status", "event_time", "min_frontier", "wait", "orient")
_FIELDS = ("keys", *_OPTIONS)
_NUMPY = orjson.OPT_SERIALIZE_NUMPY
_FETCH_FORMS = ("arrow", "json")


async def fetch(call: Call) -> Reply:
    """Columns of one table for some keys."""
    service = call.service
    call.require("read")
    assert call.table is not None
    target = read_target(call.table, call.query, murr=call.is_murr)
    served = await call.loaded(call.table)
    body = await call.body()
    found = await _reply(call, target, body)
    if found is not None:
        return found
    target = _asked(target, call, body)
    if target.min_frontier is None:
        raise NotFoundError.table(call.table, [], "this server")  # it was dropped in between
    wanted = Frontier.parse(target.min_frontier)
    limit = service.options.limits.max_wait_s
    wait = min(limit if target.wait is None else target.wait, limit)
    version = served.following.current
    if version is not None:
        check_reachable(version, wanted)
    if not await service.tables.wait_until(lambda: _has(served, wanted), wait):
        version = served.following.current
        raise LimitError.behind(str(wanted), "" if version is None else str(version.reach), wait)
    found = await _reply(call, target, body)
    if found is None:
        raise LimitError.behind(str(wanted), "", wait)
    return found


def _has(served: Served, wanted: Frontier) -> bool:
    version = served.following.current
    return version is not None and reached(version, wanted)


async def _reply(call: Call, target: Target, body: bytes) -> Reply | None:
    fetching = call.service.fetching
    head = fetching.head(target, call.headers)
    found = (
        fetching.reply(head, body)
        if len(body) <= _IN_THREAD_BYTES
        else await call.in_thread(lambda: fetching.reply(head, body))
    )
    call.is_counted = found is not None
    return found


def _asked(target: Target, call: Call, body: bytes) -> Target:
    """What is asked, with what a JSON body says of it; that it can be read is known already."""
    if body_form(call.headers.get(b"content-type"), _FETCH_FORMS) == "arrow":
        return target
    return target.with_fields(orjson.loads(body))


# -- several tables ----------------------------------------------------------------------------------------------------


async def fetch_several(call: Call) -> Reply:
    """Columns of several tables for the same keys, all of one frontier."""
    sent = body_form(call.headers.get(b"content-type"), _FETCH_FORMS)
    form = answer_form(call.headers.get(b"accept"), sent)
    fields: dict[str, Any] = {}
    for name, text in query_texts(call.query, _OPTIONS).items():
        fields[name] = _json_text(text) if name == "tables" else text
    body = await call.body()
    if sent == "json":
        document = read_object(body, _FIELDS)
        fields |= document
        keys: Any = fields.pop("keys", None)
    else:
        keys = await call.in_thread(lambda: read_batches(body))
    wanted = _tables(fields.get("tables"))
    options = {name: read_field(name, fields[name]) for name in _OPTIONS[1:] if name in fields}
    for name in wanted:
        call.service.access.require(call.headers, "read", name)
    tables = [await call.loaded(name) for name in wanted]
    versions = await _common(call, tables, options)
    began = time.perf_counter_ns()
    work = lambda: _fetched(call, tables, versions, wanted, keys, options)  # noqa: E731
    names, arrays, counts = await call.in_thread(work)
    for served, (count, missing) in zip(tables, counts, strict=True):
        served.metrics.fetched(200, count, missing, time.perf_counter_ns() - began)
    frontier = _joined(versions)
    numbers = {served.name: version.number for served, version in zip(tables, versions, strict=True)}
    headers = (
        (b"content-type", MEDIA[form]),
        (b"x-frontier", header_text(str(frontier))),
        (b"x-version", " ".join(f"{name}@{number}" for name, number in sorted(numbers.items())).encode()),
    )
    facts = {"frontier": str(frontier), "versions": numbers}
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    if form == "json":
        written = _document(batch, facts, by_row=options.get("orient") == "rows")
    else:
        written = parquet_bytes(batch) if form == "parquet" else _stream(batch)
    return Reply(200, headers, written)


def _json_text(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RequestError.parameter("tables", text, 'JSON such as {"spend": ["total"], "risk": null}') from None


def _tables(given: Any) -> dict[str, tuple[str, ...] | None]:
    """The tables and the columns of each that are asked for."""
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        given = dict.fromkeys(given)
    if not isinstance(given, dict) or not given:
        raise RequestError.parameter("tables", str(given), "names of tables, each with its columns or null")
    if len(given) > _MOST_TABLES:
        raise LimitError.keys(len(given), _MOST_TABLES)
    return {check_table_name(name): read_field("columns", columns) for name, columns in given.items()}


async def _common(call: Call, tables: list[Served], options: Mapping[str, Any]) -> tuple[TableVersion, ...]:
    """Versions of one frontier, and not before the one that is asked for; waits for them if that is wanted."""
    limit = call.service.options.limits.max_wait_s
    text = options.get("min_frontier")
    wanted = None if text is None else Frontier.parse(text)
    # Without a frontier to wait for, tables that are being refreshed one after the other agree in a moment.
    wait = min(options.get("wait", limit if wanted is not None else 0.0), limit)
    if wanted is not None:
        known = {name for one in tables if one.following.current for name in (*one.following.current.reach, one.name)}
        if not set(wanted) <= known:
            raise RequestError.unrelated_frontier(str(wanted), ", ".join(t.name for t in tables), sorted(known))
    found: tuple[TableVersion, ...] | None = None

    def agree() -> bool:
        nonlocal found
        found = common_versions([one.following for one in tables])
        return found is not None and (wanted is None or _covers(found, wanted))

    if not await call.service.tables.wait_until(agree, wait):
        if found is not None and wanted is not None:
            raise LimitError.behind(str(wanted), str(_joined(found)), wait)
        raise LimitError.no_common_frontier([one.name for one in tables])
    assert found is not None
    return found


def _covers(versions: tuple[TableVersion, ...], wanted: Frontier) -> bool:
    """Whether each entry is reached by every version that knows it."""
    for table, number in wanted.items():
        have = [v.reach.get(table, v.number) for v in versions if table in v.reach or v.name == table]
        if any(one < number for one in have):
            return False
    return True


def _joined(versions: tuple[TableVersion, ...]) -> Frontier:
    found = Frontier()
    for version in versions:
        try:
            found |= version.frontier
        except HeadwaterError:  # a source was dropped and made again, and only some tables know
            raise LimitError.no_common_frontier([one.name for one in versions]) from None
    return found


def _fetched(
    call: Call,
    tables: list[Served],
    versions: tuple[TableVersion, ...],
    wanted: Mapping[str, tuple[str, ...] | None],
    keys: Any,
    options: Mapping[str, Any],
) -> tuple[list[str], list[pa.Array], list[tuple[int, int]]]:
    plain = FetchOptions(**{name: options[name] for name in ("found", "status", "event_time") if name in options})
    most = call.service.options.limits.max_keys // len(tables)
    names: list[str] = []
    arrays: list[pa.Array] = []
    counts: list[tuple[int, int]] = []
    for served, version in zip(tables, versions, strict=True):
        found = version.keys(_own_keys(version, keys, most))
        if len(found) > most:
            raise LimitError.keys(len(found), most)
        if counts and len(found) != counts[0][0]:
            raise RequestError.bad_body("keys", "the key columns have different lengths")
        frame = version.fetch(found, wanted[served.name], plain)
        batch = frame.batch()
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            names.append(f"{name}.{served.name}" if name in BESIDE else f"{served.name}.{name}")
            arrays.append(array)
        counts.append((len(found), frame.missing))
    return names, arrays, counts


def _own_keys(version: TableVersion, keys: Any, most: int) -> Any:
    """The keys of one table, out of columns that several tables share."""
    if keys is None:
        raise RequestError.keys_missing(version.key)
    if isinstance(keys, pa.RecordBatch):
        missing = [name for name in version.key if name not in keys.schema.names]
        if missing and not (len(version.key) == 1 and keys.num_columns == 1):
            raise RequestError.bad_body("Arrow", f"it lacks the key columns {', '.join(missing)}")
        return keys if missing else keys.select(list(version.key))
    if isinstance(keys, dict):
        missing = [name for name in version.key if name not in keys]
        if missing:
            raise RequestError.bad_body("JSON", f"`keys` lacks {', '.join(missing)}")
        keys = {name: keys[name] for name in version.key}
    return json_keys(version, keys, most)


def _document(batch: pa.RecordBatch, facts: Mapping[str, Any], *, by_row: bool) -> bytes:
    columns: dict[str, Any] = {}
    beside: dict[str, dict[str, Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind, _, table = name.partition(".")
        if kind in BESIDE:
            beside.setdefault(kind[1:], {})[table] = json_column(column)
        else:
            columns[name] = json_column(column)
    if by_row:
        from headwater.serving.server.answer_body import row_document

        return row_document(batch, facts)
    return orjson.dumps({"columns": columns, **beside, **facts}, option=_NUMPY)


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
