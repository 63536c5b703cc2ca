"""Act one: Spark writes the tables, and one command builds everything that the project derives from them."""

from __future__ import annotations

from headwater.demo.act import Act
from headwater.demo.cards.stage import Stage, run_grid

__all__ = ["build"]


def build(stage: Stage) -> Act:
    """Write the tables of the first three weeks, and refresh the project."""
    world, project, lake = stage.world, stage.project, stage.lake
    feed = {"delta.enableChangeDataFeed": "true"}
    session = stage.start_spark()
    lake.write("transactions", session.createDataFrame(world.transactions), partition_by=["day"], properties=feed)
    lake.write("customers", world.customers)
    lake.write("chargebacks", world.chargebacks)
    lake.write("support_notes", world.support_notes)
    run = project.refresh()
    stage.decided = stage.now()
    stage.build_cpu_seconds = sum(one.cpu_seconds for one in run.nodes.values())
    drawing = stage.folder / "lineage.svg"
    drawing.write_text(project.lineage().svg())
    cents = int(lake.sql("SELECT sum(cents) FROM customer_spend").scalar())
    disputed = int(lake.sql("SELECT sum(disputed) FROM merchant_day").scalar())
    return Act(
        "A project is built: views, features, a search index and an online table, by one command",
        "headwater refresh",
        {
            "payments": world.planted.payments,
            "chargebacks": world.planted.known_chargebacks,
            "lineage": str(drawing),
        },
        run_grid(run),
        check=f"every node is built, and {cents:,} cents and {disputed} disputes are the planted ones",
        holds=run.ok
        and all(one.state == "done" for one in run.values())
        and cents == world.planted.cents
        and disputed == world.planted.known_chargebacks,
    )
