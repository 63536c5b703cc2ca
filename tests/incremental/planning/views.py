"""Views of plain texts, checked as random ones are, and circuits to look at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build
from headwater.sql.plan import Plan
from headwater.sql.query import parse_query
from headwater.testing.views import SCHEMAS, run_view


def holds(sql: str, *, steps: int = 12, seed: int = 5) -> None:
    """The view of a query equals DuckDB's answer after every step of a history."""
    assert run_view(sql, seed=seed, steps=steps, restarts=0.15) == steps


def plan_of(sql: str) -> Plan:
    return parse_query(sql, lambda name, *_: SCHEMAS[name])


def circuit_of(sql: str, schemas: Any = SCHEMAS) -> Circuit:
    """The circuit of a query, whose output is ``view``."""
    circuit = Circuit("view")
    plan = parse_query(sql, lambda name, *_: schemas[name])
    build(circuit, plan, {n: circuit.input(n, s) for n, s in schemas.items()}).output("view")
    return circuit


def rows_of(circuit: Circuit, **changes: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = circuit.step(changes)["view"].to_arrow().to_pylist()
    return found


def labels(circuit: Circuit) -> list[str]:
    return [v.node.label for v in circuit.vertices]
