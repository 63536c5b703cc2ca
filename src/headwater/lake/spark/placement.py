"""Placement: which files can share one scan, with their partition values known to Spark.

The values of partition columns stand in the log, and only there. Spark can attach values to files by itself, at no cost
a row and with pruning, if they are the names of folders. So the folders are *checked* against the log: files whose
folders say, in Spark's own notation, exactly what the log says are read by folder; of the others (another writer's
escapes, random prefixes, names cut short) each file's values are joined to its rows.

>>> spark_unescape("a=x%20y")
'a=x y'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.storage import is_elsewhere
from headwater.lake import partitions
from headwater.lake.actions import AddFile
from headwater.lake.snapshot import Snapshot

__all__ = ["Scan", "file_values", "folder_values", "is_plain_path", "place", "spark_unescape"]

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_MOST_ROOTS = 8
_MOMENT = pa.timestamp("us", "UTC")


@dataclass(slots=True)
class Scan:
    """Files that Spark reads in one scan; ``root`` is the folder below which folders name the partition values."""

    root: str | None
    files: list[AddFile] = field(default_factory=list)


def spark_unescape(text: str) -> str:
    """The text of a folder's name as Spark understands it: each ``%XX`` is one character."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)


def is_plain_path(path: str) -> bool:
    """Whether Spark's file sources can open a file of this path, and do not pass over it as hidden."""
    name = path.rsplit("/", 1)[-1]
    plain = ":" not in path and not is_elsewhere(path)
    return plain and not name.startswith(("_", ".")) and not name.endswith("._COPYING_")


def file_values(now: Snapshot, add: AddFile) -> dict[str, str | None]:
    """The partition values of a file as texts, by the columns' names of today."""
    fields = [now.schema.field(c) for c in now.partition_columns]
    return {f.name: add.partition_values.get(f.physical_name, add.partition_values.get(f.name)) for f in fields}


def place(now: Snapshot, files: Sequence[AddFile]) -> list[Scan]:
    """The scans that read ``files``; at most a handful, however many partitions there are."""
    if not now.partition_columns:
        return [Scan("", list(files))]
    by_root: dict[str | None, Scan] = {}
    for add in files:
        root = _root(now, add)
        if root not in by_root and len(by_root) >= _MOST_ROOTS:
            root = None
        by_root.setdefault(root, Scan(root)).files.append(add)
    return list(by_root.values())


def _keys(now: Snapshot) -> list[str]:
    """The columns' names in folders."""
    mapped = now.mapping_mode != "none"
    return [now.schema.field(c).physical_name if mapped else c for c in now.partition_columns]


def folder_values(now: Snapshot, add: AddFile) -> dict[str, str | None]:
    """The partition values in the names of a file's folders, by column; none if the folders name other columns."""
    *folders, _ = partitions.decode_path(add.path).split("/")
    keys = _keys(now)
    found: dict[str, str | None] = {}
    for folder, key, column in zip(folders[-len(keys) :], keys, now.partition_columns, strict=False):
        name, equals, value = folder.partition("=")
        if not equals or spark_unescape(name) != key:
            return {}
        found[column] = None if value == _NULL_FOLDER else spark_unescape(value)
    return found if len(found) == len(keys) else {}


def _root(now: Snapshot, add: AddFile) -> str | None:
    """The part of a file's path above its partition folders, or None if they do not say what the log says."""
    said = folder_values(now, add)
    if not said or is_elsewhere(add.path):
        return None
    for column, text in file_values(now, add).items():
        if not _is_same(said[column], text or None, moment=now.schema.field(column).type == "timestamp"):
            return None
    return "/".join(partitions.decode_path(add.path).split("/")[: -len(said) - 1])


def _is_same(folder: str | None, log: str | None, *, moment: bool) -> bool:
    """Whether a folder says the value that the log says; timestamps have one form there and another here."""
    if folder == log or not (moment and folder and log):
        return folder == log
    try:
        return bool(partitions.parse(folder, _MOMENT) == partitions.parse(log, _MOMENT))
    except InputError:
        return False
