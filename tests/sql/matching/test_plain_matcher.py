"""The machine gives what the plain matcher gives, on random patterns, conditions, measures and rows."""

from __future__ import annotations

import os
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.amounts import SOAK, everyday
from tests.sql.matching.histories import SCHEMA, Case, case, rows
from tests.sql.matching.plain import Plain, Row, TooLongError, View, matches

from headwater.base.errors import ExpressionError
from headwater.sql.matching import Matcher
from headwater.sql.plan import Match
from headwater.sql.query import parse_query
from headwater.sql.row_patterns import parse_pattern

PARTITIONS, LONGEST = 20, 9
CASES = everyday(500, soak=50_000)
SEED = os.environ.get("HEADWATER_TEST_SEED") or (str(random.randrange(1 << 32)) if SOAK else "1")
"""Each process of `make soak` draws cases of its own; a difference names the seed."""


def reach(within: int | None) -> Any:
    def end(partition: list[Row], start: int) -> int:
        if within is None:
            return len(partition)
        first = partition[start]["ts"]
        if first is None:
            return start + 1
        last = start
        while last + 1 < len(partition) and partition[last + 1]["ts"] - first <= within:
            last += 1
        return last + 1

    return end


def expected(one: Case, given: list[Row]) -> list[tuple[Any, ...]]:
    """The rows of the answer, in any order."""
    found = []
    parsed = parse_pattern(one.pattern)
    for group in {r["g"] for r in given}:
        partition = [r for r in given if r["g"] == group]
        partition.sort(key=lambda r: (r["ts"] is not None, r["ts"] or 0, r["id"]))
        plain = Plain(parsed, one.conditions, partition, reach(one.within))
        covered: set[int] = set()
        for number, (start, labels) in enumerate(matches(plain, one.skip), 1):
            covered |= {start + i for i in range(len(labels))} or {start}
            if not one.every_row:
                view = View(partition, start, labels, len(labels), number)
                found.append((group, *(f(view) for _, f in one.measures)))
                continue
            if not labels and one.empty:
                found.append(every(one, View(partition, start, labels, 0, number), start))
            for i, (_, excluded) in enumerate(labels):
                if not excluded:
                    found.append(every(one, View(partition, start, labels, i + 1, number), start + i))
        if one.unmatched:
            for at in set(range(len(partition))) - covered:
                row = partition[at]
                found.append(
                    (row["g"], row["ts"], *(None for _ in one.measures), row["id"], row["x"], row["s"], row["d"])
                )
    return found


def every(one: Case, view: View, at: int) -> tuple[Any, ...]:
    row = view.rows[at]
    return (row["g"], row["ts"], *(f(view) for _, f in one.measures), row["id"], row["x"], row["s"], row["d"])


def plainly(found: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(v + 0.0 if isinstance(v, float) else v for v in row)) for row in found)


def matcher_of(sql: str) -> Matcher:
    plan = parse_query(sql, lambda *_: SCHEMA)
    (match,) = (one for one in plan.walk() if isinstance(one, Match))
    return Matcher(match)


def table_for(matcher: Matcher, given: list[Row], *, tied: bool = False) -> pa.Table:
    """The rows in their order, called by their keys; if ``tied``, those of one time as they come."""
    ordered = sorted(
        given,
        key=lambda r: (r["g"] is not None, r["g"] or "", r["ts"] is not None, r["ts"] or 0, 0 if tied else r["id"]),
    )
    columns = [
        pa.array([r[name.partition("#")[0]] for r in ordered], dtype)
        for name, dtype in zip(matcher.schema.names, matcher.schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=matcher.schema)


@pytest.mark.parametrize("share", range(4))
def test_equals_the_plain_matcher(share: int) -> None:
    compared = skipped = 0
    for number in range(share, CASES, 4):
        dice = random.Random(f"{SEED} {number}")
        one, given = case(dice), rows(dice, PARTITIONS, LONGEST)
        try:
            wanted: list[tuple[Any, ...]] | None = expected(one, given)
        except ValueError:
            wanted = None
        except TooLongError:
            skipped += 1
            continue
        matcher = matcher_of(one.sql)
        try:
            found = matcher.run(table_for(matcher, given))
        except ExpressionError as error:
            assert error.code in ("E1315", "E1316") and wanted is None, f"{SEED} {number}: {one.sql}\n{error}"
            continue
        assert wanted is not None, f"{SEED} {number}: {one.sql}"
        assert plainly([tuple(r.values()) for r in found.to_pylist()]) == plainly(wanted), f"{SEED} {number}: {one.sql}"
        compared += 1
    assert compared > CASES / 4 * 0.8, (compared, skipped)
