"""MATCH_RECOGNIZE in circuits: after every change the rows are those of the same search over all rows."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.sql.matching.histories import SCHEMA, case, rows

from headwater.base.errors import ExpressionError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.operators.match import Matches
from headwater.incremental.planning.building import build
from headwater.incremental.planning.determinacy import determined
from headwater.sql.matching import Matcher, sorted_for
from headwater.sql.plan import Match, Plan, Scan, Sort
from headwater.sql.query import parse_query

CASES = int(os.environ.get("HEADWATER_TEST_EXAMPLES", "60"))
Row = tuple[Any, ...]


def plan_of(sql: str) -> Plan:
    return parse_query(sql, lambda *_: SCHEMA)


def from_scratch(plan: Plan, given: Counter[Row]) -> Counter[str]:
    """The rows of a match at the top of a plan, by one search over all rows in the plan's total order."""
    found = determined(plan)
    match = next(one for one in found.walk() if isinstance(one, Match))
    scan = next(one for one in match.walk() if isinstance(one, Scan))
    names = {a.key: a.name for a in scan.columns}
    matcher = Matcher(match)
    below = sorted_for(match)
    assert isinstance(below, Sort)

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        parts = []
        for one in below.order:
            column: Any = one.node
            if not hasattr(column, "path"):
                continue  # the sign of a zero, which the rows of this test do not need
            value = row[names[column.path[0]]]
            value = value.encode() if isinstance(value, str) else value
            nan = isinstance(value, float) and value != value
            parts.append((value is not None, nan, 0 if value is None or nan else value))
        return tuple(parts)

    every = [dict(zip(SCHEMA.names, row, strict=True)) for row in given.elements()]
    every.sort(key=key)
    columns = [
        pa.array([r[names[k]] for r in every], t)
        for k, t in zip(matcher.schema.names, matcher.schema.types, strict=True)
    ]
    answer = matcher.run(pa.Table.from_arrays(columns, schema=matcher.schema))
    return Counter(repr(tuple(r.values())) for r in answer.to_pylist())


def changed(dice: random.Random, given: Counter[Row], fresh: list[dict[str, Any]]) -> Counter[Row]:
    """A change of the rows: some come, some go, a few twice."""
    change: Counter[Row] = Counter()
    for new in dice.sample(fresh, min(len(fresh), dice.randint(0, 6))):
        change[tuple(new.values())] += dice.choice([1, 1, 1, 2])
    for row in dice.sample(sorted(given, key=repr), min(len(given), dice.randint(0, 4))):
        change[row] -= 1
    return Counter({row: weight for row, weight in change.items() if weight})


def stepped(circuit: Circuit, change: Counter[Row]) -> Counter[str]:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in change], SCHEMA)
    weighted = table.append_column("_weight", pa.array(change.values(), pa.int64()))
    found = circuit.step(t=weighted)["o"].to_arrow()
    out: Counter[str] = Counter()
    for row in found.to_pylist():
        weight = row.pop("_weight")
        out[repr(tuple(row.values()))] += weight
    return out


def plainly(row: dict[str, Any]) -> dict[str, Any]:
    """Without what rows of one test cannot tell apart: the sign of a zero."""
    d = row["d"]
    return row | {"d": 0.0 if d == 0 else d}


def test_random_patterns_follow_random_changes() -> None:
    seed = os.environ.get("HEADWATER_TEST_SEED", "1")
    compared = 0
    for number in range(CASES):
        dice = random.Random(f"{seed} {number}")
        one = case(dice)
        if one.skip[0] in ("first", "last"):
            continue  # it may be an error, after one step and not after another
        plan = plan_of(one.sql)
        circuit = Circuit(str(number))
        build(circuit, plan, {"t": circuit.input("t", SCHEMA)}).output("o")
        given: Counter[Row] = Counter()
        kept: Counter[str] = Counter()
        for _ in range(6):
            change = changed(dice, given, [plainly(r) for r in rows(dice, 4, 6)])
            for row, weight in stepped(circuit, change).items():
                kept[row] += weight
            given.update(change)
            given = +given
            assert +kept == from_scratch(plan, given), f"{number}: {one.sql}"
            assert not -kept
        compared += 1
    assert compared > CASES // 2


WITHIN = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts MEASURES A.id AS a, count(*) AS n {}PATTERN (A B+) WITHIN 3 DEFINE B AS {})"


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        (WITHIN.format("", "x > A.x"), "by stretches"),
        (WITHIN.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS ", "x > A.x"), "by stretches"),
        (WITHIN.format("", "x > PREV(x)"), ""),
        (WITHIN.format("", "x > A.x").replace("(A B+)", "(^ A B+)"), ""),
        (WITHIN.format("", "x > A.x").replace("A.id AS a", "MATCH_NUMBER() AS a"), ""),
        (WITHIN.format("", "x > A.x").replace(" WITHIN 3", ""), ""),
    ],
)
def test_a_change_costs_its_stretch_where_nothing_looks_farther(sql: str, detail: str) -> None:
    circuit = Circuit()
    build(circuit, plan_of(sql), {"t": circuit.input("t", SCHEMA)}).output("o")
    nodes = [v.node for v in circuit.vertices if isinstance(v.node, Matches)]
    assert [n.detail for n in nodes] == [detail]


def test_a_stretch_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = WITHIN.format("", "x > A.x")
    circuit = Circuit()
    build(circuit, plan_of(sql), {"t": circuit.input("t", SCHEMA)}).output("o")
    every = [("g", ts * 10 + off, ts, off, "", 0.0) for ts in range(2_000) for off in range(2)]
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in every], SCHEMA)
    assert circuit.step(t=table)["o"].rows.num_rows == 2_000
    seen: list[int] = []
    node = next(v.node for v in circuit.vertices if isinstance(v.node, Matches))
    run = node._matcher.run

    def counted(table: pa.Table, bounds: Any = None) -> pa.Table:
        seen.append(table.num_rows)
        return run(table, bounds)

    monkeypatch.setattr(node._matcher, "run", counted)
    more = pa.Table.from_pylist([dict(zip(SCHEMA.names, ("g", 5_002, 9_999, 7, "", 0.0), strict=True))], SCHEMA)
    circuit.step(t=more)
    assert sum(seen) <= 6


def test_an_error_in_a_step_changes_nothing() -> None:
    sql = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY ts MEASURES A.id AS a PATTERN (A) DEFINE A AS 10 / x > 1)"
    circuit = Circuit()
    build(circuit, plan_of(sql), {"t": circuit.input("t", SCHEMA)}).output("o")

    def step(*values: int) -> list[dict[str, Any]]:
        given = [{"g": "g", "ts": v, "id": v, "x": v, "s": "", "d": 0.0} for v in values]
        return list(circuit.step(t=pa.Table.from_pylist(given, SCHEMA))["o"].to_arrow().to_pylist())

    assert step(1) == [{"g": "g", "a": 1, "_weight": 1}]
    with pytest.raises(ExpressionError, match="division by zero"):
        step(0, 2)
    assert step(3) == [{"g": "g", "a": 3, "_weight": 1}]
