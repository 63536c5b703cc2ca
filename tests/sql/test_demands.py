"""Which columns and conditions reach a scan."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.sql.demands import demands
from headwater.sql.plan.text import expression_text
from headwater.sql.query import parse_query

_SCHEMAS = {
    "t": pa.schema([("a", pa.int32()), ("b", pa.int64()), ("s", pa.string())]),
    "u": pa.schema([("k", pa.int32()), ("v", pa.int32())]),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a from t where b > 1 and s = 'x'", ["t(a,b,s) b>1 s=x"]),
        ("select count(*) from t", ["t()"]),
        ("select * from (select a as z, b from t) where z = 3", ["t(a,b) a=3"]),
        ("select a, sum(b) from t group by a having a > 2", ["t(a,b) a>2"]),
        ("select a, sum(b) from t group by rollup(a) having a > 2", ["t(a,b)"]),
        ("select a from t join u on a = k and v > 1 where b < 5", ["t(a,b) b<5", "u(k,v) v>1"]),
        ("select a from t left join u on a = k and v > 1 and b = 2 where v < 9", ["t(a,b)", "u(k,v) v>1"]),
        ("select a from t right join u on a = k where a > 1 and v < 9", ["t(a)", "u(k,v) v<9"]),
        ("select a from t full join u on a = k where a > 1", ["t(a)", "u(k)"]),
        ("select a from t where a > 1 and exists (select 1 from u where k = a and v = 3)", ["u(k,v) v=3", "t(a) a>1"]),
        ("select * from (select a from t limit 3) where a > 1", ["t(a)"]),
        ("select a, row_number() over (order by a) as r from t qualify a > 1", ["t(a)"]),
        ("with q as (select a, b from t) select a from q where b = 1", ["t(a,b)"]),
    ],
)
def test_demands(text: str, expected: list[str]) -> None:
    plan = parse_query(text, lambda name, *_: _SCHEMAS[name])
    shown = []
    for demand in demands(plan):
        parts = [f"{c.column}{c.op}{','.join(map(str, c.values))}" for c in demand.conjuncts]
        shown.append(" ".join([f"{demand.scan.name}({','.join(demand.columns)})", *parts]))
    assert shown == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a from t where s like 'x%' and (b = 1 or a > 2)", ["t: like(s, 'x%', '\\\\'); ((b = 1) or (a > 2))"]),
        ("select count(*) from t where 1 = 2 and contains(s, 'x')", ["t: contains(s, 'x')"]),
        ("select * from (select s as z from t) where contains(z, 'x')", ["t: contains(s, 'x')"]),
        ("select s, count(*) from t group by s having contains(s, 'x') and count(*) > 1", ["t: contains(s, 'x')"]),
        ("select a from t join u on a = k and b + v > 1 where contains(s, 'x')", ["t: contains(s, 'x')", "u:"]),
        ("select a from t left join u on a = k where contains(s, 'x') and v > 1", ["t: contains(s, 'x')", "u:"]),
        ("select v from u left join t on a = k and contains(s, 'x')", ["u:", "t: contains(s, 'x')"]),
        ("select v from u left join t on a = k where contains(s, 'x')", ["u:", "t:"]),
        (
            "select a from t where contains(s, 'x') and a in (select k from u where v = 3)",
            ["u: (v = 3)", "t: contains(s, 'x')"],
        ),
        ("select a from t where contains(s, 'x') or a = (select max(k) from u)", ["u:", "t:"]),
        ("select * from (select a, s from t limit 3) where contains(s, 'x')", ["t:"]),
        ("select a, row_number() over (order by a) as r from t qualify contains(s, 'x')", ["t:"]),
    ],
)
def test_conditions(text: str, expected: list[str]) -> None:
    plan = parse_query(text, lambda name, *_: _SCHEMAS[name])
    found = [f"{d.scan.name}: {'; '.join(map(expression_text, d.conditions))}".rstrip() for d in demands(plan)]
    assert found == expected
