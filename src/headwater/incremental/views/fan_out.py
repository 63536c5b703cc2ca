"""Fan-out: how many rows of joins a changed row of each source comes to, by what was counted when the state was built.

A customer with fifty orders moves: two changed rows are a hundred rows of the join. On average a row of a table stands
for as many rows of a join as there are, divided by the rows of the table. Where a union brings rows of several tables
together, each has its share of what comes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.views.definition import Definition

__all__ = ["fan_out"]

_WORTH_KEEPING = 1.5


def fan_out(circuit: Circuit, definition: Definition) -> dict[str, float]:
    """By table, how many rows of the largest join a row comes to; those that come to no more than about one are left
    out.
    """
    found: dict[str, float] = {}
    for relation, one in definition.inputs.items():
        source = circuit.inputs[relation]
        rows = source.figures.rows_out
        if not rows:
            continue
        most = max(_joined(circuit, source), default=0.0) / rows
        if most >= _WORTH_KEEPING:
            found[one.table] = max(round(most, 2), found.get(one.table, 0.0))
    return found


def _joined(circuit: Circuit, source: Vertex) -> list[float]:
    """For each join that rows of a source reach, how many of its rows are made of them."""
    shares = {source.id: 1.0}
    found = []
    for vertex in circuit.vertices:
        if vertex.id in shares or not vertex.inputs:
            continue
        before = [(shares.get(v.id, 0.0), v.figures.rows_out) for v in vertex.inputs]
        if not any(share for share, _ in before):
            continue
        if vertex.node.kind == "join":
            others = 1.0
            for share, _ in before:
                others *= 1.0 - share
            shares[vertex.id] = 1.0 - others
            found.append(shares[vertex.id] * vertex.figures.rows_out)
            continue
        total = sum(rows for _, rows in before)
        shares[vertex.id] = sum(share * rows for share, rows in before) / total if total else 0.0
    return found
