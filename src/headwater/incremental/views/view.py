"""The view: what a user holds. A handle on a query whose rows are kept in a Delta table of the same name.

>>> import headwater as hw, tempfile
>>> lake = hw.connect(tempfile.mkdtemp())
>>> orders = lake.write("orders", [{"customer": "ann", "amount": 5}, {"customer": "bob", "amount": 7}])
>>> spend = lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
>>> spend.refresh().mode
'full'
>>> _ = orders.append([{"customer": "ann", "amount": 1}])
>>> report = spend.refresh()
>>> report.mode, report.rows_in, report.rows_out, str(spend.frontier)
('incremental', 1, 2, 'orders@1')
>>> sorted(spend.to_pylist(), key=str)
[{'customer': 'ann', 'total': 6}, {'customer': 'bob', 'total': 7}]
>>> print(spend.verify())
equal at orders@1 (2 rows)
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base import events
from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.frontier import Frontier
from headwater.derived import kinds
from headwater.derived.attempt import Timings
from headwater.derived.comparison import compare
from headwater.derived.environment import Environment
from headwater.derived.handle import Handle
from headwater.derived.lookup import Lookup
from headwater.derived.reports import Refresh, Verification
from headwater.derived.sources import Sources, check_columns
from headwater.incremental.circuit import durable
from headwater.incremental.views import building, output_table, tidying
from headwater.incremental.views import live as lives
from headwater.incremental.views.costs import ViewPlan
from headwater.incremental.views.ddl import create_statement
from headwater.incremental.views.deciding import after_upstream, decide
from headwater.incremental.views.definition import Definition, Policy, check_functions, same_functions
from headwater.incremental.views.following import follow, next_stop
from headwater.incremental.views.output_table import Told, changed_metadata
from headwater.incremental.views.profile import table_of
from headwater.incremental.views.reading import read_definition
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.refreshing import RefreshAttempt, engine_of, refresh, view_attempts
from headwater.incremental.views.spark.choice import Engine, asked_for
from headwater.incremental.views.status import ViewStatus
from headwater.incremental.views.words import WORDS
from headwater.kernels.compile_time import Stopwatch
from headwater.lake.actions import Metadata
from headwater.lake.published import check_built
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.sql.passage import identifying, passage
from headwater.sql.plan.wording import worded_plan

if TYPE_CHECKING:
    from headwater.observe.graph import Graph

__all__ = ["View"]

_ANEW = "it was defined anew"
_NOTHING = Told()
_NOT_LOOKED_AT: Mapping[str, Snapshot] = MappingProxyType({})


class View(Handle):
    """A query whose rows are kept and follow its sources. Made by ``lake.view``."""

    kind = WORDS

    def __init__(self, name: str, table: Table, environment: Environment) -> None:
        super().__init__(name, environment)
        self.table = table
        self.timings: Timings = {}
        """Seconds that each part of the last refresh through this handle took."""

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def _meant(self) -> Definition:
        """The definition, if what it needs is at hand."""
        self.check_functions()
        return self._stored

    @property
    def _stored(self) -> Definition:
        found = Definition.of(self.table.snapshot)
        if found is None:
            raise InputError.not_derived(self.name, WORDS, self.table.location)
        return found

    def check_functions(self) -> None:
        """Raise if a function that the query calls is not registered, or is another one."""
        check_functions(self.name, self._stored.functions, self._environment.functions)

    @property
    def definition(self) -> str:
        """The query, in Spark SQL."""
        return self._stored.sql

    @property
    def policy(self) -> Policy:
        """How it may be refreshed: "auto", "strict" or "full"."""
        return self._stored.policy

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads."""
        return self._meant.sources

    @property
    def schema(self) -> pa.Schema:
        """The columns of the view."""
        return self._meant.schema

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tables that the query names, sorted."""
        return self._stored.reads

    @property
    def identity(self) -> tuple[str, ...]:
        """What its query groups by."""
        return identifying(self._meant.plan)

    def carried(self, table: str, columns: Sequence[str]) -> Mapping[str, str] | None:
        """Where its query passes the columns of a key of a table through (`headwater.sql.passage`)."""
        meant = self._meant
        relations = {relation for relation, (name, _) in meant.tables.items() if name == table}
        return passage(meant.plan, relations, columns)

    @property
    def record(self) -> ViewRecord:
        """What the newest refresh has committed."""
        return ViewRecord.of(self.table.snapshot)

    @property
    def version(self) -> int:
        """The version of its table."""
        return self.table.snapshot.version

    @property
    def rows(self) -> int | None:
        """How many rows it has, if the log knows."""
        return self.table.snapshot.num_rows

    # -- the contract ----------------------------------------------------------------------------------------------

    def refresh(
        self,
        until: Frontier | None = None,
        *,
        full: bool = False,
        cascade: bool = True,
        engine: Engine | None = None,
    ) -> Refresh:
        """Bring the view forward to ``until`` (default: the newest version of each source), after the views that it
        reads.

        Parameters
        ----------
        until
            versions of tables, and of views that are read. A view that it names is read at that version and not
            refreshed; one that it does not name is refreshed as far as ``until`` allows (`derived.cascade`).
        full
            compute it from scratch, whatever has changed; only the difference is published. Views that it reads are
            refreshed as usual.
        cascade
            refresh the views that it reads first. Their reports are the ``upstream`` of this one. Without it, the
            report's ``behind`` names those that have not read the newest rows.
        engine : "auto", "local" or "spark"
            who computes it, and the views that it reads: this process, or Spark's tasks; ``auto`` decides by the rows
            that are to be read. Both go on from the same state. By default what the setting ``view_engine`` says.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1, "amount": 5}])
        >>> _ = lake.view("large", "SELECT id FROM orders WHERE amount > 3")
        >>> count = lake.view("count", "SELECT count(*) AS n FROM large")
        >>> [one.name for one in count.refresh().upstream], count.to_pylist()
        (['large'], [{'n': 1}])
        """
        with asked_for(engine):
            return super().refresh(until, full=full, cascade=cascade)

    def refresh_alone(
        self,
        until: Frontier | None,
        *,
        full: bool = False,
        newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT,
    ) -> Refresh:
        """Bring the view forward, and nothing that it reads."""
        self.timings = {}
        return refresh(self.name, self.table, self._environment, until, full=full, timings=self.timings, newest=newest)

    def plan(self, until: Frontier | None = None, *, cascade: bool = True, engine: Engine | None = None) -> ViewPlan:
        """What `refresh` would do now, who would compute it, why, and what it is expected to take."""
        with asked_for(engine):
            found = super().plan(until, cascade=cascade)
        assert isinstance(found, ViewPlan), "it is the plan of a view"
        return found

    def plan_alone(
        self,
        until: Frontier | None,
        *,
        newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT,
        first: Sequence[str] = (),
    ) -> ViewPlan:
        """What `refresh_alone` would do."""
        meant, one = self._meant, lives.live(self._environment.root, self.name)
        record = one.informed(self.record, meant.sql)
        sources = Sources.pin(
            self.name,
            meant.inputs.values(),
            record.frontier,
            until,
            self._environment,
            kind=WORDS,
            newest=newest,
            unbuilt=bool(first),
        )
        found = decide(self.name, meant, record, sources)
        chosen = engine_of(self.name, meant, self._environment, sources, found, record.rates)
        if found.mode != "noop":
            found = replace(found, engine=chosen.engine, engine_reason=chosen.reason)
        return after_upstream(found, meant, first) if first else found

    def status(self, lookup: Lookup | None = None) -> ViewStatus:
        """What it is, and how fresh: its query, sources and frontier, how far it is behind, and the last refresh."""
        fields = self._status_fields(lookup or Lookup(self._environment))
        return ViewStatus(**fields, policy=self.policy)

    def read(self) -> pa.RecordBatchReader:
        """The rows, as of `frontier`, as a stream; an error if it was never built."""
        return self.table.to_reader()

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """The rows that the query gives at ``at``, computed by a query engine and streamed while it runs."""
        return self.recompute_over(at, {})

    def recompute_over(self, at: Frontier, instead: Mapping[str, Relation]) -> pa.RecordBatchReader:
        """The same, with other rows in the place of some tables: what the view would be, were they so."""
        meant = self._meant
        sources = Sources.pin(self.name, meant.inputs.values(), Frontier(), at, self._environment, kind=WORDS)
        relations: dict[str, Snapshot | Relation] = dict(sources.relations())
        for one in meant.inputs.values():
            if one.table in instead:
                relations[one.relation] = instead[one.table]
        reader = self._environment.compute(meant.answer_at(self.clock_at(at)), relations, meant.sql)
        schema = pa.schema([f.with_nullable(True) for f in meant.schema])

        def batches() -> Iterator[pa.RecordBatch]:
            seconds, watch = 0.0, Stopwatch()
            for batch in reader:
                seconds += watch.seconds()  # whoever reads may do slow things between two batches
                yield batch.cast(schema)
                watch = Stopwatch()
            if not instead:
                one = lives.live(self._environment.root, self.name)
                one.measured_query(meant.sql, sources.total_rows(), seconds + watch.seconds())

        return pa.RecordBatchReader.from_batches(schema, batches())

    def relations_at(self, at: Frontier) -> dict[str, Snapshot | Relation]:
        """What the names in its query stand for at a frontier."""
        inputs = self._meant.inputs.values()
        return dict(Sources.pin(self.name, inputs, Frontier(), at, self._environment, kind=WORDS).relations())

    def why_not_elsewhere(self) -> str | None:
        """Why its text does not give the same rows on another engine that speaks Spark SQL; None where it does."""
        meant = self._meant
        if meant.functions:
            return f"its query calls {', '.join(sorted(meant.functions))}(), which is registered in this process"
        if meant.policy == "full" and self.record.clock is not None:
            return "its query reads the clock"
        if meant.answer != meant.plan:
            return "SQL leaves open which of several rows its query means"
        return None

    def clock_at(self, at: Frontier) -> datetime:
        """What current_timestamp() stood for when it came to a frontier, if that is its own; else it is now."""
        record = self.record
        return record.clock if record.clock is not None and record.frontier == at else datetime.now(UTC)

    def verify(self) -> Verification:
        """Hold the rows against a recomputation at their frontier, in bounded memory; floats may differ in their last
        digits (`headwater.derived.comparison`).

        Views that it reads are taken as they are: ``behind`` names those that have not read the newest rows. Rows are
        recomputed by the engine that small queries run on; `Lake.verify` takes the ``engine``, and has Spark's tasks
        recompute and compare views of many rows.
        """
        now = self.table.pinned_to(self.table.snapshot)
        check_built(self.name, now.snapshot)
        at = ViewRecord.of(now.snapshot).frontier
        count = now.count()
        found = compare(at, expected=lambda: self.recompute(at), actual=now.to_reader, rows=count, name=self.name)
        return replace(found, behind=self.upstream_behind())

    # -- looking at it ---------------------------------------------------------------------------------------------

    def explain(self) -> str:
        """The query's plan, and the circuit that follows it, as text."""
        meant = self._meant
        plan = worded_plan(meant.plan).dump()
        head = f"view {self.name}, policy {meant.policy}, at {self.frontier or 'nothing'}\n\n{plan}"
        return head if meant.policy == "full" else f"{head}\n{self.graph().text()}"

    def graph(self) -> Graph:
        """The circuit as a picture, with what its operators have done: here, or until its state was saved."""
        meant = self._meant
        one = lives.live(self._environment.root, self.name)
        circuit = one.circuit
        if circuit is None:
            circuit, base = lives.built(meant), self.table.snapshot
            record, table = ViewRecord.of(base), base.state.metadata.id
            saved = None if record.state is None else one.folder.peek(record.state, table, record.published)
            if saved is not None:
                durable.recall(circuit, saved)
        circuit.name = self.name
        return circuit.graph()

    def jobs(self) -> pa.Table:
        """What each of Spark's jobs did in the last refresh by tasks that this process has started: rows, bytes and
        seconds. It is kept in memory, so another process, and this one after it was started again, has none.

        What the operators did in that refresh is in `profile`, what they did in all of them in `graph`.
        """
        from headwater.incremental.views.spark.stages import Stage

        done = lives.live(self._environment.root, self.name).stages
        names = [f.name for f in fields(Stage)]
        return pa.table({name: [getattr(one, name) for one in done] for name in names})

    def profile(self) -> pa.Table:
        """What the last refresh of this process did, on whichever engine: rows, bytes, shuffle, state read and written.

        One row for each stage (a job of Spark's tasks, or the one of this process), in which ``operator`` is null, and
        after it one for each of its operators, the slowest first. Of operators that run before an exchange only rows
        and bytes are known. State that is read is that of the files that were opened; a view whose state is in memory
        opens none, and what a small refresh adds to it is written a little later, and counted when it is. Like `jobs`
        it is kept in memory, and empty where this process has refreshed nothing.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"customer": "ann", "amount": 5}, {"customer": "bob", "amount": 7}])
        >>> spend = lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        >>> _ = spend.refresh()
        >>> done = spend.profile().select(["stage", "operator", "rows_in", "rows_out"]).to_pylist()
        >>> done[0]
        {'stage': 'in process', 'operator': None, 'rows_in': 2, 'rows_out': 2}
        >>> sorted(one["operator"] for one in done[1:])
        ['aggregate', 'answer', 'publish', 'source']
        """
        one = lives.live(self._environment.root, self.name)
        with one.guard:
            return table_of(one.profile())

    def follow(
        self,
        *,
        every_seconds: float = 1.0,
        available_now: bool = False,
        engine: Engine | None = None,
        most_rows: int | None = None,
    ) -> Iterator[Refresh]:
        """Refresh whenever a source has changed, and give each report; a refresh takes all that has come meanwhile.

        Each version of a source is in the view exactly once, whoever stops when: the commit that publishes its rows is
        the one that says so, and the next `follow`, here or elsewhere, goes on from there.

        Parameters
        ----------
        every_seconds
            how long to wait before looking again, at most, where nothing has changed
        available_now
            stop as soon as nothing has, for schedulers
        engine
            as in `refresh`
        most_rows
            how many changed rows of tables a refresh takes at most, where the view is many versions behind: it then
            comes forward in several refreshes, each a commit. Versions of tables are never cut, so one that changes
            more rows is taken as a whole; so is what builds the view, or what reads all rows for another reason. By
            default there is no limit.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1}])
        >>> count = lake.view("count", "SELECT count(*) AS n FROM orders")
        >>> [(one.mode, str(one.after)) for one in count.follow(available_now=True)]
        [('full', 'orders@0')]
        """
        if most_rows is not None and (not isinstance(most_rows, int) or isinstance(most_rows, bool) or most_rows < 1):
            raise InputError.bad_argument("most_rows", most_rows, "a number of rows, 1 or more")

        def stop() -> Frontier | None:
            until = None if most_rows is None else next_stop(self.name, self._environment, most_rows)
            # Where all rows are read anyway, doing so at each stop would only be more work.
            return None if until is not None and self.plan(until, engine=engine).mode == "full" else until

        def refresh(until: Frontier | None) -> Refresh:
            return self.refresh(until, engine=engine)

        return follow(refresh, stop, every_seconds, available_now=available_now)

    def create_statement(self) -> str:
        """The CREATE MATERIALIZED VIEW that would make a view like this one."""
        return create_statement(self.name, self._stored, self.table.snapshot)

    # -- changing it -----------------------------------------------------------------------------------------------

    def has(self, sql: str, *, policy: Policy = "auto", shards: int = 1, told: Told = _NOTHING) -> bool:
        """Whether this is its definition, by the functions that are registered now,
        and its sources still have the columns that it reads.
        """
        meant = self._stored
        if (meant.sql, meant.policy, meant.shards) != (sql, policy, shards):
            return False
        old = self.table.snapshot.state.metadata
        if told != _NOTHING and changed_metadata(self.name, meant.schema, old, told) is not None:
            return False
        if not same_functions(meant.functions, self._environment.functions):
            return False
        self.check_functions()
        try:
            for one in meant.inputs.values():
                check_columns(self.name, one, self._environment.table(one.table).snapshot, WORDS)
        except SchemaError:
            return False
        except NotFoundError:  # refreshing will tell
            return True
        return True

    def redefine(self, sql: str, *, policy: Policy = "auto", shards: int = 1, told: Told = _NOTHING) -> Refresh | None:
        """Give it another query; its rows become those of that query, at the same versions of the sources, in one
        commit.

        None if it has this query already; then only what is ``told`` of its table may change.
        """
        meant = read_definition(self.name, sql, policy, shards, self._environment)
        if self.built:
            self._build_upstream(meant)
        for attempt in view_attempts(self.name, self.table, self._environment):
            with attempt:
                have = attempt.definition
                metadata = changed_metadata(self.name, meant.schema, attempt.base.state.metadata, told)
                same = have.same_query(meant) and (have.policy, have.shards) == (policy, shards)
                if same and metadata is None:
                    return None
                done = self._redefined(attempt, meant, metadata)
                tidying.ask(self.name, self.table, self._environment, attempt.base)
                return done
        raise AssertionError("the last attempt raises")

    def _build_upstream(self, meant: Definition) -> None:
        """Build views that a new query reads and that were never built: its rows are computed at once."""
        lookup = Lookup(self._environment)
        for name in meant.reads:
            upstream = lookup.artefact(name)
            if upstream is not None and not upstream.built:
                kinds.kind(upstream.kind.name).open(name, self._environment).refresh()

    def _redefined(self, attempt: RefreshAttempt, meant: Definition, metadata: Metadata | None) -> Refresh | None:
        record = attempt.record
        if not record.published or attempt.definition.same_query(meant):
            output_table.redefine(attempt.base, meant, metadata)
            return None
        with events.task(f"define {self.name}", unit="rows") as task:
            try:
                sources, keep = self._where_it_is(meant, record)
                attempt.anew(sources, _ANEW, task, definition=meant, metadata=metadata, keep=keep)
            except NotFoundError:  # those versions cannot be read any more
                newest = Sources.pin(self.name, meant.inputs.values(), Frontier(), None, self._environment, kind=WORDS)
                attempt.anew(newest, _ANEW, task, definition=meant, metadata=metadata)
        return attempt.done

    def _where_it_is(self, meant: Definition, record: ViewRecord) -> tuple[Sources, bool]:
        """The sources of a new query: those of the old one stay where they are, others come in as they are now.

        Also whether the state is that of these very tables.
        """
        inputs, environment = meant.inputs.values(), self._environment
        sources = Sources.pin(self.name, inputs, Frontier(), record.frontier, environment, kind=WORDS)
        newest = Sources.pin(self.name, inputs, record.frontier, None, environment, kind=WORDS)
        others = {n for n in newest.pinned if n in newest.replaced or newest.mistaken(n)}
        moved = {n: base for n, base in newest.pinned.items() if n not in record.frontier or n in others}
        sources.pinned.update(moved)
        return sources, not others

    def optimize(self) -> None:
        """Put small files together, fold deletion vectors away, and merge the state; the rows stay the same.

        What the state takes afterwards is what that of a view which was just built takes: rows that were deleted are
        gone, and so are the files that it lay in before.
        """
        self.check_functions()
        for attempt in view_attempts(self.name, self.table, self._environment):
            with attempt:
                attempt.optimize()
                return

    def purge(self) -> None:
        """Fold deletion vectors away, merge the state, and delete every state but the one that is committed."""
        record = self.record
        if (
            self.built and record.published != self.version
        ):  # others have committed since: there is nothing to go on from
            self.refresh_alone(None, full=True)
        self.optimize()
        tidying.finish(self._environment.root)
        one = lives.live(self._environment.root, self.name)
        with one.guard:
            one.discard()  # runs that are in memory would keep their files
            gc.collect()
            one.folder.purge(self.record.state)

    def delete(self) -> None:
        """Delete the view with its table and its state, whoever reads it: `drop` asks for them."""
        building.stop(self.name, self._environment)
        tidying.stop(self.name, self._environment)
        one = lives.live(self._environment.root, self.name)
        with one.guard:
            with one.folder.held():
                self._environment.drop(self.name)
                one.discard()
                one.folder.remove()
            lives.forget(self._environment.root, self.name)
