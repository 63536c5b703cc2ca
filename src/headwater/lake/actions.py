"""Actions: what one commit of a Delta log says, as data.

A commit is a file of JSON lines, each one action: files added and removed, a new schema, a new protocol,
the mark of an application's transaction. These classes keep every key they do not understand in ``extra``,
so that an action read from the log and written again loses nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from headwater.base.errors import CorruptionError
from headwater.base.schema import Schema
from headwater.lake.deletion_vectors import DeletionVector
from headwater.lake.stats import num_records

__all__ = ["AddFile", "Commit", "Metadata", "Protocol", "RemoveFile", "dump", "parse_commit"]

Action = dict[str, Any]

# Writers put the count first, and a table has as many counts as files: this is what makes count() quick.
_FIRST_COUNT = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d+)\s*[,}]')
_ADD_KEYS = {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector"}
_REMOVE_KEYS = {"path", "partitionValues", "size", "deletionTimestamp", "dataChange", "deletionVector"}
_REMOVE_KEYS |= {"extendedFileMetadata"}
_WORTH_KEEPING_BYTES = 1 << 16


def _rest(data: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k not in known and v is not None}


@dataclass(frozen=True, slots=True)
class AddFile:
    """A data file that belongs to the table, with the rows a deletion vector takes out of it."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> AddFile:
        dv = d.get("deletionVector")
        return cls(
            d["path"],
            dict(d.get("partitionValues") or {}),
            d.get("size") or 0,
            d.get("modificationTime") or 0,
            d.get("dataChange", True),
            d.get("stats") or None,
            DeletionVector.from_action(dv) if dv else None,
            _rest(d, _ADD_KEYS),
        )

    def to_action(self) -> Action:
        body: dict[str, Any] = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "modificationTime": self.modification_time,
            "dataChange": self.data_change,
            "stats": self.stats,
            **self.extra,
        }
        if self.deletion_vector is not None:
            body["deletionVector"] = self.deletion_vector.to_action()
        return {"add": body}

    @property
    def key(self) -> tuple[str, str | None]:
        """What the log tells files apart by."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    @property
    def num_records(self) -> int | None:
        """Rows in the file, before the deletion vector, if the statistics know."""
        if self.stats and (first := _FIRST_COUNT.match(self.stats)):
            return int(first[1])
        return num_records(self.stats)

    @property
    def num_deleted(self) -> int:
        return self.deletion_vector.cardinality if self.deletion_vector else 0

    def removed(self, now_ms: int, *, data_change: bool = True) -> RemoveFile:
        return RemoveFile(self.path, now_ms, data_change, dict(self.partition_values), self.size, self.deletion_vector)

    def rewritten(self, *, data_change: bool) -> AddFile:
        return replace(self, data_change=data_change)


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A data file that no longer belongs to the table, kept in the log until it may be deleted."""

    path: str
    deletion_timestamp: int
    data_change: bool = True
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    deletion_vector: DeletionVector | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> RemoveFile:
        dv = d.get("deletionVector")
        values = d.get("partitionValues")
        return cls(
            d["path"],
            d.get("deletionTimestamp") or 0,
            d.get("dataChange", True),
            None if values is None else dict(values),
            d.get("size"),
            DeletionVector.from_action(dv) if dv else None,
            _rest(d, _REMOVE_KEYS),
        )

    def to_action(self) -> Action:
        body: dict[str, Any] = {
            "path": self.path,
            "deletionTimestamp": self.deletion_timestamp,
            "dataChange": self.data_change,
            "extendedFileMetadata": self.partition_values is not None and self.size is not None,
            **self.extra,
        }
        if self.partition_values is not None:
            body["partitionValues"] = dict(self.partition_values)
        if self.size is not None:
            body["size"] = self.size
        if self.deletion_vector is not None:
            body["deletionVector"] = self.deletion_vector.to_action()
        return {"remove": body}

    @property
    def key(self) -> tuple[str, str | None]:
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table's schema, partitioning and properties."""

    id: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> Metadata:
        return cls(
            d["id"],
            Schema.from_json(d["schemaString"]),
            tuple(d.get("partitionColumns") or ()),
            dict(d.get("configuration") or {}),
            d.get("name"),
            d.get("description"),
            d.get("createdTime"),
        )

    def to_action(self) -> Action:
        return {
            "metaData": {
                "id": self.id,
                "name": self.name,
                "description": self.description,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": self.schema.to_json(),
                "partitionColumns": list(self.partition_columns),
                "createdTime": self.created_time,
                "configuration": dict(self.configuration),
            }
        }


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer must be able to do."""

    min_reader: int
    min_writer: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> Protocol:
        readers, writers = d.get("readerFeatures"), d.get("writerFeatures")
        return cls(
            d["minReaderVersion"],
            d["minWriterVersion"],
            None if readers is None else frozenset(readers),
            None if writers is None else frozenset(writers),
        )

    def to_action(self) -> Action:
        body: dict[str, Any] = {"minReaderVersion": self.min_reader, "minWriterVersion": self.min_writer}
        if self.min_reader >= 3:
            body["readerFeatures"] = sorted(self.reader_features or ())
        if self.min_writer >= 7:
            body["writerFeatures"] = sorted(self.writer_features or ())
        return {"protocol": body}


@dataclass(slots=True)
class Commit:
    """One version's actions, sorted by kind; several readers may have it, and nobody changes it."""

    version: int
    timestamp_ms: int
    info: dict[str, Any] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    cdc: list[dict[str, Any]] = field(default_factory=list)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The size and time of the file it was read from: what tells it from another table's commit of that version.
    origin: tuple[int, int] | None = None

    @property
    def operation(self) -> str:
        return str(self.info.get("operation", "unknown"))

    @property
    def changes_data(self) -> bool:
        return any(f.data_change for f in self.adds) or any(f.data_change for f in self.removes)

    @property
    def is_blind_append(self) -> bool:
        """Whether it only added rows and looked at none."""
        return not self.removes and self.metadata is None and bool(self.info.get("isBlindAppend", False))


def parse_commit(data: bytes, version: int, modified_ms: int, where: str) -> Commit:
    """The commit in the bytes of a log file."""
    # A new commit is read by whoever brings a snapshot forward, and again by whoever follows the changes.
    parsed = (
        _parsed_lately(data, version, where) if len(data) <= _WORTH_KEEPING_BYTES else _parsed(data, version, where)
    )
    stamp = parsed.info.get("inCommitTimestamp")
    return replace(parsed, timestamp_ms=modified_ms if stamp is None else int(stamp), origin=(len(data), modified_ms))


def _parsed(data: bytes, version: int, where: str) -> Commit:
    commit = Commit(version, 0)
    name = f"{version:020d}.json"
    if not data.strip():
        raise CorruptionError.log_entry(name, "the file is empty", where)
    number = 0
    try:
        for line in data.splitlines():
            number += 1
            if line.strip():
                take_action(commit, json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptionError.log_entry(name, f"line {number}: {_plain(e)}", where) from e
    return commit


_parsed_lately = lru_cache(maxsize=32)(_parsed)


def take_action(commit: Commit, action: Mapping[str, Any]) -> None:
    """File one action under its kind; unknown kinds are for newer readers and are left alone."""
    if not isinstance(action, dict):
        raise ValueError("it is not a JSON object")
    for kind, body in action.items():
        if body is None:
            continue
        _check_shape(kind, body)
        if kind == "add":
            commit.adds.append(AddFile.from_json(body))
        elif kind == "remove":
            commit.removes.append(RemoveFile.from_json(body))
        elif kind == "metaData":
            commit.metadata = Metadata.from_json(body)
        elif kind == "protocol":
            commit.protocol = Protocol.from_json(body)
        elif kind == "txn":
            commit.txns[body["appId"]] = body["version"]
        elif kind == "cdc":
            commit.cdc.append(body)
        elif kind == "commitInfo":
            commit.info = body
        elif kind == "domainMetadata":
            commit.domains[body["domain"]] = body


_FILE: dict[str, type] = {"path": str, "partitionValues": dict, "size": int, "dataChange": bool, "deletionVector": dict}
_SHAPES: Mapping[str, Mapping[str, type]] = {
    "add": _FILE | {"modificationTime": int, "stats": str, "tags": dict},
    "remove": _FILE | {"deletionTimestamp": int},
    "cdc": _FILE,
    "metaData": {"id": str, "schemaString": str, "partitionColumns": list, "configuration": dict, "createdTime": int},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int, "readerFeatures": list, "writerFeatures": list},
    "txn": {"appId": str, "version": int},
    "commitInfo": {"inCommitTimestamp": int},
    "domainMetadata": {"domain": str},
}
_NEEDED = {"add": ("path",), "remove": ("path",), "cdc": ("path",)}
_TEXTS = ("partitionValues", "configuration", "partitionColumns", "readerFeatures", "writerFeatures")


def _check_shape(kind: str, body: Any) -> None:
    """Raise for a value that is not of its kind, so that it is found here and not by whoever uses it."""
    shape = _SHAPES.get(kind)
    if shape is None:
        return
    if not isinstance(body, dict):
        raise ValueError(f"`{kind}` is not a JSON object")
    for name in _NEEDED.get(kind, ()):
        if name not in body:
            raise KeyError(name)
    for name, value in body.items():
        want = shape.get(name)
        if want is None or value is None:
            continue
        if not isinstance(value, want) or (want is int and isinstance(value, bool)):
            raise ValueError(f"`{name}` of `{kind}` is {value!r:.40}")
        if name in _TEXTS:
            texts = list(value.values()) if isinstance(value, dict) else list(cast("list[Any]", value))
            if not all(v is None or isinstance(v, str) for v in texts):
                raise ValueError(f"`{name}` of `{kind}` holds something else than text")


def dump(actions: Iterable[Action]) -> bytes:
    """The bytes of a log file with these actions."""
    return ("\n".join(json.dumps(a, separators=(",", ":"), ensure_ascii=False) for a in actions) + "\n").encode()


def _plain(e: Exception) -> str:
    return f"the key {e} is missing" if isinstance(e, KeyError) else str(e)
