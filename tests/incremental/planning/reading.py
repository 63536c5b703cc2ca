"""Which columns of a circuit's arrangements are read by nobody: an analysis from the outputs back to the inputs.

For each operator there is a rule: given the columns of its output that somebody reads, which columns of each input does it read? Operators without a rule
are refused, so that a new one gets one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.nesting.nest import Nest
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.operators.explode import Explode
from headwater.incremental.operators.frames import Frames
from headwater.incremental.operators.interval_join import IntervalJoin, Lengths
from headwater.incremental.operators.join import Join
from headwater.incremental.operators.lag import Lag
from headwater.incremental.operators.node import Node
from headwater.incremental.operators.over import Over

Columns = set[str]

_RECORDED: tuple[type[Any], ...] = (Aggregate, Explode, Frames, IntervalJoin, Join, Lag, Lengths)
_ZEROS = "\0without -0.0 "
_WHOLE = {"distinct", "union", "intersect", "except", "present", "single", "at most one", "recursion"}
"""Operators that compare or hand on whole rows."""


@contextmanager
def recorded() -> Iterator[None]:
    """Let operators that are made meanwhile remember what they were made with."""
    with _patched(list(_RECORDED)):
        yield


@contextmanager
def _patched(kinds: list[type[Any]]) -> Iterator[None]:
    if not kinds:
        yield
        return
    kind, init = kinds[0], kinds[0].__init__

    def remembering(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self.made_with = (args, options)

    with patch.object(kind, "__init__", remembering), _patched(kinds[1:]):
        yield


def unread(circuit: Dataflow) -> dict[str, Columns]:
    """For each arrangement that keeps a column which nobody reads: those columns."""
    wanted: dict[int, Columns] = {v.id: set() for v in circuit.vertices}
    results: Mapping[str, Any] = getattr(circuit, "results", {})
    for vertex in (*circuit.outputs.values(), *results.values()):
        wanted[vertex.id] |= set(vertex.layout.names)
    found: dict[str, Columns] = {}
    for vertex in reversed(circuit.vertices):
        node, read = vertex.node, wanted[vertex.id]
        if node.kind == "arrange":
            layout = node.layout
            read = {*read, *layout.names[: layout.keys], *(o.column for o in layout.order)}
            # An outer join with a further condition subtracts whole rows, so floats stand beside their keys.
            if len({c.removeprefix(_ZEROS) for c in layout.names}) == layout.keys:
                read |= {c for c in layout.names if _ZEROS + c in layout.names[: layout.keys]}
            # Where rows are only counted one column stays.
            if len(layout.names) > 1 and (spare := set(layout.names) - read):
                found[f"{vertex.id} {node.label} {node.detail}"] = spare
        if isinstance(node, Nest):
            found |= {f"{vertex.id} in the recursion: {k}": v for k, v in unread(node.inner).items()}
        for below, some in zip(vertex.inputs, _read(node, read), strict=True):
            assert some <= set(below.layout.names), f"{node} cannot read {some} of {below.node}"
            wanted[below.id] |= some
    return found


def _read(node: Node, wanted: Columns) -> list[Columns]:
    """The columns of each input that an operator reads to give those that are wanted."""
    inputs = [list(i.layout.names) for i in node.inputs]
    if node.kind == "source":
        return []
    link = node.link()
    if link is not None:
        return [_linked(link, list(node.layout.names), inputs[0], wanted)]
    if node.kind in ("arrange", "exchange"):
        return [{c for c in inputs[0] if c in wanted}]
    if node.label == "plus":
        at = [i for i, c in enumerate(node.layout.names) if c in wanted]
        return [{names[i] for i in at} for names in inputs]
    if node.label in _WHOLE:
        return [set(names) for names in inputs]
    made_with: tuple[tuple[Any, ...], dict[str, Any]] = getattr(node, "made_with", ((), {}))
    args, options = made_with
    if isinstance(node, Join | IntervalJoin):
        sides = [{a for a, b in pairs if b in wanted} for pairs in args[2:4]]
        if isinstance(node, IntervalJoin):
            sides[0].add(options["hi"])
        return sides
    passed = {c for c in inputs[0] if c in wanted}
    if isinstance(node, Aggregate):
        return [{*args[1], *(c for a in args[2] for c in (*a.arguments, a.where) if c is not None)}]
    if isinstance(node, Frames):
        return [passed | {f.column for f in args[1] if f.column is not None}]
    if isinstance(node, Lag):
        return [passed | {s.column for s in args[1]}]
    if isinstance(node, Over):
        return [passed]
    if isinstance(node, Explode):
        return [passed | {inputs[0][i] for i in args[1].columns}]
    if isinstance(node, Lengths):
        return [passed | {args[1], args[2]}]
    raise AssertionError(f"there is no rule for what {node!r} reads")


def _linked(link: Any, output: list[str], names: list[str], wanted: Columns) -> Columns:
    read = set() if link.condition is None else {names[i] for i in link.condition.columns}
    for at, name in enumerate(output):
        how = at if link.columns is None else link.columns[at]
        if name in wanted and how is not None:
            read |= {names[how]} if isinstance(how, int) else {names[i] for i in how.columns}
    return read
