"""Values of matches: for each row of the answer, what the measures of its match give there.

Each value that a measure reads belongs to a place ("the last row of B so far"). The rows of a place are found for all
rows of the answer at once; their columns are gathered, and the measure is computed over them like any expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from headwater.sql.matching.aggregates import aggregated
from headwater.sql.matching.places import Places
from headwater.sql.nodes import Call, Column, Literal, Node, call, rewrite
from headwater.sql.row_patterns.calls import AGGREGATE, LABEL, NUMBER, VALUE, aggregate_of, place_of
from headwater.sql.vectorised import compile_expression, vector_of

__all__ = ["measured"]


def measured(nodes: Sequence[Node], places: Places) -> list[pa.Array]:
    """A column for each expression, a value for each row of the answer."""
    reading = _Reading(places)
    trees = [rewrite(node, reading.change) for node in nodes]
    names = list(reading.columns)
    schema = pa.schema([(name, reading.columns[name].type) for name in names])
    columns = [vector_of(reading.columns[name]) for name in names]
    return [compile_expression(tree, schema).run(columns, len(places)).to_arrow() for tree in trees]


@dataclass
class _Reading:
    """Puts a column in the place of each value, and gathers that column."""

    places: Places
    columns: dict[str, Any] = field(default_factory=dict)
    named: dict[object, str] = field(default_factory=dict)

    def _column(self, key: object, dtype: pa.DataType, make: Any) -> Column:
        if key not in self.named:
            self.named[key] = f"value {len(self.named)}"
            self.columns[self.named[key]] = make()
        return Column(None, (self.named[key],), dtype)

    def change(self, node: Node) -> Node | None:
        if not isinstance(node, Call):
            return None
        if node.op == NUMBER:
            return self._column(NUMBER, node.dtype, lambda: pa.array(self.places.numbers[self.places.of]))
        if node.op == AGGREGATE:
            return self._column(node, node.dtype, lambda: aggregated(aggregate_of(node), self.places))
        return self._value(node) if node.op == VALUE else None

    def _value(self, node: Call) -> Node:
        place = place_of(node)

        def gathered(part: Node) -> Node | None:
            if isinstance(part, Column):
                name = part.path[0]
                rows = self.places.rows
                dtype = rows.table.schema.field(name).type
                made = self._column((place, name), dtype, lambda: rows.taken(name, self.places.row_of(place)))
                return replace(part, path=(made.path[0], *part.path[1:]))
            if isinstance(part, Call) and part.op == LABEL:
                return self._column((place, LABEL), part.dtype, lambda: self.places.label_of(place))
            return None

        plain = rewrite(node.args[0], gathered)
        if isinstance(plain, Column):
            return plain
        there = self._column((place, None), pa.bool_(), lambda: pa.array(self.places.row_of(place) >= 0))
        return call("case", (there, plain, Literal(None, plain.dtype)), plain.dtype)
