"""Building state behind rows that are published already.

The first rows of a large view come from a query engine, which is many times quicker than building the state that later
refreshes go on from. The commit of these rows says that state is owed. It is built here, in the background: all rows
of the sources go through the circuit, at the versions that the rows reflect, while whoever reads the view has them.
The view is not held meanwhile; a refresh of it takes a query. In the end, alone in the view, what has changed since
goes through the circuit, too, and one more commit names the state. That commit reconciles: where the circuit's rows
differ from the engine's, in the last digits of a sum of doubles, say, those of the circuit are published, since it is
them that later changes will retract.

A view that only chooses among rows and columns has no state but the addresses of its rows. Where none of its columns
is a float both engines give the same, so its sources are not read again.

If the process ends before that commit, nothing is lost but work: rows are true, state is owed, and the next refresh
asks for it again, though nothing may have changed. What was written of it is swept. Of two processes that build, the
one that commits first wins, and the other gives up. If another process has swept the files of the runs, building
begins again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import NotFoundError
from headwater.base.frontier import Frontier
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.derived.sources import Sources, Unavailable
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.run import RunHandle
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.attempting import ViewAttempt
from headwater.incremental.views.deciding import foreign
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.fan_out import fan_out
from headwater.incremental.views.live import Live, built, live
from headwater.incremental.views.loading import load_tables
from headwater.incremental.views.reconciling import locate, reconcile
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.words import WORDS
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.compile_time import Stopwatch
from headwater.lake.published import Changed
from headwater.lake.table import Table

__all__ = ["soon", "stop"]

_TRIES = 3


class _StoppedError(Exception):
    """The view is dropped, or somebody else has given it a state or another definition."""


class _LostError(Exception):
    """Files of the state are gone."""


@dataclass
class _Built:
    """A circuit with its state, what it has read, and the rows that it gave for that."""

    definition: Definition
    circuit: Circuit
    frontier: Frontier
    result: ZSet | None
    """None if the rows that are published are what the circuit would give, which has no state."""
    rows: int
    seconds: float


def soon(view: str, table: Table, environment: Environment) -> None:
    """Have the state of a view built in the background, unless that is being done already."""
    one = live(environment.root, view)
    if one.is_building:
        return
    one.is_building, one.is_stopped = True, False
    what = f"the state of the view `{view}` was not built"
    upkeep.later(_key(view, environment), partial(_build, view, table, environment), what=what)


def stop(view: str, environment: Environment) -> None:
    """Return when its state is not being built any more: the view is to be dropped."""
    one = live(environment.root, view)
    one.is_stopped = True
    upkeep.cancel(_key(view, environment))
    one.is_building = False


def _key(view: str, environment: Environment) -> str:
    return f"{environment.root.url}\n{view}\nstate"


def _build(view: str, table: Table, environment: Environment) -> None:
    one = live(environment.root, view)
    try:
        faults.point("view.build.begin", view)
        # Where it was dropped, or its sources were vacuumed, the next refresh tells.
        with suppress(_StoppedError, NotFoundError):
            for _ in range(_TRIES):
                with suppress(_LostError):
                    _adopt(view, table, environment, one, _loaded(view, table, environment, one))
                    return
    finally:
        one.is_building = False


def _loaded(view: str, table: Table, environment: Environment, one: Live) -> _Built:
    """A circuit that has read everything that the view's rows reflect."""
    base = table.snapshot
    definition, record = Definition.of(base), ViewRecord.of(base)
    if definition is None or not record.owed:
        raise _StoppedError
    sources = Sources.pin(view, definition.inputs.values(), record.frontier, record.frontier, environment, kind=WORDS)
    try:
        sources.check()
    except Unavailable:
        raise _StoppedError from None
    circuit = built(definition)
    if not durable.traces_of(circuit) and not any(_has_floats(f.type) for f in definition.schema):
        return _Built(definition, circuit, sources.frontier, None, 0, 0.0)

    def check() -> None:
        if one.is_stopped:
            raise _StoppedError

    watch = Stopwatch()
    with events.task(f"build the state of {view}", total=sources.total_rows() or None, unit="rows") as task:
        rows, result = load_tables(circuit, sources, definition, one.folder.store, task, check)
    faults.point("view.build.loaded", view)
    return _Built(definition, circuit, sources.frontier, result, rows, watch.seconds())


def _adopt(view: str, table: Table, environment: Environment, one: Live, work: _Built) -> None:
    """Commit the state, brought to where the view is now."""
    for left in reversed(range(_TRIES)):
        with ViewAttempt(view, table, environment, one, last=not left) as attempt:
            _commit(attempt, work)
            return


def _commit(attempt: ViewAttempt, work: _Built) -> None:
    record, one = attempt.record, attempt.live
    if one.is_stopped or not record.owed or attempt.definition != work.definition:
        raise _StoppedError
    if foreign(attempt.base, attempt.definition, record) is not None:
        raise _StoppedError  # the next refresh says so
    if record.frontier != work.frontier and work.result is not None:
        work.result = _caught_up(attempt, work, work.result)
    if not all(os.path.exists(file.path) for file in _files(work.circuit)):
        raise _LostError
    addresses, changed, rates = Addresses(), Changed(), record.rates
    if work.result is None:
        locate(attempt.base, addresses, attempt.layout)
    else:
        changed = reconcile(attempt.base, addresses, work.result)
        rates = replace(rates.after_full(work.rows, work.seconds), fan_out=fan_out(work.circuit, work.definition))
    record = replace(record, published=attempt.base.version + 1, owed=False, rates=rates)
    record = replace(record, state=one.folder.save(work.circuit, addresses, attempt.at(record)))
    faults.point("view.build.saved", attempt.view)
    one.circuit, one.addresses = work.circuit, addresses
    attempt.commit("REFRESH MATERIALIZED VIEW", changed, record)


def _caught_up(attempt: ViewAttempt, work: _Built, result: ZSet) -> ZSet:
    """The rows, when what has changed since it was loaded has gone through the circuit."""
    inputs = work.definition.inputs.values()
    to = attempt.record.frontier
    sources = Sources.pin(attempt.view, inputs, work.frontier, to, attempt.environment, kind=WORDS)
    try:
        sources.check()
        _, delta = attempt.followed(work.circuit, sources, None)
    except Unavailable:
        raise _LostError from None
    work.frontier = sources.frontier
    return concatenate([result, delta], result.layout).consolidate()


def _has_floats(dtype: pa.DataType) -> bool:
    inner = [dtype.field(i).type for i in range(dtype.num_fields)]
    return pa.types.is_floating(dtype) or any(map(_has_floats, inner))


def _files(circuit: Circuit) -> list[RunHandle]:
    return [file for trace in durable.traces_of(circuit).values() for run in trace.runs for file in run.files]
