"""A circuit as a graph that can be drawn, and as a table of what its operators did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.incremental.nesting.nest import Nest
from headwater.incremental.operators.delay import Hold
from headwater.observe.graph import Graph
from headwater.observe.node_graph import GraphNode, NodeMetrics

if TYPE_CHECKING:
    from headwater.incremental.circuit.schedule import Schedule
    from headwater.incremental.dataflow.dataflow import Dataflow
    from headwater.incremental.dataflow.vertex import Vertex

__all__ = ["graph_of", "profile_of"]

_PROFILE = pa.schema(
    [
        ("id", pa.int64()),
        ("operator", pa.string()),
        ("detail", pa.string()),
        ("steps", pa.int64()),
        ("rows_in", pa.int64()),
        ("rows_out", pa.int64()),
        ("seconds", pa.float64()),
        ("state_rows", pa.int64()),
        ("state_bytes", pa.int64()),
        ("sql", pa.string()),
        ("chain", pa.int64()),
    ]
)


def graph_of(circuit: Dataflow, schedule: Schedule) -> Graph:
    """The circuit's operators with what they did; outputs are nodes of their own."""
    feedback: dict[int, tuple[str, ...]] = {}
    chains = _chain_groups(schedule)
    for vertex in circuit.vertices:
        if isinstance(vertex.node, Hold):
            feedback[vertex.node.held_id] = (str(vertex.id),)
    forgetting = {each.vertex.id: str(each) for each in schedule.forgetting}
    nodes = []
    for v in circuit.vertices:
        inner = _inner_nodes(v, circuit.captions) if isinstance(v.node, Nest) else []
        nodes += inner
        inputs = tuple(str(i.id) for i in v.inputs)
        if isinstance(v.node, Nest):
            inputs = tuple(f"{v.id}.{r.id}" for r in v.node.inner.results.values())
        back, goes = feedback.get(v.id, ()), forgetting.get(v.id, "")
        box, words = chains.get(v.id, v.group), circuit.captions
        nodes.append(_drawn(v, str(v.id), inputs, captions=words, group=box, feedback=back, goes=goes))
    nodes += [
        GraphNode(id=f"output {name}", kind="sink", label="output", detail=name, inputs=(str(v.id),))
        for name, v in circuit.outputs.items()
    ]
    return Graph(circuit.name, nodes)


def _drawn(
    vertex: Vertex,
    name: str,
    inputs: tuple[str, ...],
    *,
    captions: Mapping[str, str],
    group: str | None,
    feedback: tuple[str, ...] = (),
    goes: str = "",
) -> GraphNode:
    node = vertex.node
    detail = captions.get(node.shown, node.shown)
    return GraphNode(
        id=name,
        kind=node.kind,
        label=node.label,
        detail="; ".join(filter(None, [detail, goes])).replace("\0", ""),
        inputs=inputs,
        sql=captions.get(vertex.sql, vertex.sql),
        group=group,
        metrics=_metrics(vertex),
        feedback=feedback,
    )


def _chain_groups(schedule: Schedule) -> dict[int, str]:
    """The boxes of the members of chains; an arrangement at the end stands outside."""
    found = {}
    for entry in schedule.entries:
        lifts = [v for v in entry.members if v.node.kind == "lift"]
        for v in lifts if len(lifts) > 1 else ():
            found[v.id] = f"{v.group + '/' if v.group else ''}in one pass ({entry.vertex.id})"
    return found


def _inner_nodes(vertex: Vertex, captions: Mapping[str, str]) -> list[GraphNode]:
    """The operators inside a recursion, in a box of their own."""
    assert isinstance(vertex.node, Nest)
    inner = vertex.node.inner
    outer = dict(zip(inner.imports, vertex.inputs, strict=True))
    rounds = {inner.variables[name]: v for name, v in inner.results.items()}
    box = f"{vertex.group + '/' if vertex.group else ''}{vertex.node.label} {vertex.node.detail} ({vertex.id})"
    found = []
    for v in inner.vertices:
        inputs = tuple(f"{vertex.id}.{i.id}" for i in v.inputs)
        if v.id in outer:
            inputs = (str(outer[v.id].id),)
        back = (f"{vertex.id}.{rounds[v.id].id}",) if v.id in rounds else ()
        found.append(_drawn(v, f"{vertex.id}.{v.id}", inputs, captions=captions, group=box, feedback=back))
    return found


def _metrics(vertex: Vertex) -> NodeMetrics | None:
    f = vertex.figures
    if not f.steps:
        return None
    traces = [t for node in vertex.nodes for t in node.traces().values()]
    rows, size = vertex.recalled or (sum(len(t) for t in traces), sum(t.nbytes for t in traces))
    return NodeMetrics(
        rows_in=f.rows_in,
        rows_out=f.rows_out,
        seconds=f.seconds,
        state_rows=rows,
        state_bytes=size,
        steps=f.steps,
        bytes_in=f.bytes_in,
        shuffled_bytes=f.shuffled_bytes,
    )


def profile_of(circuit: Dataflow, schedule: Schedule) -> pa.Table:
    """One row for each operator that has run, the slowest first; the time of a chain stands with its last member."""
    rows = []
    forgetting = {each.vertex.id: str(each) for each in schedule.forgetting}
    chain = {v.id: entry.vertex.id for entry in schedule.entries for v in entry.members}
    for vertex in circuit.vertices:
        m = _metrics(vertex)
        if m is not None:
            rows.append(
                {
                    "id": vertex.id,
                    "operator": vertex.node.label,
                    "detail": "; ".join(filter(None, [vertex.node.shown, forgetting.get(vertex.id)])),
                    "steps": m.steps,
                    "rows_in": m.rows_in,
                    "rows_out": m.rows_out,
                    "seconds": m.seconds,
                    "state_rows": m.state_rows,
                    "state_bytes": m.state_bytes,
                    "sql": vertex.sql,
                    "chain": chain.get(vertex.id),
                }
            )
    table = pa.Table.from_pylist(rows, schema=_PROFILE)
    return table.sort_by([("seconds", "descending"), ("id", "ascending")])
