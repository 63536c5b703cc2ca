"""Trace: what became of one row, in everything that is derived from it?

A row of a source is named by a key. Each version of the source in which it changed is a step, and each publish of an
artefact downstream that took the change is one, with the rows of the artefact that changed because of it: old and new
values, the frontiers before and after, and how it was found (`effects`). At the end, what an online table answers now,
at which rank a search finds the row, and in which files of an export it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from headwater.base.change import ChangeBatch
from headwater.base.errors import HeadwaterError, InputError
from headwater.base.frontier import Frontier
from headwater.proof.effects import Effect, Effects, Method, table_effects
from headwater.proof.key import Key, KeyText
from headwater.proof.nodes import Lineage, Node, node
from headwater.proof.row_changes import RowChange, paired, row_text

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.port import DerivingLake

__all__ = ["Trace", "TraceStep", "TracedNode", "trace"]

RECOMPUTE_ROWS = 5_000_000
"""How many rows the sources of a view may have for it to be recomputed without a row."""


@dataclass(frozen=True, kw_only=True)
class TraceStep:
    """What a commit did with the row: to a table, or to an artefact because of it.

    Parameters
    ----------
    version : int
        that the commit made
    before, after : Frontier
        what the artefact reflected; without entries for a plain table
    operation : str
        what the commit was
    at : datetime, optional
        when it was made
    rows : tuple of RowChange
        the rows that changed, the first of them
    total : int
        how many there are
    method : str
        how they were found (`headwater.proof.effects`)
    exact : bool
        whether all of them are because of the row
    note : str
        what a reader has to know
    """

    version: int
    before: Frontier
    after: Frontier
    operation: str
    at: datetime | None
    rows: tuple[RowChange, ...]
    total: int
    method: Method
    exact: bool
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {
            "version": self.version,
            "before": dict(self.before),
            "after": dict(self.after),
            "operation": self.operation,
            "at": None if self.at is None else self.at.isoformat(timespec="milliseconds"),
            "rows": [row.as_dict() for row in self.rows],
            "total": self.total,
            "method": self.method,
            "exact": self.exact,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class TracedNode:
    """A table or artefact on the way of the row.

    Parameters
    ----------
    name, kind : str
    reads : tuple of str
        what an artefact reads
    frontier : Frontier
        what it reflects now
    steps : tuple of TraceStep
        oldest first
    found : tuple of mappings
        where its rows are found now: answers, hits, files
    unseen : mapping of str to list of int
        versions of its sources in which the row changed and which it does not reflect yet
    note : str
        why nothing is known of it, where that is so
    """

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    frontier: Frontier = field(default_factory=Frontier)
    steps: tuple[TraceStep, ...] = ()
    found: tuple[Mapping[str, object], ...] = ()
    unseen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "reads": list(self.reads),
            "frontier": dict(self.frontier),
            "steps": [step.as_dict() for step in self.steps],
            "found": [dict(one) for one in self.found],
            "unseen": {name: list(versions) for name, versions in self.unseen.items()},
            "note": self.note,
        }


@dataclass(frozen=True)
class Trace:
    """The way of one row: the table that has it, and every artefact downstream, each after what it reads."""

    table: str
    key: Key
    nodes: tuple[TracedNode, ...]

    def __getitem__(self, name: str) -> TracedNode:
        for one in self.nodes:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        return "\n".join([f"{self.table} {self.key}", *(line for one in self.nodes for line in _lines(one))])

    def _repr_html_(self) -> str:
        return f"<div><b>{escape(self.table)} {escape(str(self.key))}</b>{''.join(map(_html, self.nodes))}</div>"

    def as_dict(self) -> dict[str, object]:
        """The same facts for ``--json``."""
        return {"table": self.table, "key": self.key.as_dict(), "nodes": [one.as_dict() for one in self.nodes]}


def trace(
    lake: DerivingLake,
    table: str,
    key: KeyText,
    *,
    versions: int | None = 20,
    after: int | None = None,
    until: int | None = None,
    limit: int = 20,
    recompute_rows: int = RECOMPUTE_ROWS,
) -> Trace:
    """Follow a row of a table through everything that is derived from it.

    Parameters
    ----------
    key
        which row: ``"customer_id=1234"``, or ``{"customer_id": 1234}``; it may be several rows
    versions
        how many versions of the table are looked at, back from the newest; None: all that the log has
    after, until
        other versions: those after the one, up to the other
    limit
        how many rows are given of each step
    recompute_rows
        a view that does not pass the key through is recomputed without the row where its sources have at most so many

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> orders = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 5}])
    >>> _ = lake.view("total", "SELECT sum(amount) AS total FROM orders", refresh=True)
    >>> _ = orders.update({"amount": "12"}, where="id = 1"), lake.refresh()
    >>> print(lake.trace("orders", "id=1")["total"].steps[-1].rows[0])
    - total=15
    """
    start = node(lake, table)
    if start.table is None:
        raise InputError.bad_argument("table", table, f"a table or a view; `{start.name}` is {start.kind}")
    base = start.base if until is None else start.table.at(version=until).snapshot
    asked = Key.of(key, base)
    for name, value in (("versions", versions), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError.bad_argument(name, value, "a number, from 1 on")
    first = (
        max(-1, base.version - versions) if after is None and versions is not None else -1 if after is None else after
    )
    lineage = Lineage(lake)
    effects = Effects(recompute_rows)
    effects.begin(start.name, base, asked, table_effects(base, first, asked))
    nodes = [_node(start, effects.found[start.name], asked.columns, limit)]
    downstream = (node(lake, name, lineage.lookup) for name in lineage.downstream(start.name))
    nodes += [_followed(one, effects, limit) for one in downstream]
    return Trace(start.name, asked, tuple(nodes))


def _followed(one: Node, effects: Effects, limit: int) -> TracedNode:
    artefact = one.artefact
    assert artefact is not None, "what is downstream is derived"
    try:
        found = effects.follow(artefact, None if one.table is None else one.base)
        carried = effects.keys.get(artefact.name)
        columns = artefact.identity or (() if carried is None else carried.columns)
        made = _node(one, found, columns, limit)
        return TracedNode(
            name=made.name, kind=made.kind, reads=artefact.reads, frontier=artefact.frontier, steps=made.steps,
            found=tuple(_found(artefact, found)), unseen=effects.unseen(artefact),
        )  # fmt: skip
    except HeadwaterError as error:  # one that cannot be read does not hide the others
        effects.found.setdefault(artefact.name, [])
        return TracedNode(
            name=artefact.name, kind=one.kind, reads=artefact.reads, note=f"[{error.code}] {error.message}"
        )


def _found(artefact: Artefact, effects: Sequence[Effect]) -> list[dict[str, object]]:
    """Where the rows are found now: those that came last, or those that went, if none came."""
    if not effects:
        return []
    change = effects[-1].change
    rows = change.inserted()
    return artefact.found(rows if rows.num_rows else change.deleted())


def _node(one: Node, effects: Sequence[Effect], columns: Sequence[str], limit: int) -> TracedNode:
    return TracedNode(name=one.name, kind=one.kind, steps=tuple(_step(e, columns, limit) for e in effects))


def _step(effect: Effect, columns: Sequence[str], limit: int) -> TraceStep:
    change: ChangeBatch = effect.change
    key = tuple(c for c in columns if c in change.schema.names)
    shown = paired(change, key if len(key) == len(columns) else (), limit)
    return TraceStep(
        version=effect.version,
        before=effect.before,
        after=effect.after,
        operation=effect.operation,
        at=None if effect.at_ms is None else datetime.fromtimestamp(effect.at_ms / 1000, UTC),
        rows=shown.rows,
        total=shown.inserted + shown.deleted + shown.updated,
        method=effect.method,
        exact=effect.exact,
        note=effect.note,
    )


def _lines(one: TracedNode) -> list[str]:
    head = f"{one.name} ({one.kind})" + (f" at {one.frontier}" if one.frontier else "")
    lines = [head]
    for step in one.steps:
        lines.append(f"  {_step_line(step)}")
        lines += [f"    {row}" for row in step.rows]
        more = step.total - len(step.rows)
        lines += [f"    … {more:,} more"] if more else []
        lines += [f"    {step.note}"] if step.note else []
    lines += [f"  now: {row_text(dict(fact))}" for fact in one.found]
    lines += [f"  not yet: {_unseen(one)}"] if one.unseen else []
    lines += [f"  {one.note}"] if one.note else []
    if not (one.steps or one.note or one.unseen):
        lines.append("  nothing of it")
    return lines


def _step_line(step: TraceStep) -> str:
    at = "" if step.at is None else f" {step.at:%Y-%m-%d %H:%M:%S}"
    if step.method == "source":
        return f"@{step.version} {step.operation}{at}"
    return f"@{step.version}{at}: {step.before or 'nothing'} -> {step.after}, {step.method}"


def _unseen(one: TracedNode) -> str:
    return ", ".join(f"{name}@{version}" for name, versions in one.unseen.items() for version in versions)


def _html(one: TracedNode) -> str:
    lines = _lines(one)
    rows = "".join(f"<li>{escape(line.strip())}</li>" for line in lines[1:])
    return f"<p><b>{escape(lines[0])}</b></p><ul>{rows}</ul>"
