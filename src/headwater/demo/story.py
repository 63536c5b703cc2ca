"""The acts of the demo. Each does something real to a lake, most of them in SQL, and says what must be true after it.

An act returns an `Act`: a title, the statement that was run, a few facts, an optional table to look at, and a check
that was made. What a check compares with was planted in `payments` or is recomputed without SQL. Nothing is printed
here, so the same acts serve the terminal, ``--json`` and the tests.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.demo import payments
from headwater.demo.act import Act, Grid
from headwater.demo.answering import ANSWER, answer
from headwater.demo.files import EXPORT, hand_over
from headwater.demo.finding import find
from headwater.demo.following import follow
from headwater.demo.knowing import STREAM, know
from headwater.demo.spotting import spot

if TYPE_CHECKING:
    from headwater.lakehouse import Lake
    from headwater.spark.types import SparkSession

__all__ = ["tell"]


def tell(lake: Lake, start_spark: Callable[[], SparkSession]) -> Iterator[Act]:
    """The acts, one after the other, on an empty lake."""
    story = _Story(lake, start_spark)
    for act in (
        story.build,
        story.late,
        story.travel,
        story.change,
        story.forget,
        story.optimize,
        story.skip,
        story.mistake,
        story.follow,
        story.view,
        story.agree,
        story.know,
        story.log,
        story.export,
        story.answer,
        lambda: find(lake),
        lambda: spot(lake),
    ):
        start = time.perf_counter()
        scene = act()
        scene.seconds = time.perf_counter() - start
        yield scene


MERGE = """\
MERGE INTO transactions t USING arrivals a ON t.transaction_id = a.transaction_id
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *"""

TRAVEL = """\
SELECT new.merchant, count(*) AS corrected, sum(old.cents) AS cents_before, sum(new.cents) AS cents_after
FROM transactions VERSION AS OF 1 new
JOIN transactions VERSION AS OF 0 old ON new.transaction_id = old.transaction_id
WHERE new.status <> old.status
GROUP BY new.merchant ORDER BY new.merchant"""

CHANGES = """\
SELECT _change_type AS change, count(*) AS payments, sum(cents) AS cents
FROM table_changes('transactions', 1, 1)
GROUP BY _change_type ORDER BY _change_type"""

FORGET = "DELETE FROM transactions WHERE customer_id IN (:first, :second, :third)"

DAY = "SELECT count(*) AS payments, sum(cents) AS cents FROM transactions WHERE day = DATE'2026-01-15'"

MISTAKE = "UPDATE transactions SET cents = cents * 100 WHERE day >= DATE'2026-01-28'"

FOLLOW = """rows.group_by("merchant").agg(payments="count(*)", cents="sum(cents)").output("spend")
for version in ...:
    circuit.step(transactions=table.changes(after=version - 1, until=version))["spend"]"""

AGREE = "SELECT merchant, count(*) AS payments, sum(cents) AS cents FROM transactions GROUP BY merchant"

VIEW = """\
CREATE MATERIALIZED VIEW spend AS
SELECT c.country, t.merchant, count(*) AS payments, sum(t.cents) AS cents, max(t.cents) AS largest
FROM transactions t JOIN customers c ON t.customer_id = c.customer_id
GROUP BY c.country, t.merchant"""

CORRECT = "UPDATE transactions SET cents = cents + 100 WHERE transaction_id = :id"


class _Story:
    def __init__(self, lake: Lake, start_spark: Callable[[], SparkSession]) -> None:
        self.lake, self._start_spark = lake, start_spark
        self.rows = payments.make()
        self.truth = self.rows.truth

    @property
    def transactions(self) -> Any:
        return self.lake.table("transactions")

    def _cents(self) -> int:
        return int(self.lake.sql("SELECT sum(cents) FROM transactions").scalar())

    def build(self) -> Act:
        spark = self._start_spark()
        frame = spark.createDataFrame(self.rows.transactions)
        feed = {"delta.enableChangeDataFeed": "true"}
        self.lake.write("transactions", frame, partition_by=["day"], properties=feed)
        self.lake.write("customers", self.rows.customers)
        detail = self.transactions.detail()
        return Act(
            "Spark writes a lake of card payments",
            facts={
                "tables": ", ".join(self.lake.tables()),
                "payments": detail["num_rows"],
                "files": detail["num_files"],
                "version": detail["version"],
            },
            check=f"{self.truth.payments:,} payments are there, written by Spark {spark.version} with no JAR added",
            holds=self.transactions.count() == self.truth.payments and self._cents() == self.truth.cents,
        )

    def late(self) -> Act:
        self.lake.write("arrivals", self.rows.change)
        start = time.perf_counter()
        done = self.lake.sql(MERGE).to_dicts()[0]
        took = time.perf_counter() - start
        metrics = self.transactions.history(limit=1)[0].metrics
        return Act(
            "Late payments and corrections arrive, in one MERGE",
            MERGE,
            {
                "late payments": done["num_inserted_rows"],
                "corrected payments": done["num_updated_rows"],
                "data files rewritten": metrics["numRewrittenFiles"],
                "deletion vectors written": metrics["numDeletionVectorsUpdated"],
                "took": f"{took:.2f} s",
            },
            check="old rows are marked in deletion vectors, so the merge cost the change and rewrote no file",
            holds=done["num_inserted_rows"] == self.truth.late
            and done["num_updated_rows"] == self.truth.corrections
            and metrics["numRewrittenFiles"] == 0,
        )

    def travel(self) -> Act:
        rows = self.lake.sql(TRAVEL).to_dicts()
        moved = sum(r["cents_after"] - r["cents_before"] for r in rows)
        return Act(
            "Time travel: two versions of the table in one query",
            TRAVEL,
            grid=_grid(rows),
            check=f"{self.truth.corrections} corrections moved {moved:,} cents, as planted",
            holds=moved == self.truth.correction_cents and sum(r["corrected"] for r in rows) == self.truth.corrections,
        )

    def change(self) -> Act:
        rows = self.lake.sql(CHANGES).to_dicts()
        cents = {r["change"]: r["cents"] for r in rows}
        fed = cents["insert"] + cents["update_postimage"] - cents["update_preimage"]
        weighted = self.transactions.changes(after=0, until=1).to_arrow()
        moved = int(pc.sum(pc.multiply(weighted["cents"], weighted["_weight"])).as_py())
        wanted = self.truth.late_cents + self.truth.correction_cents
        return Act(
            "What changed? The feed in SQL, and an exact Z-set from Python",
            CHANGES,
            {
                "rows out (weight -1)": int(pc.sum(pc.equal(weighted["_weight"], -1)).as_py()),
                "rows in (weight +1)": int(pc.sum(pc.equal(weighted["_weight"], 1)).as_py()),
                "change in cents": moved,
            },
            _grid(rows),
            check=f"the feed and the weights both add up to the planted truth: {wanted:,} cents",
            holds=fed == wanted and moved == wanted,
        )

    def forget(self) -> Act:
        gone = dict(zip(("first", "second", "third"), self.rows.forgotten, strict=True))
        deleted = self.lake.sql(FORGET, parameters=gone).to_dicts()[0]["num_affected_rows"]
        left = int(pc.sum(self._theirs(self.transactions.to_arrow(["customer_id"]))).as_py())
        return Act(
            "Three customers ask to be forgotten",
            FORGET,
            {"payments deleted": deleted, "payments of theirs left": left},
            check="a delete is a change like any other: it comes out of changes() with weight -1",
            holds=left == 0 and len(self.transactions.changes(after=1, until=2)) == deleted > 0,
        )

    def _theirs(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows are of a customer who is to be forgotten."""
        return pc.is_in(table["customer_id"], pa.array(self.rows.forgotten, pa.int64()))

    def optimize(self) -> Act:
        statement = "OPTIMIZE transactions"
        before = self.transactions.detail()
        self.lake.sql(statement)
        after = self.transactions.detail()
        changed = len(self.transactions.changes(after=before["version"], until=after["version"]))
        return Act(
            "OPTIMIZE packs files and folds the deletion vectors away",
            statement,
            {
                "files": f"{before['num_files']} -> {after['num_files']}",
                "rows marked deleted": f"{before['num_deleted_rows']} -> {after['num_deleted_rows']}",
                "rows changed": changed,
            },
            check="files were rewritten, rows were not: nothing derived from the table has to move",
            holds=changed == 0 and after["num_deleted_rows"] == 0,
        )

    def skip(self) -> Act:
        plan = self.lake.sql(f"EXPLAIN {DAY}").to_tuples()
        read = next(line for (line,) in plan if line.startswith("transactions:"))
        files = re.search(r"(\d+) of (\d+) files", read)
        found = self.lake.sql(DAY).to_tuples()[0]
        wanted = self._one_day()
        return Act(
            "EXPLAIN says which files a query leaves alone",
            f"EXPLAIN {DAY}",
            {"it reads": read.partition(": ")[2].partition(", at most")[0], "payments": found[0], "cents": found[1]},
            check=f"one day is one file, and gives the planted {wanted[0]:,} payments and {wanted[1]:,} cents",
            holds=found == wanted and files is not None and files.groups() == ("1", str(payments.DAYS)),
        )

    def _one_day(self) -> tuple[int, int]:
        """Payments and cents of the fifteenth, from the rows that were made, without the lake."""
        change = self.rows.change
        kept = pc.invert(pc.is_in(self.rows.transactions["transaction_id"], change["transaction_id"]))
        rows = pa.concat_tables([self.rows.transactions.filter(kept), change])
        rows = rows.filter(pc.invert(self._theirs(rows)))
        rows = rows.filter(pc.equal(rows["day"], pa.scalar(payments.FIRST_DAY.date().replace(day=15))))
        return rows.num_rows, int(pc.sum(rows["cents"]).as_py())

    def mistake(self) -> Act:
        good, before = self.transactions.version, self._cents()
        wrong = self.lake.sql(MISTAKE).to_dicts()[0]["num_affected_rows"]
        spoiled = self._cents()
        statement = f"RESTORE TABLE transactions TO VERSION AS OF {good}"
        self.lake.sql(statement)
        after = self._cents()
        moved = len(self.transactions.changes(after=good))
        return Act(
            "A mistake is made, and undone",
            f"{MISTAKE};\n{statement}",
            {"payments spoiled": wrong, "cents then": spoiled, "cents now": after, "rows that differ": moved},
            check=f"version {self.transactions.version} holds exactly the rows of version {good}",
            holds=after == before != spoiled and moved == 0,
        )

    def follow(self) -> Act:
        followed = follow(self.transactions)
        asked = sorted(self.lake.sql(AGREE).to_tuples())
        return Act(
            "An answer that follows: a circuit is given the changes, and never the table again",
            FOLLOW,
            {
                "rows at first": followed.first_rows,
                "rows that changed since": followed.changed_rows,
                "ms for five changes": round(followed.seconds * 1000, 1),
                "rows it changed": followed.answer_rows,
            },
            grid=Grid(("merchant", "payments", "cents"), [(m, n, f"{c:,}") for m, n, c in followed.answer[:3]]),
            check="after the late rows, the forgotten, the mistake and its undoing: what the query says "
            "of the table now",
            holds=followed.answer == asked and followed.changed_rows > 0,
        )

    def view(self) -> Act:
        lake = self.lake
        built = lake.sql(VIEW).to_dicts()
        payment = int(lake.sql("SELECT max(transaction_id) FROM transactions").scalar())
        lake.sql(CORRECT, parameters={"id": payment})
        spend = lake.view("spend")
        report = spend.refresh()
        verified = spend.verify()
        moved = lake.table("spend").changes(after=lake.table("spend").version - 1).to_arrow().to_pylist()
        rows = [(r["country"], r["merchant"], r["payments"], f"{r['cents']:,}", r["_weight"]) for r in moved]
        return Act(
            "A materialized view: one payment is corrected, and the view pays for one row",
            f"{VIEW};\n{CORRECT.replace(':id', str(payment))};\nREFRESH MATERIALIZED VIEW spend",
            {
                "rows of the view": spend.table.count(),
                "how it was refreshed": report.mode,
                "rows read": report.rows_in,
                "its rows that changed": report.rows_out,
                "ms": round(report.seconds * 1000, 1),
                "verified": str(verified),
            },
            grid=Grid(("country", "merchant", "payments", "cents", "weight"), sorted(rows, key=lambda r: r[-1])),
            check="the view holds exactly what its query says of the tables at its frontier",
            holds=verified.equal
            and built is not None
            and (report.mode, report.rows_in, report.rows_out) == ("incremental", 2, 2)
            and [r[-1] for r in sorted(rows, key=lambda r: r[-1])] == [-1, 1],
        )

    def agree(self) -> Act:
        here, there = (sorted(self.lake.sql(AGREE, engine=name).to_tuples()) for name in ("duckdb", "spark"))
        return Act(
            "The same query on two engines: DuckDB here, and Spark",
            AGREE,
            grid=Grid(
                ("merchant", "cents on DuckDB", "cents on Spark"),
                [(h[0], f"{h[2]:,}", f"{t[2]:,}") for h, t in zip(here, there, strict=False)],
            ),
            check="equal rows: merchants, numbers of payments, and cents",
            holds=here == there and len(here) == len(payments.MERCHANTS),
        )

    def know(self) -> Act:
        change = self.rows.change
        late = set(change.filter(pc.equal(change["status"], "paid"))["transaction_id"].to_pylist())
        known = know(self.lake, late)
        card, payments_of_day, spent = known.busiest
        return Act(
            "Time series on Spark: the rate that was known at each payment, and its card's day",
            STREAM,
            {
                "payments": known.payments,
                "of them days late": known.late,
                "busiest card's day": f"card {card}: {payments_of_day} payments, {spent:,} cents",
                "where rows met": known.plan.splitlines()[0],
            },
            grid=Grid(
                ("currency", "payments", "euros"), [(c, n, f"{e:,}" if e else "-") for c, n, e in known.by_currency]
            ),
            check="each payment, late or not, has the planted rate of its own time, and the sums of its "
            "card's last day",
            holds=known.rates_hold and known.days_hold and 0 < known.late <= self.truth.late,
        )

    def log(self) -> Act:
        statement = "DESCRIBE HISTORY transactions"
        entries = self.lake.sql(statement).to_dicts()
        told = ["UPDATE", "RESTORE", "UPDATE", "OPTIMIZE", "DELETE", "MERGE", "CREATE TABLE AS SELECT"]
        return Act(
            "The table's history says all of it",
            statement,
            grid=Grid(
                ("version", "operation", "what it did"),
                [(e["version"], e["operation"], _summary(dict(e["operationMetrics"]))) for e in entries],
            ),
            check="every act that changed the table is there",
            holds=[e["operation"] for e in entries] == told
            and [e["version"] for e in entries] == [6, 5, 4, 3, 2, 1, 0],
        )

    def export(self) -> Act:
        handed = hand_over(self.lake)
        return Act(
            "Plain Parquet for others: one more correction reaches the view and the files of its export",
            EXPORT,
            {
                "refreshed first": ", ".join(handed.upstream),
                "how": handed.mode,
                "its rows that changed": handed.rows_out,
                "files": handed.files,
                "verified": str(handed.verified),
            },
            check="DuckDB, which is given nothing but the Parquet files, counts the cents of the table",
            holds=handed.verified.equal and handed.cents == self._cents() and handed.upstream == ["spend"],
        )

    def answer(self) -> Act:
        said = answer(self.lake)
        rows = [
            (frontier, *row.values()) for frontier, row in zip(said.frontiers, (said.before, said.after), strict=True)
        ]
        return Act(
            "Online: a server answers by key, and one refresh later it answers the correction",
            ANSWER,
            {
                "the key": " ".join(said.key),
                "refreshed first": ", ".join(said.upstream),
                "its rows that changed": said.rows_out,
                "us over HTTP": round(said.microseconds),
                "verified": str(said.verified),
            },
            grid=Grid(("frontier", *said.before), rows),
            check="the answer after the refresh is the view's row, a thousand cents more, and names the "
            "frontier it reflects",
            holds=said.verified.equal
            and said.after["cents"] == said.before["cents"] + 1000
            and said.stored == [said.after]
            and said.frontiers[0] != said.frontiers[1]
            and said.upstream == ["spend"],
        )


def _grid(rows: Sequence[dict[str, Any]]) -> Grid:
    return Grid(list(rows[0]), [[f"{v:,}" if n.startswith("cents") else v for n, v in row.items()] for row in rows])


def _summary(metrics: dict[str, str]) -> str:
    if metrics.get("numUpdatedRows"):
        metrics = {**metrics, "numDeletedRows": "0"}  # an updated row is deleted and added
    names = {
        "numOutputRows": "rows written",
        "numTargetRowsInserted": "inserted",
        "numTargetRowsUpdated": "updated",
        "numUpdatedRows": "updated",
        "numDeletedRows": "deleted",
        "numRemovedFiles": "files removed",
        "numAddedFiles": "files added",
        "numRestoredFiles": "files restored",
        "numDeletionVectorsUpdated": "vectors",
    }
    return ", ".join(f"{int(metrics[k]):,} {text}" for k, text in names.items() if int(metrics.get(k) or 0))
