"""Stateful transforms: a user's object that goes along each series, batch by batch.

``start(key)`` makes the state of a series (``key`` holds its values by name), ``step(state, batch)`` takes the next
rows in order, changes the state and gives rows, ``finish(state)`` gives what is left, or None. Every batch but the last
of a series has exactly ``batch_rows`` rows, so that what comes out is a function of the series even where the object
looks at batches, and memory stays bounded. Rows that nothing puts in order are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.functions import called
from headwater.timeseries.reaching import carried
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

__all__ = ["SeriesTransform", "Stateful"]


class SeriesTransform(Protocol):
    """What goes along a series. It is sent to tasks, so it has to be picklable."""

    def start(self, key: dict[str, Any]) -> Any:
        """The state of a series before its first row."""

    def step(self, state: Any, batch: pa.Table) -> pa.Table | None:
        """Rows for the next rows of the series; the state is changed in place."""

    def finish(self, state: Any) -> pa.Table | None:
        """Rows after the last one."""


@dataclass(frozen=True)
class Stateful(Keyed):
    """The rows that a user's object gives along each series.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> class Count:
    ...     def start(self, key):
    ...         return {**key, "n": 0}
    ...     def step(self, state, batch):
    ...         state["n"] += batch.num_rows
    ...     def finish(self, state):
    ...         return pa.table({"s": [state["s"]], "n": [state["n"]]})
    >>> rows = Values(pa.table({"s": ["a", "b", "a"], "t": [1, 2, 3]}))
    >>> schema = pa.schema([("s", pa.string()), ("n", pa.int64())])
    >>> run_here(Stateful(rows, Ordering("t", ("s",)), Count(), schema, 1_000)).to_pylist()
    [{'s': 'a', 'n': 2}, {'s': 'b', 'n': 1}]
    """

    input: Node
    ordering: Ordering
    transform: SeriesTransform
    given: pa.Schema
    """Names and types of the rows that the object gives."""
    batch_rows: int = 65_536

    @property
    def schema(self) -> pa.Schema:
        return self.given

    def line(self) -> str:
        return f"stateful {type(self.transform).__name__}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def output_keys(self) -> None:
        """What the object gives may have columns of the keys' names and other values in them."""

    def kernel(self) -> KeyedKernel:
        return _Stateful(self.ordering, self.transform, self.given, self.batch_rows)


@dataclass(frozen=True, slots=True)
class _Stateful:
    ordering: Ordering
    transform: SeriesTransform
    schema: pa.Schema
    batch_rows: int

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        state: Any = None
        held: list[pa.Table] = []
        is_open = False
        for part in carried(checked(rows.sorted(self.ordering.columns), self.ordering), self.ordering.by):
            table = part.table
            edges = [*part.starts.tolist(), table.num_rows]
            for number, (begin, end) in enumerate(pairwise(edges)):
                if number or not part.goes_on:
                    if is_open:
                        yield from self._last(state, held)
                    key = {name: table.column(name)[begin].as_py() for name in self.ordering.by}
                    with called(self._name("start")):
                        state = self.transform.start(key)
                    held, is_open = [], True
                held.append(table.slice(begin, end - begin))
                yield from self._full(state, held)
        if is_open:
            yield from self._last(state, held)

    def _full(self, state: Any, held: list[pa.Table]) -> Iterator[pa.Table]:
        """Steps over the batches that are full; what is left stays held."""
        if sum(t.num_rows for t in held) < self.batch_rows:
            return
        whole = pa.concat_tables(held)
        at = 0
        while whole.num_rows - at >= self.batch_rows:
            yield from self._step(state, whole.slice(at, self.batch_rows))
            at += self.batch_rows
        held[:] = [whole.slice(at)] if at < whole.num_rows else []

    def _last(self, state: Any, held: list[pa.Table]) -> Iterator[pa.Table]:
        if held:
            yield from self._step(state, pa.concat_tables(held))
        with called(self._name("finish")):
            found = self.transform.finish(state)
        yield from self._checked(found, "finish")

    def _step(self, state: Any, batch: pa.Table) -> Iterator[pa.Table]:
        with called(self._name("step")):
            found = self.transform.step(state, batch)
        yield from self._checked(found, "step")

    def _name(self, method: str) -> str:
        return f"{type(self.transform).__name__}.{method}"

    def _checked(self, found: pa.Table | None, method: str) -> Iterator[pa.Table]:
        if found is None:
            return
        name = self._name(method)
        if isinstance(found, pa.RecordBatch):
            found = pa.Table.from_batches([found])
        if not isinstance(found, pa.Table) or found.column_names != self.schema.names:
            shown = found.column_names if isinstance(found, pa.Table) else type(found).__name__
            raise InputError.bad_argument(name, shown, f"an Arrow table with the columns {self.schema.names}, or None")
        try:
            yield found.cast(self.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InputError.bad_argument(name, found.schema.types, f"the types of schema= ({error})") from None
