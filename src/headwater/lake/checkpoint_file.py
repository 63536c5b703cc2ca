"""The Parquet file of a checkpoint: one row an action, one column a kind of action, both ways.

Tables have many files and few of everything else, so ``add`` and ``remove`` are taken apart and put together column by
column; the rest goes row by row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.lake.actions import Action, AddFile, Commit, RemoveFile, take_action
from headwater.lake.deletion_vectors import DeletionVector

__all__ = ["read_actions", "to_arrow"]

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXT_MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", _TEXT_MAP),
                    ("deletionVector", _VECTOR),
                    ("baseRowId", pa.int64()),
                    ("defaultRowCommitVersion", pa.int64()),
                    ("clusteringProvider", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("extendedFileMetadata", pa.bool_()),
                    ("partitionValues", _TEXT_MAP),
                    ("size", pa.int64()),
                    ("deletionVector", _VECTOR),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("createdTime", pa.int64()),
                    ("configuration", _TEXT_MAP),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)
_EXTRA = ("tags", "baseRowId", "defaultRowCommitVersion", "clusteringProvider")
_ADD_LEAVES = frozenset({"path", "partitionValues", "size", "modificationTime", "stats", "deletionVector", *_EXTRA})
_FEW = ("protocol", "metaData", "txn", "domainMetadata")


def read_actions(file: pq.ParquetFile, *, removes: bool) -> tuple[Commit, list[str]]:
    """The actions of one file, and the names of the sidecars it points to."""
    names = set(file.schema_arrow.names)
    columns = [n for n in (*_FEW, "sidecar") if n in names]
    if "add" in names:
        has = {f.name for f in file.schema_arrow.field("add").type}
        columns += [f"add.{leaf}" for leaf in sorted(_ADD_LEAVES & has)]
        if "stats" not in has and "stats_parsed" in has:
            columns.append("add.stats_parsed")
    if removes and "remove" in names:
        columns.append("remove")
    table = file.read(columns=columns)
    commit = Commit(0, 0)
    for kind in (*_FEW, "remove"):
        for row in _rows(table, kind):
            take_action(commit, {kind: {k: v for k, v in row.items() if v is not None}})
    commit.adds = _read_adds(table)
    return commit, [str(r["path"]) for r in _rows(table, "sidecar")]


def _rows(table: pa.Table, name: str) -> list[dict[str, Any]]:
    if name not in table.column_names:
        return []
    rows: list[dict[str, Any]] = table[name].drop_null().to_pylist(maps_as_pydicts="strict")
    return rows


def _read_adds(table: pa.Table) -> list[AddFile]:
    if "add" not in table.column_names:
        return []
    found = table["add"].drop_null().combine_chunks()
    found = found.chunk(0) if isinstance(found, pa.ChunkedArray) and found.num_chunks else found
    if not len(found):
        return []
    leaves = {f.name: found.field(i) for i, f in enumerate(found.type)}
    count = len(found)
    extra = _sparse(leaves, _EXTRA, count)
    vectors = [None if v is None else DeletionVector.from_action(v) for v in _values(leaves, "deletionVector", count)]
    return [
        AddFile(path, values, size or 0, modified or 0, True, stats or None, vector, more)
        for path, values, size, modified, stats, vector, more in zip(
            leaves["path"].to_pylist(),
            _maps(leaves.get("partitionValues"), count),
            _values(leaves, "size", count),
            _values(leaves, "modificationTime", count),
            _stats(leaves, count),
            vectors,
            extra,
            strict=True,
        )
    ]


def _values(leaves: Mapping[str, pa.Array], name: str, count: int) -> list[Any]:
    """A leaf's values; one that is null throughout costs nothing."""
    array = leaves.get(name)
    if array is None or array.null_count == count:
        return [None] * count
    values: list[Any] = array.to_pylist()
    return values


def _maps(array: pa.Array | None, count: int) -> list[dict[str, Any]]:
    if array is None or not len(array.items):
        return [{}] * count
    return [dict(pairs or ()) for pairs in array.to_pylist()]


def _stats(leaves: Mapping[str, pa.Array], count: int) -> list[str | None]:
    if "stats_parsed" in leaves:
        rows = leaves["stats_parsed"].to_pylist()
        return [None if r is None else json.dumps(_without_nulls(r), default=str) for r in rows]
    return _values(leaves, "stats", count)


def _sparse(leaves: Mapping[str, pa.Array], names: Sequence[str], count: int) -> list[dict[str, Any]]:
    """Rarely used leaves of each row, as a dict of those that are there."""
    out: list[dict[str, Any]] = [{}] * count
    for name in names:
        for i, value in enumerate(_values(leaves, name, count)):
            if value is not None:
                out[i] = {**out[i], name: dict(value) if name == "tags" else value}
    return out


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _without_nulls(v) if isinstance(v, dict) else v for k, v in row.items() if v is not None}


def to_arrow(few: Iterable[Action], adds: Sequence[AddFile], removes: Sequence[RemoveFile]) -> pa.Table:
    """The rows of a checkpoint: a few actions as they are, then the files."""
    head = pa.Table.from_pylist([_pairs(a) for a in few], schema=_SCHEMA)
    parts = [head, _only("add", _add_array(adds)), _only("remove", _remove_array(removes))]
    return pa.concat_tables([p for p in parts if p.num_rows])


def _only(kind: str, array: pa.Array) -> pa.Table:
    columns = [array if f.name == kind else pa.nulls(len(array), f.type) for f in _SCHEMA]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _struct(kind: str, columns: Mapping[str, list[Any]], count: int) -> pa.Array:
    fields = list(_SCHEMA.field(kind).type)
    arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _add_array(adds: Sequence[AddFile]) -> pa.Array:
    columns: dict[str, list[Any]] = {
        "path": [f.path for f in adds],
        "partitionValues": [list(f.partition_values.items()) for f in adds],
        "size": [f.size for f in adds],
        "modificationTime": [f.modification_time for f in adds],
        # These actions change nothing, they only say what is.
        "dataChange": [False] * len(adds),
        "stats": [f.stats for f in adds],
        "deletionVector": [f.deletion_vector and f.deletion_vector.to_action() for f in adds],
    }
    for name in _EXTRA:
        values = [f.extra.get(name) for f in adds]
        if any(v is not None for v in values):
            columns[name] = [list(v.items()) if isinstance(v, dict) else v for v in values]
    return _struct("add", columns, len(adds))


def _remove_array(removes: Sequence[RemoveFile]) -> pa.Array:
    columns: dict[str, list[Any]] = {
        "path": [f.path for f in removes],
        "deletionTimestamp": [f.deletion_timestamp for f in removes],
        "dataChange": [False] * len(removes),
        "extendedFileMetadata": [f.partition_values is not None and f.size is not None for f in removes],
        "partitionValues": [None if f.partition_values is None else list(f.partition_values.items()) for f in removes],
        "size": [f.size for f in removes],
        "deletionVector": [f.deletion_vector and f.deletion_vector.to_action() for f in removes],
    }
    return _struct("remove", columns, len(removes))


def _pairs(action: Action) -> Action:
    """Maps as Arrow takes them: lists of pairs."""
    ((kind, body),) = action.items()
    body = dict(body)
    if isinstance(body.get("configuration"), dict):
        body["configuration"] = list(body["configuration"].items())
    if "format" in body:
        body["format"] = {"provider": "parquet", "options": []}
    return {kind: body}
