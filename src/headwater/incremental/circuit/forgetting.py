"""Forgetting: the state of a circuit that nobody will look at again.

Whether a row of an arrangement may go is for all its readers to say: each has a rule for it
(`headwater.incremental.operators.settled`), or needs everything. An operator with state of its own, such as an
aggregate, says it for itself. After each step, when the marks have moved, state is let go in one of two ways: where all
rules are one bound of one column, the bound is given to the traces, whose merges drop what is below; else the traces
are swept by all rules together, when so much has come that it pays.

A mark that is not known yet lets nothing go. Rows without a time stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.settled import Below, Settled
from headwater.incremental.operators.watermark import Mark

if TYPE_CHECKING:
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.sweep import Gone, Mask
    from headwater.incremental.trace import Trace
    from headwater.incremental.zset import Positions, ZSet

__all__ = ["Forgetting", "forgetting_of"]

_LEAST = int(np.iinfo(np.int64).min)


@dataclass(slots=True)
class Forgetting:
    """The traces of a vertex, by shard, and the rules by all of which a row may go."""

    vertex: Vertex
    rules: Sequence[Settled]
    traces: Sequence[tuple[int, Trace]]
    mark: Mark | None = field(init=False)
    _words: list[int] = field(init=False)
    _swept: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = all(isinstance(r, Below) for r in self.rules) and len({r.column for r in self.rules}) == 1
        self.mark = Mark.both(*(r.mark for r in self.rules)) if plain else None
        self._words = [trace.layout.column(self.rules[0].column).word for _, trace in self.traces]

    def run(self) -> None:
        """Let go what the marks of now allow."""
        if self.mark is not None:
            value = self.mark.least()
            if value is not None:
                for (_, trace), word in zip(self.traces, self._words, strict=True):
                    trace.forget((word, max(value, _LEAST)))
            return
        for i, (shard, trace) in enumerate(self.traces):
            if trace.is_due:
                self._sweep(i, shard, trace)

    def _sweep(self, number: int, shard: int, trace: Trace) -> None:
        values = [rule.mark.least() for rule in self.rules]
        known = [max(v, _LEAST) for v in values if v is not None]
        if len(known) == len(values) and self._swept.get(number) != known:
            self._swept[number] = known
            trace.sweep(_by_all([r.gone(trace.layout, shard, v) for r, v in zip(self.rules, known, strict=True)]))

    def __str__(self) -> str:
        return "lets go " + ", if also ".join(dict.fromkeys(map(str, self.rules)))


def _by_all(rules: Sequence[Gone]) -> Gone:
    def found(rows: ZSet, begins: Positions) -> Mask:
        out = rules[0](rows, begins)
        for rule in rules[1:]:
            out &= rule(rows, begins)
        return out

    return found


def forgetting_of(vertices: Sequence[Vertex]) -> list[Forgetting]:
    """What may be let go in a circuit."""
    needs: dict[int, list[Settled | None]] = {}
    for vertex in vertices:
        for i, v in enumerate(vertex.inputs):
            needs.setdefault(v.id, []).append(vertex.needs[i] if i < len(vertex.needs) else None)
    found = []
    for vertex in vertices:
        if isinstance(vertex.node, Arrange):
            asked = needs.get(vertex.id, [])
            rules = [need for need in asked if need is not None]
            whole = len(rules) < len(asked)
        else:
            rules = [] if vertex.settled is None else [vertex.settled]
            whole = False
        traces = [
            (s, trace)
            for s, node in enumerate(vertex.nodes)
            for trace in node.traces().values()
            if all(rule.column in trace.layout.schema.names for rule in rules)
        ]
        if rules and traces and not whole:
            found.append(Forgetting(vertex, rules, traces))
    return found
