"""Random histories of ordered streams, and what their outputs add up to.

A `Play` drives a node with random insertions, deletions and updates on all of its sources, in batches of random size, and after every
step compares the sum of the outputs with a recomputation of the tables by plain Python.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from tests.amounts import everyday

from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Order
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

Row = tuple[Any, ...]
Table = Counter[Row]
Draw = Callable[[np.random.Generator], Row]


class Source(Node):
    """Where a test puts changes in."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__([], Layout(schema), label="source")

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return deltas[0]

    def change(self, rows: Iterable[tuple[Row, int]]) -> ZSet:
        listed = list(rows)
        columns = [
            pa.array([row[i] for row, _ in listed], type=field.type) for i, field in enumerate(self.layout.schema)
        ]
        table = pa.Table.from_arrays(columns, schema=self.layout.schema)
        return ZSet.packed(self.layout, table, np.array([w for _, w in listed], dtype=np.int64))


def arranged(source: Node, keys: Sequence[str], order: Sequence[Order] = ()) -> Arrange:
    names = source.layout.names
    rest = [n for n in names if n not in keys]
    return Arrange(source, Arrangement(source.layout, [*keys, *rest], keys=len(keys), order=order))


def nodes_under(node: Node) -> list[Node]:
    found: list[Node] = []
    for one in node.inputs:
        found += [n for n in nodes_under(one) if n not in found]
    return [*found, node]


class Play:
    """A node, its sources, and their tables."""

    def __init__(self, node: Node, sources: Sequence[Source], draws: Sequence[Draw]) -> None:
        self.node = node
        self.nodes = nodes_under(node)
        self.sources = tuple(sources)
        self.draws = tuple(draws)
        self.tables: list[Table] = [Counter() for _ in sources]
        self.output: Table = Counter()

    def step(self, changes: Sequence[Sequence[tuple[Row, int]]]) -> ZSet:
        given = {id(s): s.change(c) for s, c in zip(self.sources, changes, strict=True)}
        done: dict[int, ZSet] = {}
        for node in self.nodes:
            if isinstance(node, Source):
                done[id(node)] = given[id(node)]
            else:
                inputs = [done[id(i)] for i in node.inputs]
                done[id(node)] = node.step(inputs) if any(len(i) for i in inputs) else node.empty
        for node in self.nodes:
            node.commit()
        for table, change in zip(self.tables, changes, strict=True):
            add(table, change)
        out = done[id(self.node)]
        add(self.output, weighted(out))
        return out

    def random(self, rng: np.random.Generator, most: int = 12) -> list[list[tuple[Row, int]]]:
        """A change for each source: some are empty, and no row is deleted that is not there."""
        changes = []
        for table, draw in zip(self.tables, self.draws, strict=True):
            change: list[tuple[Row, int]] = []
            left = Counter(table)
            for _ in range(int(rng.integers(0, most)) if rng.random() < 0.85 else 0):
                what = rng.random()
                if what < 0.5 or not left:
                    change.append((draw(rng), int(rng.integers(1, 3))))
                    continue
                row = list(left)[int(rng.integers(len(left)))]
                many = int(rng.integers(1, left[row] + 1))
                change.append((row, -many))
                add(left, [(row, -many)])
                if what < 0.7:  # an update
                    change.append((draw(rng), many))
            if rng.random() < 0.03:  # everything goes
                change = [(row, -w) for row, w in table.items()]
            changes.append(change)
        return changes

    def check(self, expected: Callable[..., Table], seed: int, steps: int, *, most: int = 12) -> None:
        rng = np.random.default_rng(seed)
        for number in range(everyday(steps // 2, soak=steps)):
            self.step(self.random(rng, most))
            wanted = expected(*self.tables)
            wanted = Counter({tuple(map(plain, row)): w for row, w in wanted.items()})
            assert self.output == wanted, (
                f"seed {seed}, step {number}: extra {dict(self.output - wanted)}, missing {dict(wanted - self.output)}"
            )


def plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def add(table: Table, change: Iterable[tuple[Row, int]]) -> None:
    for row, weight in change:
        table[row] += weight
        if not table[row]:
            del table[row]


def weighted(zset: ZSet) -> list[tuple[Row, int]]:
    columns = [c.to_pylist() for c in zset.to_arrow().columns]
    return [(tuple(map(plain, row[:-1])), row[-1]) for row in zip(*columns, strict=True)]


def compared(a: Any, b: Any, *, descending: bool = False, nulls_first: bool = True) -> int:
    """Compare two values as Spark orders them: NaN is the greatest number."""
    if a is None or b is None:
        if a is None and b is None:
            return 0
        return -1 if (a is None) == nulls_first else 1
    x, y = ((v != v, 0 if v != v else v) if isinstance(v, float) else v for v in (a, b))
    found = -1 if x < y else 1 if x > y else 0
    return -found if descending else found


def _bits(x: Any, y: Any) -> tuple[Any, Any]:
    zero: Any = "" if isinstance(x, str) or isinstance(y, str) else 0
    pair = (zero if x is None else x, zero if y is None else y)
    return tuple(struct.unpack("<q", struct.pack("<d", v))[0] if isinstance(v, float) else v for v in pair)


def sorted_groups(
    table: Table, keys: Sequence[int], order: Sequence[tuple[int, Order]]
) -> list[tuple[list[Row], list[int]]]:
    """The rows of each key, a row for each copy, sorted by the order, then by the whole row; with a number for each set of peers.

    The whole row counts as the engine has it: a null is like zero, a double is its bits, and of rows that are equal so far the one with fewer nulls comes first.
    """
    groups: dict[Row, list[Row]] = {}
    for row, weight in table.items():
        groups.setdefault(tuple(row[k] for k in keys), []).extend([row] * weight)

    def by_order(a: Row, b: Row) -> int:
        for at, one in order:
            found = compared(a[at], b[at], descending=one.descending, nulls_first=bool(one.nulls_first))
            if found:
                return found
        return 0

    def total(a: Row, b: Row) -> int:
        found = by_order(a, b)
        if found:
            return found
        for x, y in zip(a, b, strict=True):
            found = compared(*_bits(x, y))
            if found:
                return found
        one, two = (sum(1 << i for i, x in enumerate(row) if x is None) for row in (a, b))
        return (one > two) - (one < two)

    out = []
    for rows in groups.values():
        rows.sort(key=cmp_to_key(total))
        peers = [0]
        for one, two in pairwise(rows):
            peers.append(peers[-1] + (by_order(one, two) != 0))
        out.append((rows, peers))
    return out
