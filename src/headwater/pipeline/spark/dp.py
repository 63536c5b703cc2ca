"""`hw.dp`: views of a lake as datasets of Spark Declarative Pipelines (``pyspark.pipelines``).

The problem: a materialized view of such a pipeline is recomputed from all rows at each run. The idea: the view is one
of Headwater's instead. It is refreshed incrementally while the pipeline is being defined, and the pipeline gets it as a
temporary view over the files of the version that came of it. Spark reads these files itself; nothing is copied, and no
flow writes them.

What follows from that:

- All datasets of one run read one version of the view.
- The sources of the view are tables that others write. What the same run of the pipeline writes comes after its
  definition, so a view over that is behind until the next run.
- ``spark-pipelines dry-run`` changes nothing: the dataset has the view's columns, and the rows that it has by then.
- Spark must reach the files without Python, since the client of Spark 4.2 gives up on runs with tasks in Python: it
  does not expect the accumulators that these report.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import UnsupportedError
from headwater.lakehouse import Lake, connect
from headwater.pipeline.spark.dry_run import outlined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.lake.table import Table

__all__ = ["materialized_view"]


def materialized_view(
    name: str,
    query: str | None = None,
    *,
    lake: Lake | str | os.PathLike[str],
    dataset: str | None = None,
    comment: str | None = None,
    policy: Literal["auto", "strict", "full"] = "auto",
    shards: int = 1,
) -> None:
    """Make a materialized view of a lake a dataset of the pipeline that is being defined.

    To be called in a Python file of the pipeline, as the decorators of ``pyspark.pipelines`` are. The view is refreshed
    here, in this process; other datasets read it by its name.

    Parameters
    ----------
    name
        The view in the lake. One that is not there is made, and one with another query is given this one.
    query
        The query, in Spark SQL. Without it, the view must be there.
    lake
        The lake, or where it lies.
    dataset
        What the pipeline calls it, if not by its name in the lake.
    comment
        A description, of the view and the dataset.
    policy, shards
        As in `Lake.view`; they need a query.

    >>> import headwater as hw
    >>> hw.dp.materialized_view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
    ...                         lake="s3://bucket/shop")  # doctest: +SKIP
    """
    from pyspark import pipelines

    from headwater.lake.spark.types import spark_struct

    session = _session()
    if not isinstance(lake, Lake):
        lake = connect(lake)
    _check_reachable(session, lake.named(name))
    if _is_dry_run():
        schema, is_there = outlined(lake, name, query, policy=policy, shards=shards)
        frame = _frame(session, lake.named(name)) if is_there else session.createDataFrame([], spark_struct(schema))
    else:
        view = lake.view(name, query, policy=policy, shards=shards, comment=comment)
        report = view.refresh(engine="local")
        # Where pipelines write what they do.
        print(f"View {name} of {lake.location} is refreshed: {report}", flush=True)
        frame = _frame(session, view.table)

    pipelines.temporary_view(name=dataset or name, comment=comment)(lambda: frame)


def _session() -> SparkSession:
    """The session of the pipeline that is being defined."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.pipelines.graph_element_registry import get_active_graph_element_registry
    from pyspark.sql import SparkSession

    try:
        get_active_graph_element_registry()
    except PySparkRuntimeError as error:
        raise UnsupportedError.operation(
            "hw.dp",
            "no pipeline is being defined",
            "call it in a Python file of a pipeline, and run that by `spark-pipelines run`",
        ) from error
    return SparkSession.active()


def _is_dry_run() -> bool:
    """Whether this process is ``spark-pipelines dry-run``. Definitions are not told, so its arguments are looked at."""
    program, *arguments = sys.argv
    return Path(program).parts[-2:] == ("pipelines", "cli.py") and arguments[:1] == ["dry-run"]


def _check_reachable(session: SparkSession, table: Table) -> None:
    """Raise where Spark could read the files of a view only by tasks in Python."""
    from headwater.lake.spark.read import S3_SCHEME, spark_root

    if spark_root(session, table.storage) is None:
        raise UnsupportedError.operation(
            f"the view `{table.name}` in a pipeline",
            f"Spark has no way of its own to {table.location}, and pipelines cannot run tasks in Python",
            f"on S3, give Spark the classes of hadoop-aws, and set `{S3_SCHEME}: s3a` in the pipeline's configuration",
        )


def _frame(session: SparkSession, table: Table) -> DataFrame:
    """The rows of the newest version, as Spark reads its files."""
    from headwater.lake.spark.read import read

    return read(table.pinned_to(table.snapshot), session)
