"""Star join: many streams on one key, without state for what lies between.

A chain of joins keeps the result of each. Here a change of one input goes through the traces of all others in turn:
those before it as they are after this step, those after it as they were before. Each pair of changes is so counted
once, and the only state is that of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.join import Lookup, without_null_keys
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["StarJoin"]

Columns = Sequence[tuple[str, str]]


class StarJoin(Node):
    """The inner join of arranged streams on their keys; ``columns`` are those of each, (column, name in the result)."""

    kind: ClassVar[Kind] = "join"

    def __init__(self, inputs: Sequence[Node], columns: Sequence[Columns], *, sql: str = "") -> None:
        arranges = [a for a in inputs if isinstance(a, Arrange)]
        assert len(arranges) == len(inputs), "a star join reads arranged streams"
        fields = [
            a.layout.schema.field(c).with_name(n) for a, some in zip(arranges, columns, strict=True) for c, n in some
        ]
        layout = Layout(pa.schema(fields))
        detail = "on " + ", ".join(arranges[0].layout.names[: arranges[0].layout.keys])
        super().__init__(inputs, layout, label="star join", detail=detail, sql=sql)
        self._arranges = arranges
        self._paths = [_Path(arranges, columns, first, layout) for first in range(len(arranges))]

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        found = []
        for path, delta in zip(self._paths, deltas, strict=True):
            rows = without_null_keys(delta)
            if len(rows):
                found.append(path.run(rows, self._arranges))
        return concatenate(found, self.layout)


class _Path:
    """How a change of one input becomes rows of the result."""

    def __init__(self, arranges: Sequence[Arrange], columns: Sequence[Columns], first: int, target: Layout) -> None:
        start = arranges[first].layout
        keys = start.keys
        key_fields = [f.with_name(f"\0key {i}") for i, f in enumerate(start.schema)][:keys]
        have: list[tuple[int, str]] = [(start.schema.get_field_index(c), n) for c, n in columns[first]]
        layout = Layout(pa.schema([*key_fields, *(start.schema.field(i).with_name(n) for i, n in have)]), keys=keys)
        self._first = first
        self._begin = Moving(
            start, layout, [*((i, i) for i in range(keys)), *((i, keys + k) for k, (i, _) in enumerate(have))]
        )
        self._lookups: list[tuple[int, Lookup]] = []
        for other, arrange in enumerate(arranges):
            if other == first:
                continue
            more = [(arrange.layout.schema.get_field_index(c), n) for c, n in columns[other]]
            fields = [*layout.schema, *(arrange.layout.schema.field(i).with_name(n) for i, n in more)]
            wider = Layout(pa.schema(fields), keys=keys)
            mine = [(i, i) for i in range(len(layout.columns))]
            theirs = [(i, len(layout.columns) + k) for k, (i, _) in enumerate(more)]
            self._lookups.append((other, Lookup(layout, arrange.layout, wider, mine, theirs)))
            layout = wider
        self._begun = self._begin.target
        pairs = [(layout.schema.get_field_index(n), i) for i, n in enumerate(target.schema.names)]
        self._end = Moving(layout, target, pairs)
        self._target = target

    def run(self, delta: ZSet, arranges: Sequence[Arrange]) -> ZSet:
        rows = ZSet(self._begun, self._begin.moved(delta.rows), delta.owners)
        for other, lookup in self._lookups:
            rows = lookup.run(rows, arranges[other].trace, staged=other < self._first)
            if not len(rows):
                break
        else:
            return ZSet(self._target, self._end.moved(rows.rows), rows.owners)
        return ZSet.empty(self._target)
