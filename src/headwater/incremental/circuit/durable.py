"""A circuit's state over the end of its process.

State belongs to operators by what they compute, not by their number: a trace is named by a fingerprint of its operator
and of everything before it. A circuit that is built again, by the same program or by one that has other parts too,
finds the state of the operators that are the same.

The number of shards may change: the rows of each trace are then divided anew, by the columns that its operator is
placed by. The same is done where a checkpoint was made when rows were placed by other rules (`PLACEMENT`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.base.errors import InputError
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.dataflow.vertex import Figures, Vertex, shard_of
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.manifest import Manifest
    from headwater.incremental.store import Store

__all__ = ["PLACEMENT", "checkpoint", "compact", "facts_of", "figures_in", "recall", "restore", "traces_of"]

PLACEMENT = 2
"""The version of the rules that say which columns rows are placed by: since 2 they may be some of a key's."""


def checkpoint(
    circuit: Dataflow,
    store: Store,
    extra: Any = None,
    beside: Mapping[str, Trace] | None = None,
    *,
    name: str | None = None,
) -> str:
    """Make the state of a circuit durable, with traces that others keep ``beside`` it,
    and give the name of its manifest.
    """
    names = fingerprints(circuit)
    outputs = {output: names[v.id] for output, v in circuit.outputs.items()}
    facts = {
        "shards": circuit.shards,
        "placement": PLACEMENT,
        "extra": extra,
        "outputs": outputs,
        **facts_of({names[v.id]: v.figures for v in circuit.vertices if v.node.kind != "exchange"}),
    }
    return store.checkpoint(circuit.steps, traces_of(circuit, beside), facts, name=name)


def facts_of(figures: Mapping[str, Figures]) -> dict[str, dict[str, list[Any]]]:
    """What vertices have done so far, for pictures, by their names: ``figures`` are steps, rows in, rows out and
    seconds; ``moved``, which older checkpoints do not have, bytes that were read of a source and bytes shuffled.
    """
    done = {name: f for name, f in figures.items() if f.steps}
    return {
        "figures": {name: [f.steps, f.rows_in, f.rows_out, round(f.seconds, 6)] for name, f in done.items()},
        "moved": {n: [f.bytes_in, f.shuffled_bytes] for n, f in done.items() if f.bytes_in or f.shuffled_bytes},
    }


def figures_in(manifest: Manifest) -> dict[str, Figures]:
    """What `facts_of` has put into a manifest."""
    moved = manifest.extra.get("moved", {})
    return {
        name: Figures(int(steps), int(rows_in), int(rows_out), float(seconds), *moved.get(name, ()))
        for name, (steps, rows_in, rows_out, seconds) in manifest.extra.get("figures", {}).items()
    }


def recall(circuit: Dataflow, manifest: Manifest, *, sizes: bool = True) -> None:
    """Let a circuit know what its operators had done by a checkpoint, and with ``sizes`` how much state they had.

    A circuit that has the state itself does not need the sizes; older checkpoints do not have the figures.
    """
    names, figures = fingerprints(circuit), figures_in(manifest)
    held: dict[str, tuple[int, int]] = {}
    for trace, entry in manifest.traces.items() if sizes else ():
        rows, size = held.get(owner := trace.split("/", 1)[0], (0, 0))
        held[owner] = (rows + entry.rows, size + sum(run.nbytes for run in entry.runs))
    for vertex in circuit.vertices:
        name = names[vertex.id]
        if vertex.node.kind != "exchange" and name in figures:
            vertex.figures = figures[name]
            vertex.recalled = held.get(name)


def traces_of(circuit: Dataflow, beside: Mapping[str, Trace] | None = None) -> dict[str, Trace]:
    """The state of a circuit by names that stay the same, and what others keep beside it."""
    names = fingerprints(circuit)
    traces = {
        f"{names[v.id]}/{name}/{s}": trace
        for v in circuit.vertices
        for s, node in enumerate(v.nodes[: _parts(v)])
        for name, trace in node.traces().items()
    }
    return {**traces, **(beside or {})}


def compact(traces: Mapping[str, Trace]) -> bool:
    """Merge each trace into one run; False if there was nothing to merge."""
    merged = [trace.compact() for trace in traces.values()]
    return any(merged)


def _parts(vertex: Vertex) -> int:
    """Over how many shards the state of a vertex is spread; nodes that share one circuit inside have one state."""
    return 1 if vertex.node.shared else len(vertex.nodes)


def restore(circuit: Dataflow, store: Store, name: str | None = None) -> Any:
    """Give a circuit the state of a checkpoint, and return what was saved beside it."""
    manifest = store.restore(name)
    names = fingerprints(circuit)
    shards = int(manifest.extra["shards"])
    as_it_is = shards == circuit.shards and (shards == 1 or manifest.extra.get("placement", 1) == PLACEMENT)
    # What an output has given so far is not in the state: another operator would go on from where this one was.
    given = manifest.extra.get("outputs", {})
    others = [str(v.node) for output, v in circuit.outputs.items() if given.get(output, names[v.id]) != names[v.id]]
    if others:
        raise InputError.other_state(store.folder, others)
    missing = [
        v for v in circuit.vertices for trace in v.node.traces() if f"{names[v.id]}/{trace}/0" not in manifest.traces
    ]
    if missing:
        raise InputError.other_state(store.folder, [str(v.node) for v in missing])
    for vertex in circuit.vertices:
        _restore_vertex(circuit, vertex, names[vertex.id], store, manifest, 0 if as_it_is else shards)
    circuit.steps = manifest.epoch
    recall(circuit, manifest, sizes=False)
    return manifest.extra["extra"]


def _restore_vertex(
    circuit: Dataflow, vertex: Vertex, name: str, store: Store, manifest: Manifest, divided: int
) -> None:
    """Give a vertex its traces, ``divided`` again where there were so many shards, or as they are for 0."""
    for trace_name, trace in vertex.node.traces().items():
        if not divided or vertex.node.shared:
            for s, node in enumerate(vertex.nodes[: _parts(vertex)]):
                if trace_name in node.traces():
                    store.load(manifest, f"{name}/{trace_name}/{s}", node.traces()[trace_name])
            continue
        there = [n for n in (f"{name}/{trace_name}/{s}" for s in range(divided)) if n in manifest.traces]
        old = [store.trace(manifest, n, trace.layout) for n in there]
        targets = [node.traces().get(trace_name) for node in vertex.nodes]
        for target, rows in zip(targets, _divided(old, vertex, circuit.shards), strict=True):
            if target is not None:
                target.bound = next((t.bound for t in old if t.bound is not None), None)
                target.load([Run.of(rows)] if len(rows) else [])


def _divided(old: list[Trace], vertex: Vertex, shards: int) -> list[ZSet]:
    layout = old[0].layout
    rows = concatenate([t.zset() for t in old], layout).consolidate()
    if vertex.node.everywhere:
        once = rows.rows.copy()  # what was read may be a file's
        once[:, -1] = 1
        return [ZSet(layout, once, rows.owners)] * shards
    keys = [layout.names[i] for i in vertex.placing if i < layout.keys]
    if not keys or shards == 1:
        return [rows, *(ZSet.empty(layout) for _ in range(shards - 1))]
    keyed = Arrangement(layout, keys, keys=len(keys))
    target = shard_of(keyed, rows, shards)
    return [rows.filtered(np.flatnonzero(target == s)) for s in range(shards)]
