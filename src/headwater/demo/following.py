"""The act in which an answer follows the table: a circuit is given each version's change, and never the table again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.base.change import ChangeBatch

if TYPE_CHECKING:
    from headwater.lake.table import Table

__all__ = ["Followed", "follow"]


@dataclass(frozen=True, slots=True)
class Followed:
    """What came of following a table."""

    answer: list[tuple[Any, ...]]
    first_rows: int
    changed_rows: int
    answer_rows: int
    seconds: float


def follow(table: Table) -> Followed:
    """Payments and cents of each merchant, from the first version on, change by change.

    It is done twice, and the second time counts: the first use of a circuit compiles its kernels, once for each
    installation.
    """
    _follow(table)
    return _follow(table)


def _follow(table: Table) -> Followed:
    from headwater.incremental.circuit.circuit import Circuit

    columns = ["merchant", "cents"]
    first = table.at(version=0).to_arrow(columns)
    circuit = Circuit("spend")
    rows = circuit.input("transactions", first.schema)
    rows.group_by("merchant").agg(payments="count(*)", cents="sum(cents)").output("spend")

    answer = circuit.step(transactions=first)["spend"]
    changed = touched = 0
    seconds = 0.0
    for version in range(1, table.version + 1):
        change = table.changes(after=version - 1, until=version)
        start = time.perf_counter()
        given = ChangeBatch.from_table(change.table.select([*columns, "_weight"]))
        step = circuit.step(transactions=given)["spend"]
        seconds += time.perf_counter() - start
        answer = answer + step
        changed += len(change)
        touched += len(step)
    found = answer.consolidate().to_arrow()
    assert set(found["_weight"].to_pylist()) <= {1}, "an answer has each of its rows once"
    listed = sorted(zip(*(found[c].to_pylist() for c in ("merchant", "payments", "cents")), strict=True))
    return Followed(listed, first.num_rows, changed, touched, seconds)
