"""What a stream's plan is made of: nodes, which say what they need and bring the kernel that does it.

The problem: an operator has to run in tasks on a cluster, in one process in a test, and where Spark already has a good
form of it, in Spark's own engine; and stages should hold as many operators as possible between two exchanges. The idea:
a node is plain data; what it needs of its input decides its kind, and the kernel it gives is a small picklable function
on Arrow tables that knows nothing of Spark.

- `RowWise` needs nothing: a table in, a table out, whatever rows it holds. Neighbours run in one task without an
  exchange.
- `Keyed` needs all rows that agree in its keys in one place. It gets them as `Rows`, which can give them sorted, in
  chunks, in bounded memory. It may have two inputs.
- `Gathered` needs everything in one place, but little of it: `partial` makes it little where the rows are.
- `Stacked` is the rows of several inputs: each table by itself, with a kernel for each input.

Invariants: kernels are deterministic functions of their input's rows, never of how those are cut into tables or of what
arrives first; a kernel holds no node (a node holds its inputs, down to the data of the sources).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "Extent",
    "Gathered",
    "Keyed",
    "KeyedKernel",
    "Node",
    "Ordering",
    "ResultOrder",
    "RowKernel",
    "RowWise",
    "Stacked",
    "StreamKernel",
]

RowKernel = Callable[[pa.Table], pa.Table]
StreamKernel = Callable[[Iterator[pa.Table]], Iterator[pa.Table]]
KeyedKernel = Callable[..., Iterator[pa.Table]]
"""Takes one `headwater.timeseries.rows.Rows` for each input."""

ResultOrder = tuple[tuple[str, bool], ...]
"""Columns that put collected rows in order, each with whether it descends; none: the rows stay as they come."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """What makes rows a series: their time, the columns that tell one series from another,
    and what decides between equal times.
    """

    time: str
    by: tuple[str, ...] = ()
    tiebreak: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The order of rows: one series after the other, each by time.

        >>> Ordering("ts", ("symbol",), ("seq",)).columns
        ('symbol', 'ts', 'seq')
        """
        return (*self.by, self.time, *self.tiebreak)


@dataclass(frozen=True, slots=True)
class Slicing:
    """How several tasks may share a side's rows of one key: by time, if a slice is given what it needs of others."""

    time: str
    before: bool = False
    after: bool = False
    reach: tuple[int, int] | None = None
    """How long before and after a slice rows are still given to it."""
    values: tuple[str, ...] = ()
    """Columns of which a slice also needs the nearest rows with a value, where it needs ``before`` or ``after``."""
    own: str | None = None
    """A column of flags that is false in rows that are given to a slice for its reach, and lie in another one."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Of which rows of an input a row of the output is made: those of its series, ``before`` its time to ``after`` it.

    So a change of a row of the input can only touch rows of the output from ``after`` before that row to ``before``
    after it.
    """

    time: str
    """The input's column that says when."""
    own: str
    """The output's column that says when."""
    before: int | None = 0
    """In the unit of times as numbers; None is without a bound."""
    after: int | None = 0


class Node(ABC):
    """A step of a plan. Subclasses are frozen dataclasses."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Where its rows come from: its fields that hold nodes, in their order."""
        found: list[Node] = []
        for value in _values(self).values():
            found += _nodes(value)
        return tuple(found)

    def with_inputs(self, *inputs: Node) -> Self:
        """The same node over other inputs."""
        given = iter(inputs)
        changes: dict[str, Any] = {}
        for name, value in _values(self).items():
            if isinstance(value, Node):
                changes[name] = next(given)
            elif _nodes(value):
                changes[name] = tuple(next(given) for _ in value)
        itself: Any = self
        made: Self = replace(itself, **changes)
        return made

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of its rows."""

    @abstractmethod
    def line(self) -> str:
        """What it does, in a few words, for `explain`."""

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        """For each input the columns it needs, if these columns of its own are asked for;
        None stands for all of them.
        """
        return (None,) * len(self.inputs)

    def time_columns(self) -> tuple[str | None, ...]:
        """For each input the column in which every row has to have a time (see `present_times`), or None."""
        ordering = getattr(self, "ordering", None)
        if isinstance(ordering, Ordering):
            return (ordering.time,) * len(self.inputs)
        return (None,) * len(self.inputs)

    def result_order(self) -> ResultOrder | None:
        """The order in which its rows are shown, if it is not that of the stream: see `ResultOrder`."""
        return None

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        """Spark's own form of it over its inputs' frames; None if Spark has none that means the same."""
        return None

    @property
    def frame_first(self) -> bool:
        """Whether Spark's own form is the cheaper one where both could run."""
        return False

    @property
    def frame_from_bytes(self) -> int:
        """For fewer bytes than this of rows that tasks read themselves, the kernel is the cheaper form after all."""
        return 0


def _values(node: Any) -> dict[str, Any]:
    return {f.name: getattr(node, f.name) for f in fields(node)}


def _nodes(value: Any) -> tuple[Node, ...]:
    """The nodes that a field holds: itself, or all of a tuple."""
    if isinstance(value, Node):
        return (value,)
    return value if isinstance(value, tuple) and value and all(isinstance(v, Node) for v in value) else ()


class RowWise(Node):
    """Each table by itself."""

    @abstractmethod
    def kernel(self) -> RowKernel: ...

    def kept(self, name: str) -> str | None:
        """What an input's column is called in the output, if it is there unchanged."""
        return name if name in self.schema.names else None

    def result_order(self) -> ResultOrder | None:
        below = self.inputs[0].result_order()
        if below is None:
            return None
        found: list[tuple[str, bool]] = []
        for name, descends in below:
            new = self.kept(name)
            if new is None:
                break  # Where a column is gone, what it put in order stays as it comes.
            found.append((new, descends))
        return tuple(found)


class Keyed(Node):
    """All rows that agree in the keys, in one place."""

    @abstractmethod
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """For each input the columns that have to agree; columns at the same place in two inputs are compared.

        No columns at all means all rows in one place.
        """

    @abstractmethod
    def kernel(self) -> KeyedKernel: ...

    @property
    def takes_whole_second(self) -> bool:
        """Whether the rows of the first input can stay where they are if each task is given all rows of the second."""
        return False

    def slicing(self) -> tuple[Slicing, ...] | None:
        """For each input, how a key with very many rows may be cut by time; None if it may not."""
        return None

    def extents(self) -> tuple[Extent | None, ...]:
        """For each input, of which of its rows a row of the output is made; None: of any of its series."""
        return (None,) * len(self.inputs)

    def output_keys(self) -> tuple[str, ...] | None:
        """The columns of the output that hold the first input's keys unchanged; None if they are not all there."""
        first = self.keys()[0]
        return first if all(k in self.schema.names for k in first) else None


class Gathered(Node):
    """Little of everything, in one place."""

    @abstractmethod
    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        """What makes little of the rows of one task, and what makes the result of all of that."""

    def result_order(self) -> ResultOrder | None:
        return ()

    @property
    @abstractmethod
    def partial_schema(self) -> pa.Schema:
        """Names and types of what `kernels`' first one gives."""


class Stacked(Node):
    """The rows of all inputs, each table by itself."""

    @abstractmethod
    def kernels(self) -> tuple[RowKernel, ...]:
        """For each input what makes its tables tables of the result."""
