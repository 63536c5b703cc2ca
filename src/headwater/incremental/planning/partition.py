"""Partitions: the keys of a window as columns, computed first where they are expressions."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.vertex import Vertex
from headwater.incremental.planning.rows import Computed, Scope
from headwater.sql.nodes import Node

__all__ = ["partitioned", "placed_within"]


def partitioned(scope: Scope, partition: Sequence[Node]) -> tuple[Stream, list[str]]:
    """The stream with columns for the keys of a partition, and their names."""
    stream = scope.stream
    keys: list[str] = []
    computed: list[tuple[str, Computed]] = []
    for node in partition:
        how = scope.key(node)
        name = how if isinstance(how, str) else f"\0partition {len(computed)}"
        if not isinstance(how, str):
            computed.append((name, how))
        if name not in keys:
            keys.append(name)
    if computed:
        passed: list[tuple[str, Computed]] = [(c, c) for c in stream.columns]
        detail = ", ".join(scope.text(n) for n in partition)
        stream = stream.projected([*passed, *computed], label="partition", detail=detail)
    return stream, keys


def placed_within(arranged: Vertex, kept: Sequence[tuple[str, str]]) -> tuple[str, ...] | None:
    """Where rows lie that an operator on one arrangement gives, which keeps some columns under their names."""
    placed = arranged.placed_by
    return placed if placed is not None and all((k, k) in kept for k in placed) else None
