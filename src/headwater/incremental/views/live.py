"""Live views: the circuits of this process, with their state, kept from one refresh to the next.

Restoring a state is quick and using one that is in memory is quicker. So each view that this process refreshes has one
`Live`, whoever holds handles on it, and its lock lets one thread at a time refresh. What is in memory counts only as
long as the newest commit is that which it belongs to; another process may have refreshed the view meanwhile. After
anything that fails the memory is thrown away, and the next refresh restores what is committed.

What is in memory may be ahead of what is saved: by a few small refreshes, until there is time to save it (`behind`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.base.errors import CorruptionError, NotFoundError
from headwater.base.storage import Storage
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.traffic import Traffic
from headwater.incremental.views import query_time
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.profile import Begun, Work, begun, local_works
from headwater.incremental.views.record import StateAt, ViewRecord
from headwater.incremental.views.state_folder import ViewFolder

__all__ = ["OUTPUT", "Live", "built", "forget", "live"]

OUTPUT = "view"
_UNSWEPT = 8  # so many superseded states may lie about
_MOST = 64
_BEHIND = 8  # so many refreshes may have to be followed once more if this process ends,
_BEHIND_ROWS = 1_000_000  # and so many changed rows, which take about a second


def built(definition: Definition, *, shards: int | None = None) -> Circuit:
    """A circuit, without state, that computes a view."""
    from headwater.incremental import planning

    circuit = Circuit("view", shards=shards or definition.shards)
    inputs: Mapping[str, Stream] = {
        relation: circuit.input(relation, one.read) for relation, one in definition.inputs.items()
    }
    planning.build(circuit, definition.plan, inputs).output(OUTPUT)
    return circuit


class Live:
    """The circuit of a view, and what it has read and published so far."""

    def __init__(self, root: Storage, view: str) -> None:
        self.view = view
        self.guard = threading.RLock()
        self.folder = ViewFolder(root, view)
        self.circuit: Circuit | None = None
        self.addresses = Addresses()
        self.suspicious = True
        """Whether files may lie about that a refresh left which did not end: it has not been looked yet."""
        self.unswept = 0
        """How many states have been superseded since the last sweep; deleting files is slow, so a few go together."""
        self.unchecked: int | None = None
        """The version of the table that a checkpoint should be written of."""
        self.queried: tuple[int, float] | None = None
        """The rows and the seconds of the last query that computed the view."""
        self._has_recalled = False
        self.saved: str | None = None
        """The newest state that is saved of what is in memory."""
        self.behind = 0
        """How many refreshes it does not know of yet."""
        self.behind_rows = 0
        """How many rows had changed in those."""
        self.is_asked_for = False
        """Whether a job waits that will look after it (`tidying`)."""
        self.is_building = False
        """Whether a job waits or runs that builds its state (`building`)."""
        self.is_stopped = False
        """Whether that job is to end, because the view is dropped."""
        self.touched = 0.0
        """When the last refresh ended."""
        self.stages: Sequence[Any] = ()
        """What the jobs of the last refresh by Spark have done (`spark.stages.Stage`)."""
        self.begun = Begun({}, Traffic())
        """What had been done when the last refresh began, or when its circuit was restored."""
        self.works: Sequence[Work] = ()
        """What the last refresh did: all of it if tasks did, else only the whole (`profile`)."""
        self._is: tuple[object, ...] | None = None

    def _identity(self, table_id: str, definition: Definition, record: ViewRecord) -> tuple[object, ...]:
        return table_id, definition, record.published, self.folder.opened

    def has(self, table_id: str, definition: Definition, record: ViewRecord) -> bool:
        """Whether the state in memory is the one that is committed."""
        return self._is is not None and self._is == self._identity(table_id, definition, record)

    def restore(self, table_id: str, definition: Definition, record: ViewRecord) -> StateAt | None:
        """Have the newest state that there is, from its files; gives where it is, if that is not what is committed."""
        assert record.state is not None
        self.discard()
        name = self.folder.newest(record.state, table_id, record.published)
        try:
            at = self._load(name, definition)
        except (CorruptionError, NotFoundError):
            if name == record.state:
                raise
            name = record.state  # which is older, and may be whole
            at = self._load(name, definition)
        self.is_saved(name)
        self.committed(table_id, definition, record)
        return at if at is not None and at.published != record.published else None

    def begins(self) -> None:
        """A refresh begins: what operators do from now on is its work."""
        self.begun = begun(self.circuit, self.folder.traffic)

    def profile(self) -> list[Work]:
        """What the last refresh of this process did, by stages and operators."""
        if not self.works or self.works[0].engine != "local":
            return list(self.works)
        return local_works(self.circuit, self.begun, self.folder.traffic, replace(self.works[0]))

    def _load(self, name: str, definition: Definition) -> StateAt | None:
        circuit, addresses = built(definition), Addresses()
        at = self.folder.load(name, circuit, addresses)
        # What its operators did before was done by earlier refreshes; that it was opened is this one's.
        self.begun = replace(begun(circuit, Traffic()), traffic=self.begun.traffic)
        self.circuit, self.addresses = circuit, addresses
        return at

    def committed(self, table_id: str, definition: Definition, record: ViewRecord) -> None:
        """What is in memory is now what is committed."""
        self._is = self._identity(table_id, definition, record)

    def may_lag(self, rows: int) -> bool:
        """Whether the state of a refresh of so many rows may be saved after it."""
        if self.saved is None or self.behind >= _BEHIND or self.behind_rows + rows > _BEHIND_ROWS:
            return False
        if self.folder.remote:  # other machines are not to follow changes again
            return not rows
        return self.folder.has(self.saved)

    def follows(self, state: str | None, rows: int) -> None:
        """A commit of so many changed rows was made that names a state: a new one, which is that in memory,
        or the one before.
        """
        if state is not None and state == self.saved:
            self.behind += 1
            self.behind_rows += rows
        else:
            self.is_saved(state)
        self.touched = time.monotonic()

    def is_saved(self, state: str | None) -> None:
        """What is in memory is saved under a name."""
        self.saved, self.behind, self.behind_rows = state, 0, 0

    def informed(self, record: ViewRecord, sql: str) -> ViewRecord:
        """A record that knows of the last query, too; one that was measured by another process is looked up once."""
        if self.queried is None and record.published and not record.rates.query_rows and not self._has_recalled:
            self._has_recalled = True
            self.queried = query_time.recall(self.folder.root, self.view, sql)
        return record if self.queried is None else replace(record, rates=record.rates.after_query(*self.queried))

    def measured_query(self, sql: str, rows: int, seconds: float) -> None:
        """A query that commits nothing has computed the view."""
        self.queried = (rows, seconds)
        query_time.remember(self.folder.root, self.view, sql, rows, seconds)

    @property
    def is_littered(self) -> bool:
        """Whether so many states were superseded that they should be deleted."""
        return self.unswept >= _UNSWEPT

    def discard(self) -> None:
        """Forget what is in memory."""
        self.circuit, self.addresses, self._is = None, Addresses(), None
        self.is_saved(None)


_views: OrderedDict[str, Live] = OrderedDict()
_guard = threading.Lock()
_owner = os.getpid()


def live(root: Storage, view: str) -> Live:
    """The live view of this process; a process that was forked has its own."""
    global _owner
    with _guard:
        if _owner != os.getpid():
            _views.clear()
            _owner = os.getpid()
        found = _views.get(key := f"{root.url}\n{view}")
        if found is None:
            found = _views[key] = Live(root, view)
        _views.move_to_end(key)
        if len(_views) > _MOST:
            _drop_oldest()
        return found


def _drop_oldest() -> None:
    """Let the view go that was used longest ago, unless it is being refreshed."""
    for key, one in _views.items():
        if one.guard.acquire(blocking=False):
            one.guard.release()
            del _views[key]
            return


def forget(root: Storage, view: str) -> None:
    """A view is no more."""
    with _guard:
        _views.pop(f"{root.url}\n{view}", None)
