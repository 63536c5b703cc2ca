"""The acts of the demo. Each does something real to a lake, and says what must be true after it.

An act returns an `Act`: a title, a few facts, an optional table to look at, and a check that was made. Nothing is
printed here, so the same acts serve the terminal, ``--json`` and the tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from headwater.demo import payments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lakehouse import Lake

__all__ = ["Act", "Grid", "tell"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A small table to look at."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(slots=True)
class Act:
    """One scene of the demo."""

    title: str
    facts: dict[str, Any] = field(default_factory=dict)
    grid: Grid | None = None
    check: str = ""
    holds: bool = True
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        grid = None if self.grid is None else [dict(zip(self.grid.columns, r, strict=True)) for r in self.grid.rows]
        return {
            "title": self.title,
            "facts": self.facts,
            "rows": grid,
            "check": self.check,
            "holds": self.holds,
            "seconds": round(self.seconds, 3),
        }


def tell(lake: Lake, start_spark: Callable[[], SparkSession]) -> Iterator[Act]:
    """The acts, one after the other, on an empty lake."""
    story = _Story(lake, start_spark)
    for act in (
        story.build,
        story.late,
        story.change,
        story.travel,
        story.forget,
        story.optimize,
        story.agree,
        story.log,
    ):
        start = time.perf_counter()
        scene = act()
        scene.seconds = time.perf_counter() - start
        yield scene


class _Story:
    def __init__(self, lake: Lake, start_spark: Callable[[], SparkSession]) -> None:
        self.lake, self._start_spark = lake, start_spark
        self.rows = payments.make()
        self.truth = self.rows.truth

    @property
    def transactions(self) -> Any:
        return self.lake.table("transactions")

    def build(self) -> Act:
        spark = self._start_spark()
        frame = spark.createDataFrame(self.rows.transactions)
        self.lake.write("transactions", frame, partition_by=["day"])
        self.lake.write("customers", self.rows.customers)
        detail = self.transactions.detail()
        return Act(
            "Spark writes a lake of card payments",
            {
                "tables": ", ".join(self.lake.tables()),
                "payments": detail["num_rows"],
                "files": detail["num_files"],
                "version": detail["version"],
            },
            check=f"{self.truth.payments:,} payments are there, written by Spark {spark.version} with no JAR added",
            holds=self.transactions.count() == self.truth.payments and self._cents() == self.truth.cents,
        )

    def _cents(self, version: int | None = None) -> int:
        table = self.transactions if version is None else self.transactions.at(version)
        return int(pc.sum(table.to_arrow(["cents"])["cents"]).as_py())

    def late(self) -> Act:
        start = time.perf_counter()
        done = (
            self.transactions.merge(self.rows.change, on="t.transaction_id = s.transaction_id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
        took = time.perf_counter() - start
        return Act(
            "Late payments and corrections arrive, in one merge",
            {
                "late payments": done["numTargetRowsInserted"],
                "corrected payments": done["numTargetRowsUpdated"],
                "data files rewritten": done["numRewrittenFiles"],
                "deletion vectors written": done["numDeletionVectorsUpdated"],
                "took": f"{took:.2f} s",
            },
            check="old rows are marked in deletion vectors, so the merge cost the change and rewrote no file",
            holds=done["numTargetRowsInserted"] == self.truth.late
            and done["numTargetRowsUpdated"] == self.truth.corrections
            and done["numRewrittenFiles"] == 0,
        )

    def change(self) -> Act:
        change = self.transactions.changes(after=0, until=1)
        rows = change.to_arrow()
        moved = int(pc.sum(pc.multiply(rows["cents"], rows["_weight"])).as_py())
        one = rows.filter(pc.equal(rows["status"], "corrected"))["transaction_id"][0].as_py()
        shown = rows.filter(pc.equal(rows["transaction_id"], one)).sort_by("_weight").to_pylist()
        wanted = self.truth.late_cents + self.truth.correction_cents
        return Act(
            "What changed? An exact Z-set: rows with weights",
            {
                "rows out (-1)": int(pc.sum(pc.equal(rows["_weight"], -1)).as_py()),
                "rows in (+1)": int(pc.sum(pc.equal(rows["_weight"], 1)).as_py()),
                "change in cents": moved,
            },
            Grid(
                ("transaction_id", "merchant", "cents", "status", "weight"),
                [(r["transaction_id"], r["merchant"], r["cents"], r["status"], f"{r['_weight']:+d}") for r in shown],
            ),
            check=f"the weights add up to the planted truth: {wanted:,} cents",
            holds=moved == wanted,
        )

    def travel(self) -> Act:
        then, now = self._cents(0), self._cents(1)
        return Act(
            "Time travel: the same question, before and after",
            {"cents at version 0": then, "cents at version 1": now, "difference": now - then},
            check="version 1 minus version 0 is the change, to the cent",
            holds=now - then == self.truth.late_cents + self.truth.correction_cents,
        )

    def forget(self) -> Act:
        gone = ", ".join(map(str, self.rows.forgotten))
        left = self.transactions.delete(f"customer_id IN ({gone})")
        found = self.transactions.to_arrow(where=f"customer_id IN ({gone})").num_rows
        return Act(
            "Three customers ask to be forgotten",
            {"payments deleted": left["numDeletedRows"], "payments of theirs left": found},
            check="a delete is a change like any other: it comes out of changes() with weight -1",
            holds=found == 0 and len(self.transactions.changes(after=1, until=2)) == left["numDeletedRows"],
        )

    def optimize(self) -> Act:
        before = self.transactions.detail()
        self.transactions.optimize()
        after = self.transactions.detail()
        changed = len(self.transactions.changes(after=before["version"], until=after["version"]))
        return Act(
            "OPTIMIZE packs files and folds the deletion vectors away",
            {
                "files": f"{before['num_files']} -> {after['num_files']}",
                "rows marked deleted": f"{before['num_deleted_rows']} -> {after['num_deleted_rows']}",
                "rows changed": changed,
            },
            check="files were rewritten, rows were not: nothing derived from the table has to move",
            holds=changed == 0 and after["num_deleted_rows"] == 0,
        )

    def agree(self) -> Act:
        here = {r["merchant"]: r["cents_sum"] for r in self._by_merchant()}
        frame = self.transactions.spark().groupBy("merchant").sum("cents").toArrow().to_pylist()
        there = {r["merchant"]: r["sum(cents)"] for r in frame}
        return Act(
            "The laptop and Spark read the same table",
            grid=Grid(
                ("merchant", "cents here", "cents on Spark"),
                [(m, f"{here[m]:,}", f"{there.get(m, 0):,}") for m in sorted(here)],
            ),
            check="equal for every merchant",
            holds=here == there,
        )

    def _by_merchant(self) -> list[dict[str, Any]]:
        table = self.transactions.to_arrow(["merchant", "cents"])
        rows: list[dict[str, Any]] = table.group_by("merchant").aggregate([("cents", "sum")]).to_pylist()
        return rows

    def log(self) -> Act:
        entries = self.transactions.history()
        versions = [e.version for e in entries]
        return Act(
            "The table's history says all of it",
            grid=Grid(
                ("version", "operation", "what it did"),
                [(e.version, e.operation, _summary(e.metrics)) for e in entries],
            ),
            check="every version is there",
            holds=versions == list(range(len(versions) - 1, -1, -1)),
        )


def _summary(metrics: dict[str, Any]) -> str:
    names = {
        "numOutputRows": "rows written",
        "numTargetRowsInserted": "inserted",
        "numTargetRowsUpdated": "updated",
        "numDeletedRows": "deleted",
        "numRemovedFiles": "files removed",
        "numAddedFiles": "files added",
        "numDeletionVectorsUpdated": "vectors",
    }
    return ", ".join(f"{metrics[k]:,} {text}" for k, text in names.items() if metrics.get(k))
