"""The lakehouse: `connect`, and the one object through which everything is reached.

`Lake` is a facade: each method is a noun of some room, imported when it is first used, so that connecting loads no
engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from headwater.base.errors import HeadwaterError, InputError
from headwater.base.kinds import words_of
from headwater.base.storage import LocalStorage, open_storage
from headwater.derived import kinds
from headwater.lake import snapshot
from headwater.lake.catalog import TABLE, Catalog
from headwater.lake.table import Table
from headwater.lakehouse.derived import DerivedNouns
from headwater.lakehouse.proof import ProofVerbs

if TYPE_CHECKING:
    from headwater.derived.environment import Environment
    from headwater.query.result import Result
    from headwater.spark.types import SparkSession
    from headwater.sql.functions.user import UserFunction
    from headwater.sql.matching import PatternPlan
    from headwater.timeseries.stream import Stream

__all__ = ["Lake", "connect"]

_SHOWN = 50


def connect(
    path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> Lake:
    """Open a lake that holds Delta tables: a folder, ``s3://bucket/prefix``, ``az://container/prefix``,
    ``abfss://container@account.dfs.core.windows.net/prefix`` or ``gs://bucket/prefix``.

    Parameters
    ----------
    path
        Where the lake lies. A local folder is made if it is not there.
    storage_options
        For S3: ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, ``AWS_REGION``,
        ``AWS_ENDPOINT_URL`` and ``AWS_ALLOW_HTTP``. For Azure: ``account_name`` with ``account_key`` or ``sas_token``,
        or ``connection_string``. For Google Cloud: ``GOOGLE_APPLICATION_CREDENTIALS``, the path of a key file, and
        ``project``. Variables of the environment are used where an option is not given; the guide has all names.
    spark
        A Spark session to use; without one, a local session is started when it is first needed.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> _ = lake.write("orders", [{"id": 1, "amount": 10.0}, {"id": 2, "amount": 5.0}])
    >>> lake.table("orders").to_arrow().num_rows
    2
    """
    root = open_storage(path, storage_options)
    if isinstance(root, LocalStorage):
        root.make()
    return Lake(Catalog(root), spark)


class Lake(DerivedNouns, ProofVerbs):
    """A lake: tables by name. Made by `connect`."""

    def __init__(self, catalog: Catalog, spark: SparkSession | None = None) -> None:
        self.catalog = catalog
        self._spark = spark
        self.user_functions: dict[str, UserFunction] = {}
        """The functions that `function` has registered, by their names in lower case."""

    @property
    def location(self) -> str:
        return self.catalog.root.url

    def __repr__(self) -> str:
        return f"Lake({self.location!r})"

    def _repr_html_(self) -> str:
        from headwater.base import markup

        kinds = self.catalog.kinds()
        shown = [self._summary(name, kind) for name, kind in list(kinds.items())[:_SHOWN]]
        more = f"… {len(kinds) - _SHOWN:,} more" if len(kinds) > _SHOWN else ""
        return markup.listing(f"Lake {self.location}", ("name", "kind", "version", "rows"), shown, more)

    def _summary(self, name: str, kind: str) -> tuple[object, ...]:
        from headwater.lake.published import is_built

        try:
            if kind != TABLE and not self.table(name).exists():
                (status,) = self.status(name)
                return name, kind, status.version, status.rows if status.built else "never built"
            now = self.table(name).snapshot
        except HeadwaterError as error:
            return name, kind, f"[{error.code}]", ""
        rows = "never built" if not is_built(now) else "" if now.num_rows is None else f"{now.num_rows:,}"
        return name, kind, now.version, rows

    def __contains__(self, name: str) -> bool:
        return self.catalog.exists(name)

    def close(self) -> None:
        """Wait until nothing is done in the background for the lake any more, so that its folder can be moved or
        deleted.

        The end of a ``with`` block does it, and so does the end of the process. The lake can be used afterwards, too.

        >>> import headwater as hw, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, hw.connect(folder) as lake:
        ...     _ = lake.write("orders", [{"id": 1, "amount": 10.0}])
        ...     lake.view("total", "SELECT sum(amount) AS total FROM orders").refresh().mode
        'full'
        """
        for kind in kinds.loaded():
            kind.finish(self.environment())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.close()

    @property
    def spark(self) -> SparkSession:
        """The Spark session of this lake; a local one is started at first use."""
        if self._spark is None:
            from headwater.spark.session import spark

            self._spark = spark()
        return self._spark

    def sql(
        self,
        text: str,
        *,
        engine: Literal["duckdb", "datafusion", "spark"] = "duckdb",
        dialect: Literal["spark", "native"] = "spark",
        parameters: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> Result:
        """Run SQL on the lake's tables: a query, or any statement that makes, changes, tends or describes one.

        Parameters
        ----------
        text
            Spark SQL; several statements are separated by ``;``, and the last one's result is given.
        engine
            Who computes the rows: DuckDB inside this process, DataFusion inside it, or Spark. The rows are the same.
        dialect
            "native" hands a query to the engine in its own SQL.
        parameters
            Values for ``:name`` (a mapping) or ``?`` (a sequence). They are never pasted into the text.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.sql("CREATE TABLE orders AS SELECT * FROM VALUES (1, 10.5), (2, 7.0) AS v(id, amount)")
        >>> lake.sql("SELECT sum(amount) AS total FROM orders WHERE id >= :least", parameters={"least": 1}).to_pylist()
        [{'total': Decimal('17.5')}]
        """
        from headwater.query.run import run_text

        return run_text(self, text, engine=engine, dialect=dialect, parameters=parameters)

    def patterns(self, text: str, *, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> list[PatternPlan]:
        """The row patterns of a query, to look at: the machine of each MATCH_RECOGNIZE as text and as a picture.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("ticks", [{"ts": 1, "price": 10}])
        >>> found = lake.patterns(
        ...     "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS ts PATTERN (A B+) "
        ...     "DEFINE B AS price > A.price)"
        ... )
        >>> print(found[0].text().splitlines()[0])
        pattern A B+
        """
        from headwater.query.patterns import patterns_of

        return patterns_of(self, text, parameters)

    def tables(self) -> list[str]:
        """The names of the lake's tables, attached ones too; what is derived from them is listed by `artefacts`."""
        return [name for name, kind in self.catalog.kinds().items() if kind == TABLE]

    def table(self, name: str) -> Table:
        """The table of that name; it need not exist yet, so that it can be created."""
        return Table(self.catalog.storage(name), name, lake=self)

    def named(self, name: str) -> Table:
        """The table that SQL means by a name: upper and lower case are the same, as long as one table fits."""
        table = self.table(name)
        if not snapshot.is_known(table.storage) and not table.exists():
            alike = [one for one in self.catalog.names() if one.lower() == name.lower()]
            if len(alike) == 1:
                return self.table(alike[0])
        return table

    def attach(self, name: str, location: str) -> Table:
        """Give a Delta table that lies anywhere a name in this lake."""
        return Table(self.catalog.attach(name, location), name, lake=self)

    def detach(self, name: str, *, cascade: bool = False) -> list[str]:
        """Forget an attached table; its files stay. Views that read it: as in `drop`."""
        if not self.catalog.is_attached(name):
            self.catalog.detach(name)  # which says so
        before = self._drop_readers(name, "detach()", cascade=cascade)
        self.catalog.detach(name)
        return [*before, name]

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Delete a table with all its files (an attached one is only forgotten); a view is deleted by `drop_view`.

        Views that read it, directly or through others, are deleted before it with ``cascade``, and are an error
        without. Gives the names of what was deleted, in that order.
        """
        table = self.table(name)
        if table.exists():
            kind = self.catalog.kind(name)
            if kind != TABLE:
                raise InputError.is_derived(name, words_of(kind), "drop()")
            before = self._drop_readers(name, "drop()", cascade=cascade)
        else:
            before = []
        self.catalog.drop(name)
        return [*before, name]

    def _drop_readers(self, name: str, verb: str, *, cascade: bool) -> list[str]:
        from headwater.derived.removal import drop_readers

        return drop_readers(name, self.environment(), cascade=cascade, verb=verb)

    def write(
        self,
        name: str,
        data: Any,
        *,
        mode: Literal["append", "overwrite", "error", "ignore"] = "append",
        partition_by: Sequence[str] = (),
        **options: Any,
    ) -> Table:
        """Write rows to a table, making it if it is not there; see `Table.append` and `Table.overwrite`."""
        table = self.table(name)
        table.write(data, mode=mode, partition_by=partition_by, **options)
        return table

    def stream(
        self,
        source: Any,
        *,
        time: str | None = None,
        by: str | Sequence[str] = (),
        tiebreak: str | Sequence[str] = (),
        format: Literal["parquet", "csv", "json"] | None = None,  # noqa: A002  (Spark's word for it)
        schema: pa.Schema | None = None,
        version: int | None = None,
        **options: Any,
    ) -> Stream:
        """Rows with a time, for work on Spark: joins in time, windows, features.

        Parameters
        ----------
        source
            The name of a table, or the folder of a Delta table; a folder, file or pattern of Parquet, CSV or JSON
            files; an Arrow, pandas or polars table; a DataFrame of Spark's; a pyiceberg table.
        time
            The column that rows are ordered by: a timestamp, a date or a whole number.
        by
            The columns that tell one series from another.
        tiebreak
            What decides between rows of one series and time. Without it such rows are refused where their order
            matters.
        format, schema, options
            For files: what they are (by their ending, if it is not given), their columns (of the first file),
            ``delimiter`` and ``header`` of CSV.
        version
            Of a table; the newest by default. It is pinned now: what is committed later is not read.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("trades", [{"symbol": "a", "ts": 1, "price": 10.0}])
        >>> lake.stream("trades", time="ts", by="symbol").shift("price").columns
        ['symbol', 'ts', 'price', 'price_lag_1']
        """
        from headwater.timeseries.sources.opening import source_of
        from headwater.timeseries.stream import Stream

        plan = source_of(self, source, format=format, schema=schema, version=version, **options)
        stream = Stream(plan, lake=self)
        if time is not None:
            return stream.ordered(time, by=by, tiebreak=tiebreak)
        for name, given in (("by", by), ("tiebreak", tiebreak)):
            if given:
                raise InputError.bad_argument(name, given, "time= as well: the column that each series is ordered by")
        return stream

    # ------------------------------------------------------------------ functions

    def function(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        arguments: Sequence[pa.DataType | str],
        returns: pa.DataType | str,
        vectorised: bool = False,
        deterministic: bool = True,
        version: str = "",
    ) -> UserFunction:
        """Register a Python function, so that `sql` on DuckDB and `view` can call it by its name.

        A view keeps the name and the fingerprint of each function that it calls. It is refreshed only where that very
        function is registered.

        Parameters
        ----------
        name
            What it is called in SQL, in any case; not the name of a function of Spark's. One that is registered already
            is replaced.
        function
            Takes one argument for each of ``arguments``: Python values of a row (None for null), or Arrow arrays if
            ``vectorised``.
        arguments, returns
            Types: Arrow's, or Spark's as text (``"bigint"``, ``"array<string>"``).
        deterministic
            Does it give the same for the same arguments? Views that follow changes take no other ones.
        version
            To be changed when the function means something else though its text is the same: what it reads besides its
            arguments is not seen.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.function("initial", lambda s: s and s[0], arguments=["string"], returns="string")
        >>> lake.sql("SELECT initial('ann') AS a, initial(NULL) AS b").to_pylist()
        [{'a': 'a', 'b': None}]
        """
        from headwater.sql.functions.user import UserFunction, register
        from headwater.sql.statements.types import arrow_type_of

        if isinstance(arguments, str):
            raise InputError.bad_argument("arguments", arguments, "a list of types")
        given = [arrow_type_of(t) if isinstance(t, str) else t for t in (*arguments, returns)]
        for one in given:
            if not isinstance(one, pa.DataType):
                raise InputError.bad_argument("arguments", one, "types: Arrow's, or Spark's as text")
        *types, result = given
        made = UserFunction(name, function, tuple(types), result, vectorised, deterministic, version)
        register(made)
        self.user_functions[made.name.lower()] = made
        return made

    def environment(self) -> Environment:
        """The lake as derived artefacts see it."""
        from headwater.derived.environment import Environment
        from headwater.query.computing import computing

        return Environment(
            root=self.catalog.root,
            table=self.named,
            artefacts=self.catalog.artefacts,
            recorded=self.catalog.recorded,
            check_free=self.catalog.check_free,
            drop=self.catalog.drop,
            compute=computing(self),
            analyze=None if self._spark is None else self._analyzed,
            session=None if self._spark is None else lambda: self.spark,
            functions=self.user_functions,
            training_set=self.training_set,
        )

    def _analyzed(self, sql: str) -> str:
        """Spark's analyzed plan of a query over the lake's tables, as JSON."""
        from headwater.spark.analyzer import analyzed
        from headwater.sql.tokens import tokenize

        words = {str(t.value or t.text).lower() for t in tokenize(sql) if t.kind in ("word", "name")}
        named = [name for name in self.catalog.names() if name.rpartition(".")[2].lower() in words]
        called = {name: f.returns for name, f in self.user_functions.items() if name in words}
        return analyzed(self.spark, sql, {name: self.table(name).schema for name in named}, called)
