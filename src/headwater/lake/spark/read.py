"""Reading: a version of a table as a Spark DataFrame.

There are three ways, and a table takes the first that is right for it:

1. the session has Delta's own classes: they read the version;
2. Spark reads the files itself. The log says which they are; Spark brings column pruning, filters and row groups. Files
   share a scan by where their partition values can be had (`placement`), and those with a deletion vector have a scan
   of their own (`vectors`), so the others are read as plain Parquet is. Column mapping is a change of names on top;
3. tasks read the files with Arrow (`tasks`): where Spark has no way to the storage (Azure, Google Cloud, S3 without its
   JARs), and for what its reader cannot tell apart (columns found by id, paths with a colon, names that Spark hides or
   uses itself).

A frame stands for one version, whatever is committed later. It is lazy; ``where`` narrows it to the files that may
match by the log's statistics, which no filter put on afterwards can do, and filters the rows too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from headwater.base.errors import NotFoundError
from headwater.base.schema import Field
from headwater.base.storage import Storage
from headwater.lake import find, partitions
from headwater.lake.actions import AddFile
from headwater.lake.published import check_built
from headwater.lake.scan import live_vector, map_files
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark import tasks
from headwater.lake.spark.conf import conf
from headwater.lake.spark.placement import Scan, file_values, folder_values, is_plain_path, place
from headwater.lake.spark.types import column, physical_struct, spark_struct, spark_type
from headwater.lake.spark.vectors import PATH, located, without_deleted
from headwater.spark.session import has_delta, is_connect
from headwater.sql.conjuncts import Conjunct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from headwater.lake.spark.tables import TableAtVersion

__all__ = ["read", "spark_root"]

S3_SCHEME = "spark.headwater.s3.scheme"
"""A session that can open S3 by itself says so: the scheme (``s3a``, ``s3``) its file system goes by."""

# Types whose text in a folder Spark reads as the log means it; the others come as text and are converted.
_BY_FOLDER = {"string", "byte", "short", "integer", "long", "float", "double", "date", "boolean"}
_ZONED = re.compile("(Z|[+-][0-9]{2}:?[0-9]{2})$")
_GLOB = re.compile(r"([{}\[\]*?\\])")
_FILE = "__hw_of_file"


def read(
    table: TableAtVersion,
    session: SparkSession,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    skipping: Sequence[Conjunct] = (),
) -> DataFrame:
    """The rows of ``table`` at its version, as a lazy DataFrame.

    Parameters
    ----------
    columns
        Only these columns, in this order.
    where
        Only rows that meet this condition; files that cannot hold one, by the log's statistics, are not opened.
    skipping
        Files that hold no row that meets these are not opened either; their rows are not filtered.
    """
    now = table.snapshot
    check_built(table.name, now)
    wanted = find.condition(now, where)
    asked = [now.schema.field(c, now.where).name for c in columns] if columns is not None else now.schema.names
    used = {c for _, c in wanted.columns} if wanted is not None else set()
    names = [n for n in now.schema.names if n in asked or n in used]
    conjuncts = [*(wanted.conjuncts() if wanted is not None else ()), *skipping]
    root = spark_root(session, now.storage)
    frame: DataFrame | None = None
    if root is not None and has_delta(session):
        frame = session.read.format("delta").option("versionAsOf", now.version).load(root)
    else:
        files = find.candidate_files(now, conjuncts)
        if root is not None:
            frame = _native(session, now, root, files, names)
        if frame is None:
            frame = tasks.read(session, now, files, names, conjuncts)
    if where is not None:
        frame = frame.where(where)
    return frame if frame.columns == asked else frame.select([column(n) for n in asked])


def spark_root(session: SparkSession, storage: Storage) -> str | None:
    """The table's folder as Spark can open it, or None if only tasks can."""
    local = storage.local_path("")
    if local is not None:
        return f"file://{local}"
    scheme, _, place = storage.url.partition(":")
    native = session.conf.get(S3_SCHEME, None) if scheme == "s3" else None
    return None if native is None else f"{native}:{place}"


def _native(
    session: SparkSession, now: Snapshot, root: str, files: Sequence[AddFile], names: list[str]
) -> DataFrame | None:
    """The files as Spark's own scans; None if its reader is not right for them."""
    if now.mapping_mode == "id" or "_metadata" in now.schema:
        return None
    if not all(is_plain_path(partitions.decode_path(f.path)) for f in files):
        return None
    scans = []
    for scan in place(now, files):
        marked = [f for f in scan.files if f.deletion_vector is not None]
        clean = [f for f in scan.files if f.deletion_vector is None]
        scans += [Scan(scan.root, part) for part in (clean, marked) if part]
    if not scans:
        return session.createDataFrame([], spark_struct(now.schema, names))
    try:
        frames = [_scan(session, now, root, scan, names) for scan in scans]
    except AnalysisException as e:
        if "PATH_NOT_FOUND" not in str(e):
            raise
        _check_there(now, files)
        return None  # all are there: the JVM just cannot spell their names
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def _check_there(now: Snapshot, files: Sequence[AddFile]) -> None:
    """Raise for the first file that is not there."""
    for path in (partitions.decode_path(f.path) for f in files):
        if not now.storage.exists(path):
            raise NotFoundError.data_file(path, now.where, now.version)


def _scan(session: SparkSession, now: Snapshot, root: str, scan: Scan, names: list[str]) -> DataFrame:
    mapped = now.mapping_mode != "none"
    split_by = [now.schema.field(c) for c in now.partition_columns]
    in_files = [f for f in now.schema.fields if f not in split_by]
    by_folder = split_by if scan.root is not None else []
    struct = physical_struct(in_files) if mapped else spark_struct(now.schema, [f.name for f in in_files])
    for f in by_folder:
        kind = f.type if f.type in _BY_FOLDER else "string"
        struct = struct.add(f.physical_name if mapped else f.name, spark_type(kind))
    paths = {f.path: f"{root}/{partitions.decode_path(f.path)}" for f in scan.files}
    reader = session.read.schema(struct)
    if by_folder:
        reader = reader.option("basePath", f"{root}/{scan.root}" if scan.root else root)
    # One status a file is quick here; by default Spark starts a job for it beyond 32 files. A session of Spark Connect
    # looks at them later, and while a pipeline is defined it may not be changed.
    listing = {"spark.sql.sources.parallelPartitionDiscovery.threshold": str(len(paths) + 1)}
    listed_now = len(paths) > 32 and root.startswith("file:") and not is_connect(session)
    with conf(session, listing if listed_now else {}):
        frame = reader.parquet(*[_GLOB.sub(r"\\\1", p) for p in paths.values()])
    marked = scan.files[0].deletion_vector is not None
    spelled = {path: _as_spark_writes(full) for path, full in paths.items()}
    if marked or (split_by and not by_folder):
        frame = located(frame)
    if marked:
        found = zip(scan.files, map_files(scan.files, lambda f: live_vector(now, f)), strict=True)
        frame = without_deleted(session, frame, {spelled[f.path]: v for f, v in found if v is not None})
    if split_by and not by_folder:
        frame = _with_values(session, now, frame, {spelled[f.path]: f for f in scan.files})
    texts = [folder_values(now, f) for f in scan.files] if by_folder else []
    return frame.select([_logical(now.schema.field(n), {t[n] for t in texts if n in t}, mapped) for n in names])


def _as_spark_writes(url: str) -> str:
    """A file's URL as ``_metadata.file_path`` gives it."""
    scheme, _, path = url.partition("://")
    return (
        f"{scheme}:{partitions.encode_path(path)}" if scheme == "file" else f"{scheme}://{partitions.encode_path(path)}"
    )


def _with_values(session: SparkSession, now: Snapshot, frame: DataFrame, files: Mapping[str, AddFile]) -> DataFrame:
    """``frame`` with the partition values of each row's file."""
    texts = [file_values(now, f) for f in files.values()]
    arrays = {_FILE: pa.array(list(files), pa.string())}
    for f in (now.schema.field(c) for c in now.partition_columns):
        name = f.physical_name if now.mapping_mode != "none" else f.name
        arrays[name] = partitions.parse_array([t[f.name] for t in texts], f.arrow.type)
    values = sf.broadcast(session.createDataFrame(pa.table(arrays)))
    joined = frame.join(values, sf.col(PATH) == sf.col(_FILE), "left")
    lost = sf.raise_error(sf.concat(sf.lit("no partition values were found for "), sf.col(PATH)))
    return joined.where(sf.when(sf.col(_FILE).isNull(), lost.cast("boolean")).otherwise(True))


def _logical(f: Field, texts: set[str | None], mapped: bool) -> Column:
    """A column of a scan under its name and type of today; ``texts`` are the partition values that folders give it."""
    name = column(f.physical_name if mapped else f.name)
    value = sf.col(name)
    if texts and f.type not in _BY_FOLDER:
        if f.type == "timestamp":
            value = _in_utc(value, texts)
        value = value.cast(spark_type(f.type))
    elif mapped and not isinstance(f.type, str):
        value = value.cast(spark_type(f.type))  # by position, which is how fields get their names back
    return value.alias(f.name)


def _in_utc(value: Column, texts: set[str | None]) -> Column:
    """Without a zone a timestamp's text is UTC, whatever zone the session has. A simple expression can prune files."""
    zoned = {bool(_ZONED.search(t)) for t in texts if t}
    if zoned == {True}:
        return value
    utc = sf.concat(value, sf.lit("Z"))
    return utc if zoned <= {False} else sf.when(value.rlike(_ZONED.pattern), value).otherwise(utc)
