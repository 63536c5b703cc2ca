"""What the single rules make of a plan; that they change no rows is told by test_generated."""

from __future__ import annotations

import re

import pyarrow as pa

from headwater.sql.plan import Filter, Join, Plan, Project, Reference, Scan, With
from headwater.sql.query import parse_query
from headwater.sql.rewriting import merged, prepared, pruned, pushed, shared

_SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("s", pa.string())])


def _plan(text: str) -> Plan:
    return parse_query(text, lambda *_: _SCHEMA)


def _dump(plan: Plan) -> str:
    return "\n" + plan.dump()


def test_comma_joins_follow_equalities() -> None:
    text = "SELECT x.s FROM t x, t y, t z WHERE x.a = z.a AND z.b = y.b AND y.a > 1"
    assert (
        _dump(pushed(_plan(text)))
        == """
project s#3
  project a#1, b#2, s#3, a#4, b#5, s#6, a#7, b#8, s#9
    inner join on (b#8 = b#5)
      inner join on (a#1 = a#7)
        scan t [a#1, b#2, s#3]
        scan t [a#7, b#8, s#9]
      filter (a#4 > 1)
        scan t [a#4, b#5, s#6]
"""
    )


def test_what_all_parts_of_an_or_ask_for_is_a_condition_of_the_join() -> None:
    text = "SELECT x.s FROM t x, t y WHERE (x.a = y.a AND x.b = 1 AND y.b = 2) OR (x.a = y.a AND x.b = 3 AND y.b = 4)"
    plan = pushed(_plan(text))
    (join,) = [n for n in plan.walk() if isinstance(n, Join)]
    assert join.line().startswith("inner join on ((a#1 = a#4) and ")
    assert [n.line() for n in plan.walk() if isinstance(n, Filter)] == [
        "filter ((b#2 = 1) or (b#2 = 3))",
        "filter ((b#5 = 2) or (b#5 = 4))",
    ]


def test_what_may_fail_stays_above() -> None:
    text = "SELECT q.s FROM (SELECT a, s FROM t WHERE a <> 0) q JOIN t ON q.a = t.a WHERE 4 / q.a > 1 AND t.b > 1"
    plan = pushed(_plan(text))
    filters = [n.line() for n in plan.walk() if isinstance(n, Filter)]
    assert [("/" in f) for f in filters] == [True, False, False]
    assert isinstance(plan, Project) and isinstance(plan.child, Filter)


def test_an_outer_join_whose_nulls_are_refused_is_an_inner_one() -> None:
    kinds = {
        "t.b > 1": "inner",
        "t.b IS NULL": "left",
        "coalesce(t.b, 1) = 1": "left",
        "t.b + 1 = u.b": "inner",
        "u.b > 1": "left",
    }
    for where, kind in kinds.items():
        plan = pushed(_plan(f"SELECT u.a FROM t u LEFT JOIN t ON u.a = t.a WHERE {where}"))
        assert [n.kind for n in plan.walk() if isinstance(n, Join)] == [kind], where


def test_conditions_go_below_groups_windows_and_unions() -> None:
    ranked = "SELECT a, rank() OVER (PARTITION BY a ORDER BY b) AS n FROM t"
    cases = {
        "SELECT * FROM (SELECT a, sum(b) AS n FROM t GROUP BY a) WHERE a > 1 AND n > 2": ["sum > 2", "a > 1"],
        f"SELECT * FROM ({ranked}) WHERE a > 1 AND n > 2": ["rank > 2", "a > 1"],
        "SELECT * FROM (SELECT a FROM t UNION ALL SELECT b FROM t) WHERE a > 1": ["a > 1", "b > 1"],
    }
    for text, conditions in cases.items():
        lines = [re.sub(r"#\d+", "", n.line()) for n in pushed(_plan(text)).walk() if isinstance(n, Filter)]
        assert lines == [f"filter ({c})" for c in conditions]


def test_columns_that_nobody_reads_are_left_out() -> None:
    plan = merged(pruned(pushed(_plan("SELECT x.b FROM t x JOIN t y ON x.a = y.a"))))
    assert (
        _dump(plan)
        == """
project b#2
  inner join on (a#1 = a#4)
    project a#1, b#2
      scan t [a#1, b#2, s#3]
    project a#4
      scan t [a#4, b#5, s#6]
"""
    )


def test_a_count_needs_one_column() -> None:
    plan = pruned(_plan("SELECT count(*) FROM t"))
    (project,) = [n for n in plan.walk() if isinstance(n, Project) and isinstance(n.child, Scan)]
    assert len(project.items) == 1


def test_definitions_are_shared_if_they_are_read_twice() -> None:
    once = shared(_plan("WITH q AS (SELECT a FROM t), r AS (SELECT a FROM q) SELECT * FROM r"))
    assert not any(isinstance(n, With | Reference) for n in once.walk())
    twice = shared(_plan("SELECT * FROM (WITH q AS (SELECT a FROM t) SELECT x.a FROM q x JOIN q y ON x.a = y.a)"))
    assert isinstance(twice, With)
    assert len(twice.definitions) == 1
    assert not any(isinstance(n, With) for n in twice.child.walk())


def test_projections_become_one() -> None:
    plan = merged(_plan("SELECT c + 1 AS d FROM (SELECT b AS c, a FROM (SELECT a, b FROM t))"))
    assert [type(n) for n in plan.walk()] == [Project, Scan]
    double = merged(_plan("SELECT c + c AS d FROM (SELECT a * b AS c FROM t)"))
    assert [type(n) for n in double.walk()] == [Project, Project, Scan]


def test_the_output_keeps_its_names_and_order() -> None:
    plan = _plan("SELECT s AS x, a, a AS y, s AS x FROM t WHERE b IN (SELECT a FROM t)")
    assert prepared(plan).schema.names == ["x", "a", "y", "x"]
