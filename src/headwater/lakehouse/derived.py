"""The nouns of a lake that are derived from its tables: views, exports, and what is the same for every kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from headwater.base.errors import NotFoundError
from headwater.base.kinds import ARTEFACT
from headwater.derived import kinds

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.environment import Environment
    from headwater.derived.port import DerivingLake
    from headwater.derived.refreshes import Refreshes
    from headwater.derived.status import Status
    from headwater.export import Export
    from headwater.incremental.views import View
    from headwater.search.index import SearchIndex
    from headwater.search.several import SeveralResult
    from headwater.serving.online import Online
    from headwater.spark.types import StreamingQuery
    from headwater.timeseries.features import FeatureTable
    from headwater.timeseries.stream import Stream
    from headwater.timeseries.training import TrainingSet

__all__ = ["DerivedNouns"]

# Each kind of derived artefact and the module that opens it.
kinds.declare("view", "headwater.incremental.views.kind")
kinds.declare("export", "headwater.export.kind")
kinds.declare("online", "headwater.serving.online.kind")
kinds.declare("features", "headwater.timeseries.features.kind")
kinds.declare("index", "headwater.search.kind", functions=("search",), narrows=True)


class DerivedNouns:
    """The part of `Lake` that is about what is derived; it needs nothing of a lake but its environment."""

    # ------------------------------------------------------------------ views

    def view(
        self: DerivingLake,
        name: str,
        sql: str | None = None,
        *,
        policy: Literal["auto", "strict", "full"] = "auto",
        shards: int = 1,
        refresh: bool = False,
        **options: Any,
    ) -> View:
        """A materialized view: a query whose rows are kept in a table of that name, and follow its sources.

        Parameters
        ----------
        sql
            The query, in Spark SQL. A view that is not there is made, but not built: reading it is an error before
            `View.refresh`, or ``refresh=True``, has built it. One that has another query gets this one, and its rows
            with it. Without a query, the view must be there. ``SELECT *`` means the columns that the sources have now.
        policy
            "auto" follows changes where it can and is quicker, and says when it computes anew; "strict" never computes
            anew by itself; "full" always does.
        shards
            How many parts its state has; large steps then run on as many threads.
        refresh
            Refresh it as well, after the views that it reads.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 5}])
        >>> total = lake.view("total", "SELECT sum(amount) AS total FROM orders", refresh=True)
        >>> lake.view("total").to_pylist()
        [{'total': 15}]
        """
        from headwater.incremental.views.declaration import define, open_view

        environment = self.environment()
        if sql is None:
            view = open_view(name, environment)
        else:
            view = define(name, sql, environment, policy=policy, shards=shards, **options)
        if refresh:
            view.refresh()
        return view

    def views(self: DerivingLake) -> list[str]:
        """The names of the lake's materialized views."""
        return self.environment().names("view")

    # ------------------------------------------------------------------ feature tables

    def features(
        self: DerivingLake,
        name: str,
        build: Callable[[Any], Any] | None = None,
        *,
        policy: Literal["auto", "strict", "full"] | None = None,
        refresh: bool = False,
    ) -> FeatureTable:
        """A feature table: the rows of a stream over tables of the lake, kept in a table of that name, which follow
        them.

        Parameters
        ----------
        build
            A function that takes a lake and gives a stream: it is called with one whose only method is `stream`, at the
            versions that are to be read. Without it the table must be there, or be declared by ``@hw.feature``.
        policy
            "auto" computes again just what changes can touch, where every operator allows that, and says when and why
            it computes everything; "strict" never computes everything by itself; "full" always does.
        refresh
            Refresh it as well, after what it reads.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("payments", [{"card": "a", "ts": 1, "amount": 5}, {"card": "a", "ts": 4, "amount": 7}])
        >>> def velocity(lake):
        ...     return lake.stream("payments", time="ts", by="card").rolling(10, spent="sum(amount)")
        >>> lake.features("velocity", velocity, refresh=True).to_arrow()["spent"].to_pylist()
        [5, 12]
        """
        from headwater.timeseries.features.kind import define

        found = define(name, build, self.environment(), policy=policy)
        if refresh:
            found.refresh()
        return found

    def follow(
        self: DerivingLake, stream: Stream, into: str, *, every: str | None = None, available_now: bool = False
    ) -> StreamingQuery:
        """Keep a stream's rows in a table while its sources go on: see `Stream.follow`."""
        from headwater.timeseries.live import follow_table, kept

        table = kept(stream, into, self.environment())
        return follow_table(table, self, every=every, available_now=available_now)

    def training_set(
        self: DerivingLake,
        labels: Any,
        features: Any,
        *,
        time: str | None = None,
        by: str | Sequence[str] | None = None,
        known_at: Any = None,
        tolerance: Any = None,
    ) -> TrainingSet:
        """Labels, each with the features that were known for it: joined by event time and by commit time.

        Parameters
        ----------
        labels
            A table or view by its name, a stream, or rows: Arrow, pandas, polars or a DataFrame of Spark's.
        features
            Names of tables, views and feature tables, or streams that filter and select rows of one; one or several.
            Each label is given the latest row of its keys up to its own time.
        time, by
            The columns of the labels: when each was to be predicted, and the keys by which features are looked up. A
            feature table and a stream are looked up by their own ``by``, which have to be columns of the labels.
        known_at
            The moment at which the features of a label had to be visible in the lake: a column of the labels, a
            timestamp for all, or a delay after ``time`` (a ``timedelta``). Without it all that the tables say now
            counts, and ``report`` says for how many labels that gives what was not known at their time.
        tolerance
            How far before a label's time its features may lie ("7 days").

        >>> import headwater as hw, tempfile
        >>> from datetime import datetime, UTC
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> scores = lake.write("scores", [{"card": "a", "ts": datetime(2026, 1, 1, tzinfo=UTC), "score": 5}])
        >>> before = datetime.now(UTC)
        >>> _ = scores.update({"score": "9"}, where="card = 'a'")
        >>> labels = [{"card": "a", "ts": datetime(2026, 1, 2, tzinfo=UTC), "fraud": True}]
        >>> lake.training_set(labels, "scores", time="ts", by="card").to_pylist()[0]["score"]
        9
        """
        from headwater.timeseries.training.training_set import training_set

        return training_set(self, labels, features, time=time, by=by, known_at=known_at, tolerance=tolerance)

    # ------------------------------------------------------------------ exports

    def export(
        self: DerivingLake,
        name: str,
        source: str | None = None,
        *,
        to: str | os.PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        refresh: bool = False,
    ) -> Export:
        """An export: the rows of a table or view as plain Parquet files, for readers that do not know Delta.

        Parameters
        ----------
        source
            The table or view. Without it, the export must be there.
        to
            The folder, local or on S3, that the files are written to; below the lake's own folder by default.
        columns, where
            Some columns, and a condition on the rows, in Spark SQL; all that the source has now by default.
        refresh
            Refresh it as well.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 5}])
        >>> large = lake.export("large", "orders", where="amount > 5", refresh=True)
        >>> _ = orders.append([{"id": 3, "amount": 7}]), orders.delete("id = 1")
        >>> print(large.plan())
        incremental: 2 files changed
          orders: 2 rows changed
        >>> large.refresh().rows_out
        2
        >>> import pyarrow.dataset as ds
        >>> ds.dataset(large.files).to_table().to_pylist()
        [{'id': 3, 'amount': 7}]
        """
        from headwater.export.kind import KIND, define

        environment = self.environment()
        if source is None:
            found = KIND.open(name, environment)
        else:
            place = None if to is None else os.fspath(to)
            found = define(name, source, environment, to=place, columns=columns, where=where)
        if refresh:
            found.refresh()
        return found

    # ------------------------------------------------------------------ online tables

    def online(
        self: DerivingLake,
        name: str,
        source: str | None = None,
        *,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        ttl: str | timedelta | None = None,
        event_time: str | None = None,
        order_by: str | None = None,
        parts: int = 0,
        refresh: bool = False,
    ) -> Online:
        """An online table: the rows of a table or view by a key, looked up in microseconds, here or by a server.

        Parameters
        ----------
        source
            The table or view. Without it, the online table must be there.
        key
            The column, or columns, that identify a row. A key that occurs twice is an error, unless ``order_by`` says
            which row counts.
        columns
            What can be fetched; everything but the key by default.
        ttl, event_time
            A row whose ``event_time`` is longer ago than ``ttl`` ("1 day") is answered with nulls, and a status that
            says so.
        order_by
            Of several rows with one key that counts whose value of this column is largest.
        parts
            How many files hold the rows; by default one, or by their number where Spark builds it.
        refresh
            Refresh it as well, after what it reads.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"customer": "ada", "amount": 10}, {"customer": "bob", "amount": 5}])
        >>> _ = lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        >>> features = lake.online("features", "spend", key="customer", refresh=True)
        >>> features.fetch(["bob", "eve"]).to_pylist()
        [{'total': 5}, {'total': None}]
        """
        from headwater.serving.online.kind import KIND, make

        environment = self.environment()
        if source is None:
            found = KIND.open(name, environment)
        else:
            found = make(
                name,
                source,
                environment,
                key=key,
                columns=columns,
                ttl=ttl,
                event_time=event_time,
                order_by=order_by,
                parts=parts,
            )
        if refresh:
            found.refresh()
        return found

    # ------------------------------------------------------------------ search indexes

    def index(
        self: DerivingLake,
        name: str,
        on: str | None = None,
        *,
        text: Sequence[str] | Mapping[str, Any] | str | None = None,
        keyword: Sequence[str] | str | None = None,
        numeric: Sequence[str] | str | None = None,
        binary: Sequence[str] | str | None = None,
        ip: Sequence[str] | str | None = None,
        json: Sequence[str] | str | None = None,
        substring: Sequence[str] | str = (),
        hot: Sequence[str] | str = (),
        analyzer: str = "default",
        target_rows: int = 1_000_000,
        refresh: bool = False,
    ) -> SearchIndex:
        """A search index: finds the rows of a table or view by the words in them, and is never wrong about which are
        there.

        Parameters
        ----------
        on
            The table or view. Without it, the index must be there.
        text
            Columns whose words are found; ``{"body": {"analyzer": "en_stem", "positions": False}}`` sets options for
            each. Without any fields, all columns that are strings, numbers, booleans, dates or timestamps are indexed.
        keyword
            Columns whose values are found as a whole, ordered and counted.
        numeric
            Columns of numbers, booleans, dates and timestamps.
        binary, ip, json
            Columns of bytes; of strings that are IP addresses; of structs, arrays, maps or strings of JSON.
        substring
            Fields with trigrams, so that ``*x*`` and `contains` take next to no time: about twice the size.
        hot
            Columns whose values are kept in the index, so that results with only these need not read the table.
        analyzer
            How text becomes words: see `headwater.search.analyzers`.
        target_rows
            How many rows one split holds at most.
        refresh
            Refresh it as well, after what it reads.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("notes", [{"id": 1, "body": "The card was lost"}, {"id": 2, "body": "Paid by card"}])
        >>> notes = lake.index("notes_ix", "notes", text=["body"], refresh=True)
        >>> [row["id"] for row in notes.search('"card was lost" OR stolen')]
        [1]
        """
        from headwater.search.kind import KIND, make

        environment = self.environment()
        if on is None:
            found = KIND.open(name, environment)
        else:
            found = make(
                name, on, environment, text=text, keyword=keyword, numeric=numeric, binary=binary, ip=ip, json=json,
                substring=substring, hot=hot, analyzer=analyzer, target_rows=target_rows,
            )  # fmt: skip
        if refresh:
            found.refresh()
        return found

    def search(
        self: DerivingLake,
        query: str,
        indexes: Sequence[str] | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        k: int | None = 10,
        offset: int = 0,
        default: Literal["or", "and"] = "or",
        lenient: bool = False,
    ) -> SeveralResult:
        """The best rows of several indexes, by default all of the lake's, each with its index and its score.

        Scores are those that each index gives. A field that an index does not have matches nothing there. What else can
        be asked of one index, such as an order or a condition, is asked by `SearchIndex.search`.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("notes", [{"id": 1, "body": "card lost"}])
        >>> _ = lake.write("mails", [{"id": 7, "subject": "a lost card"}])
        >>> _ = lake.index("notes_ix", "notes", text="body", refresh=True)
        >>> _ = lake.index("mails_ix", "mails", text="subject", refresh=True)
        >>> sorted((row["_index"], row["id"]) for row in lake.search("lost", columns=["id"]))
        [('mails_ix', 7), ('notes_ix', 1)]
        """
        from headwater.search.kind import KIND
        from headwater.search.several import search_several

        environment = self.environment()
        if indexes is None:
            names = environment.names("index")
        else:
            names = [indexes] if isinstance(indexes, str) else list(dict.fromkeys(indexes))
        opened = [KIND.open(name, environment) for name in names]
        return search_several(opened, query, columns=columns, k=k, offset=offset, default=default, lenient=lenient)

    # ------------------------------------------------------------------ everything that is derived

    def artefacts(self: DerivingLake) -> dict[str, str]:
        """The names of everything that is derived in this lake, sorted, each with its kind.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1}])
        >>> _ = lake.view("n", "SELECT count(*) AS n FROM orders")
        >>> lake.artefacts()
        {'n': 'view'}
        """
        return dict(self.environment().artefacts())

    def derived(self: DerivingLake, name: str) -> Artefact:
        """The derived artefact of that name, of whatever kind: its frontier, lag, plan, refresh, verify and drop."""
        return _opened(name, self.environment())

    def refresh(
        self: DerivingLake,
        *names: str,
        full: bool = False,
        cascade: bool = True,
        engine: Literal["auto", "local", "spark"] | None = None,
    ) -> Refreshes:
        """Refresh some derived artefacts, or all, each once and after those that it reads.

        One that fails does not stop the others, but for those that read it: look at ``failed`` and ``skipped`` of the
        result, or at ``ok``.

        Parameters
        ----------
        full
            Compute those that are named from scratch.
        cascade
            Refresh what they read as well.
        engine
            Who computes views (`View.refresh`); by default what the setting ``view_engine`` says.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1}])
        >>> _ = lake.view("some", "SELECT id FROM orders WHERE id > 0")
        >>> _ = lake.view("n", "SELECT count(*) AS n FROM some")
        >>> [(one.name, one.mode) for one in lake.refresh()]
        [('some', 'full'), ('n', 'full')]
        """
        from headwater.derived.refreshes import refresh_several
        from headwater.incremental.views.spark.choice import asked_for

        with asked_for(engine):
            return refresh_several(names, self.environment(), full=full, cascade=cascade)

    def status(self: DerivingLake, *names: str) -> list[Status]:
        """How fresh some derived artefacts are, or all: definition, sources, frontier, lag and last refresh of each.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1}])
        >>> _ = lake.view("n", "SELECT count(*) AS n FROM orders", refresh=True)
        >>> _ = orders.append([{"id": 2}])
        >>> [(one.name, one.stale, one.lag_text) for one in lake.status()]
        [('n', True, '1 version behind `orders`')]
        """
        environment = self.environment()
        return [_opened(name, environment).status() for name in names or environment.artefacts()]

    def drop_view(self: DerivingLake, name: str, *, cascade: bool = False) -> list[str]:
        """Delete a materialized view, with its table and its state; its functions need not be registered. See
        `View.drop`.
        """
        return kinds.kind("view").open(name, self.environment()).drop(cascade=cascade)


def _opened(name: str, environment: Environment) -> Artefact:
    """The artefact of that name, of whatever kind."""
    from headwater.derived.lookup import Lookup

    found = Lookup(environment).artefact(environment.table(name).name)
    if found is None:
        raise NotFoundError.derived(name, ARTEFACT, list(environment.artefacts()), environment.root.url)
    return kinds.kind(found.kind.name).open(found.name, environment)
