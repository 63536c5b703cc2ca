"""Arguments: the columns that aggregates read, of which some are computed first."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.rows import Computed, Scope
from headwater.sql.nodes import Node
from headwater.sql.vectorised import Program

__all__ = ["Arguments"]

_ARGUMENT = "\0argument"


@dataclass
class Arguments:
    """Expressions as columns: those that a stream has, and new ones, each once."""

    scope: Scope
    computed: dict[str, Program] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def column(self, node: Node) -> str:
        """The name of the column that holds an expression."""
        return self._named(self.scope.computed(node))

    def key(self, node: Node) -> str:
        """The same for a key, whose zeros of floats are one."""
        return self._named(self.scope.key(node))

    def _named(self, how: Computed) -> str:
        if isinstance(how, str):
            return how
        key = f"{how.text}: {how.dtype}"
        if key not in self._known:
            self._known[key] = f"{_ARGUMENT} {len(self._known)}"
            self.computed[self._known[key]] = how
        return self._known[key]

    def schema(self) -> pa.Schema:
        """The columns of the stream, and the new ones."""
        more = [pa.field(n, p.dtype) for n, p in self.computed.items()]
        return pa.schema([*self.scope.stream.schema, *more])

    def added_to(self, stream: Stream) -> Stream:
        """A stream that has the scope's columns, with the new ones."""
        if not self.computed:
            return stream
        # What was put before the columns of the scope shifts no program: they find their columns by name.
        columns: list[tuple[str, Computed]] = [(c, c) for c in stream.columns]
        for name, program in self.computed.items():
            columns.append((name, type(program)(program.node, stream.schema, program.text)))
        detail = ", ".join(p.text for p in self.computed.values())
        return stream.projected(columns, label="arguments", detail=detail)
