"""What is nested is not copied: SQL and plans grow by a constant with each function, for every function of the catalogue."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa
import pytest

from headwater.sql.datafusion.expression import Expressions as DataFusion
from headwater.sql.duckdb_form import render
from headwater.sql.expressions import evaluate, parse
from headwater.sql.nodes import Column, Node, Refused, walk
from headwater.sql.plan import Plan
from headwater.sql.udfs import install
from headwater.sql.vectorised import compile_expression

from .catalogue_calls import SCHEMA, apply, calls, large
from .datafusion_here import answer
from .oracle import answer_of, plan_of

Differences = Callable[[pa.Table, Sequence[str]], list[str]]
Writer = Callable[[Node], str]


def _for_datafusion(node: Node) -> str:
    def whole(_: Plan) -> str:
        raise AssertionError("there are no subqueries")

    return DataFusion(whole).render(node)


WRITERS: dict[str, Writer] = {"duckdb": lambda node: render(node, {}), "datafusion": _for_datafusion}


def _slope(write: Writer, name: str, args: Sequence[object], place: int) -> float | None:
    """By how much the SQL of a call grows with that of one argument; None where the engine does not know the function."""
    column = args[place]
    assert isinstance(column, Column)
    lengths = []
    for size in (60, 120):
        value = large(column, size)
        node = apply(name, [*args[:place], value, *args[place + 1 :]])
        try:
            lengths.append((len(write(value)), len(write(node))))
        except Refused:
            return None
    (a, x), (b, y) = lengths
    return (y - x) / (b - a)


@pytest.mark.long
@pytest.mark.parametrize("engine", WRITERS)
def test_no_form_copies_a_large_argument(engine: str) -> None:
    """So nothing that is made of such forms is longer than the sum of its parts, however it is nested."""
    copied, asked = {}, set()
    for name, args, _ in calls():
        for place, arg in enumerate(args):
            if isinstance(arg, Column):
                slope = _slope(WRITERS[engine], name, args, place)
                asked |= set() if slope is None else {name}
                if slope is not None and slope > 1.05:
                    copied[name, str(arg.dtype), place] = slope
    assert not copied
    assert len(asked) > (250 if engine == "duckdb" else 80), len(asked)


def test_no_builder_copies_a_large_argument() -> None:
    copied = {}
    for name, args, _ in calls():
        for place, arg in enumerate(args):
            if isinstance(arg, Column):
                value = large(arg, 60)
                node = apply(name, [*args[:place], value, *args[place + 1 :]])
                if sum(n is value for n in walk(node)) > 1:
                    copied[name, str(arg.dtype), place] = node
    assert not copied


def _nested(name: str, args: Sequence[object], place: int, depth: int) -> Node:
    node = apply(name, args)
    for _ in range(depth - 1):
        node = apply(name, [*args[:place], node, *args[place + 1 :]])
    return node


def _nests() -> dict[tuple[str, int], tuple[str, tuple[object, ...], int]]:
    """Calls whose result can be their argument, one for each function and place."""
    found: dict[tuple[str, int], tuple[str, tuple[object, ...], int]] = {}
    for name, args, node in calls():
        for place, arg in enumerate(args):
            if isinstance(arg, Column) and arg.dtype == node.dtype and not isinstance(node, Column):
                found.setdefault((name, place), (name, args, place))
    return found


@pytest.mark.long
def test_duckdb_plans_nests_quickly() -> None:
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.register("t", SCHEMA.empty_table())
    slow = {}
    for name, args, place in _nests().values():
        for depth in (4, 12):
            sql = f"EXPLAIN SELECT {render(_nested(name, args, place, depth), {})} FROM t"
            install(con, sql)
            begin = time.process_time()
            con.execute(sql).fetchall()
            spent = time.process_time() - begin
            if spent > 1:
                slow[name, place, depth] = spent
                break
    assert not slow
    assert len(_nests()) > 120


@pytest.mark.long
def test_datafusion_plans_nests_quickly() -> None:
    from headwater.query.engines.datafusion import session

    context = session()
    context.register_record_batches(
        "nests", [SCHEMA.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]]
    )
    slow, asked = {}, 0
    try:
        for name, args, place in _nests().values():
            sizes = []
            for depth in (2, 6):
                try:
                    sql = _for_datafusion(_nested(name, args, place, depth))
                except Refused:
                    break
                sizes.append(len(str(context.sql(f"SELECT {sql} AS r FROM nests").optimized_logical_plan())))
            if len(sizes) == 2:
                asked += 1
                if sizes[1] > 8 * sizes[0]:
                    slow[name, place] = sizes
    finally:
        context.deregister_table("nests")
    assert not slow
    assert asked > 30


def test_a_view_compiles_nests_quickly() -> None:
    slow = {}
    begin = time.process_time()
    for name, args, place in _nests().values():
        compile_expression(_nested(name, args, place, 12), SCHEMA)
        spent, begin = time.process_time() - begin, time.process_time()
        if spent > 1:
            slow[name, place] = spent
    assert not slow


# --- what is not needed is not evaluated, and what is evaluated is Spark's value

TABLE = {"t": pa.table({"n": pa.array([0, 2, None, 5], pa.int32()), "s": ["0", "a", None, "b"]})}
_DEEP = "pmod(pmod(pmod(pmod(abs(pmod({0}, 1000)), 997), 991), 983), 977)"
LAZY = [
    f"if(n <> 0, {_DEEP.format('10 DIV n')}, -1)",
    f"CASE WHEN n = 0 THEN -1 WHEN {_DEEP.format('10 DIV n')} > 3 THEN {_DEEP.format('100 DIV n')} ELSE n END",
    f"coalesce(CASE WHEN n = 0 THEN 1 END, {_DEEP.format('10 DIV n')}, 7)",
    f"n = 0 OR {_DEEP.format('10 DIV n')} > 2 OR {_DEEP.format('100 DIV n')} > 2",
    f"NOT (n <> 0 AND {_DEEP.format('10 DIV n')} > 2 AND {_DEEP.format('100 DIV n')} > 2)",
    f"nullif({_DEEP.format('n')}, 2)",
    f"try_divide({_DEEP.format('n')}, {_DEEP.format('n')})",
    f"{_DEEP.format('n')} BETWEEN 1 AND if(n = 0, 3, 10 DIV n)",
    f"CASE {_DEEP.format('n')} WHEN 2 THEN 'two' WHEN 10 DIV n THEN 'ten' ELSE 'other' END",
]
LAZY[-1] = LAZY[-1].replace("10 DIV n", "10 DIV (n + 1)")


def _on_duckdb(query: str) -> pa.Table:
    return answer_of(plan_of(query, TABLE), TABLE)


def _on_datafusion(query: str) -> pa.Table:
    return answer(query, TABLE)


RUNS = (_on_duckdb, _on_datafusion)


@pytest.mark.parametrize("text", LAZY)
def test_what_is_not_needed_is_not_evaluated(text: str) -> None:
    here = TABLE["t"]
    expected = [_expected(text, n) for n in here.column("n").to_pylist()]
    query = f"SELECT {text} AS r FROM t"
    assert answer_of(plan_of(query, TABLE), TABLE).column(0).to_pylist() == expected
    assert answer(query, TABLE).column(0).to_pylist() == expected
    one = parse(text, schema=here.schema)
    assert evaluate(one, here).to_pylist() == expected
    columns = [c.combine_chunks() for c in here.columns]
    from headwater.sql.vectorised.vector import vector_of

    found = compile_expression(one, here.schema).run([vector_of(c) for c in columns], here.num_rows).to_arrow()
    assert found.to_pylist() == expected


def _expected(text: str, n: int | None) -> object:
    """Spark's answers, by its rules for nulls; see `test_nests_give_sparks_values` for Spark itself."""
    answers: dict[int, dict[int | None, object]] = {
        0: {0: -1, 2: 5, None: -1, 5: 2},
        1: {0: -1, 2: 50, None: None, 5: 5},
        2: {0: 1, 2: 5, None: 7, 5: 2},
        3: {0: True, 2: True, None: None, 5: True},
        4: {0: True, 2: False, None: None, 5: True},
        5: {0: 0, 2: None, None: None, 5: 5},
        6: {0: None, 2: 1.0, None: None, 5: 1.0},
        7: {0: False, 2: True, None: None, 5: False},
        8: {0: "other", 2: "two", None: "other", 5: "other"},
    }
    return answers[LAZY.index(text)][n]


def test_a_part_that_fails_still_fails() -> None:
    deep = f"{_DEEP.format('10 DIV n')} > 2 AND n <> 0"
    for run in RUNS:
        with pytest.raises(Exception, match="division by zero"):
            run(f"SELECT {deep} FROM t")


NESTS = [
    "upper(lower(upper(lower(upper(s)))))",
    "replace(replace(replace(replace(replace(u, 'a', 'b'), 'c', s), 'd', u), '', 'x'), 'z', 'y')",
    "substring(substring(substring(substring(s, 1, 9), -5, 4), 0, 3), 1, 2)",
    "nullif(nullif(nullif(nullif(upper(s), 'A'), 'B'), u), 'C')",
    "round(round(round(round(d / 3, 5), 4), 3), 2)",
    "greatest(least(greatest(least(d, 1e3), -1e3), d / 2), least(d, 0))",
    "try_add(try_multiply(try_subtract(try_add(j, 1), 2), 3), 4)",
    "CASE upper(lower(upper(lower(s)))) WHEN 'A' THEN u WHEN upper(u) THEN 'same' ELSE reverse(s) END",
    "upper(lower(upper(lower(s)))) BETWEEN lower(u) AND upper(u)",
    "concat_ws(upper(lower(upper(s))), s, concat_ws(s, u, concat_ws(u, s, 'x')))",
]


@pytest.mark.spark
def test_nests_give_sparks_values(differences: Differences, extremes: pa.Table) -> None:
    found = differences(extremes, NESTS)
    assert not found, "\n".join(found)


def test_a_subquery_beside_what_is_nested() -> None:
    deep = "upper(lower(upper(lower(upper(lower(s))))))"
    query = f"SELECT nullif({deep}, (SELECT max(upper(s)) FROM t)) AS r FROM t"
    for found in (answer_of(plan_of(query, TABLE), TABLE), answer(query, TABLE)):
        assert found.column(0).to_pylist() == ["0", "A", None, None]


@pytest.mark.parametrize("depth", [12])
def test_queries_inside_queries(depth: int) -> None:
    """An optimiser puts expressions in the place of columns: forms that copy a column would make it exponential."""
    query = "SELECT s FROM t"
    for _ in range(depth):
        query = f"SELECT replace(upper(s), 'Q', 'q') AS s FROM ({query})"
    query += " WHERE s = 'A'"
    for run in RUNS:
        begin = time.process_time()
        assert run(query).column(0).to_pylist() == ["A"]
        assert time.process_time() - begin < 3
