"""Feature tables: what a user holds. A handle on a stream over tables of a lake, whose rows are kept in a Delta table.

>>> import headwater as hw, tempfile
>>> lake = hw.connect(tempfile.mkdtemp())
>>> payments = lake.write("payments", [{"card": "a", "ts": 1, "amount": 5}, {"card": "b", "ts": 2, "amount": 7}])
>>> def velocity(lake):
...     return lake.stream("payments", time="ts", by="card").rolling(10, n="count(*)", spent="sum(amount)")
>>> table = lake.features("velocity", velocity, refresh=True)
>>> _ = payments.append([{"card": "a", "ts": 3, "amount": 1}])
>>> report = table.refresh()
>>> report.mode, report.rows_in, report.rows_out
('incremental', 1, 1)
>>> print(table.verify())
equal at payments@1 (3 rows in 4,096 partitions)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.frontier import Frontier
from headwater.derived import upkeep
from headwater.derived.attempt import attempts
from headwater.derived.environment import Environment
from headwater.derived.handle import Handle
from headwater.derived.place import Place, place_of
from headwater.derived.record import Record
from headwater.derived.reports import Refresh
from headwater.derived.sources import Sources
from headwater.lake.optimize import optimize
from headwater.lake.published import check_built, is_built
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.timeseries.features.computing import Computation
from headwater.timeseries.features.definition import WORDS, Definition
from headwater.timeseries.features.function import Build, fingerprint_of, forget, function_at_hand
from headwater.timeseries.features.refreshing import FeatureAttempt, FeaturePlan, check_foreign, decide
from headwater.timeseries.features.source_lake import SourceLake, built
from headwater.timeseries.node import Ordering
from headwater.timeseries.stream import Stream

__all__ = ["FeatureTable"]

_NOT_LOOKED_AT: Mapping[str, Snapshot] = MappingProxyType({})
_MANY_FILES = 64


class FeatureTable(Handle):
    """A stream whose rows are kept and follow its sources. Made by ``lake.features``."""

    kind = WORDS

    def __init__(self, name: str, table: Table, environment: Environment) -> None:
        super().__init__(name, environment)
        self.table = table

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def meant(self) -> Definition:
        """The definition that the rows were computed by."""
        found = Definition.of(self.table.snapshot)
        if found is None:
            raise InputError.not_derived(self.name, WORDS, self.table.location)
        return found

    @property
    def definition(self) -> str:
        """The function, as it was written."""
        return self.meant.text

    @property
    def ordering(self) -> Ordering | None:
        """The time of the rows, and the columns that tell one series from another."""
        return self.meant.ordering

    @property
    def policy(self) -> str:
        """How it may be refreshed: "auto", "strict" or "full"."""
        return self.meant.policy

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.meant.schema

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tables that it reads."""
        return self.meant.reads

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the tables that it reads."""
        return self.reads

    @property
    def record(self) -> Record:
        """What the newest refresh has committed."""
        return Record.of(self.table.snapshot)

    @property
    def version(self) -> int:
        """The version of its table."""
        return self.table.snapshot.version

    @property
    def rows(self) -> int | None:
        """How many rows it has, if the log knows."""
        return self.table.snapshot.num_rows

    @property
    def build(self) -> Build:
        """The function; an error if this process does not have it."""
        return function_at_hand(self._environment.root.url, self.name, self.meant.function)

    # -- rows ------------------------------------------------------------------------------------------------------

    def read(self) -> pa.RecordBatchReader:
        """The rows, as of `frontier`, as a stream; an error if it was never built."""
        check_built(self.name, self.table.snapshot)
        return self.table.to_reader()

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """The rows that the function gives at ``at``."""
        stored = self.meant
        sources = Sources.pin(self.name, stored.inputs, Frontier(), at, self._environment, kind=WORDS)
        stream = self._stream(stored, sources.pinned)
        found = fingerprint_of(self.build, stream.plan)
        if found != stored.fingerprint and len(sources.pinned) == len(stored.reads):
            raise InputError.other_function(stored.function, self.name, stored.fingerprint, found, WORDS)
        computed = Computation.of(stream.plan)
        return pa.RecordBatchReader.from_batches(stored.schema, computed.batches(self._environment, stored.schema))

    def as_of(
        self,
        labels: Any,
        *,
        known_at: Any = None,
        time: str | None = None,
        by: str | Sequence[str] | None = None,
        tolerance: Any = None,
    ) -> Any:
        """Labels with the rows of this table that were known for them: ``lake.training_set`` over this table alone.

        ``time`` and ``by`` are columns of the labels; where labels do not say otherwise they are called as they are
        here. ``known_at`` is the moment at which a row had to be published: a column of the labels, a timestamp for
        all, or a delay after ``time``; without it the join is by event time.
        """
        join = self._environment.training_set
        assert join is not None, "a handle is opened by a lake"
        own = None if isinstance(labels, Stream) else self.ordering
        if own is not None:
            time = own.time if time is None else time
            by = own.by if by is None else by
        return join(labels, self.name, time=time, by=by, known_at=known_at, tolerance=tolerance)

    def _stream(self, meant: Definition | None, pinned: Mapping[str, Snapshot], *, unbuilt: bool = False) -> Stream:
        """What the function gives over tables at some versions, with the columns that they had when it was defined."""
        known = {one.table: one.schema for one in meant.inputs} if meant is not None else {}

        def at(name: str) -> Snapshot | None:
            if name in pinned or name in known:
                return pinned.get(name)
            return self._environment.table(name).snapshot

        return built(self.build, SourceLake(self._environment, at, known, unbuilt=unbuilt))

    def wanted(self, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT, *, unbuilt: bool = False) -> Definition:
        """What the function means now: the definition that there is, if it means the same rows."""
        stored = self.meant
        looked = {one: newest[one] if one in newest else self._environment.table(one).snapshot for one in stored.reads}
        stream = self._stream(stored, looked, unbuilt=unbuilt)
        if fingerprint_of(self.build, stream.plan) == stored.fingerprint:
            return stored
        return Definition.of_stream(self.build, self._stream(None, newest, unbuilt=unbuilt), stored.policy)

    # -- refreshing ------------------------------------------------------------------------------------------------

    def refresh_alone(
        self, until: Frontier | None, *, full: bool = False, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT
    ) -> Refresh:
        """Bring it forward, and nothing that it reads."""
        for attempt in attempts(
            lambda last: FeatureAttempt(self.name, self.table, self._environment, self._place, last=last)
        ):
            with attempt:
                self._attempt(attempt, until, full=full, newest=newest)
            if attempt.done is not None:
                self._tend(attempt.base)
                return attempt.done
        raise AssertionError("the last attempt raises")

    def _attempt(
        self, attempt: FeatureAttempt, until: Frontier | None, *, full: bool, newest: Mapping[str, Snapshot]
    ) -> None:
        record = attempt.record
        if not full:
            check_foreign(self.name, attempt.base, record)
        wanted, stream, sources = self._pinned(record, until, newest)
        plan = decide(self.name, attempt.stored, wanted, stream, record, sources, full=full)
        if plan.mode == "noop":
            at = record.frontier
            attempt.done = Refresh(before=at, after=at, mode="noop", reason=plan.reason, name=self.name)
            return
        attempt.refresh(wanted, stream, sources, plan)

    def _pinned(
        self, record: Record, until: Frontier | None, newest: Mapping[str, Snapshot], *, unbuilt: bool = False
    ) -> tuple[Definition, Stream | None, Sources]:
        wanted = self.wanted(newest, unbuilt=unbuilt)
        sources = Sources.pin(
            self.name,
            wanted.inputs,
            record.frontier,
            until,
            self._environment,
            kind=WORDS,
            newest=newest,
            unbuilt=unbuilt,
        )
        stream = self._stream(wanted, sources.pinned, unbuilt=unbuilt) if sources.pinned else None
        return wanted, stream, sources

    def plan_alone(
        self, until: Frontier | None, *, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT, first: Sequence[str] = ()
    ) -> FeaturePlan:
        """What `refresh_alone` would do."""
        record = self.record
        wanted, stream, sources = self._pinned(record, until, newest, unbuilt=bool(first))
        found = decide(self.name, self.meant, wanted, stream, record, sources, full=False)
        if not first:
            return found
        named = ", ".join(f"`{one}`" for one in first)
        mode = "incremental" if found.mode == "noop" else found.mode
        return replace(found, mode=mode, reason=f"{found.reason}; {named} will be refreshed first")

    @property
    def _place(self) -> Place:
        return place_of(self._environment.root, f"_headwater/features/{self.name}")

    # -- tending ---------------------------------------------------------------------------------------------------

    def _tend(self, base: Snapshot) -> None:
        if len(base.files) >= _MANY_FILES:
            upkeep.later(self._upkeep_key, self.compact, what=f"compacting `{self.name}`")

    @property
    def _upkeep_key(self) -> str:
        return f"features {self._environment.root.url} {self.name}"

    def compact(self) -> None:
        """Put small files together and fold deletion vectors away; the rows stay the same."""
        base = self.table.snapshot
        if is_built(base):
            optimize(base)

    def delete(self) -> None:
        """Delete it with its table, whoever reads it: `drop` asks for them."""
        upkeep.cancel(self._upkeep_key)
        place = self._place
        with place.guard, place.folder.held():
            self._environment.drop(self.name)
            place.folder.remove()
        forget(self._environment.root.url, self.name)
