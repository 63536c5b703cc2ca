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
>>> sorted(spend.read().to_pylist(), key=str)
[{'customer': 'ann', 'total': 6}, {'customer': 'bob', 'total': 7}]
>>> print(spend.verify())
equal at orders@1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from headwater.base import events
from headwater.base.errors import InputError, NotFoundError, SchemaError, UnsupportedError
from headwater.base.frontier import Frontier
from headwater.base.schema import Schema
from headwater.derived.contract import Behind, Derived, Refresh, Verification
from headwater.incremental.circuit import durable
from headwater.incremental.views import live as lives
from headwater.incremental.views import output_table, tidying
from headwater.incremental.views.cascade import plan_with_upstream, refresh_with_upstream
from headwater.incremental.views.comparing import compare
from headwater.incremental.views.costs import RefreshPlan
from headwater.incremental.views.cycles import check_cycle
from headwater.incremental.views.deciding import decide
from headwater.incremental.views.definition import Definition, Policy
from headwater.incremental.views.dropping import drop_readers
from headwater.incremental.views.functions import check_functions, same_functions
from headwater.incremental.views.output_columns import check_output
from headwater.incremental.views.output_table import Told, changed_metadata
from headwater.incremental.views.record import Record
from headwater.incremental.views.refreshing import RefreshAttempt, Timings, attempts, refresh
from headwater.incremental.views.refusals import about_keeping
from headwater.incremental.views.sources import Sources, check_columns
from headwater.incremental.views.status import ViewStatus, status_of
from headwater.incremental.views.surroundings import Surroundings
from headwater.incremental.views.upstream import Looked, behind, lag_of
from headwater.kernels.compile_time import Stopwatch
from headwater.lake.actions import Metadata
from headwater.lake.published import check_built, is_built
from headwater.lake.table import Table
from headwater.sql.plan.wording import worded_plan

if TYPE_CHECKING:
    from headwater.observe.graph import Graph

__all__ = ["View", "define", "found_view", "open_view"]

Mode = Literal["open", "replace", "error", "ignore"]
_ANEW = "it was defined anew"
_NOTHING = Told()


def open_view(name: str, around: Surroundings) -> View:
    """The view of that name; its functions have to be at hand."""
    view = found_view(name, around)
    check_functions(view.name, view._stored.functions, around.functions)
    return view


def found_view(name: str, around: Surroundings) -> View:
    """The view of that name, to be defined anew or dropped."""
    table = around.table(name)
    if not table.exists():
        raise NotFoundError.view(name, around.views(), around.root.url)
    if Definition.of(table.snapshot) is None:
        raise InputError.not_a_view(name, table.location)
    return View(table.name, table, around)


def define(
    name: str,
    sql: str,
    around: Surroundings,
    *,
    policy: Policy = "auto",
    shards: int = 1,
    mode: Mode = "open",
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> View:
    """The view of that name with this definition, made or changed where it has to be.

    ``mode`` is about a view that is there: it is opened if it has this text, and else gets it; gets it in any case, as it is to be read
    now; is an error; or stays as it is.
    """
    output_table.check_properties(properties or {})
    table = around.table(name)
    if table.exists():
        view = found_view(name, around)
        if mode == "error":
            raise InputError.view_exists(name, table.location)
        told = Told(properties, comment, wholly=mode == "replace")
        if mode == "replace" or (mode == "open" and not view.has(sql, policy=policy, shards=shards, told=told)):
            view.redefine(sql, policy=policy, shards=shards, told=told)
        return view
    meant = _read(table.name, sql, policy, shards, around)
    metadata = output_table.metadata_for(table.name, meant.schema, properties=properties, comment=comment)
    around.check_free(table.name)
    if output_table.create(table.storage, metadata, meant) is None:  # somebody else was quicker
        return define(
            name, sql, around, policy=policy, shards=shards, mode=mode, properties=properties, comment=comment
        )
    return View(table.name, table, around)


def _read(name: str, sql: str, policy: Policy, shards: int, around: Surroundings) -> Definition:
    def schema_of(wanted: str) -> tuple[str, Schema]:
        found = around.table(wanted)
        schema = found.snapshot.schema
        check_cycle(name, sql, found.name, around.table)
        return found.name, schema

    meant = Definition.read(sql, policy, shards, schema_of, around.analyze, around.functions)
    check_output(meant.schema, sql)
    if policy != "full":
        from headwater.incremental import planning

        try:
            planning.check(meant.plan, sql)
        except UnsupportedError as refusal:
            about_keeping(refusal)
            raise
        lives.built(meant)
    return meant


def _check_until(until: Frontier | None) -> None:
    if until is not None and not isinstance(until, Frontier):
        raise InputError.bad_argument("until", until, 'a frontier, such as Frontier.parse("orders@42")')


class View(Derived):
    """A query whose rows are kept and follow its sources. Made by ``lake.view``."""

    def __init__(self, name: str, table: Table, around: Surroundings) -> None:
        self._name = name
        self._around = around
        self.table = table
        self.timings: Timings = {}
        """Seconds that each part of the last refresh through this handle took."""

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the view, and of its table."""
        return self._name

    @property
    def _meant(self) -> Definition:
        """The definition, if what it needs is at hand."""
        found = self._stored
        check_functions(self.name, found.functions, self._around.functions)
        return found

    @property
    def _stored(self) -> Definition:
        found = Definition.of(self.table.snapshot)
        if found is None:
            raise InputError.not_a_view(self.name, self.table.location)
        return found

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
    def frontier(self) -> Frontier:
        """The version of each source that the rows reflect; without entries while the view was never built."""
        return Record.of(self.table.snapshot).frontier

    def __repr__(self) -> str:
        return f"View({self.name!r}, {self.frontier or 'never built'})"

    # -- the contract ----------------------------------------------------------------------------------------------

    def refresh(self, until: Frontier | None = None, *, full: bool = False, cascade: bool = True) -> Refresh:
        """Bring the view forward to ``until`` (default: the newest version of each source), after the views that it
        reads.

        Parameters
        ----------
        until
            versions of tables, and of views that are read. A view that it names is read at that version and not
            refreshed; one that it does not name is refreshed as far as ``until`` allows (`cascade`).
        full
            compute it from scratch, whatever has changed; only the difference is published. Views that it reads are
            refreshed as usual.
        cascade
            refresh the views that it reads first. Their reports are the ``upstream`` of this one. Without it, the
            report's ``behind`` names those that have not read the newest rows.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1, "amount": 5}])
        >>> _ = lake.view("large", "SELECT id FROM orders WHERE amount > 3")
        >>> count = lake.view("count", "SELECT count(*) AS n FROM large")
        >>> [one.name for one in count.refresh().upstream], count.read().to_pylist()
        (['large'], [{'n': 1}])
        """
        _check_until(until)
        self.timings = {}
        if cascade:
            return refresh_with_upstream(self.name, self.table, self._around, until, full=full, timings=self.timings)
        done = refresh(self.name, self.table, self._around, until, full=full, timings=self.timings)
        tidying.ask(self.name, self.table, self._around)
        left = self.upstream_behind() if until is None else ()
        if left and done.mode == "noop":
            done = replace(done, reason=f"{done.reason} in what it reads, which is behind itself")
        return replace(done, behind=left)

    def status(self) -> ViewStatus:
        """What it is, and how fresh: its query, sources and frontier, how far it is behind, and the last refresh."""
        return status_of(self.name, self.table.snapshot, self._around)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def upstream_behind(self) -> tuple[Behind, ...]:
        """The views that it reads, directly or through others, and that are behind their own sources."""
        return behind(self._stored.reads, Looked(self._around))

    def lag(self) -> dict[str, int | None]:
        """By how many versions it is behind each source whose rows have changed; None for a source that is gone."""
        base = self.table.snapshot
        return lag_of(self._stored, Record.of(base), Looked(self._around))

    @property
    def built(self) -> bool:
        """Whether it was ever built: else it has no rows to read."""
        return is_built(self.table.snapshot)

    def read(self) -> pa.Table:
        """The rows, as of `frontier`; an error if it was never built."""
        return self.table.to_arrow()

    def recompute(self, at: Frontier) -> pa.Table:
        """The rows that the query gives at ``at``, computed by a query engine."""
        meant, watch = self._meant, Stopwatch()
        sources = Sources.pin(self.name, meant, Record(), at, self._around)
        record = Record.of(self.table.snapshot)
        clock = record.clock if record.clock is not None and record.frontier == at else datetime.now(UTC)
        reader = self._around.compute(meant.answer_at(clock), sources.relations(), meant.sql)
        schema = pa.schema([f.with_nullable(True) for f in meant.schema])
        rows = pa.Table.from_batches([b.cast(schema) for b in reader], schema)
        one = lives.live(self._around.root, self.name)
        one.measured_query(meant.sql, sources.total_rows(), watch.seconds())
        return rows

    def verify(self) -> Verification:
        """Hold the rows against a recomputation at their frontier; floats may differ in their last digits.

        Views that it reads are taken as they are: ``behind`` names those that have not read the newest rows.
        """
        now = self.table.pinned_to(self.table.snapshot)
        check_built(self.name, now.snapshot)
        at = Record.of(now.snapshot).frontier
        found = compare(at, expected=self.recompute(at), actual=now.to_arrow())
        return replace(found, behind=self.upstream_behind())

    # -- looking at it ---------------------------------------------------------------------------------------------

    def plan(self, until: Frontier | None = None, *, cascade: bool = True) -> RefreshPlan:
        """What `refresh` would do now, why, and what it is expected to take."""
        _check_until(until)
        if cascade:
            check_functions(self.name, self._stored.functions, self._around.functions)
            return plan_with_upstream(self.name, self.table, self._around, until)
        one = lives.live(self._around.root, self.name)
        meant = self._meant
        record = one.informed(Record.of(self.table.snapshot), meant.sql)
        found = decide(self.name, meant, record, Sources.pin(self.name, meant, record, until, self._around))
        return replace(found, behind=self.upstream_behind() if until is None else ())

    def explain(self) -> str:
        """The query's plan, and the circuit that follows it, as text."""
        meant = self._meant
        plan = worded_plan(meant.plan).dump()
        head = f"view {self.name}, policy {meant.policy}, at {self.frontier or 'nothing'}\n\n{plan}"
        return head if meant.policy == "full" else f"{head}\n{self.graph().text()}"

    def graph(self) -> Graph:
        """The circuit as a picture, with what its operators have done: here, or until its state was saved."""
        meant = self._meant
        one = lives.live(self._around.root, self.name)
        circuit = one.circuit
        if circuit is None:
            circuit, base = lives.built(meant), self.table.snapshot
            record, table = Record.of(base), base.state.metadata.id
            saved = None if record.state is None else one.folder.peek(record.state, table, record.published)
            if saved is not None:
                durable.recall(circuit, saved)
        circuit.name = self.name
        return circuit.graph()

    # -- changing it -----------------------------------------------------------------------------------------------

    def has(self, sql: str, *, policy: Policy = "auto", shards: int = 1, told: Told = _NOTHING) -> bool:
        """Whether this is its definition, by the functions that are registered now, and its sources still have the columns that it reads."""
        meant = self._stored
        if (meant.sql, meant.policy, meant.shards) != (sql, policy, shards):
            return False
        old = self.table.snapshot.state.metadata
        if told != _NOTHING and changed_metadata(self.name, meant.schema, old, told) is not None:
            return False
        if not same_functions(meant.functions, self._around.functions):
            return False
        check_functions(self.name, meant.functions, self._around.functions)
        try:
            for one in meant.inputs.values():
                check_columns(self.name, one, self._around.table(one.table).snapshot)
        except SchemaError:
            return False
        except NotFoundError:  # refreshing will tell
            return True
        return True

    def redefine(self, sql: str, *, policy: Policy = "auto", shards: int = 1, told: Told = _NOTHING) -> Refresh | None:
        """Give it another query; its rows become those of that query, at the same versions of the sources, in one commit.

        None if it has this query already; then only what is ``told`` of its table may change.
        """
        meant = _read(self.name, sql, policy, shards, self._around)
        if Record.of(self.table.snapshot).published:
            self._build_upstream(meant)
        for attempt in attempts(self.name, self.table, self._around):
            with attempt:
                have = attempt.definition
                metadata = changed_metadata(self.name, meant.schema, attempt.base.state.metadata, told)
                same = have.same_query(meant) and (have.policy, have.shards) == (policy, shards)
                if same and metadata is None:
                    return None
                done = self._redefined(attempt, meant, metadata)
                tidying.ask(self.name, self.table, self._around)
                return done
        raise AssertionError("the last attempt raises")

    def _build_upstream(self, meant: Definition) -> None:
        """Build views that a new query reads and that were never built: its rows are computed at once."""
        looked = Looked(self._around)
        for name in meant.reads:
            base = looked.snapshot(name)
            if base is not None and looked.sources(name) is not None and not is_built(base):
                found_view(name, self._around).refresh()

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
                newest = Sources.pin(self.name, meant, Record(), None, self._around)
                attempt.anew(newest, _ANEW, task, definition=meant, metadata=metadata)
        return attempt.done

    def _where_it_is(self, meant: Definition, record: Record) -> tuple[Sources, bool]:
        """The sources of a new query: those of the old one stay where they are, others come in as they are now.

        Also whether the state is that of these very tables.
        """
        sources = Sources.pin(self.name, meant, Record(), record.frontier, self._around)
        newest = Sources.pin(self.name, meant, record, None, self._around)
        others = {n for n in newest.pinned if n in newest.replaced or newest.mistaken(n)}
        moved = {n: base for n, base in newest.pinned.items() if n not in record.frontier or n in others}
        sources.pinned.update(moved)
        return sources, not others

    def optimize(self) -> None:
        """Put small files together, fold deletion vectors away, and merge the state; the rows stay the same.

        What the state takes afterwards is what that of a view which was just built takes: rows that were deleted are gone, and so are the files that
        it lay in before.
        """
        check_functions(self.name, self._stored.functions, self._around.functions)
        for attempt in attempts(self.name, self.table, self._around):
            with attempt:
                attempt.optimize()
                return

    def drop(self, *, cascade: bool = False) -> list[str]:
        """Delete the view, with its table and its state; gives the names of what was deleted, in that order.

        Views that read it are deleted before it with ``cascade``, and are an error without.
        """
        around = self._around
        before = drop_readers(
            self.name, around, lambda name: found_view(name, around).delete(), cascade=cascade, verb="drop()"
        )
        self.delete()
        return [*before, self.name]

    def delete(self) -> None:
        """Delete the view, whoever reads it: `drop` asks for them."""
        tidying.stop(self.name, self._around)
        one = lives.live(self._around.root, self.name)
        with one.guard:
            with one.folder.held():
                self._around.drop(self.name)
                one.discard()
                one.folder.remove()
            lives.forget(self._around.root, self.name)
