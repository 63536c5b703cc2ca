"""A plan run in this process: the kernels of the tasks, without Spark.

For tests, and for looking at a few rows. `pieces` says how tables are cut on the way and `parts` in how many places
keyed rows are kept, as many tasks would; the rows that come out are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from headwater.spark.block_format import coded
from headwater.spark.buckets import bucket_of
from headwater.timeseries.node import Gathered, Keyed, Node, RowWise, Stacked
from headwater.timeseries.operators.values import Values
from headwater.timeseries.present_times import PresentTimes
from headwater.timeseries.rows import BUDGET_BYTES, Rows
from headwater.timeseries.sources.source import Source

__all__ = ["run_here", "tables_here"]

Cut = Callable[[pa.Table], Sequence[pa.Table]]


def run_here(node: Node, *, pieces: Cut | None = None, parts: int = 1, budget_bytes: int = BUDGET_BYTES) -> pa.Table:
    """All rows of a plan over `Values`.

    >>> from headwater.timeseries.operators.narrow import Filter
    >>> run_here(Filter(Values(pa.table({"v": [1, 2, 3]})), "v > 1")).to_pylist()
    [{'v': 2}, {'v': 3}]
    """
    run = _Run(pieces or (lambda table: [table]), parts, budget_bytes)
    tables = list(run.of(node))
    return pa.concat_tables([node.schema.empty_table(), *tables])


def tables_here(node: Node) -> Iterator[pa.Table]:
    """The rows of a plan, table by table: of a plan without keyed nodes no more is held than is asked for."""
    yield from _Run(lambda table: [table], 1, BUDGET_BYTES).of(node)


class _Run:
    def __init__(self, cut: Cut, parts: int, budget_bytes: int) -> None:
        self._cut, self._parts, self._budget_bytes = cut, parts, budget_bytes

    def of(self, node: Node) -> Iterator[pa.Table]:
        if isinstance(node, Values):
            yield from self._cut(node.table)
        elif isinstance(node, Source):
            tasks = node.tasks()
            assert tasks is not None, "only Spark can read it"
            for number in range(tasks.count):
                yield from tasks.work(number)
        elif isinstance(node, RowWise):
            kernel = node.kernel()
            for table in self.of(node.inputs[0]):
                yield kernel(table)
        elif isinstance(node, Keyed):
            yield from self._keyed(node)
        elif isinstance(node, Stacked):
            for below, each in zip(node.inputs, node.kernels(), strict=True):
                for table in self.of(below):
                    yield each(table)
        else:
            assert isinstance(node, Gathered), node
            partial, finish = node.kernels()
            tables = self._timed(node, 0)
            found = [list(partial(iter([table]))) for table in tables] or [list(partial(iter(())))]
            yield from finish(table for some in found for table in some)

    def _timed(self, node: Node, number: int) -> Iterator[pa.Table]:
        """The rows of one of a node's inputs; those without a time are refused where it goes by time."""
        column = node.time_columns()[number]
        tables = self.of(node.inputs[number])
        return tables if column is None else map(PresentTimes(column), tables)

    def _keyed(self, node: Keyed) -> Iterator[pa.Table]:
        sides = [list(self._timed(node, number)) for number in range(len(node.inputs))]
        parts = self._parts if all(node.keys()) else 1
        for part in range(parts):
            rows = []
            for tables, keys, below in zip(sides, node.keys(), node.inputs, strict=True):
                here = [t.filter(bucket_of(t, keys, parts) == part) for t in tables] if parts > 1 else tables
                pieces = [piece for table in here for piece in self._cut(table)]
                # Each with a dictionary of its own, as in blocks.
                pieces = [piece.cast(coded(below.schema, keys)) for piece in pieces]
                rows.append(Rows(pieces, below.schema, budget_bytes=self._budget_bytes))
            yield from node.kernel()(*rows)
