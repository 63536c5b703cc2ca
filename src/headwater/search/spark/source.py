"""The data source ``headwater``: Delta tables with search indexes, as Spark reads and writes them.

>>> read = spark.read.format("headwater").option("query", "refund").option("k", "10")  # doctest: +SKIP
>>> found = read.load("/lake/notes")  # doctest: +SKIP
>>> frame.write.format("headwater").option("text", "title,body").mode("append").save("/lake/notes")  # doctest: +SKIP

The class lies in a module that workers can import, so they keep what they have open from one query to the next. It
imports what it needs when it is used: a session registers it at its start.

A frame stands for one version of the table: the newest when it was made, or that of the option ``version``. Its columns
are the table's, those of the option ``columns``, or those of ``.schema("id long, title string")``; only these are read.
Spark tells no source which columns a query needs, so naming them is what makes narrow queries quick.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSourceReader, DataSourceWriter
    from pyspark.sql.types import StructType

    from headwater.lake.snapshot import Snapshot
    from headwater.search.kept_index import KeptIndex
    from headwater.search.spark.options import SourceOptions

__all__ = ["HeadwaterSource", "register", "search_frame"]

_registered: WeakKeyDictionary[SparkSession, tuple[tuple[str, str], ...]] = WeakKeyDictionary()


class HeadwaterSource(DataSource):
    """Delta tables and their search indexes."""

    source_name: ClassVar[str] = "headwater"
    session_options: ClassVar[Mapping[str, str]] = {}
    storage_options: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._version: int | None = None
        if "path" in options:
            self._version = self._newest()

    def __repr__(self) -> str:  # options may hold secrets
        return f"HeadwaterSource({self.options.get('path')!r})"

    @classmethod
    def name(cls) -> str:
        """What it is called in ``format(…)``."""
        return cls.source_name

    def schema(self) -> StructType:
        """The columns of a read."""
        from headwater.search.spark.reading import read_struct

        options = self._options
        return read_struct(self._snapshot(options), options.list("columns"))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The rows of a read."""
        from headwater.search.spark.reading import SearchReader

        options = self._options
        now = self._snapshot(options)
        return SearchReader(options.over(now.configuration, now.where), now, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Takes rows into the table and its index."""
        from headwater.search.spark.writing import plan_write

        return plan_write(self._options, schema, overwrite=overwrite)

    @property
    def _options(self) -> SourceOptions:
        from headwater.search.spark.options import SourceOptions

        return SourceOptions.of(self.options, self.session_options, self.storage_options)

    def _newest(self) -> int | None:
        """The version that the frame stands for; None where there is no table yet."""
        from headwater.base.storage import open_storage
        from headwater.lake import snapshot
        from headwater.lake.catalog import is_table

        options = self._options
        asked = options.number("version")
        if asked is not None:
            return asked
        storage = open_storage(options.path, options.storage or None)
        return snapshot.latest(storage).version if is_table(storage) else None

    def _snapshot(self, options: SourceOptions) -> Snapshot:
        from headwater.base.storage import open_storage
        from headwater.lake import snapshot

        storage = open_storage(options.path, options.storage or None)
        return snapshot.latest(storage) if self._version is None else snapshot.at_version(storage, self._version)


def register(session: SparkSession, *, storage_options: Mapping[str, str] | None = None) -> None:
    """Let a session know ``format("headwater")``; sessions of ``hw.spark()`` know it by themselves.

    What the session's settings ``spark.headwater.search.*`` and ``spark.headwater.storage.*`` say now are defaults for
    the options of reads and writes. Register it again after you have changed them.

    Parameters
    ----------
    storage_options
        Keys and addresses of object storage, as in `headwater.connect`. They travel inside the pickled class, and
        neither plans nor web pages show them.
    """
    from headwater.search.spark.options import CONF, STORAGE_CONF
    from headwater.spark.shipping import with_package

    if storage_options is not None:
        with_package(session)
    told = {name: value for name, value in session.conf.getAll.items() if name.startswith((CONF, STORAGE_CONF))}
    stored = {n.removeprefix(STORAGE_CONF): v for n, v in told.items() if n.startswith(STORAGE_CONF)}
    said = {n.removeprefix(CONF): v for n, v in told.items() if n.startswith(CONF)}
    key = tuple(sorted({**told, **(storage_options or {})}.items()))
    if _registered.get(session) == key:
        return
    _put(session, _made(HeadwaterSource.source_name, said, {**stored, **(storage_options or {})}))
    _registered[session] = key


def _put(session: SparkSession, made: type[HeadwaterSource]) -> None:
    """Register a class. Spark looks at the active session for whether the name is free, whichever is asked."""
    from pyspark.errors import AnalysisException

    from headwater.spark.session import active_session

    try:
        session.dataSource.register(made)
    except AnalysisException as error:
        active = active_session()
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS" or active in (None, session):
            raise
        session.createDataFrame([], "a int")  # which makes it the active one
        try:
            session.dataSource.register(made)
        finally:
            active.createDataFrame([], "a int")


def _made(name: str, said: Mapping[str, str], stored: Mapping[str, str]) -> type[HeadwaterSource]:
    if name == HeadwaterSource.source_name and not said and not stored:
        return HeadwaterSource
    members = {"source_name": name, "session_options": dict(said), "storage_options": dict(stored)}
    return type("HeadwaterSource", (HeadwaterSource,), members)


def search_frame(
    index: KeptIndex,
    query: str | None,
    *,
    session: SparkSession | None,
    columns: Sequence[str] | None,
    options: Mapping[str, Any],
) -> DataFrame:
    """The rows that a search of an index finds, as a lazy frame at the table's version of now.

    A condition that the index does not help with is Spark's own scan.
    """
    from headwater.spark.session import spark
    from headwater.spark.shipping import with_package

    session = spark() if session is None else session
    with_package(session)
    root, base = index.store.root, index.snapshot
    where = options.get("filter")
    if query is None and where is not None and "_score" not in (columns or ()) and _is_scan(index, base, where):
        from headwater.lake.spark.read import read

        return read(_AtVersion(index.meant.source, base), session, columns=columns, where=where)
    name = HeadwaterSource.source_name
    if root.options:  # a source of its own, so that they travel inside its class
        name = "headwater_" + hashlib.sha256(repr(sorted(root.options.items())).encode()).hexdigest()[:16]
        _put(session, _made(name, {}, root.options))
    else:
        register(session)
    reading = session.read.format(name).option("lake", root.url).option("index", index.name)
    reading = reading.option("version", str(base.version))
    given = {**options, "query": query, "columns": None if columns is None else ",".join(columns)}
    for option, value in given.items():
        if value is not None:
            reading = reading.option(option, str(value).lower() if isinstance(value, bool) else str(value))
    return reading.load(base.where)


def _is_scan(index: KeptIndex, base: Snapshot, where: str) -> bool:
    """Whether the index does not pay for a condition: then Spark's own readers are the quickest."""
    from headwater.lake.find import condition
    from headwater.search.filtering import choose_way, spark_share

    wanted = condition(base, where)
    assert wanted is not None
    reader = index.reader(base)
    return choose_way(reader, wanted.node, spark_share(reader)).query is None


@dataclass(frozen=True, slots=True)
class _AtVersion:
    """A table at a version, for Spark's own readers."""

    name: str
    snapshot: Snapshot
