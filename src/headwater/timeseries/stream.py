"""`Stream`: rows with a time, on Spark, lazily.

The class is thin: what a stream can do is in `methods/`, by subject, and each method makes one node of a plan. Nothing
is read until an action asks for rows: `collect`, `batches`, `count`, `write`, or a frame of Spark's that is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.packages import required
from headwater.spark.failures import told
from headwater.timeseries.methods.folding import FoldMethods
from headwater.timeseries.methods.intervals import IntervalMethods
from headwater.timeseries.methods.joins import JoinMethods
from headwater.timeseries.methods.ordered import OrderedMethods
from headwater.timeseries.methods.patterns import PatternMethods
from headwater.timeseries.methods.plotting import PlottingMethods
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.methods.statistics import StatisticsMethods
from headwater.timeseries.methods.vectors import VectorMethods
from headwater.timeseries.methods.windows import WindowMethods

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.lake.transaction import Committed
    from headwater.observe.graph import Graph
    from headwater.spark.figures import Figures
    from headwater.sql.matching import PatternPlan
    from headwater.timeseries.node import Node
    from headwater.timeseries.running.pipes import Stage
    from headwater.timeseries.running.stages import Run

__all__ = ["Stream"]

T = TypeVar("T")


class Stream(
    JoinMethods,
    OrderedMethods,
    WindowMethods,
    RelationalMethods,
    StatisticsMethods,
    VectorMethods,
    PlottingMethods,
    IntervalMethods,
    FoldMethods,
    PatternMethods,
):
    """Rows with a time. Made by `lake.stream`; every method but the actions gives another stream.

    >>> import headwater as hw, pyarrow as pa, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> rows = pa.table({"symbol": ["a", "a"], "ts": [1, 2], "price": [10.0, 12.0]})
    >>> trades = lake.stream(rows, time="ts", by="symbol")
    >>> trades.shift("price", 1).filter("price > 10").columns
    ['symbol', 'ts', 'price', 'price_lag_1']
    """

    _ran: tuple[Stage, Figures] | None = None
    """What ran in the last action, and what it did."""

    def __repr__(self) -> str:
        parts = [", ".join(f"{f.name} {f.type}" for f in self.schema)]
        if self.ordering is not None:
            by = f" by {', '.join(self.ordering.by)}" if self.ordering.by else ""
            parts.append(f"in time of {self.ordering.time}{by}")
        return f"Stream({'; '.join(parts)})"

    # ------------------------------------------------------------------ actions

    def collect(self, *, sort: bool = True) -> pa.Table:
        """All rows, as an Arrow table: by the ``by`` columns, time and tiebreak, in ascending order.

        Nulls come first and NaN last. The rows of `top_k` and `nearest` keep their ranks, and groups are ordered by
        their keys. Rows that agree in all of these columns, and rows of a stream without a time, are in no particular
        order.

        Parameters
        ----------
        sort
            False leaves the rows as they come from the tasks: it saves the sort, which is done in this process.
        """
        from headwater.timeseries.result_order import in_order, order_of

        run = self._run()
        with self._followed("collect"):
            rows = self._after(run, run.collect())
            return in_order(rows, order_of(self.plan, self.ordering)) if sort else rows

    def to_arrow(self, *, sort: bool = True) -> pa.Table:
        """All rows, as an Arrow table: the same as `collect`."""
        return self.collect(sort=sort)

    def batches(self) -> Iterator[pa.Table]:
        """All rows, table by table as tasks finish, without ever holding all of them; in no particular order."""
        run = self._run()
        yield from run.batches()
        self._after(run, None)

    def to_pandas(self, *, sort: bool = True) -> pd.DataFrame:
        """All rows, for pandas, in the order of `collect`."""
        required("pandas", "to_pandas()", "spark")
        return self.collect(sort=sort).to_pandas()

    def to_polars(self, *, sort: bool = True) -> pl.DataFrame:
        """All rows, for polars, in the order of `collect`."""
        frame: pl.DataFrame = required("polars", "to_polars()", "spark").from_arrow(self.collect(sort=sort))
        return frame

    def count(self) -> int:
        """How many rows there are."""
        run = self._run()
        with self._followed("count"):
            return self._after(run, run.count())

    def spark(self) -> DataFrame:
        """The rows as a DataFrame of Spark's, lazily and in no particular order: go on with Spark from here."""
        return self._run().frame()

    def write(
        self,
        name: str,
        *,
        mode: Literal["append", "overwrite", "error", "ignore"] = "append",
        partition_by: Sequence[str] = (),
        **options: Any,
    ) -> Committed | None:
        """Write the rows into a table of the lake, in one commit; the table is made if it is not there.

        Tasks write the files, so rows lie in no particular order.

        Parameters
        ----------
        name
            The table's name in the lake.
        mode, partition_by, options
            As for `Lake.write`.
        """
        assert self.lake is not None, "a stream that runs belongs to a lake"
        run = self._run()
        with self._followed(f"write {name}"), told():
            written = self.lake.table(name).write(run.rows(), mode=mode, partition_by=partition_by, **options)
            return self._after(run, written)

    def follow(self, into: str, *, every: str | None = None, available_now: bool = False) -> StreamingQuery:
        """Keep the stream's rows in a table of that name, up to date while its sources go on: a Structured Streaming
        query.

        What is written equals the batch answer over the tables so far, with late, corrected and deleted rows, each
        version exactly once: one commit makes the rows and the versions that they reflect true. The table is a feature
        table (`Lake.features`), so `lake.status()`, `verify` and training sets know it. A query that was killed goes on
        when the same stream is followed again. No operator needs a watermark; one that looks at all rows is refused.

        Parameters
        ----------
        into
            The name of the table; it is made, and the rows so far are there when this returns.
        every
            How often to look, such as "10 seconds"; as soon as the last refresh is done, if None.
        available_now
            Stop after all that is there now, for schedulers.
        """
        lake: Any = self.lake
        if lake is None:
            raise InputError.bad_argument("stream", "one without a lake", "a stream made by lake.stream(...)")
        found: StreamingQuery = lake.follow(self, into, every=every, available_now=available_now)
        return found

    def write_parquet(self, location: str, *, mode: Literal["error", "append", "overwrite"] = "error") -> list[str]:
        """Write the rows as Parquet files of a folder, on disk or S3; the names of the files."""
        return self._write_files(location, "parquet", mode)

    def write_csv(self, location: str, *, mode: Literal["error", "append", "overwrite"] = "error") -> list[str]:
        """Write the rows as CSV files of a folder, on disk or S3; the names of the files."""
        return self._write_files(location, "csv", mode)

    # ------------------------------------------------------------------ what would run

    def explain(self) -> str:
        """What would run on Spark: its stages, what each does, and why it is done there.

        After an action of this stream each operator says what it gave in that run: rows, bytes, and the seconds of
        its own work in all tasks together. Operators of Spark's own are not counted.
        """
        from headwater.timeseries.running.explaining import text_of

        return text_of(self._run().stage()) if self._ran is None else text_of(*self._ran)

    def graph(self) -> Graph:
        """The same as a picture: ``graph().svg()``; a notebook shows it by itself."""
        from headwater.timeseries.running.explaining import graph_of

        if self._ran is None:
            return graph_of(self._run().stage(), "stream")
        return graph_of(self._ran[0], "stream", self._ran[1])

    def patterns(self) -> list[PatternPlan]:
        """The patterns that `match` looks for in this stream, to look at: text, and a picture in a notebook."""
        from headwater.sql.matching import PatternPlan
        from headwater.timeseries.operators.match import MatchRows

        found: list[PatternPlan] = []
        pending: list[Node] = [self.plan]
        while pending:
            node = pending.pop()
            pending.extend(node.inputs)
            if isinstance(node, MatchRows):
                found.insert(0, PatternPlan(node.match))
        return found

    # ------------------------------------------------------------------ running

    def _run(self) -> Run:
        from headwater.timeseries.running.stages import Run

        if self.lake is None:
            raise InputError.bad_argument("stream", "one without a lake", "a stream made by lake.stream(...)")
        return Run(self.lake.spark, self.plan)

    def _after(self, run: Run, result: T) -> T:
        """The result of a run, whose figures are kept for `explain` and `graph`."""
        self._ran = run.stage(), run.figures
        return result

    def _followed(self, what: str) -> Any:
        from headwater.spark.progress import followed

        assert self.lake is not None
        return followed(self.lake.spark, what)

    def _write_files(self, location: str, kind: Literal["parquet", "csv"], mode: str) -> list[str]:
        from headwater.base.storage import open_storage
        from headwater.timeseries.running.writing import write_files

        assert self.lake is not None, "a stream that runs belongs to a lake"
        storage = open_storage(location, self.lake.catalog.root.options if "://" in location else None)
        run = self._run()
        with self._followed(f"write {location}"):
            return self._after(run, write_files(run.pipe(), storage, kind, mode, run.figures))
