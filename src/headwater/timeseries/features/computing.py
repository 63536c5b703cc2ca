"""Computing the rows of a plan, or those of a region of it: in this process where that is little to read, else by
Spark.

Starting a job of Spark's takes longer than most refreshes do, so a plan over few rows runs here (`running.here`): the
same kernels, and the same rows. What a region of a large table is computed from are few rows, too, though many may be
read to find them: they are read and sifted piece by piece here, and given to Spark only where more are left than one
process should hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from headwater.derived.environment import Environment
from headwater.timeseries.features.following import Followed, leaves_of, with_leaves
from headwater.timeseries.features.region import Region, Within
from headwater.timeseries.node import Node, RowWise
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here, tables_here
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.sources.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.timeseries.running.stages import Run

__all__ = ["Computation", "within"]

HERE_ROWS = 2_000_000
HERE_BYTES = 256 << 20
SIFTED_ROWS = 50_000_000
"""So many rows are read here to find those of a region, which takes seconds; of more Spark reads them side by side."""
Engine = Literal["local", "spark"]


@dataclass(frozen=True)
class Computation:
    """A plan, and where it runs."""

    plan: Node
    rows: int
    """Of its sources, after skipping; an estimate where the log does not say."""
    engine: Engine

    @classmethod
    def of(cls, plan: Node) -> Computation:
        """The plan with less to read, and the engine for that."""
        less = narrowed(plan)
        sources = [leaf for leaf in leaves_of(less) if isinstance(leaf, Source)]
        sizes = [leaf.size for leaf in sources]
        rows = sum(size.rows if size.rows is not None else (size.bytes or 0) // 32 for size in sizes)
        few = rows <= HERE_ROWS and sum(size.bytes or 0 for size in sizes) <= HERE_BYTES
        few &= all(leaf.tasks() is not None for leaf in sources)
        return cls(less, rows, "local" if few else "spark")

    @classmethod
    def of_region(cls, plan: Node) -> Computation:
        """The same of a plan whose sources are read within regions (`within`)."""
        found = cls.of(plan)
        if found.engine == "local" or found.rows > SIFTED_ROWS:
            return found
        held = _Held(HERE_ROWS, HERE_BYTES)
        try:
            return cls(held.of(found.plan), found.rows, "local")
        except _TooMany:
            return found

    def collect(self, environment: Environment, schema: pa.Schema) -> pa.Table:
        """All rows."""
        if self.engine == "local":
            return run_here(self.plan).cast(schema)
        return self.on_spark(environment).collect().cast(schema)

    def batches(self, environment: Environment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """All rows, as they come."""
        if self.engine == "local":
            yield from run_here(self.plan).cast(schema).to_batches()
            return
        for table in self.on_spark(environment).batches():
            yield from table.cast(schema).to_batches()

    def on_spark(self, environment: Environment) -> Run:
        """The plan on the lake's session, or on the one that there is."""
        from headwater.timeseries.running.stages import Run

        return Run(_session(environment), self.plan)


class _TooMany(Exception):
    """More rows are left than one process should hold."""


class _Held:
    """A plan over the rows of its regions, which are read into memory."""

    def __init__(self, most_rows: int, most_bytes: int) -> None:
        self._rows, self._bytes = most_rows, most_bytes

    def of(self, node: Node) -> Node:
        if isinstance(node, Within) and _is_sifted(node.input):
            return Values(self._read(node))
        if isinstance(node, Source):
            raise _TooMany  # all of it is read
        return node.with_inputs(*map(self.of, node.inputs)) if node.inputs else node

    def _read(self, node: Node) -> pa.Table:
        found = [node.schema.empty_table()]
        for table in tables_here(node):
            self._rows -= table.num_rows
            self._bytes -= table.nbytes
            if self._rows < 0 or self._bytes < 0:
                raise _TooMany
            found.append(table)
        return pa.concat_tables(found)


def _is_sifted(node: Node) -> bool:
    """Whether its rows come one by one from a source that this process can read."""
    if isinstance(node, Source):
        return node.tasks() is not None
    return isinstance(node, RowWise) and all(map(_is_sifted, node.inputs))


def _session(environment: Environment) -> SparkSession:
    if environment.session is not None:
        return environment.session()
    from headwater.spark.session import spark

    return spark()


def within(plan: Node, how: Followed, region: Region) -> Node:
    """The plan's rows of a region, from the rows that they are made of."""

    def less(number: int, node: Node) -> Node:
        leaf = how.leaves[number]
        if not isinstance(node, DeltaSource):
            return node
        columns = tuple(leaf.keys[name] for name in how.keys)
        time = None if leaf.time is None else node.schema.field(leaf.time)
        skipping = region.conjuncts(columns, time, leaf.before, leaf.after)
        return Within(node.skipping(skipping), region, columns, leaf.time, leaf.before, leaf.after)

    return Within(with_leaves(plan, less), region, how.keys, how.time)
