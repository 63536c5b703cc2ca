"""The stages of a circuit that is given whole tables in pieces (`headwater.incremental.circuit.table_load`).

A stage takes pieces from those before it, by port, and hands on what it can say already. When an input is complete its
stage is told; when all inputs of a stage are, it gives the rest. What looks at each row by itself works piece by
piece. Arrangements, aggregates and distinct rows go into partitions and are complete at the end. Of a join, the side
that is complete first is looked up in by the pieces of the other. All other operators are given everything as one
step, which is what a circuit does without this.

Nothing is given out before it is final: an aggregate has no answer for half a table, whose sum might not even fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headwater.base.errors import ExpressionError
from headwater.incremental.operators.aggregate import Aggregate, Load
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.distinct import Weigh
from headwater.incremental.operators.explode import Explode
from headwater.incremental.operators.join import Join
from headwater.incremental.operators.location import located
from headwater.incremental.operators.plus import Plus
from headwater.incremental.partitions import Partitions
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.circuit.schedule import Entry
    from headwater.incremental.layout import Layout
    from headwater.incremental.operators.node import Node
    from headwater.incremental.partitions import RunMaker
    from headwater.incremental.run import Run

__all__ = ["PIECE_ROWS", "Collected", "Stage", "stage_of"]

PIECE_ROWS = 32_768
"""So many rows are worked on at a time: they and what is made of them stay in the cache."""


class Stage:
    """Takes everything, and gives it to its node as one step."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int) -> None:
        self.entry = entry
        self.node: Node = entry.node
        self.store = store
        self.expected = expected
        self.readers: list[tuple[Stage, int]] = []
        self.open = len(entry.inputs)
        self.seconds = 0.0
        """What it took itself."""
        self.below = 0.0
        """What it waited for readers."""
        self._taken: list[list[ZSet]] = [[] for _ in entry.inputs]

    def take(self, port: int, rows: ZSet) -> None:
        """Take a piece of an input."""
        self._taken[port].append(rows)

    def complete(self, port: int) -> None:
        """An input has no more rows."""
        self.open -= 1
        if not self.open:
            self.finish()
            self.end()

    def finish(self) -> None:
        """Give what is left to be given."""
        inputs = [n.layout for n in self.node.inputs]
        deltas = [concatenate(some, layout) for some, layout in zip(self._taken, inputs, strict=True)]
        self._taken = [[] for _ in deltas]
        if any(len(d) for d in deltas) or self.node.restless:
            self.give(self.stepped(deltas), sum(map(len, deltas)))

    def stepped(self, deltas: Sequence[ZSet]) -> ZSet:
        """What the node gives; an error names it and the row."""
        try:
            return self.node.step(deltas)
        except ExpressionError as error:
            raise located(error, self.node, list(deltas)) from None

    def give(self, rows: ZSet, of: int) -> None:
        """Hand rows on, which were made of so many."""
        figures = self.entry.figures
        figures.steps = 1
        figures.rows_in += of
        figures.rows_out += len(rows.rows)
        self.hand_on(rows)

    def hand_on(self, rows: ZSet) -> None:
        """Hand rows on that are counted."""
        if len(rows.rows):
            for stage, port in self.readers:
                self.below += stage.timed(partial(stage.take, port, rows))

    def end(self) -> None:
        """Tell readers that there is no more."""
        for stage, port in self.readers:
            self.below += stage.timed(partial(stage.complete, port))

    def timed(self, work: Callable[[], None]) -> float:
        """Do something, and give how long it took; what it took itself is counted."""
        start, below = time.perf_counter(), self.below
        work()
        spent = time.perf_counter() - start
        self.seconds += spent - (self.below - below)
        return spent


class Collected(Stage):
    """Where rows come in or go out: it keeps what it is given, and hands on nothing."""

    def __init__(self, entry: Entry, layout: Layout) -> None:
        super().__init__(entry, None, 0)
        self.open = 1
        self.layout = layout
        self.rows: list[ZSet] = []

    def take(self, port: int, rows: ZSet) -> None:
        self.rows.append(rows)

    def finish(self) -> None:
        """There is nothing left to be given."""


class _Linear(Stage):
    """Looks at each row by itself."""

    def take(self, port: int, rows: ZSet) -> None:
        nodes = self.node.inputs
        deltas = [rows if i == port else ZSet.empty(n.layout) for i, n in enumerate(nodes)]
        self.give(self.stepped(deltas), len(rows))

    def finish(self) -> None:
        if self.node.restless:
            super().finish()


class _Chained(Stage):
    """Linear nodes in a row, and perhaps the arrangement that reads the last."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int) -> None:
        super().__init__(entry, store, expected)
        self.chain = entry.chains[0]
        self._arranged = _Arranged(entry, store, expected) if isinstance(entry.node, Arrange) else None
        if self._arranged is not None:
            self._arranged.readers = self.readers

    def take(self, port: int, rows: ZSet) -> None:
        found = self.chain.passed(rows)
        self.entry.took(len(found.rows) if self._arranged is None else 0, 0.0)
        for member in self.entry.members:
            member.figures.steps = 1
        if self._arranged is None:
            self.hand_on(found)
        else:
            self._arranged.put(found)

    def finish(self) -> None:
        if self._arranged is not None:
            self._arranged.finish()


class _Arranged(Stage):
    """Remembers rows by a key. Joins get them as they come, others when they are in order."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int) -> None:
        super().__init__(entry, store, expected)
        node = entry.node
        assert isinstance(node, Arrange)
        self._arrange = node
        self._rows = Partitions(node.layout, expected)

    def take(self, port: int, rows: ZSet) -> None:
        found = self._arrange.arrangement.apply(rows)
        self.entry.figures.rows_in += len(rows)
        self.put(found)

    def put(self, rows: ZSet) -> None:
        """Take rows that are in the layout already."""
        if not len(rows.rows):
            return
        self.entry.figures.steps = 1
        self._rows.feed(rows)
        if self._arrange.is_loose:
            self.entry.figures.rows_out += len(rows.rows)
            self.hand_on(rows)

    def finish(self) -> None:
        run = self._rows.finish(self.store)
        if not len(run):
            return
        trace = self._arrange.trace
        trace.check()
        trace.stage_run(run)
        if not self._arrange.is_loose:
            self.entry.figures.rows_out += len(run)
            self.hand_on(run.zset())


class _Joined(Stage):
    """Pieces of one side look up the other once it is complete; if both came at once, they do so when all is there."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int) -> None:
        super().__init__(entry, store, expected)
        node = entry.node
        assert isinstance(node, Join)
        self._join = node
        self._complete = [False, False]
        self._waits = [False, False]

    def take(self, port: int, rows: ZSet) -> None:
        if self._complete[1 - port] and not self._waits[port]:
            self.give(self._join.looked_up(port, rows), len(rows))
        else:
            self._waits[port] = True
            self.entry.figures.rows_in += len(rows)

    def complete(self, port: int) -> None:
        self._complete[port] = True
        super().complete(port)

    def finish(self) -> None:
        if all(self._waits):
            for run in self._join.staged(0):
                for rows in _pieces(run):
                    self.give(self._join.looked_up(0, rows), 0)


class _Aggregated(Stage):
    """Adds up."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int, load: Load) -> None:
        super().__init__(entry, store, expected)
        self._load = load
        self._rows = 0

    def take(self, port: int, rows: ZSet) -> None:
        self._rows += len(rows)
        self._load.feed(rows)

    def finish(self) -> None:
        if self._rows or self.node.restless:
            self.give(self._load.finish(self.store), self._rows)


class _Weighed(Stage):
    """Counts equal rows."""

    def __init__(self, entry: Entry, store: RunMaker | None, expected: int) -> None:
        super().__init__(entry, store, expected)
        assert isinstance(entry.node, Weigh)
        self._weigh = entry.node
        self._rows = self._weigh.loading(expected)

    def take(self, port: int, rows: ZSet) -> None:
        self._rows.feed(self._weigh.counted(port, rows))

    def finish(self) -> None:
        count = len(self._rows)
        if count:
            self.give(self._weigh.loaded(self._rows.finish(self.store)), count)


def stage_of(entry: Entry, store: RunMaker | None, expected: int) -> Stage:
    """The stage of an entry of a schedule, to which about so many rows come."""
    node = entry.node
    if entry.chains:
        return _Chained(entry, store, expected)
    if isinstance(node, Arrange):
        return _Arranged(entry, store, expected)
    if isinstance(node, Join):
        return _Joined(entry, store, expected)
    if isinstance(node, Weigh):
        return _Weighed(entry, store, expected)
    if isinstance(node, Aggregate):
        load = node.loading(expected)
        return Stage(entry, store, expected) if load is None else _Aggregated(entry, store, expected, load)
    if node.link() is not None or isinstance(node, Plus | Explode):
        return _Linear(entry, store, expected)
    return Stage(entry, store, expected)


def _pieces(run: Run) -> list[ZSet]:
    return [run.zset(slice(at, at + PIECE_ROWS)) for at in range(0, len(run), PIECE_ROWS)]
