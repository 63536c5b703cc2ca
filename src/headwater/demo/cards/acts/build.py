"""Act one: Spark writes the payments and builds the view that joins them, and one command builds everything else.

At this size no view needs Spark: this process builds the others in less time than a job takes to begin. The one that
joins and groups the payments shows that a view may be built on either: every later act brings it forward here, on the
state that Spark's tasks have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.demo.act import Act
from headwater.demo.cards.stage import Stage, run_grid

if TYPE_CHECKING:
    from headwater.pipeline.run import NodeRun

__all__ = ["ON_SPARK", "build"]

ON_SPARK = "merchant_day"
"""The view that Spark's tasks build."""
_BY_SPARK = "on Spark"


def build(stage: Stage) -> Act:
    """Write the tables of the first three weeks, build one view on Spark, and refresh the project."""
    world, project, lake = stage.world, stage.project, stage.lake
    feed = {"delta.enableChangeDataFeed": "true"}
    session = stage.start_spark()
    lake.write("transactions", session.createDataFrame(world.transactions), partition_by=["day"], properties=feed)
    lake.write("customers", world.customers)
    lake.write("chargebacks", world.chargebacks)
    lake.write("support_notes", world.support_notes)
    large = project.refresh(ON_SPARK, engine="spark")[ON_SPARK]
    run = project.refresh()
    built = {**run.nodes, ON_SPARK: large}
    stage.decided = stage.now()
    stage.build_cpu_seconds = sum(one.cpu_seconds for one in built.values())
    drawing = stage.folder / "lineage.svg"
    drawing.write_text(project.lineage().svg())
    cents = int(lake.sql("SELECT sum(cents) FROM customer_spend").scalar())
    disputed = int(lake.sql("SELECT sum(disputed) FROM merchant_day").scalar())
    return Act(
        "A project is built: views, features, a search index and an online table, by one command",
        f"headwater refresh {ON_SPARK} --engine spark; headwater refresh",
        {
            "payments": world.planted.payments,
            "chargebacks": world.planted.known_chargebacks,
            "built by Spark's tasks": ", ".join(name for name, one in built.items() if _on_spark(one)),
            "built in this process": ", ".join(name for name, one in built.items() if not _on_spark(one)),
            "lineage": str(drawing),
        },
        run_grid(built.values()),
        check=f"every node is built, and {cents:,} cents and {disputed} disputes are the planted ones",
        holds=run.ok
        and all(one.state == "done" for one in built.values())
        and run[ON_SPARK].state == "noop"
        and [name for name, one in built.items() if _on_spark(one)] == [ON_SPARK]
        and cents == world.planted.cents
        and disputed == world.planted.known_chargebacks,
    )


def _on_spark(one: NodeRun) -> bool:
    """Whether Spark's tasks have built a node, by the report of its refresh."""
    return one.refresh is not None and _BY_SPARK in one.refresh.reason
