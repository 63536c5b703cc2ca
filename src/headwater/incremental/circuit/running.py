"""Running the entries of a schedule: who is asked, on which thread, and what is noted about it.

An entry whose inputs did not change is not asked, unless it is restless: empty changes cost nothing. With several
shards each shard's node sees its share, on a thread of its own if there is enough to do. An error of an expression is
told the operator and the row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING

from headwater.base.errors import ExpressionError
from headwater.incremental.dataflow.vertex import Exchange, Vertex
from headwater.incremental.operators.location import located
from headwater.incremental.zset import ZSet

if TYPE_CHECKING:
    from headwater.incremental.circuit.schedule import Entry, Schedule
    from headwater.incremental.operators.node import Node

__all__ = ["Runner", "Values"]

Values = list[list[ZSet]]
"""By the number of a vertex, what each of its shards gave in a step."""

_WORTH_THREADS = 8_192
_WORTH_RELEASING = 8_192
"""From how many rows on values are released as soon as nobody reads them."""


class Runner:
    """Runs vertices that have ``shards`` nodes each."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self._pool: ThreadPoolExecutor | None = None

    def values(self, schedule: Schedule) -> Values:
        """What all vertices give in this step; of a chain only the last member has something."""
        values = schedule.nothing.copy()
        if self.shards == 1:
            _run_alone(schedule, values)
        else:
            for entry in schedule.entries:
                self._run_sharded(entry, values)
                for i in entry.releases:
                    values[i] = schedule.nothing[i]
        return values

    def _run_sharded(self, entry: Entry, values: Values) -> None:
        if not entry.chains:
            values[entry.vertex.id] = self.evaluated(entry.vertex, values)
            return
        given = values[entry.inputs[0]]
        rows = sum(len(z.rows) for z in given)
        if not rows:
            return
        start = time.perf_counter()
        steps = [partial(chain.step, z) for chain, z in zip(entry.chains, given, strict=True)]
        found = self._spread(steps, [s for s, z in enumerate(given) if len(z)], rows)
        values[entry.vertex.id] = out = [found.get(s, node.empty) for s, node in enumerate(entry.vertex.nodes)]
        entry.took(sum(len(z.rows) for z in out), time.perf_counter() - start, list(found))

    def evaluated(self, vertex: Vertex, values: Values) -> list[ZSet]:
        """What the nodes of a vertex give in this step, given what those before it gave."""
        inputs = vertex.inputs
        node = vertex.nodes[0]
        rows = 0
        for v in inputs:
            for z in values[v.id]:
                rows += len(z.rows)
        if not rows and not any(n.restless for n in vertex.nodes):
            return vertex.nothing
        start = time.perf_counter()
        if isinstance(node, Exchange):
            found = node.scatter(values[inputs[0].id])
        else:
            found = self._sharded(vertex, [[values[v.id][s] for v in inputs] for s in range(self.shards)], rows)
        vertex.figures.took(rows, sum(len(z.rows) for z in found), time.perf_counter() - start)
        return found

    def _sharded(self, vertex: Vertex, deltas: list[list[ZSet]], rows: int) -> list[ZSet]:
        busy = [s for s, node in enumerate(vertex.nodes) if node.restless or any(len(d) for d in deltas[s])]
        steps = [partial(self._stepped, node, some) for node, some in zip(vertex.nodes, deltas, strict=True)]
        found = self._spread(steps, busy, rows)
        return [found.get(s, vertex.nodes[s].empty) for s in range(self.shards)]

    def _spread(self, steps: Sequence[Callable[[], ZSet]], busy: Sequence[int], rows: int) -> dict[int, ZSet]:
        """Make the steps of some shards, on threads if there is much to do."""
        if rows < _WORTH_THREADS or len(busy) < 2:
            return {s: steps[s]() for s in busy}
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.shards, thread_name_prefix="headwater-shard")
        futures = {s: self._pool.submit(steps[s]) for s in busy}
        wait(
            futures.values()
        )  # where one failed, the others have staged something by then, and it is rolled back with all
        return {s: f.result() for s, f in futures.items()}

    @staticmethod
    def _stepped(node: Node, deltas: list[ZSet]) -> ZSet:
        try:
            return node.step(deltas)
        except ExpressionError as error:
            raise located(error, node, deltas) from None


def _run_alone(schedule: Schedule, values: Values) -> None:
    """Run all entries on one shard, in as few words as it takes: small steps are dominated by them."""
    clock = time.perf_counter
    for entry in schedule.entries:
        rows = 0
        deltas = []
        for i in entry.inputs:
            delta = values[i][0]
            rows += len(delta.rows)
            deltas.append(delta)
        node = entry.node
        if not rows and not node.restless:
            continue
        start = clock()
        if entry.chains:
            found = entry.chains[0].step(deltas[0])
            values[entry.id] = [found]
            entry.took(len(found.rows), clock() - start)
            if rows > _WORTH_RELEASING:
                _release(entry, schedule, values)
            continue
        try:
            found = node.step(deltas)
        except ExpressionError as error:
            raise located(error, node, deltas) from None
        values[entry.id] = [found]
        figures = entry.figures
        figures.steps += 1
        figures.rows_in += rows
        figures.rows_out += len(found.rows)
        figures.seconds += clock() - start
        if rows > _WORTH_RELEASING:
            _release(entry, schedule, values)


def _release(entry: Entry, schedule: Schedule, values: Values) -> None:
    for i in entry.releases:
        values[i] = schedule.nothing[i]
