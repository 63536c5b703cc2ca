"""A user's function on each group of rows: group(…).apply.

The function gets all rows of a group, as one batch, and gives rows of the schema that was announced; one with two
parameters gets the group's keys first, as a tuple of Python values. Null is a key. Where the stream has an ordering the
rows of a group come by time (and tiebreak); without one they come in no order, and the function must not depend on it.
A group has to fit in memory, the groups of a task do not.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from headwater.timeseries.aligning import check_keys
from headwater.timeseries.node import Keyed, KeyedKernel, Node
from headwater.timeseries.operators.functions import Function, as_batch, as_result, called, name_of
from headwater.timeseries.rows import Rows, key_starts, whole_keys

__all__ = ["Apply", "takes_key"]


@dataclass(frozen=True)
class Apply(Keyed):
    """What a function makes of each group.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]}))
    >>> largest = lambda key, t: {"k": [key[0]], "v": [max(t["v"].to_pylist())]}
    >>> run_here(Apply(rows, ("k",), largest, pa.schema([("k", pa.string()), ("v", pa.int64())]))).to_pylist()
    [{'k': 'a', 'v': 3}, {'k': 'b', 'v': 2}]
    """

    input: Node
    by: tuple[str, ...]
    function: Function
    result: pa.Schema
    order: tuple[str, ...] = ()
    batch: str = "arrow"

    def __post_init__(self) -> None:
        check_keys(self.input.schema, self.by)

    @property
    def schema(self) -> pa.Schema:
        return self.result

    def line(self) -> str:
        return f"apply {name_of(self.function)}() to each {', '.join(self.by) or 'stream'}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.by,)

    def output_keys(self) -> tuple[str, ...] | None:
        # A function may put any values under a name.
        return None

    def kernel(self) -> KeyedKernel:
        return _Apply(self.function, self.by, self.order, self.result, self.batch)


@dataclass(frozen=True, slots=True)
class _Apply:
    function: Function
    by: tuple[str, ...]
    order: tuple[str, ...]
    schema: pa.Schema
    batch: str

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        keyed = takes_key(self.function, 1)
        for chunk in whole_keys(rows.sorted([*self.by, *self.order]), self.by):
            starts = [*key_starts(chunk, self.by).tolist(), chunk.num_rows]
            for start, end in pairwise(starts):
                group = chunk.slice(start, end - start)
                key = (tuple(group.column(name)[0].as_py() for name in self.by),) if keyed else ()
                given = as_batch(group, self.batch)
                with called(f"apply with {name_of(self.function)}()"):
                    found = self.function(*key, given)
                yield as_result(found, self.schema, self.function)


def takes_key(function: Function, batches: int) -> bool:
    """Whether a function of so many batches wants the keys before them.

    >>> takes_key(lambda t: t, 1), takes_key(lambda key, t: t, 1)
    (False, True)
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters) == batches + 1
